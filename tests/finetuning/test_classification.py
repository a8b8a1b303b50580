"""run_classifier's measurements and files where there are almost no examples."""

import math

import numpy as np
import pytest

from finetuning.classification.custom_data import FITTING_METRICS
from finetuning.classification.task import Classification
from finetuning.datasets import Dataset
from finetuning.readers import Example
from tests.support.task_data import write_tokenizer

pytest.importorskip("sklearn.metrics")

LABELS = {"single_label": 1, "multi_label": (0, 0), "regression": 2.5}


@pytest.mark.parametrize("count", (1, 2))
@pytest.mark.parametrize("task_type", LABELS)
@pytest.mark.filterwarnings("error")
def test_few_examples_of_one_label(task_type, count, tmp_path):
    """One class alone, no label at all, the same score: every result is a number."""
    labels = () if task_type == "regression" else ("x", "y")
    metrics = tuple(FITTING_METRICS[task_type])
    dataset = Dataset("", {}, labels, metrics, multi_label=task_type == "multi_label")
    task = Classification(dataset, write_tokenizer(tmp_path), 8)
    read = [Example(str(i), "서울", None, LABELS[task_type]) for i in range(count)]
    examples = task.encode(read, training=False)
    outputs = {"logits": [np.array([0.5, -0.5][: max(1, len(labels))], np.float32)] * count}
    model = type("Model", (), {"example_losses": lambda *_: np.ones(count)})
    results = task.measure(model, examples, outputs)
    assert set(results) == {*metrics, "loss"} and all(map(math.isfinite, results.values()))
    baseline = task.baseline(examples)
    assert set(baseline) == set(metrics) and all(map(math.isfinite, baseline.values()))
    assert task.illustrations(model, examples, outputs).texts["most_wrong"].count("\n") > 1
    task.write_predictions(str(tmp_path), "test", examples, outputs)


@pytest.mark.parametrize("task_type", LABELS)
def test_right_answers_are_no_mistakes(task_type, tmp_path):
    """Neither in the file nor in TensorBoard's table, however high their loss is."""
    labels = () if task_type == "regression" else ("x", "y")
    dataset = Dataset("", {}, labels, multi_label=task_type == "multi_label")
    task = Classification(dataset, write_tokenizer(tmp_path), 8)
    label = {"single_label": 0, "multi_label": (1, 0), "regression": 0.5}[task_type]
    read = [
        Example("right", "서울", None, label),
        Example("wrong", "서울", None, LABELS[task_type]),
    ]
    examples = task.encode(read, training=False)
    outputs = {"logits": [np.array([0.5, -0.5][: max(1, len(labels))], np.float32)] * 2}
    model = type("Model", (), {"example_losses": lambda *_: np.array([2.0, 1.0])})
    shown = task.illustrations(model, examples, outputs).texts["most_wrong"]
    path = task.write_details(str(tmp_path), "dev", model, examples, outputs)[-1]
    with open(path, encoding="utf-8") as file:
        for text in (shown, file.read()):
            assert "wrong" in text and "right" not in text


def test_scores_keep_their_digits(tmp_path):
    """Float32 would make 16777217 equal to 16777216."""
    dataset = Dataset("", {}, (), ("spearman",))
    task = Classification(dataset, write_tokenizer(tmp_path), 8)
    scores = (16777216, 16777217, 16777218)
    examples = task.encode([Example(str(s), "서울", None, float(s)) for s in scores], True)
    assert examples.make_batch(np.arange(3), 8)["label_ids"].dtype == np.float32
    outputs = {"logits": [np.array([i], np.float32) for i in range(3)]}
    model = type("Model", (), {"example_losses": lambda *_: np.ones(3)})
    assert task.measure(model, examples, outputs)["spearman"] == pytest.approx(1)
    (path, *_) = task.write_predictions(str(tmp_path), "dev", examples, outputs)
    with open(path, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file]
    assert [row[2] for row in rows[1:]] == [f"{score}.0000" for score in scores]
