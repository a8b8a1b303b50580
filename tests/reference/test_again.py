"""Tests of repeated runs: which are picked, what is shown of them."""

import pytest
from measured_runs import make_run

from bert_common.errors import InputError
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
    slow = {"eval_accuracy": 0.725, "other": None}
    append_run(ledger, make_run("a/seed4", slow, seconds=9000.0))
    lost = "python run_classifier.py --init_checkpoint=gone/model --output_dir=o"
    append_run(ledger, make_run("lost", {"eval_accuracy": 0.5}, command=lost))
    append_run(ledger, make_run("a/trial/1", {"seconds_per_update": 0.5}))
    append_run(ledger, make_run("text", {"words": 1}, command="python x.py --output_dir=o"))
    before = ledger.read_bytes()
    given = ["again", f"--ledger={ledger}", f"--output_dir={tmp_path}/again"]
    assert again.main([*given, "--count=3"]) == 0
    shown = capsys.readouterr().out
    # The deviation of four times 0.625 and once 0.725.
    assert shown.count("| eval_accuracy | 0.625  | 0.5   | -0.125     | 0.045 ") == 3
    assert shown.startswith("4 of 5 runs can be repeated here")
    assert "other" in shown and "measured on CPU one" in shown
    folders = sorted(path.name for path in (tmp_path / "again" / "a").iterdir())
    assert len(folders) == 3 and ledger.read_bytes() == before
    assert again.main([*given, "--count=3"]) == 0
    assert capsys.readouterr().out.count("not run again: repeated on") == 3
    assert again.main([*given, "--count=5"]) == 1
    assert "--count=5, 4 runs in" in capsys.readouterr().err
    for name, received in (("text", "text"), ("none", "none"), ("lost", "no gone/model")):
        assert again.main([*given, f"--names={name}"]) == 1
        assert f"Received: {received}" in capsys.readouterr().err


def test_inputs(tmp_path, monkeypatch):
    """Folders, patterns, the beginning of a checkpoint's name, parts of a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    # The lock of a folder that is gone is not that folder.
    for name in ("a-1.tfrecord", "model.ckpt-7.index", "vocabulary", "weights.lock"):
        (tmp_path / "data" / name).touch()
    command = "python x.py --a=data/*.tfrecord --b=data/model.ckpt-7 --rate=0.5 --output_dir=new/o"
    assert again.missing_inputs(make_run("a", {}, command=command)) == []
    more = " --models=one:data/vocabulary:data/weights,two:data/none --c=data/*.gz"
    assert again.missing_inputs(make_run("a", {}, command=command + more)) == [
        "data/weights", "data/none", "data/*.gz",
    ]  # fmt: skip


def test_a_folder_in_the_project_is_an_input(tmp_path, monkeypatch):
    """Without a slash, as reference_model; several runs have written it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    commands = {
        "a": "python x.py --output_dir=model",
        "b": "python y.py --output_dir=model",
        "c": "python run_ner.py --init_checkpoint=model --task_name=other --output_dir=o",
    }
    runs = {name: make_run(name, {}, command=command) for name, command in commands.items()}
    assert again.inputs_of(runs["c"]) == again.replaced_inputs(runs["c"], runs) == ["model"]
    assert again.missing_inputs(runs["c"]) == []
    (tmp_path / "model").rmdir()
    assert again.missing_inputs(runs["c"]) == ["model"]


def test_the_seed_chooses_the_runs():
    runs = {f"a{i}": make_run(f"a{i}", {"x": 1}) for i in range(50)}
    chosen = [
        [run.name for run in again.pick(runs, again.AgainFlags(count=5, seed=seed))]
        for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]


def test_runs_with_replaced_inputs_are_not_picked(tmp_path, monkeypatch):
    """The second training has written into the folder of the first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "model").mkdir(parents=True)
    train, measure = "python run_pretraining.py --", "python run_classifier.py --init_checkpoint="
    commands = {
        "first/train": f"{train}output_dir=out/model",
        "first/measure": f"{measure}out/model --output_dir=out/1",
        "inside/measure": f"{measure}out/model/model.ckpt-1 --output_dir=out/3",
        "other": "python run_classifier.py --output_dir=out/2",
    }
    (tmp_path / "out" / "model" / "model.ckpt-1").touch()
    runs = {name: make_run(name, {"x": 1}, command=text) for name, text in commands.items()}
    assert len(again.pick(runs, again.AgainFlags(count=4))) == 4
    runs["second/train"] = make_run("second/train", {"x": 1}, command=commands["first/train"])
    picked = again.pick(runs, again.AgainFlags(count=3))
    assert {run.name for run in picked} == {"first/train", "second/train", "other"}
    with pytest.raises(InputError, match="Received: --count=4, 3 runs in"):
        again.pick(runs, again.AgainFlags(count=4))


def test_redirected():
    command = "python x.py --output_dir='a b' --c=1"
    assert again.redirected(command, "new") == ["python", "x.py", "--output_dir=new", "--c=1"]
