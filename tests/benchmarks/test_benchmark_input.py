"""The benchmarks of the input run on tiny sizes."""

import subprocess
import sys

import pytest
from paths import ROOT

INPUT = ROOT / "benchmarks" / "input"


def output_of(name, *flags):
    """What a benchmark prints; it must succeed."""
    command = [sys.executable, str(INPUT / f"{name}.py"), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("packed", ((), ("--packed",)), ids=("ordinary", "packed"))
def test_masks_of_any_number_of_processes(packed):
    found = output_of(
        "mask_speed", "--processes=0,2", "--length=64", "--rows=8", "--rounds=2", "--batches=2",
        *packed,
    )  # fmt: skip
    rows = [line for line in found.splitlines() if line.startswith(("| 0 ", "| 2 "))]
    assert len(rows) == 2 and "All masks are equal" in found


def test_masking_is_measured_without_tensorflow():
    check = (
        "import sys; sys.argv = ['x', '--rounds=1', '--batches=1', '--rows=4', '--length=32', "
        f"'--processes=0']; sys.path.insert(0, {str(INPUT)!r}); import mask_speed; "
        "mask_speed.main(); assert not any(m.startswith('tensorflow') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)


@pytest.mark.slow
def test_the_pipeline_is_measured(tmp_path):
    found = output_of(
        "pipeline_speed", f"--work_dir={tmp_path}", "--processes=0,1", "--records=64",
        "--length=64", "--batch=8", "--seconds=0.1", "--rounds=2",
    )  # fmt: skip
    assert found.count("dynamic masks") == 4 and "All masks are equal" in found


@pytest.mark.slow
def test_resuming_is_measured(tmp_path):
    found = output_of(
        "resume_speed", f"--work_dir={tmp_path}", "--records=400", "--files=3", "--length=32",
        "--after=300", "--batch=16", "--rounds=1",
    )  # fmt: skip
    assert found.count("| 300 |") == 2 and list(tmp_path.iterdir()) == []
