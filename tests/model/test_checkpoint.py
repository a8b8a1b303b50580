"""Checkpoints: Google's tables of names load; one error lists everything that does not fit."""

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel, load_google_checkpoint
from bert_tf.checkpoint import (
    google_arrays,
    google_variables,
    save_google_checkpoint,
    trained_step,
    write_arrays,
)
from bert_tf.checkpoint_files import (
    checkpoint_path,
    keep_newest,
    latest_checkpoint,
    list_checkpoints,
    remove_unfinished,
    set_aside,
)
from bert_tf.training.mixed_precision import LossScale
from bert_tf.training.state import TrainingState
from bert_tf.training.token_dropping import TokenDropping
from finetuning.classification.head import SequenceClassifier
from tests.support.crosses import slow
from tests.support.golden import GOLDEN, arrays, pretraining_model
from tests.support.paths import TEST_DATA
from tests.support.refusals import refused
from tests.support.tiny_models import (
    ONE_LAYER,
    make_optimizer,
    make_step,
    random_batch,
    split_batch,
    strategy_of,
    tiny_model,
    weights_of,
)

CHECKPOINTS = TEST_DATA / "checkpoints"
NUMBER = {"x": np.zeros(1, np.float32)}


@pytest.fixture
def prefix(tmp_path):
    return str(tmp_path / "model.ckpt")


def write_like(folder, prefix):
    """Writes random values under the names of a released checkpoint, in its shapes."""
    rng = np.random.default_rng(0)
    with open(CHECKPOINTS / folder / "VARIABLES.tsv", newline="") as file:
        shapes = {
            row["name"]: json.loads(row["shape"])
            for row in csv.DictReader(file, dialect="excel-tab")
        }
    values = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    write_arrays(prefix, values)
    return values


def assert_loaded(model, values, but=()):
    """Every weight is that of the file, except those whose name begins with one of `but`."""
    for name, variable in google_variables(model).items():
        if not name.startswith(tuple(but)):
            np.testing.assert_array_equal(variable.numpy(), values[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ("google_uncased_L-8_H-512_A-8", "chinese_bert_wwm"))
def test_names_of_released_bert(folder, prefix):
    values = write_like(folder, prefix)
    config = BertConfig.from_json_file(CHECKPOINTS / folder / "bert_config.json")
    model = PretrainingModel(BertModel(config))
    report = load_google_checkpoint(model, prefix)
    assert_loaded(model, values)
    assert len(report.loaded) == len(model.trainable_variables) and report.missing == ()


def test_names_of_released_albert_which_has_no_sentence_head(prefix):
    folder, head = "google_albert_base_tfhub3", "cls/seq_relationship/"
    values = write_like(folder, prefix)
    config = AlbertConfig.from_json_file(CHECKPOINTS / folder / "albert_config.json")
    encoder = AlbertModel(config)
    load_google_checkpoint(encoder, prefix)
    assert_loaded(encoder, values)
    model = PretrainingModel(AlbertModel(config))
    said = f"model (run_pretraining --allow_missing={head} begins new heads). "
    with refused(said, f"- {head}output_weights: missing"):
        load_google_checkpoint(model, prefix)
    report = load_google_checkpoint(model, prefix, allow_missing=(head,))
    assert_loaded(model, values, but=(head,))
    assert report.missing == (f"{head}output_weights", f"{head}output_bias")
    assert f"{head}output_bias" in str(report)


def test_a_real_checkpoint_with_adam_slots_loads_whole():
    path = str(CHECKPOINTS / "keras_bert_toy" / "bert_model.ckpt")
    config = BertConfig.from_json_file(CHECKPOINTS / "keras_bert_toy" / "bert_config.json")
    model, reader = PretrainingModel(BertModel(config)), tf.train.load_checkpoint(path)
    report = load_google_checkpoint(model, path)
    assert_loaded(model, {name: reader.get_tensor(name) for name in google_variables(model)})
    slots = [name for name in report.ignored if name.endswith(("adam_m", "adam_v"))]
    assert len(slots) == 2 * len(model.trainable_variables)
    assert len(report.loaded) + len(report.ignored) == len(reader.get_variable_to_shape_map())


@pytest.mark.parametrize("folder", ("bert_relu", "albert_relu_e_eq_h"))
def test_genuine_saver_checkpoints(folder):
    """By a model, and by an encoder, which takes its part."""
    for part in (pretraining_model(folder), pretraining_model(folder).encoder):
        report = load_google_checkpoint(part, str(GOLDEN / folder / "model.ckpt-5"))
        assert_loaded(part, arrays(folder, "variables.npz"))
    rest = [name for name in report.ignored if not name.endswith(("/adam_m", "/adam_v"))]
    assert all(name.startswith("cls/") or name == "global_step" for name in rest)


def test_everything_that_does_not_fit_is_listed_before_anything_changes(prefix):
    model = tiny_model()
    values = weights_of(model)
    values["cls/predictions/extra_output_weights"] = np.zeros(3, np.float32)
    write_arrays(prefix, values)
    load_google_checkpoint(model.encoder, prefix)  # to which all heads are unknown
    with refused("must fit the model. Received: - output_"):  # a task's head is not begun anew
        load_google_checkpoint(SequenceClassifier(model.encoder, 2), prefix)
    with refused("'clss/'"):
        load_google_checkpoint(model, prefix, allow_missing=("clss/",))

    del values["bert/pooler/dense/bias"]
    values["bert/encoder/layer_7/output/dense/bias"] = np.zeros(3, np.float32)
    values["bert/embeddings/word_embeddings"] = np.zeros((61, 32), np.float32)
    values["bert/embeddings/position_embeddings"] += 1
    write_arrays(prefix, values)
    before = model.encoder.embeddings.position_embeddings.numpy()
    with refused(
        "- bert/pooler/dense/bias: missing",
        "+ bert/encoder/layer_7/output/dense/bias [3]: not part of the model",
        "word_embeddings: the model has [60, 32], the file [61, 32]",
        "extra_output_weights",
    ) as error:
        load_google_checkpoint(model, prefix)
    assert "allow_missing" not in str(error.value)
    np.testing.assert_array_equal(model.encoder.embeddings.position_embeddings.numpy(), before)
    with pytest.raises(ValueError, match=r"; and \d+ more$"):
        load_google_checkpoint(tiny_model("albert"), prefix)


def test_old_checkpoints_are_removed(tmp_path):
    def left(steps, *arguments, **options):
        for step in steps:
            write_arrays(checkpoint_path(tmp_path, step), NUMBER)
        keep_newest(tmp_path, *arguments, **options)
        return list_checkpoints(tmp_path)

    assert left((1, 2, 10, 9), 2) == [9, 10]
    # What TensorFlow itself, and Google's programs, find.
    newest = checkpoint_path(tmp_path, 10)
    assert latest_checkpoint(tmp_path) == tf.train.latest_checkpoint(str(tmp_path)) == newest
    assert left((), 0) == left((), 1, every=9) == [9, 10]
    assert left((18, 19, 20), 2, every=9) == [9, 18, 19, 20]
    noted = (tmp_path / "checkpoint").read_text()
    assert noted.startswith('model_checkpoint_path: "model.ckpt-20"') and "ckpt-9" in noted


@pytest.mark.parametrize("devices", (1, slow(2)))
def test_later_updates_do_not_change_a_copy(devices):
    """A thread writes it while training continues."""
    strategy = strategy_of(devices)
    step = make_step(strategy=strategy, xla_update=True, sizes=ONE_LAYER)
    step(split_batch(random_batch(0), strategy))
    state = TrainingState(step.model, step.optimizer)
    copied = state.arrays()
    before = {name: value.copy() for name, value in copied.items()}
    step(split_batch(random_batch(1), strategy))
    for name, value in state.arrays().items():
        np.testing.assert_array_equal(copied[name], before[name], err_msg=name)
        assert not value.shape or not np.array_equal(value, before[name]), name


def test_a_checkpoint_has_the_files_that_google_s_programs_copy(tmp_path, prefix):
    weights = {"x": np.arange(3, dtype=np.float32)}
    for step in (1, 2, 3):
        write_arrays(checkpoint_path(tmp_path, step), {**weights, "global_step": np.int64(step)})
    # What google-research/albert run_pretraining.py copies, and run_classifier.py renames.
    for end in ("data-00000-of-00001", "index", "meta"):
        shutil.copy(f"{prefix}-3.{end}", f"{prefix}-best.{end}")
    assert len(list(tmp_path.glob("model.ckpt-3.*"))) == 3
    reader = tf.train.load_checkpoint(f"{prefix}-best")
    np.testing.assert_array_equal(reader.get_tensor("x"), weights["x"])
    assert trained_step(f"{prefix}-3") == trained_step(f"{prefix}-best") == 3
    write_arrays(prefix, weights)  # as exported, without its step
    assert trained_step(prefix) == trained_step(str(tmp_path / "no")) == 0
    # Removed and set aside whole.
    keep_newest(tmp_path, 2)
    set_aside(f"{prefix}-2")
    counts = {f"model.ckpt-{i}.*": 0 for i in (1, 2)} | {"unreadable-model.ckpt-2.*": 3}
    assert {name: len(list(tmp_path.glob(name))) for name in counts} == counts


def test_the_index_comes_last(prefix, monkeypatch):
    """A run that is killed between two files leaves nothing that looks like a checkpoint."""
    renamed, replace = [], os.replace

    def noting(source, target):
        renamed.append(str(target).removeprefix(prefix))
        replace(source, target)

    monkeypatch.setattr(os, "replace", noting)
    write_arrays(prefix, NUMBER)
    assert renamed == [".data-00000-of-00001", ".meta", ".index"]


def test_files_that_cannot_be_read_or_written(tmp_path, prefix, monkeypatch):
    model = tiny_model()
    with refused("no such file"):
        load_google_checkpoint(model, str(tmp_path / "nothing"))
    save_google_checkpoint(model, prefix)
    data = f"{prefix}.data-00000-of-00001"
    os.truncate(data, os.path.getsize(data) // 2)
    with refused("cannot read"):
        load_google_checkpoint(model, prefix)

    before = list(tmp_path.iterdir())
    with pytest.raises(OSError, match="cannot write the checkpoint"):
        write_arrays(f"{data}/model.ckpt", NUMBER)  # a file, not a folder
    # The reading back finds a difference: no file bears the checkpoint's name.
    monkeypatch.setattr(np, "array_equal", lambda *_, **__: False)
    with pytest.raises(OSError, match="x on disk differs from its value in memory"):
        write_arrays(f"{prefix}-1", NUMBER)
    assert list(tmp_path.iterdir()) == before


def test_a_model_and_its_encoder_need_two_names():
    with pytest.raises(ValueError, match="two names"):
        PretrainingModel(BertModel(tiny_model().config, name="pretraining"))


@pytest.mark.parametrize("name", ("base[v2]", "base[v2", "back\\slash", "모델 *?", "plain"))
def test_a_folder_and_a_checkpoint_of_any_name(tmp_path, monkeypatch, name):
    """TensorFlow's reader takes some names for patterns, which match nothing."""
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    array = np.arange(3, dtype=np.float32)
    for folder in (tmp_path / name, Path(name)):
        for prefix in (str(folder / "model.ckpt-1"), str(folder / name)):
            write_arrays(prefix, {"a": array})
            np.testing.assert_array_equal(google_arrays(prefix).read("a"), array)


def test_what_a_killed_run_left_is_removed(tmp_path):
    kept = ("model.ckpt-3.index", "model.ckpt-3.data-00000-of-00001", "other.tmp-1")
    parts = ("data-00000-of-00001", "meta", "index")
    for name in (*kept, *(f"model.ckpt-6.tmp-77.{part}" for part in parts)):
        (tmp_path / name).write_text("")
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


@pytest.mark.parametrize("frozen", ("model", "encoder"))
def test_weights_that_keras_is_told_not_to_train(frozen, tmp_path, prefix):
    model, other = tiny_model(**ONE_LAYER), tiny_model(**ONE_LAYER)
    expected = weights_of(model)
    for each in (model, other):
        (each if frozen == "model" else each.encoder).trainable = False
    save_google_checkpoint(model, prefix)
    assert set(google_arrays(prefix).shapes) == set(expected)
    load_google_checkpoint(other, prefix)
    assert_loaded(other, expected)


def test_a_training_of_heads_alone_resumes_with_all_weights_and_counts(prefix):
    states = []
    for _ in range(2):
        model = tiny_model(**ONE_LAYER)
        model.encoder.trainable = False
        own = {"loss_scale": LossScale(), "token_dropping": TokenDropping(0.5, 60)}
        states.append(TrainingState(model, make_optimizer("adamw", model), **own))
    state, resumed = states
    state.step, state.evaluated = 3, 1
    state.optimizer.skipped.assign(2)
    state.loss_scale.scale.assign(64.0)
    state.loss_scale.good_steps.assign(1)
    state.token_dropping.losses.assign(np.random.default_rng(0).uniform(0, 9, 60))
    write_arrays(prefix, state.arrays())
    resumed.load(prefix)
    assert resumed.step == resumed.optimizer.iterations.numpy() == 3
    np.testing.assert_equal(resumed.counters(), state.counters())
    assert (resumed.evaluated, resumed.optimizer.skipped.numpy()) == (1, 2)
    assert (resumed.loss_scale.scale, resumed.loss_scale.good_steps) == (64, 1)
    assert resumed.token_dropping.losses.numpy().std() > 1
    assert_loaded(resumed.model, weights_of(state.model))
