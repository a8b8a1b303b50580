"""Tests of repeated runs: which are picked, what is shown of them."""

from measured_runs import make_run

from run_scripts.reference import again
from run_scripts.reference.ledger import append_run

PROGRAM = """
import pathlib, sys
folder = pathlib.Path(next(w for w in sys.argv if w.startswith("--output_dir=")).split("=")[1])
folder.mkdir(parents=True)
(folder / "eval_results.txt").write_text("eval_accuracy = 0.5\\n")
"""


def test_runs_are_repeated(tmp_path, capsys, monkeypatch):
    """Three of four runs, in new folders; the numbers side by side; the ledger stays."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run_classifier.py").write_text(PROGRAM)
    ledger = tmp_path / "runs.jsonl"
    for i in range(4):
        append_run(ledger, make_run(f"a/seed{i}", {"eval_accuracy": 0.625, "other": None}))
    append_run(ledger, make_run("slow", {"eval_accuracy": 0.5}, seconds=9000.0))
    append_run(ledger, make_run("text", {"words": 1}, command="python x.py --output_dir=o"))
    before = ledger.read_bytes()
    given = ["again", f"--ledger={ledger}", f"--output_dir={tmp_path}/again"]
    assert again.main([*given, "--count=3"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("| eval_accuracy | 0.625  | 0.5   | -0.125     |") == 3
    assert "other" in shown and "measured on CPU one" in shown
    folders = sorted(path.name for path in (tmp_path / "again" / "a").iterdir())
    assert len(folders) == 3 and ledger.read_bytes() == before
    assert again.main([*given, "--count=5"]) == 1
    assert "--count=5, 4 runs in" in capsys.readouterr().err
    for name in ("text", "none"):
        assert again.main([*given, f"--names={name}"]) == 1
        assert f"Received: {name}" in capsys.readouterr().err


def test_the_seed_chooses_the_runs():
    runs = {f"a{i}": make_run(f"a{i}", {"x": 1}) for i in range(50)}
    chosen = [
        [run.name for run in again.pick(runs, again.AgainFlags(count=5, seed=seed))]
        for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]


def test_redirected():
    command = "python x.py --output_dir='a b' --c=1"
    assert again.redirected(command, "new") == ["python", "x.py", "--output_dir=new", "--c=1"]
