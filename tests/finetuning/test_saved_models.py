"""A fine-tuned classifier as a SavedModel: its signature, its outputs, the files beside it."""

import json
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from finetuning.classification.serving import name_classes
from finetuning.inputs import encode_pairs, pad_rows
from finetuning.saved_models import interpret_logits
from model_formats.model_folder import SETTINGS_FILE
from tests.support.programs import ClassifierJob
from tests.support.task_data import read_table, single_rows, write_splits
from tests.support.tiny_models import without_graphs
from tokenization import load_tokenizer

LENGTH = 16


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model trained for a moment, its predictions, and its export with a threshold."""
    job = ClassifierJob(tmp_path_factory.mktemp("exported"))
    splits = {"train": (0, 16), "test": (16, 24)}
    write_splits(job.data, ["text", "label"], single_rows(24), **splits)
    job.export = job.folder / "served" / "model"
    with without_graphs():
        assert job.run(train_step=1, do_predict=True, max_seq_length=LENGTH) == 0
    assert job.again(export_dir=job.export, threshold_to_export=0.25) == 0
    return job


def serialized(tokenizer, texts):
    """tf.Examples as ALBERT's program takes them."""
    rows = encode_pairs(tokenizer, [(text, None) for text in texts], LENGTH)
    batch = pad_rows(rows, LENGTH, tokenizer.pad_id)
    examples = [tf.train.Example() for _ in texts]
    for name, values in batch.items():
        for example, row in zip(examples, values, strict=True):
            example.features.feature[name].int64_list.value.extend(row)
    return tf.constant([example.SerializeToString() for example in examples])


def test_saved_model_predicts_as_the_program(exported):
    (folder,) = exported.export.iterdir()
    assert folder.name.isdigit()
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    # The files beside the model are enough to use it.
    extra = folder / "assets.extra"
    labels = json.loads((extra / SETTINGS_FILE).read_text())["labels"].split(",")
    header, *rows = read_table(exported.output / "predictions_test.tsv")
    outputs = serve(input=serialized(load_tokenizer(extra), [row[1] for row in rows]))
    assert {name: (value.dtype, value.shape) for name, value in outputs.items()} == {
        "probabilities": (tf.float32, (8, 2)),
        "predictions": (tf.int32, (8,)),
        "threshold": (tf.float32, ()),
    }
    assert outputs["threshold"] == 0.25
    predicted = [row[header.index("prediction")] for row in rows]
    assert [labels[i] for i in outputs["predictions"]] == predicted
    shares = [[float(row[header.index(label)]) for label in labels] for row in rows]
    np.testing.assert_allclose(outputs["probabilities"], shares, atol=1e-6)


def test_second_export_gets_another_folder(exported):
    before = set(exported.export.iterdir())
    assert exported.again(export_dir=exported.export) == 0
    (new,) = set(exported.export.iterdir()) - before
    serve = tf.saved_model.load(str(new)).signatures["serving_default"]
    assert set(serve.structured_outputs) == {"probabilities", "predictions"}


class Kind(NamedTuple):
    """What `interpret_logits` reads of a model."""

    classes: int
    multi_label: bool = False


def test_outputs_of_scores_and_of_several_labels():
    score = interpret_logits(Kind(1), np.array([[0.5], [4.0]], np.float32))
    assert score["probabilities"].shape == (2, 1) and list(score["predictions"]) == [0.5, 4.0]
    labels = interpret_logits(Kind(3, multi_label=True), np.array([[0.0, 2.0, -2.0]], np.float32))
    np.testing.assert_allclose(labels["probabilities"][0], [0.5, 0.880797, 0.119203], rtol=1e-5)
    assert labels["predictions"].numpy().tolist() == [[0, 1, 0]]


def test_one_label_that_a_text_may_have_is_no_score():
    """As transformers' models with one label and binary cross entropy have it."""
    found = name_classes(Kind(1, multi_label=True), ["a"], tf.constant([[2.0], [-1.0]]))
    np.testing.assert_allclose(found["probabilities"], [[0.880797], [0.268941]], rtol=1e-5)
    assert found["predicted"].numpy().tolist() == [[True], [False]]
    assert found["labels"].numpy().tolist() == [[b"a"], [b"a"]]
    assert list(name_classes(Kind(1), [], tf.constant([[0.5]]))) == ["score"]
