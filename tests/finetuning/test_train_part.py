"""Evaluation on a part of train takes the same examples for every seed."""

import random

import pytest

from bert_common.errors import InputError
from finetuning.question_answering.data import read_questions
from finetuning.readers import Example
from run_scripts import classifier, squad
from run_scripts.downstream.program import Program, hold_out, take_part
from tests.support.programs import ClassifierJob, one_line, results
from tests.support.refusals import refused
from tests.support.task_data import (
    in_articles,
    number_questions,
    read_table,
    single_rows,
    write_questions,
    write_splits,
)

TEXT = Program._field_defaults["shared_text"]
PART = {"do_train": True, "do_eval": True, "eval_on": "train_part"}


def examples(count):
    return [Example(str(i), f"글 {i % (count // 2)}", None, i % 2) for i in range(count)]


def assert_divided(made, train, part):
    """Every example is on one side, in order, and no text is on both."""
    assert [train, part] == [[e for e in made if e in each] for each in (train, part)]
    assert len(train) + len(part) == len(made)
    assert not {e.text for e in train} & {e.text for e in part}


def test_about_a_tenth_whatever_the_order():
    made = examples(2000)
    train, part = take_part(made, TEXT)
    # 1,000 texts, each with the probability 0.1, by two examples: 200 ± 4 * 2 * sqrt(90).
    assert 124 < len(part) < 276
    assert_divided(made, train, part)
    shuffled = random.Random(0).sample(made, len(made))
    assert set(take_part(shuffled, TEXT)[1]) == set(part)
    # Other examples do not change the side of these.
    assert set(take_part(made[:1000], TEXT)[1]) == set(part) & set(made[:1000])


def test_the_part_stays_the_same():
    """Results of different days are comparable."""
    _, part = take_part(examples(60), TEXT)
    assert [example.id for example in part] == ["9", "11", "27", "39", "41", "57"]


def test_too_few_texts():
    same = [Example(str(i), "글", None, 0) for i in range(50)]
    with refused("train_part takes one in 10 ", "Received: 50 to ", ", 0 to"):
        take_part(same, TEXT)
    with pytest.raises(InputError, match=r"at least\. Received: 50, all with the same text$"):
        hold_out(same, classifier.PROGRAM.texts)


@pytest.mark.parametrize(
    "copies, held",
    (([1] * 100, 5), ([2] * 50, 4), ([20, 30, 3, 47], 3), ([20, 30, 10], 10), ([1, 2], 1)),
)
def test_copies_of_a_text_are_held_out_together(copies, held):
    """Else the best checkpoint would be the one that remembers the training texts best."""
    texts = [f"글 {number}" for number, count in enumerate(copies) for _ in range(count)]
    random.Random(0).shuffle(texts)
    made = [Example(str(i), text, None, 0) for i, text in enumerate(texts)]
    train, part = hold_out(made, classifier.PROGRAM.texts)
    assert len(part) == held
    assert_divided(made, train, part)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job whose dev and test must not be read: they are broken."""
    job = ClassifierJob(tmp_path_factory.mktemp("job"))
    write_splits(job.data, ["text", "label"], single_rows(120), train=(0, 120))
    for name in ("dev", "test"):
        (job.data / f"{name}.tsv").write_text("text\tlabel\nthe film\tunknown\n")
    return job


@pytest.mark.usefixtures("eagerly")
def test_evaluation_on_the_part(job, capsys):
    flags = {"train_step": 2, "eval_every_steps": 1, "labels": "bad,good"}
    assert job.run(**{**PART, **flags}, do_predict=True) == 0
    rows = read_table(job.data / "train.tsv")[1:]
    expected = take_part([Example("", text, None, label) for text, label in rows], TEXT)[1]
    assert 0 < len(expected) < 30
    found = results(job.output)
    assert 0 <= found["train_part_accuracy"] <= 1 and found["examples"] == len(expected)
    assert "baseline_accuracy" in found and not any(name.startswith("eval_") for name in found)
    header, *predicted = read_table(job.output / "predictions_train_part.tsv")
    assert [row[1:3] for row in predicted] == [[e.text, e.label] for e in expected]
    assert header[1:3] == ["text", "label"]
    shown = capsys.readouterr().out
    assert f"train_part: {len(expected)} of the training examples are not trained on" in shown
    assert f"train: {len(rows)} examples" in shown and "held_out" not in shown
    assert f"passes over {len(rows) - len(expected)} examples" in shown
    assert (job.output / "best").exists()


def test_a_finished_training_is_not_measured_on_what_it_has_seen(job, capsys):
    assert job.run(do_train=True, labels="bad,good") == 1
    line = one_line(capsys)
    assert "--eval_on must be train_part, with which the training in" in line
    assert line.endswith("began. Received: --eval_on=own")


def test_without_training(job, capsys):
    flags = {"do_train": False, "labels": "bad,good"}
    assert job.run(**flags, do_eval=True, eval_on="train_part") == 1
    assert "--eval_on=train_part needs --do_train" in one_line(capsys)
    assert job.run(**flags, do_predict=True, predict_split="train_part") == 1
    assert "the task must have train_part. Received: train, dev, test" in one_line(capsys)


def test_questions_of_an_article_stay_together(tmp_path):
    content = in_articles(number_questions(60, 1), 2)
    questions, _ = read_questions(write_questions(tmp_path / "q.json", content))
    train, part = take_part(questions, squad.PROGRAM.shared_text)
    assert part and not {q.article for q in train} & {q.article for q in part}
