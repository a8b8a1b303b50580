"""Any folder becomes a model with its labels: pre-trained, released, fine-tuned."""

import json
import warnings

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import google_arrays, write_arrays
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.tasks import TASKS
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from model_formats.task_records import SETTINGS_FILE, SIGNS, find_task
from tests.support.models.model_folders import (
    VALUES,
    change_json,
    drop_weights,
    settings_of,
    write_folder,
    write_model,
)
from tests.support.models.released_models import write_albert, write_bert
from tests.support.tiny_models import weights_of


def same_weights(one, two):
    np.testing.assert_equal(weights_of(one), weights_of(two))


@pytest.mark.parametrize("task", TASKS)
def test_fine_tuned_models(task, tmp_path):
    expected, settings = write_model(tmp_path, "bert", task), settings_of(task)
    loaded = load_folder(str(tmp_path))
    assert (loaded.task, type(loaded.model)) == (task, type(expected))
    assert loaded.labels == tuple(filter(None, VALUES[task].get("labels", "").split(",")))
    assert loaded.settings == settings and loaded.trained_positions == 16
    assert loaded.missing == () and loaded.tokenizer.vocab_size == 18
    same_weights(loaded.model, expected)
    path = tmp_path / SETTINGS_FILE
    assert json.loads(path.read_text()) == {"task": task, **settings}
    if task in SIGNS:  # folders of version 0.1 hold the settings alone
        path.write_text(json.dumps(settings))
        folder = ModelFolder.open(str(tmp_path))
        assert (folder.task, folder.settings) == (task, settings)


def test_what_is_no_task():
    assert find_task({}, "") == "pretraining"
    with pytest.raises(InputError, match="x.json: task must be one of .*Received: 'poetry'"):
        find_task({"task": "poetry"}, "x.json")
    with pytest.raises(InputError, match="x.json must hold one of .*Received: seed"):
        find_task({"seed": 1}, "x.json")


def test_kinds_of_classification(tmp_path):
    """`test_huggingface_round_trip` has more."""

    def loaded(name, **settings):
        write_folder(tmp_path / name, task="classification", **settings)
        return load_folder(str(tmp_path / name))

    assert loaded("multi", task_type="multi_label").model.multi_label
    assert loaded("nsmc", task_name="nsmc", labels=None).labels == ("0", "1")
    assert loaded("layers", feature_layers="-1,0").model.feature_layers == (-1, 0)


def test_question_answering_with_beams(tmp_path):
    write_folder(tmp_path, "albert", "question_answering", start_n_top=3, end_n_top=2)
    model = load_folder(str(tmp_path)).model
    assert isinstance(model, BeamSpanModel) and (model.start_n_top, model.end_n_top) == (3, 2)


def test_pre_trained_and_released_models(tmp_path):
    expected = write_model(tmp_path / "ours", "albert")
    loaded = load_folder(str(tmp_path / "ours"))
    assert (loaded.task, loaded.model_type, loaded.labels) == ("pretraining", "albert", ())
    same_weights(loaded.model, expected)
    released = load_folder(str(write_bert(tmp_path / "uncased_L-2_H-32")))
    assert released.tokenizer.do_lower_case and released.trained_positions is None
    # The hub's module has no sentence head.
    folder = write_albert(tmp_path / "albert")
    drop_weights(folder / "model.ckpt-best", "seq_relationship")
    hub = load_folder(str(folder))
    assert len(hub.missing) == 2
    assert hub.lacks_part("next_sentence") and not hub.lacks_part("masked_lm")


def test_parts_of_a_head_are_not_enough(tmp_path):
    write_folder(tmp_path)
    arrays = google_arrays(str(tmp_path / "model.ckpt-3"))
    name = "cls/seq_relationship/output_bias"
    kept = {n: arrays.read(n) for n in arrays.shapes if n != name}
    write_arrays(str(tmp_path / "model.ckpt-4"), kept)
    with pytest.raises(InputError, match=f"- {name}: missing"):
        load_folder(str(tmp_path))
    assert load_folder(str(tmp_path), str(tmp_path / "model.ckpt-3")).missing == ()


def test_moments_of_the_head_are_no_other_head(tmp_path):
    write_folder(tmp_path, task="question_answering")
    arrays = google_arrays(str(tmp_path / "model.ckpt-3"))
    kept = {name: arrays.read(name) for name in arrays.shapes}
    head = kept["cls/squad/output_weights"]
    write_arrays(str(tmp_path / "model.ckpt-3"), {**kept, "cls/squad/output_weights/adam_m": head})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_folder(str(tmp_path))
    write_arrays(str(tmp_path / "model.ckpt-3"), {**kept, "output_weights": head})
    with pytest.warns(UserWarning, match="has a head, output_weights, of a task"):
        load_folder(str(tmp_path))


def test_what_does_not_fit(tmp_path):
    """`test_odd_settings_of_a_fine_tuned_folder` has more settings."""
    for change, message in (
        ({"labels": "a,b"}, "output_weights: the model has"),
        ({"labels": 3}, "finetuning.json: the setting labels must be text. Received: 3"),
        ({"feature_layers": "x"}, "finetuning.json must hold what training recorded"),
    ):
        write_folder(tmp_path, task="classification")
        change_json(tmp_path / SETTINGS_FILE, **change)
        with pytest.raises(InputError, match=message):
            load_folder(str(tmp_path))
