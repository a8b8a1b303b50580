"""Renews the files of exact versions beside it: resolves what setup.py declares.

    python requirements/update.py            with Python 3.11 on Linux x86-64, as the images have

Nothing is installed. The files hold names and versions alone: no addresses, no checksums, so that
any index with these packages serves.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# File -> the extras that it includes.
EXTRAS = {"cpu.txt": "korean,finetune", "gpu.txt": "gpu,korean,finetune"}

HEAD = """# The exact versions of what `pip install '.[{extras}]'` brings, on Linux x86-64 with
# Python 3.11. Written by requirements/update.py.
"""


def resolve(extras):
    """What pip would install into an empty environment: name -> version.

    Args:
        extras: their names, separated by commas.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--quiet", f"--report={report}", f".[{extras}]"]
        subprocess.run(command, cwd=HERE.parent, check=True)
        return versions_of(json.loads(report.read_text(encoding="utf-8")))


def versions_of(report):
    """The packages of pip's report, this project left out: name -> version."""
    items = [item for item in report["install"] if "dir_info" not in item["download_info"]]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in items}


def lines_of(versions, extras):
    """The text of a file."""
    names = sorted(versions, key=str.lower)
    return HEAD.format(extras=extras) + "".join(f"{name}=={versions[name]}\n" for name in names)


if __name__ == "__main__":
    for name, extras in EXTRAS.items():
        (HERE / name).write_text(lines_of(resolve(extras), extras), encoding="utf-8")
        print(f"written: requirements/{name}")
