"""Exported folders: in a process without this project, in the documentation."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf import PretrainingModel
from finetuning.classification import serving as classification
from finetuning.classification.head import SequenceClassifier
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.span_head import SpanModel
from finetuning.similarity.head import SentenceEncoder
from model_formats.saved_model.export import check, export, make_signatures
from tests.support.crosses import slow
from tests.support.models.served_models import call_signature, loaded_model, strong_head
from tests.support.paths import LAYERS, ROOT, printed_by
from tests.support.task_data import CONTEXTS

SETTINGS = {"task_name": "tsv", "labels": "negative,positive", "max_seq_length": 24}
DOCUMENTS = ("docs/serving.md", "docs/serving.ko.md")

# What a server does: nothing of this project is on the path, and the folder is another one.
CLIENT = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
outputs = {}
for name, texts in json.loads(sys.argv[2]).items():
    found = model.signatures["serving_default"](text=tf.constant(texts, tf.string))
    outputs[name] = found["probabilities"].numpy().tolist()
packages = sorted({module.split(".")[0] for module in sys.modules})
print(json.dumps([outputs, packages]))
"""


def make_classifier(encoder):
    return strong_head(SequenceClassifier(encoder, 2))


@pytest.fixture(scope="module")
def exported(tokenizer, tmp_path_factory):
    """A classifier and its SavedModel."""
    loaded = loaded_model(make_classifier, "classification", tokenizer, SETTINGS)
    folder = tmp_path_factory.mktemp("served") / "model" / "1"
    assert export(loaded, folder).startswith("import tensorflow_text")
    return loaded, folder


@pytest.fixture(scope="module")
def made(exported):
    """The signatures of the classifier."""
    return classification.signatures(exported[0])


@pytest.mark.slow
def test_in_a_process_without_this_project(exported, made, tmp_path):
    _, folder = exported
    texts = {"one": [CONTEXTS[0]], "two": [CONTEXTS[1], ""], "none": []}
    texts["many"] = [" ".join(CONTEXTS[i % 2].split()[: i % 9]) for i in range(64)]
    texts["long"] = [" ".join(CONTEXTS) * 75, "서울"]
    assert len(texts["long"][0]) > 5000
    environment = {"PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    out = printed_by("-c", CLIENT, folder, json.dumps(texts), cwd=tmp_path, **environment)
    outputs, packages = json.loads(out.splitlines()[-1])
    assert not {*LAYERS, "tests"} & set(packages) and "tensorflow_text" in packages
    for name, batch in texts.items():
        expected = call_signature(made, text=np.array(batch, object))["probabilities"]
        np.testing.assert_allclose(np.reshape(outputs[name], (-1, 2)), expected, atol=1e-5)


QUESTIONS = {
    "max_seq_length": 24, "max_query_length": 5, "doc_stride": 6, "n_best_size": 4,
    "max_answer_length": 5, "version_2_with_negative": True, "null_score_diff_threshold": 0.0,
}  # fmt: skip
CHOICES = {"max_seq_length": 24, "max_qa_length": 8}
TAGS = {"task_name": "conll", "labels": "O,B-X,I-X"}
# Task -> what puts its head on an encoder, its settings, its inputs; classification is above.
TASKS = {
    "multiple_choice": (MultipleChoiceModel, CHOICES, ("context", "question")),
    "question_answering": (SpanModel, QUESTIONS, ("question", "context")),
    "pretraining": (PretrainingModel, {}, ("text",)),
    "ner": (lambda encoder: TokenClassifier(encoder, 3), TAGS, ("text",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_saved(task, tokenizer, tmp_path):
    """Its export is compared with the model before it ends; the folder takes text."""
    make_head, settings, names = TASKS[task]
    loaded = loaded_model(make_head, task, tokenizer, settings)
    export(loaded, tmp_path / "1")
    texts = {name: tf.constant([CONTEXTS[0]]) for name in names}
    if task == "multiple_choice":
        texts["options"] = tf.constant([["서울", "부산", ""]])
    found = tf.saved_model.load(tmp_path / "1").signatures["serving_default"](**texts)
    expected = make_signatures(loaded).functions["serving_default"](**texts)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype.is_floating:
            np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)


def assert_documented(*words):
    for path in DOCUMENTS:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not [word for word in words if word not in text], path


@pytest.mark.slow
def test_documented_listing(exported):
    _, folder = exported
    command = ("-m", "tensorflow.python.tools.saved_model_cli", "show", "--dir", folder)
    out = printed_by(*command, "--tag_set", "serve", "--all", TF_CPP_MIN_LOG_LEVEL="3")
    (listed,) = re.findall(r"signature_def\['serving_default'\]:\n(?:  .*\n)+", out)
    names = re.findall(r"(?:inputs|outputs)\['(\w+)'\] tensor_info", listed)
    assert set(names) == {"text", "label", "labels", "probabilities"}
    assert_documented("saved_model_cli show --dir", *(f"`{name}`" for name in names))


@pytest.mark.slow
def test_documented_tables(tokenizer):
    """Every input and output of the signatures that take text."""
    answers = loaded_model(SpanModel, "question_answering", tokenizer, QUESTIONS)
    vectors = loaded_model(PretrainingModel, "pretraining", tokenizer, {})
    sentences = loaded_model(SentenceEncoder, "similarity", tokenizer, {"max_seq_length": 24})
    for made in map(make_signatures, (answers, vectors, sentences)):
        concrete = made.functions["serving_default"].get_concrete_function()
        inputs = concrete.structured_input_signature[1] or concrete.structured_input_signature[0]
        names = [*(spec.name for spec in tf.nest.flatten(inputs)), *concrete.structured_outputs]
        assert_documented(*(f"`{name}`" for name in names))


def test_refusals(exported, tmp_path):
    """A model without a tokenizer; a path that TensorFlow takes for a pattern."""
    loaded, _ = exported
    bare = dataclasses.replace(loaded, tokenizer=None)
    for model, name, message in (
        (bare, "new", "must have a tokenizer in its folder to be served"),
        (loaded, "served [1]", r"must have no \[ and no .*: .*/served \[1\]"),
    ):
        with pytest.raises(InputError, match=message):
            export(model, str(tmp_path / name))
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("positions", (1, slow(3)))
def test_a_model_of_few_positions(positions, tokenizer, tmp_path):
    sizes = {"max_position_embeddings": positions}
    loaded = loaded_model(make_classifier, "classification", tokenizer, SETTINGS, **sizes)
    export(loaded, tmp_path / "1")
    assert "ids" in tf.saved_model.load(str(tmp_path / "1")).signatures


def test_other_outputs_are_noticed(exported, made):
    loaded, folder = exported
    check(folder, made, loaded)
    weight = loaded.model.head.output_weights
    before = weight.numpy()
    weight.assign(before * 2)
    with pytest.raises(OSError, match="the SavedModel's probabilities differ from the model's"):
        check(folder, made, loaded)
    weight.assign(before)
