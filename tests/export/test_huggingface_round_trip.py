"""A folder for transformers is one of this project again: weights, labels, outputs are the same."""

import contextlib
import json

import numpy as np
import pytest

from bert_common.errors import InputError
from finetuning.tasks import TASKS
from korean_bert import load_model
from model_formats import google
from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder
from model_formats.transformers_files.task_settings import check_head, settings_of
from tests.support.crosses import slow
from tests.support.models.model_folders import change_json, write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.tiny_models import weights_of


def exported(folder, output, write=export):
    output.mkdir()
    loaded = load_folder(str(folder))
    write(loaded, str(output))
    return loaded


@pytest.mark.parametrize("kind, sizes", [
    ("bert", {"hidden_act": "gelu_erf", "layer_norm_eps": 1e-5}),
    ("albert", {"embedding_size": 32, "num_hidden_groups": 2, "inner_group_num": 2}),
    ("electra", {}),
])  # fmt: skip
@pytest.mark.parametrize(
    "task",
    # The other heads' names are in test_huggingface_export.py.
    ["pretraining", *(slow(t) for t in TASKS if t != "ner"), "ner"],
)
def test_weights_labels_configuration(kind, sizes, task, tmp_path):
    write_folder(tmp_path / "in", kind, task, sizes)
    before = exported(tmp_path / "in", tmp_path / "out")
    after = load_folder(str(tmp_path / "out"))
    assert (after.task, after.labels, after.config) == (before.task, before.labels, before.config)
    assert type(after.model) is type(before.model)
    assert after.tokenizer.fingerprint() == before.tokenizer.fingerprint()
    absent = "bert/pooler/" if task in ("ner", "question_answering") else "no such name"
    if (kind, task) == ("electra", "pretraining"):
        absent = "cls/seq_relationship/"  # which no class of transformers has for it
    expected, found = weights_of(before.model), weights_of(after.model)
    lacks = {name for name in expected if name.startswith(absent)}
    assert lacks <= set(after.missing)
    np.testing.assert_equal({**found, **dict.fromkeys(lacks)}, {**expected, **dict.fromkeys(lacks)})


# KorQuAD has rules of scoring.
QUESTIONS = {"max_answer_length": 2, "doc_stride": 3, "task_name": "korquad"}


@pytest.mark.parametrize(
    "task, settings",
    (
        ("classification", {"max_seq_length": 10}),
        ("ner", {"max_seq_length": 10, "task_name": "klue-ner"}),  # its units are characters
        ("multiple_choice", {"max_seq_length": 20, "max_qa_length": 5, "task_name": "jsonl"}),
        ("question_answering", {**QUESTIONS, "version_2_with_negative": True}),
    ),
)
def test_predictions(task, settings, tmp_path):
    """What transformers has no keys for comes back too."""
    write_strong_folder(tmp_path / "in", task, **settings)
    exported(tmp_path / "in", tmp_path / "out")
    text = "나는 학교에 갔다. the books is red ? " * 3
    choices = "the book is red ? the book ?", text, ("red", "나는")
    asked = {"question_answering": ("the book ?", text), "multiple_choice": choices}.get(task, text)
    before, after = (load_model(tmp_path / name) for name in ("in", "out"))
    assert after.predict(asked) == before.predict(asked)
    assert {name: after.loaded.settings[name] for name in settings} == settings
    change_json(tmp_path / "out" / "config.json", finetuning={"task": task, "max_seq_length": "9"})
    with pytest.raises(InputError, match="max_seq_length must be a whole number"):
        load_model(tmp_path / "out")
    change_json(tmp_path / "out" / "config.json", finetuning={"task": "another", "doc_stride": 9})
    usual = {name: TASKS[task].settings[name].default for name in settings}
    usual |= {"max_seq_length": min(32, usual.get("max_seq_length", 32))}
    found = load_model(tmp_path / "out").loaded.settings
    assert {name: found[name] for name in usual} == usual


def test_a_second_segment_of_a_model_with_one_type(tmp_path):
    """Here a type without a row adds nothing; there it must have one, of zeros."""
    write_folder(tmp_path / "in", task="classification", sizes={"type_vocab_size": 1})
    before = exported(tmp_path / "in", tmp_path / "out")
    after = load_folder(str(tmp_path / "out"))
    ids, segments = np.array([[2, 10, 3, 12, 3]]), np.array([[0, 0, 0, 1, 1]])
    batch = {"input_ids": ids, "input_mask": np.ones_like(ids), "segment_ids": segments}
    np.testing.assert_array_equal(after.model(batch)["logits"], before.model(batch)["logits"])
    assert json.loads((tmp_path / "out" / "config.json").read_text())["type_vocab_size"] == 2


@pytest.mark.parametrize(
    "settings, kind, classes",
    (
        ({"task_type": "multi_label"}, "multi_label_classification", 3),
        ({"task_type": "regression", "labels": None}, "regression", 1),
        ({"task_name": "klue-sts", "labels": None}, "regression", 1),
    ),
    ids=str,
)
def test_kinds_of_classification(tmp_path, settings, kind, classes):
    """`test_transformers_export` compares the losses that these names choose."""
    write_folder(tmp_path / "in", task="classification", **settings)
    exported(tmp_path / "in", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["problem_type"] == kind and len(config["id2label"]) == classes
    loaded = load_folder(str(tmp_path / "out"))
    assert (loaded.model.classes, loaded.model.multi_label) == (classes, kind.startswith("multi"))
    assert (loaded.labels == ()) == (kind == "regression")


def test_from_transformers_to_google(tmp_path):
    """The settings are complete: Google's form is a folder that the fine-tuning programs take."""
    write_folder(tmp_path / "in", task="classification")
    exported(tmp_path / "in", tmp_path / "hf")
    exported(tmp_path / "hf", tmp_path / "google", google.export)
    settings = json.loads((tmp_path / "google" / "finetuning.json").read_text())
    assert settings["labels"] == "나쁨,보통,좋음"
    assert set(settings) == {"task", *TASKS["classification"].settings}


class Sizes:
    max_position_embeddings = 64


def test_labels_and_types():
    def settings(**values):
        values = {"architectures": ["BertForSequenceClassification"], **values}
        return settings_of(values, Sizes, "config.json")

    assert settings()["labels"] == "LABEL_0,LABEL_1" and settings()["max_seq_length"] == 64
    assert settings(id2label={"0": "x"})["task_type"] == "regression"
    multi = settings(id2label={"0": "x"}, problem_type="multi_label_classification")
    assert (multi["task_type"], multi["labels"]) == ("multi_label", "x")
    assert settings_of({"architectures": ["BertForMaskedLM"]}, Sizes, "") == {}
    assert settings_of({}, Sizes, "") == settings_of({"architectures": []}, Sizes, "") == {}
    two = {"0": "a", "1": "b"}
    for values, message in (
        ({"id2label": {"0": "a,b", "1": "c"}}, "names without commas. Received: {'0': 'a,b'"),
        ({"id2label": {"0": "a", "1": " a"}}, "id2label must give the classes 0, 1, ... different"),
        ({"id2label": {"0": "a", "1": " "}}, "id2label must give the classes 0, 1"),
        ({"id2label": {"1": "a", "2": "b"}}, "id2label must give the classes 0, 1"),
        ({"id2label": {}}, "id2label must"), ({"id2label": ["a"]}, "id2label must"),
        ({"id2label": two, "problem_type": "x"}, "problem_type must be one of single_label"),
        ({"id2label": two, "problem_type": ["x"]}, "problem_type must be one of single_label"),
        ({"id2label": two, "problem_type": "regression"}, "must predict one score. Received: 2"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            settings(**values)


@pytest.mark.parametrize(
    "values, message",
    (
        ({}, "summary_activation must be '', as .* Received: 'gelu'"),  # the default
        ({"summary_activation": "", "summary_type": "mean"}, "summary_type must be 'first', as "),
        ({"summary_activation": None}, None),
        ({"summary_activation": "", "summary_type": "first"}, None),
    ),
    ids=str,
)
def test_an_electra_for_choices_with_more_than_one_layer(values, message):
    """No name of its weights tells what transformers computes before the head's layer."""
    values = {"architectures": ["ElectraForMultipleChoice"], "summary_use_proj": False, **values}
    assert settings_of(values, Sizes, "config.json")["task"] == "multiple_choice"
    with pytest.raises(InputError, match=message) if message else contextlib.nullcontext():
        check_head(values, "config.json")
