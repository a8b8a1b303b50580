"""Uneven classes and short budgets: weights, draws, early ends, what a run says of its classes."""

import numpy as np
import pytest

from run_scripts.downstream.results import warn_of_baseline
from tests.support.crosses import slow
from tests.support.programs import ClassifierJob, arrays, results
from tests.support.task_data import (
    BAD,
    GOOD,
    read_table,
    sentence,
    single_rows,
    write_splits,
    write_table,
)

TEXT_AND_LABEL = ["text", "label"]


@pytest.fixture
def job(tmp_path):
    return ClassifierJob(tmp_path).with_sentences(64, 16)


@pytest.mark.usefixtures("eagerly")
def test_a_run_names_its_classes_and_its_mistakes(job, capsys):
    train = read_table(job.data / "train.tsv")[1:]
    write_table(job.data / "train.tsv", TEXT_AND_LABEL, [("text", "label"), *train])
    dev = read_table(job.data / "dev.tsv")[1:]
    dev[3][1] = "good" if dev[3][1] == "bad" else "bad"  # a wrong label
    write_table(job.data / "dev.tsv", TEXT_AND_LABEL, dev)
    assert job.run(do_eval=True, train_step=2) == 0
    shown = capsys.readouterr()
    assert "compiling the training step, which may take a minute\n" in shown.out
    assert "classes of train: bad (32), good (32), label (1)\n" in shown.out
    assert "warning: train has a single example of class 'label'" in shown.err
    assert "warning: dev has no example of class 'label'" in shown.err
    header, *rows = read_table(job.output / "mistakes_dev.tsv")
    assert header == ["where", "true", "predicted", "loss", "text"]
    accuracy = results(job.output)["eval_accuracy"]
    assert len(rows) == round(16 * (1 - accuracy)) > 0
    for where, true, predicted, _, text in rows:
        path, number = where.rsplit(" line ", 1)
        assert path == f"{job.data}/dev.tsv" and dev[int(number) - 2] == [text, true]
        assert predicted != true
    table = {row[0]: row[1:] for row in read_table(job.output / "eval_classes_dev.tsv")}
    assert int(table["bad"][3]) + int(table["good"][3]) == 16 and table["label"][3] == "0"
    assert "eval_classes_dev.tsv" in shown.out


@pytest.mark.parametrize(
    "metric, value, baseline, warns",
    (
        ("accuracy", 0.9, 0.9, True),
        ("accuracy", 0.91, 0.9, False),
        ("pearson", 0.03, 0.0, True),
        ("pearson", 0.3, 0.0, False),
        ("entity_f1", 0.0, 0.0, True),
        ("best_rouge_w", 33.38, 33.33, True),  # in per cent, as run_squad's
        ("best_rouge_w", 33.6, 33.33, False),
    ),
)
def test_what_is_no_better(recwarn, metric, value, baseline, warns):
    for split in ("eval", "train_part"):
        results = {f"{split}_{metric}": value, f"baseline_{metric}": baseline}
        warn_of_baseline((f"eval_{metric}", True), results, metric != "entity_f1")
    texts = [str(warning.message) for warning in recwarn]
    assert len(texts) == 2 * warns
    assert all(("--class_weights" in text) == (metric != "entity_f1") for text in texts)


def uneven(job):
    """Two of sixty examples are good, and most of these two words are in bad ones too."""
    rng = np.random.default_rng(0)
    rows = [(sentence(rng, BAD), "bad") for _ in range(56)]
    rows += [(sentence(rng, GOOD), "good") for _ in range(8)]
    write_table(job.data / "train.tsv", TEXT_AND_LABEL, [rows[i] for i in rng.permutation(64)])


ALIKE = {"two": {"distribution_strategy": "mirrored"}, "parts": {"gradient_accumulation_steps": 2}}


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("alike", ({}, slow(ALIKE)), ids=("one device", "two devices and parts"))
def test_balanced_weights_change_the_training_alike(job, alike, fails):
    uneven(job)
    flags = {"class_weights": "balanced", "train_step": 3, "classifier_dropout": 0}
    found = {}
    for name, more in {"none": {"class_weights": "none"}, "one": {}, **alike}.items():
        output = job.folder / name
        assert job.run(**{**flags, **more}, output_dir=output) == 0
        found[name] = arrays(output, 3)
    weights = [name for name in found["one"] if name.endswith("output_weights")]
    for other in alike:
        for name in weights:
            one, two = found["one"][name], found[other][name]
            np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6, err_msg=name)
    assert any(np.abs(found["none"][n] - found["one"][n]).max() > 1e-4 for n in weights)
    resumed = {**flags, "class_weights": "none", "train_step": 4, "output_dir": job.folder / "one"}
    fails(job.run, "--class_weights must be balanced, with which the training in", **resumed)


@pytest.mark.usefixtures("eagerly")
def test_weights_of_several_labels(job):
    texts = enumerate(single_rows(40))
    rows = [(text, label if i % 3 else "good,bad") for i, (text, label) in texts]
    write_splits(job.data, TEXT_AND_LABEL, rows, train=(0, 30), dev=(30, 40))
    flags = {"task_type": "multi_label", "class_weights": "balanced", "train_step": 2}
    assert job.run(do_eval=True, do_predict=True, predict_split="dev", **flags) == 0
    assert len(read_table(job.output / "eval_classes_dev.tsv")[1]) == 5
    header, *found = read_table(job.output / "predictions_dev.tsv")
    assert header[3:] == ["prediction", "bad", "good"] and len(found) == 10
    for row in found:
        shares = zip(header[4:], row[4:], strict=True)
        assert row[3] == ",".join(name for name, share in shares if float(share) > 0.5)


def test_scores_have_no_classes(job, fails):
    rows = [(text, len(text) / 10) for text, _ in single_rows(20)]
    write_splits(job.data, TEXT_AND_LABEL, rows, train=(0, 20))
    flags = {"task_type": "regression", "class_weights": "balanced"}
    fails(job.run, "--class_weights must be none where labels are scores", **flags)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "flags, advised",
    (({}, True), ({"class_weights": "balanced"}, False), ({"task_type": "regression"}, False)),
)
def test_class_weights_are_advised_where_they_are_allowed(flags, advised, job, capsys):
    rows = [("the film", "01"[i % 2]) for i in range(24)]
    write_splits(job.data, TEXT_AND_LABEL, rows, train=(0, 16), dev=(16, 24))
    assert job.run(**flags, do_eval=True, train_step=1) == 0
    shown = capsys.readouterr().err
    assert "no better than without a model" in shown
    assert ("--class_weights=balanced" in shown) == advised


@pytest.mark.usefixtures("eagerly")
def test_a_draw_and_a_part_of_train(job, prints):
    flags = {"do_eval": True, "eval_on": "train_part", "train_step": 2}
    shown = prints(job.run, **flags, max_train_examples=20)
    assert "train: 20 of " in shown and "passes over 20 examples" in shown
    assert "classes of train: bad (10), good (10)" in shown and "classes of train_part: " in shown
    assert (job.output / "eval_classes_train_part.tsv").exists()


@pytest.mark.usefixtures("eagerly")
def test_early_stopping_is_patience(job, capsys):
    """And a model that learned nothing is named."""
    flags = {"do_eval": True, "eval_every_steps": 2, "early_stopping": 2, "labels": "bad,good"}
    assert job.run(**flags, learning_rate=1e-9) == 0
    shown, found = capsys.readouterr(), results(job.output)
    assert "already at step" not in shown.out
    assert found["global_step"] == 2  # the first; none was better
    assert found["eval_accuracy"] <= found["baseline_accuracy"]
    assert "no better than without a model" in shown.err
    assert (job.output / "model.ckpt-6.index").exists()


def test_messages_name_the_way_out(job, fails):
    (job.data / "dev.tsv").unlink()
    fails(job.run, "--eval_on=train_part", do_eval=True)
    flags = {"output_dir": job.folder / "no", "task_name": "tsv", "do_predict": True}
    fails(job.again, "without --do_train there must be a fine-tuned checkpoint", **flags)
