"""run_race: questions with options in, the right option out, with the smallest models."""

import pytest

from finetuning.multiple_choice.data import read_choices
from run_scripts import race
from tests.support.crosses import slow
from tests.support.programs import NO_DROPOUT, curves, one_line, results
from tests.support.task_data import RACE_WORDS, write_race, write_race_lines
from tests.support.tiny_models import write_config
from tests.support.vocabularies import write_pieces


def model_flags(folder, kind):
    write_config(folder / "config.json", kind, **NO_DROPOUT)
    write_pieces(folder, [*RACE_WORDS, "yes", "which", "what", "?"])
    return [
        f"--{kind}_config_file={folder}/config.json", f"--vocab_file={folder}/vocab.txt",
        "--max_seq_length=32", "--max_qa_length=8", "--train_batch_size=8",
        "--learning_rate=3e-3", "--train_step=120", "--warmup_step=4", "--dropout_prob=0",
    ]  # fmt: skip


def line_flags(folder):
    return [*model_flags(folder, "bert"), "--task_name=jsonl", "--bucket_boundaries=none"]


def run(folder, *flags):
    given = ["run_race.py", f"--output_dir={folder}/output", f"--data_dir={folder}", "--xla=off"]
    return race.main([*given, *flags])


@pytest.mark.parametrize("kind", (slow("bert"), "albert"))
def test_learns_and_chooses_again(kind, tmp_path):
    write_race(tmp_path, train=16, dev=6, test=4)
    assert run(tmp_path, *model_flags(tmp_path, kind)) == 0  # trains and evaluates by itself
    found = results(tmp_path / "output")
    assert found["eval_accuracy"] > 0.7 and found["test_accuracy"] > 0.7  # chance: 0.25
    assert found["global_step"] == 120 and found["examples"] == 12
    assert found["baseline_accuracy"] < 0.7
    assert run(tmp_path, "--do_predict", "--do_eval") == 0
    assert results(tmp_path / "output") == found
    lines = (tmp_path / "output" / "predictions_test.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["id", "label", "prediction", "A", "B", "C", "D"]
    rows = [line.split("\t") for line in lines[1:]]
    right = sum(row[1] == row[2] for row in rows) / len(rows)
    assert right == pytest.approx(found["test_accuracy"]) and len(rows) == 8
    assert sum(map(float, rows[0][3:])) == pytest.approx(1, abs=1e-5)
    assert run(tmp_path, "--do_eval", "--high_only") == 0
    assert results(tmp_path / "output")["examples"] == 6


@pytest.mark.usefixtures("eagerly")
def test_own_lines(tmp_path, capsys):
    """A user's own files, of which test has no answers."""
    write_race_lines(tmp_path / "train.jsonl", 24)
    write_race_lines(tmp_path / "dev.jsonl", 6)
    write_race_lines(tmp_path / "test.jsonl", 3, labelled=False)
    flags = ["--do_train", "--do_eval", "--do_predict", "--train_step=1"]
    assert run(tmp_path, *line_flags(tmp_path), *flags) == 0
    found = results(tmp_path / "output")
    assert found["examples"] == 6 and "test_accuracy" not in found
    lines = (tmp_path / "output" / "predictions_test.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["id", "1", "2", "3"]
    assert lines[0].split("\t")[1] == "prediction"
    assert len(read_choices(tmp_path / "test.jsonl")) == 3
    write_race_lines(tmp_path / "train.jsonl", 24, labelled=False)
    assert run(tmp_path, "--do_train") == 1
    assert "must have a label for every question" in capsys.readouterr().err


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "labelled, flags, part",
    (
        (True, "--do_eval --do_predict --eval_on=train_part", "train_part"),
        (False, "--eval_every_steps=1", "held_out"),
        (False, "--eval_every_steps=1 --do_eval", "held_out"),
        (False, "--eval_every_steps=1 --do_predict --predict_split=dev", "held_out"),
    ),
)
def test_a_part_of_train_is_measured_on(labelled, flags, part, tmp_path, capsys):
    """Where dev's answers are not known, as where there is no dev."""
    write_race_lines(tmp_path / "train.jsonl", 24)
    write_race_lines(tmp_path / "dev.jsonl", 3, labelled)
    write_race_lines(tmp_path / "test.jsonl", 3)
    given = [*line_flags(tmp_path), "--train_step=1", "--do_train"]
    assert run(tmp_path, *given, *flags.split()) == 0
    assert f"\n{part}: " in capsys.readouterr().out
    if "--predict_split=dev" in flags:  # which has no answers
        assert curves(tmp_path / "output" / "eval")["data/examples"] == [(1, 1)]
    elif "--do_predict" in flags:
        path = tmp_path / "output" / "predictions_train_part.tsv"
        header, *rows = [line.split("\t") for line in path.read_text().splitlines()]
        assert header[1] == "label" and {row[1] for row in rows} <= set("ABCD")


@pytest.mark.usefixtures("eagerly")
def test_any_split_is_predicted(tmp_path):
    """Also one that is neither trained nor measured on."""
    for split, count in {"train": 24, "dev": 3, "test": 4}.items():
        write_race_lines(tmp_path / f"{split}.jsonl", count)

    def rows(split, *flags):
        assert run(tmp_path, "--do_predict", f"--predict_split={split}", *flags) == 0
        return len((tmp_path / "output" / f"predictions_{split}.tsv").read_text().splitlines()) - 1

    given = [*line_flags(tmp_path), "--train_step=1", "--do_train", "--do_eval"]
    given += ["--eval_on=train_part"]
    assert rows("test", *given) == 4
    assert rows("train") == 24 and rows("dev") == 3


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("flags", ("--do_eval", "--do_train --eval_every_steps=1"))
def test_a_missing_answer_is_said(flags, tmp_path, capsys):
    """Instead of measuring on test alone, or on a part of train."""
    for split in ("train", "dev", "test"):
        write_race_lines(tmp_path / f"{split}.jsonl", 3)
    path = tmp_path / "dev.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    write_race_lines(path, 1, labelled=False)
    path.write_text("".join(lines[:2]) + path.read_text())
    given = [*model_flags(tmp_path, "bert"), "--task_name=jsonl"]
    if "--do_train" not in flags:
        assert run(tmp_path, *given, "--train_step=1", "--train_batch_size=2", "--do_train") == 0
    assert run(tmp_path, *given, *flags.split()) == 1
    line = "dev must have a label for every question, or none. Received: 1 of 3 without, such as 3"
    assert line in capsys.readouterr().err
    if "--do_train" in flags:  # where dev is predicted alone, it may be so
        alone = "--do_train --train_step=1 --train_batch_size=2 --do_eval --eval_on=train_part"
        write_race_lines(tmp_path / "train.jsonl", 12)
        more = (*alone.split(), "--do_predict", "--predict_split=dev")
        assert run(tmp_path, *given, *more) == 0


REFUSED = {
    "--do_eval --freeze_encoder": "Unknown command line flag 'freeze_encoder'",
    "--do_train --max_qa_length=30": "--max_qa_length must be from 1 to 29",
    "--do_train=false": "--do_train, --do_eval or --do_predict must be on",
    "--do_train --task_name=jsonl": "train.jsonl",
    "--do_train --do_eval": "train",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_refused(flags, tmp_path, capsys):
    write_race(tmp_path, dev=2)
    assert run(tmp_path, *model_flags(tmp_path, "bert"), *flags.split()) == 1
    assert REFUSED[flags] in one_line(capsys)
