"""Every command of the script that trains reference_vectors starts from a model made before."""

import re
import shlex

from generated_pages.flags import PROGRAMS

from run_scripts.flags.parser import parse
from tests.support.paths import ROOT

SCRIPT = ROOT / "benchmarks" / "reference" / "vectors.sh"


def script_commands():
    """The script's commands, the loop's once for every seed."""
    text = SCRIPT.read_text(encoding="utf-8").replace("\\\n", " ").replace("$S/", "data/sources/")
    loop = re.search(r"for seed in ([\d ]+); do\n(.*?)done\n", text, re.DOTALL)
    rounds = "".join(loop[2].replace("$seed", seed) for seed in loop[1].split())
    for line in text.replace(loop[0], rounds).splitlines():
        if line.strip().startswith("python "):
            yield shlex.split(line)


def test_commands_are_accepted_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, programs = {"reference_model"}, []
    for words in script_commands():
        program, *arguments = words[2:] if words[1] == "-m" else words[1:]
        programs.append(program)
        if program.startswith("benchmarks."):
            assert ROOT.joinpath(*program.split(".")).with_suffix(".py").is_file()
            continue
        values = parse(PROGRAMS[program], [program, *arguments])
        models = (values.models if hasattr(values, "models") else values.model_dir).split(",")
        assert made.issuperset(path.removeprefix(f"{ROOT}/") for path in models), arguments
        made.add(values.output_dir)
    assert programs.count("run_similarity.py") == 7 and programs[-1] == "export_model.py"
    assert "reference_vectors" in made
