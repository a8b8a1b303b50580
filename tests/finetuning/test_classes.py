"""Counts, weights, draws and figures of classes, against NumPy and scikit-learn."""

import json
import os
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from finetuning.class_report import FULL_CLASSES, make_class_report, write_class_report
from finetuning.classes import (
    balanced_label_weights,
    balanced_weights,
    count_classes,
    describe_classes,
    draw_examples,
    warn_of_thin_classes,
)
from finetuning.classification.head import multi_label_sums
from finetuning.heads import classification_sums
from finetuning.readers import Example


def examples(*labels):
    return [Example(str(i), f"글 {i}", None, label) for i, label in enumerate(labels)]


def test_counts():
    assert count_classes(("a", "b", "c"), examples(0, 0, 2)) == {"a": 2, "b": 0, "c": 1}
    assert count_classes(("a", "b"), examples((1, 1), (0, 1), (0, 0))) == {"a": 1, "b": 2}
    assert count_classes((), examples(0.5, 1.0)) == {}
    assert count_classes(("a", "b"), examples(None, None)) == {}
    many = describe_classes({str(i): 30 - i for i in range(25)})
    assert many.startswith("0 (30), 1 (29), ")
    assert many.endswith(" 19 (11), and 5 others with 6 to 10")


def test_warnings_of_thin_classes(recwarn):
    warn_of_thin_classes({"train": {"a": 2, "b": 2}, "dev": {"a": 1, "b": 1}, "test": {}})
    assert not recwarn.list
    train = {"a": 5, "label": 1, "c": 2, "d": 0}
    warn_of_thin_classes({"train": train, "dev": {"a": 1, "label": 1, "c": 0, "d": 0}})
    assert [re.split("[:,]", str(warning.message))[0] for warning in recwarn.list] == [
        "train has a single example of class 'label'",
        "train has no example of class 'd'",
        "dev has no example of class 'c'",
    ]


@pytest.mark.parametrize("labels", ([0, 0, 0, 1], [2, 0, 2, 2, 2, 0, 2], [1, 1]))
def test_balanced_weights_are_scikit_learns(labels):
    weights = pytest.importorskip("sklearn.utils.class_weight")
    present = np.unique(labels)
    expected = weights.compute_class_weight("balanced", classes=present, y=labels)
    np.testing.assert_allclose(balanced_weights(labels, 3)[present], expected, rtol=1e-6)
    assert balanced_weights(labels, 3)[labels].sum() == pytest.approx(len(labels))


def test_weighted_losses_are_numpys():
    """The sum of weighted losses over the sum of weights, however the batch is cut."""
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(12, 3)).astype("f"), np.array([0] * 8 + [1] * 3 + [2])
    weights = balanced_weights(labels, 3)[labels]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = np.average(-np.log(shares[np.arange(12), labels]), weights=weights)
    totals = {"label_loss": 0.0, "label_weight": 0.0}
    for part in np.array_split(np.arange(12), 3):
        batch = {"label_ids": labels[part], "label_weights": weights[part]}
        sums = classification_sums({"logits": tf.constant(logits[part])}, batch)
        totals = {name: totals[name] + float(sums[name]) for name in totals}
    assert totals["label_loss"] / totals["label_weight"] == pytest.approx(expected, rel=1e-5)


def test_weighted_losses_of_several_labels_are_numpys():
    """Presence and absence of a label weigh the same in all."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(10, 3)).astype("f")
    labels = (rng.random((10, 3)) < (0.1, 0.5, 0.9)).astype("i4")
    labels[:2] = (1, 0, 1), (0, 1, 0)
    weights = balanced_label_weights(labels)
    np.testing.assert_allclose((weights * labels).sum(0), (weights * (1 - labels)).sum(0))
    shares = 1 / (1 + np.exp(-logits))
    losses = -np.log(np.where(labels, shares, 1 - shares))
    batch = {"label_ids": labels, "label_weights": weights}
    sums = multi_label_sums({"logits": keras.ops.convert_to_tensor(logits)}, batch)
    found = float(sums["label_loss"] / sums["label_weight"])
    assert found == pytest.approx(np.average(losses, weights=weights), rel=1e-5)


def test_a_draw_keeps_the_shares_and_every_class():
    made = examples(*[0] * 900, *[1] * 95, *[2] * 5)
    drawn = draw_examples(made, 100, seed=3)
    counts = np.bincount([example.label for example in drawn])
    assert len(drawn) == len(set(drawn)) == 100 and abs(counts - [90, 9.5, 1]).max() <= 1
    assert drawn == draw_examples(made, 100, seed=3) != draw_examples(made, 100, seed=4)
    assert [int(e.id) for e in drawn] == sorted(int(e.id) for e in drawn)
    assert draw_examples(made, 1000, seed=3) is made
    assert {e.label for e in draw_examples(made, 6, seed=0)} == {0, 1, 2}
    assert len(draw_examples(examples(*[0.5] * 9), 4, seed=0)) == 4
    assert len(draw_examples(examples(*[(0, 1), (1, 0)] * 9), 5, seed=0)) == 5
    assert len(draw_examples(["a", "b", "c"], 2, seed=0)) == 2  # of any task


def written(folder, report):
    """The rows of a report's table, and its objects."""
    table, objects = write_class_report(str(folder), "dev", report)
    assert os.path.getsize(table) + os.path.getsize(objects) < 2**20
    with open(table, encoding="utf-8") as file, open(objects, encoding="utf-8") as json_file:
        return [line.rstrip("\n").split("\t") for line in file], json.load(json_file)


def test_figures_of_each_class_are_scikit_learns(tmp_path):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(2)
    true, predicted = rng.integers(0, 3, 50), rng.integers(0, 4, 50)
    several = rng.integers(0, 2, (50, 4)), rng.integers(0, 2, (50, 4))
    for labels, guesses in (several, (true, predicted)):
        report = make_class_report("abcd", labels, guesses)
        expected = metrics.precision_recall_fscore_support(
            labels, guesses, labels=range(4), zero_division=0
        )
        np.testing.assert_allclose(report[2:], expected)
    confusion = metrics.confusion_matrix(true, predicted, labels=range(4))
    np.testing.assert_array_equal(report.confusion, confusion)
    (header, *rows), found = written(tmp_path, report)
    assert header[:6] == ["class", "precision", "recall", "f1", "support", "predicted a"]
    assert [int(cell) for row in rows for cell in row[5:]] == confusion.ravel().tolist()
    assert [entry["support"] for entry in found] == report.support.tolist()
    assert found[0]["predicted"] == dict(zip("abcd", confusion[0].tolist(), strict=True))


def test_confusions_of_very_many_classes_are_those_that_occur(tmp_path):
    """A number for every pair of 10,000 classes, of a few examples, filled the memory."""
    labels = [f"class {number}" for number in range(FULL_CLASSES + 1)]
    report = make_class_report(labels, np.array([3, 3, 7]), np.array([3, 9, 7]))
    rows, found = written(tmp_path, report)
    assert set(map(len, rows)) == {5}
    assert found[3]["predicted"] == {"class 3": 1, "class 9": 1} and found[3]["support"] == 2
    assert not any(found[0]["predicted"]) and len(found) == len(labels)
