"""run_squad trains on some articles of a file, predicts on others."""

import json

import pytest

from run_scripts import squad
from tests.support.programs import NO_DROPOUT, one_line, results
from tests.support.task_data import (
    NUMBERS,
    WORDS,
    in_articles,
    number_questions,
    write_questions,
)
from tests.support.tiny_models import write_config
from tests.support.vocabularies import write_pieces

ARTICLES = 40


@pytest.fixture
def folder(tmp_path):
    """One file with an article for each question, a configuration and a vocabulary."""
    content = in_articles(number_questions(ARTICLES, 1, words=6))
    write_questions(tmp_path / "all.json", content)
    write_pieces(tmp_path, [*WORDS, *NUMBERS, "what", "number", "?", "."])
    write_config(tmp_path / "config.json", "bert", **NO_DROPOUT)
    return tmp_path


def run(folder, **flags):
    given = {
        "output_dir": folder / "output", "bert_config_file": folder / "config.json",
        "vocab_file": folder / "vocab.txt", "data_dir": folder, "train_file": "all.json",
        "predict_file": "all.json", "do_train": True, "do_predict": True, "max_seq_length": 16,
        "max_query_length": 5, "train_batch_size": 8, "train_step": 1, "xla": "off", **flags,
    }  # fmt: skip
    argv = [f"--{name}={value}" for name, value in given.items() if value is not None]
    return squad.main(["run_squad.py", *argv])


def answered(folder):
    return set(json.loads((folder / "output" / "predictions.json").read_text(encoding="utf-8")))


@pytest.mark.usefixtures("eagerly")
def test_one_file_is_trained_and_measured_on(folder, capsys):
    assert run(folder, train_articles="0:30", predict_articles="30:40") == 0
    assert answered(folder) == {f"1-{number}" for number in range(30, 40)}
    shown = capsys.readouterr().out
    assert "train: 30 examples" in shown and "dev: 10 examples" in shown
    assert results(folder / "output")["eval_exact"] >= 0


@pytest.mark.usefixtures("eagerly")
def test_articles_without_answers_are_predicted(folder, capsys):
    """Though the file's others, which are trained on, have answers."""
    path = folder / "all.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for article in content["data"][30:]:
        for entry in article["paragraphs"][0]["qas"]:
            entry["answers"] = []
    write_questions(path, content)
    assert run(folder, train_articles="0:30", predict_articles="30:40") == 0
    assert answered(folder) == {f"1-{number}" for number in range(30, 40)}
    assert "test: 10 examples" in capsys.readouterr().out


@pytest.mark.usefixtures("eagerly")
def test_a_part_of_train(folder, capsys):
    """Articles are taken away whole; the file to predict is neither needed nor read."""
    assert run(folder, eval_on="train_part", predict_file=None, train_articles="0:30") == 0
    found = results(folder / "output")
    assert {"train_part_exact", "train_part_f1", "baseline_exact"} <= set(found)
    assert not any(name.startswith("eval_") for name in found)
    part = answered(folder)
    assert 0 < len(part) < 10 and part <= {f"1-{number}" for number in range(30)}
    assert f"train_part: {len(part)} of the training examples" in capsys.readouterr().out
    flags = {"train_articles": "0:30", "predict_articles": "30:40", "predict_split": "dev"}
    assert run(folder, eval_on="train_part", **flags) == 0  # unless it shall be answered
    assert answered(folder) == {f"1-{number}" for number in range(30, 40)}


@pytest.mark.parametrize(
    "flags, words",
    (
        ({"train_articles": "0-30"}, "--train_articles must be two numbers"),
        ({"predict_articles": "9:9"}, "the first smaller, such as 0:100. Received: 9:9"),
        ({"train_articles": ":30"}, "Received: :30"),
        ({"predict_articles": "30:41"}, "must have at least 41 articles. Received: 40"),
    ),
)
def test_articles_that_are_none(folder, capsys, flags, words):
    assert run(folder, **flags) == 1
    assert words in one_line(capsys)
