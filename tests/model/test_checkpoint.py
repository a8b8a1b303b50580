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
from bert_common.errors import InputError
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
    step_of,
    strategy_of,
    tensors,
    tiny_model,
    weights_of,
)

CHECKPOINTS = TEST_DATA / "checkpoints"


def real_table(folder):
    """Names and shapes of a released checkpoint."""
    with open(CHECKPOINTS / folder / "VARIABLES.tsv", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {row["name"]: tuple(json.loads(row["shape"])) for row in rows}


def fake_checkpoint(prefix, table, seed=0):
    """Writes a checkpoint of the table's names and shapes with random values."""
    rng = np.random.default_rng(seed)
    values = {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in sorted(table.items())
    }
    write_arrays(str(prefix), values)
    return values


def assert_loaded(model, values, but=()):
    """Every weight is that of the file, except those whose name begins with one of `but`."""
    for name, variable in google_variables(model).items():
        if not name.startswith(tuple(but)):
            np.testing.assert_array_equal(variable.numpy(), values[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ("google_uncased_L-8_H-512_A-8", "chinese_bert_wwm"))
def test_names_of_released_bert(folder, tmp_path):
    values = fake_checkpoint(tmp_path / "bert_model.ckpt", real_table(folder))
    config = BertConfig.from_json_file(CHECKPOINTS / folder / "bert_config.json")
    model = PretrainingModel(BertModel(config))
    report = load_google_checkpoint(model, str(tmp_path / "bert_model.ckpt"))
    assert_loaded(model, values)
    assert len(report.loaded) == len(model.trainable_variables)
    assert report.missing == ()


def test_names_of_released_albert_which_has_no_sentence_head(tmp_path):
    folder = "google_albert_base_tfhub3"
    prefix = str(tmp_path / "model.ckpt")
    values = fake_checkpoint(prefix, real_table(folder))
    config = AlbertConfig.from_json_file(CHECKPOINTS / folder / "albert_config.json")
    encoder = AlbertModel(config)
    load_google_checkpoint(encoder, prefix)
    assert_loaded(encoder, values)
    model = PretrainingModel(AlbertModel(config))
    said = r"model \(run_pretraining --allow_missing=cls/seq_relationship/ begins new heads\)\. "
    said += r".*- cls/seq_relationship/output_weights: missing"
    with pytest.raises(InputError, match=said):
        load_google_checkpoint(model, prefix)
    report = load_google_checkpoint(model, prefix, allow_missing=("cls/seq_relationship",))
    assert_loaded(model, values, but=("cls/seq_relationship",))
    names = ("output_weights", "output_bias")
    assert report.missing == tuple(f"cls/seq_relationship/{name}" for name in names)
    assert "cls/seq_relationship/output_bias" in str(report)


def test_a_real_checkpoint_with_adam_slots_loads_whole():
    prefix = str(CHECKPOINTS / "keras_bert_toy" / "bert_model.ckpt")
    config = BertConfig.from_json_file(CHECKPOINTS / "keras_bert_toy" / "bert_config.json")
    model = PretrainingModel(BertModel(config))
    report = load_google_checkpoint(model, prefix)
    reader = tf.train.load_checkpoint(prefix)
    assert_loaded(model, {name: reader.get_tensor(name) for name in google_variables(model)})
    slots = [name for name in report.ignored if name.endswith(("adam_m", "adam_v"))]
    assert len(slots) == 2 * len(model.trainable_variables)
    assert len(report.loaded) + len(report.ignored) == len(reader.get_variable_to_shape_map())


@pytest.mark.parametrize("folder", ("bert_relu", "albert_relu_e_eq_h"))
def test_genuine_saver_checkpoints(folder):
    model = pretraining_model(folder)
    load_google_checkpoint(model, str(GOLDEN / folder / "model.ckpt-5"))
    assert_loaded(model, arrays(folder, "variables.npz"))


def test_the_encoder_alone_takes_its_part():
    encoder = pretraining_model("bert_relu").encoder
    report = load_google_checkpoint(encoder, str(GOLDEN / "bert_relu" / "model.ckpt-5"))
    assert_loaded(encoder, arrays("bert_relu", "variables.npz"))
    rest = [name for name in report.ignored if not name.endswith(("/adam_m", "/adam_v"))]
    assert all(name.startswith("cls/") or name == "global_step" for name in rest)


def test_a_second_model_of_another_name_has_the_same_table():
    config = tiny_model().config
    first = PretrainingModel(BertModel(config))
    second = PretrainingModel(BertModel(config, name="teacher"), name="other")
    assert list(google_variables(first)) == list(google_variables(second))


def test_a_task_s_head_is_not_one_to_begin_anew(tmp_path):
    encoder = tiny_model().encoder
    write_arrays(str(tmp_path / "model.ckpt"), weights_of(encoder))
    with pytest.raises(InputError, match=r"must fit the model\. Received: - output_"):
        load_google_checkpoint(SequenceClassifier(encoder, 2), str(tmp_path / "model.ckpt"))


def test_everything_that_does_not_fit_is_listed_before_anything_changes(tmp_path):
    model = tiny_model()
    values = weights_of(model)
    del values["bert/pooler/dense/bias"]
    values["bert/encoder/layer_7/output/dense/bias"] = np.zeros(3, np.float32)
    values["bert/embeddings/word_embeddings"] = np.zeros((61, 32), np.float32)
    write_arrays(str(tmp_path / "model.ckpt"), values)
    before = model.encoder.embeddings.position_embeddings.numpy()
    with refused(
        "- bert/pooler/dense/bias: missing",
        "+ bert/encoder/layer_7/output/dense/bias [3]: not part of the model",
        "word_embeddings: the model has [60, 32], the file [61, 32]",
    ) as error:
        load_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    assert "allow_missing" not in str(error.value)
    np.testing.assert_array_equal(model.encoder.embeddings.position_embeddings.numpy(), before)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_a_checkpoint_of_ours_round_trips(kind, tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    model, other = tiny_model(kind), tiny_model(kind)
    save_google_checkpoint(model, prefix)
    load_google_checkpoint(other, prefix)
    assert_loaded(other, weights_of(model))


@pytest.mark.slow
def test_training_continues_exactly_where_it_was(tmp_path):
    def make_run(model, optimizer):
        step = step_of(model, optimizer)
        return lambda i: step(tensors(random_batch(i)))

    model = tiny_model(dropout=0.1, **ONE_LAYER)
    optimizer = make_optimizer("adamw", model)
    run = make_run(model, optimizer)
    for i in range(3):
        run(i)
    prefix = checkpoint_path(tmp_path, 3)
    state = TrainingState(model, optimizer, LossScale(), step=3, evaluated=1)
    optimizer.skipped.assign(2)
    state.loss_scale.scale.assign(64.0)
    state.loss_scale.good_steps.assign(1)
    write_arrays(prefix, state.arrays())
    other = tiny_model(dropout=0.1, **ONE_LAYER)
    resumed = TrainingState(other, make_optimizer("adamw", other), LossScale())
    resumed.load(prefix)
    scale, good_steps = float(resumed.loss_scale.scale), int(resumed.loss_scale.good_steps)
    skipped = int(resumed.optimizer.skipped.numpy())
    assert (resumed.step, skipped, scale, good_steps) == (3, 2, 64, 1)
    other_run = make_run(other, resumed.optimizer)
    for i in range(3, 6):
        assert float(run(i)["loss"]) == float(other_run(i)["loss"])
    assert_loaded(other, weights_of(model))


def test_old_checkpoints_are_removed(tmp_path):
    for step in (1, 2, 10, 9):
        write_arrays(checkpoint_path(tmp_path, step), {"x": np.zeros(1, np.float32)})
    keep_newest(tmp_path, 2)
    assert list_checkpoints(tmp_path) == [9, 10]
    assert latest_checkpoint(tmp_path) == checkpoint_path(tmp_path, 10)
    # What TensorFlow itself, and Google's programs, find.
    assert tf.train.latest_checkpoint(str(tmp_path)) == checkpoint_path(tmp_path, 10)
    keep_newest(tmp_path, 0)
    assert list_checkpoints(tmp_path) == [9, 10]
    keep_newest(tmp_path, 1, every=9)
    assert list_checkpoints(tmp_path) == [9, 10]
    for step in (18, 19, 20):
        write_arrays(checkpoint_path(tmp_path, step), {"x": np.zeros(1, np.float32)})
    keep_newest(tmp_path, 2, every=9)
    assert list_checkpoints(tmp_path) == [9, 18, 19, 20]
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


def test_a_checkpoint_has_the_files_that_google_s_programs_copy(tmp_path):
    weights = {"x": np.arange(3, dtype=np.float32)}
    for step in (1, 2, 3):
        arrays = {**weights, "global_step": np.int64(step)}
        write_arrays(checkpoint_path(tmp_path, step), arrays)
    names = ("data-00000-of-00001", "index", "meta")
    prefix = checkpoint_path(tmp_path, 3)
    found = sorted(path.name for path in tmp_path.glob("model.ckpt-3.*"))
    assert found == [f"model.ckpt-3.{name}" for name in names]
    # What google-research/albert run_pretraining.py copies, and run_classifier.py renames.
    for ext in names:
        shutil.copy(f"{prefix}.{ext}", f"{tmp_path}/model.ckpt-best.{ext}")
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-best"))
    np.testing.assert_array_equal(reader.get_tensor("x"), weights["x"])
    assert trained_step(prefix) == trained_step(str(tmp_path / "model.ckpt-best")) == 3
    write_arrays(str(tmp_path / "model.ckpt"), weights)  # as exported, without its step
    assert trained_step(str(tmp_path / "model.ckpt")) == trained_step(str(tmp_path / "no")) == 0
    # Removed and set aside whole.
    keep_newest(tmp_path, 2)
    assert not list(tmp_path.glob("model.ckpt-1.*"))
    set_aside(checkpoint_path(tmp_path, 2))
    assert len(list(tmp_path.glob("unreadable-model.ckpt-2.*"))) == 3
    assert not list(tmp_path.glob("model.ckpt-2.*"))


def test_the_index_comes_last(tmp_path, monkeypatch):
    """A run that is killed between two files leaves nothing that looks like a checkpoint."""
    renamed, replace = [], os.replace

    def noting(source, target):
        renamed.append(str(target).removeprefix(f"{tmp_path}/model.ckpt"))
        replace(source, target)

    monkeypatch.setattr(os, "replace", noting)
    write_arrays(str(tmp_path / "model.ckpt"), {"x": np.zeros(1, np.float32)})
    assert renamed == [".data-00000-of-00001", ".meta", ".index"]


def test_bad_files_are_one_line(tmp_path):
    model = tiny_model()
    with pytest.raises(InputError, match="no such file"):
        load_google_checkpoint(model, str(tmp_path / "nothing"))
    prefix = str(tmp_path / "model.ckpt")
    save_google_checkpoint(model, prefix)
    data = Path(f"{prefix}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(InputError, match="cannot read"):
        load_google_checkpoint(model, prefix)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    """The reading back finds a difference: no file bears the checkpoint's name."""
    prefix = str(tmp_path / "model.ckpt")
    monkeypatch.setattr(np, "array_equal", lambda *_, **__: False)
    with pytest.raises(OSError, match="x on disk differs from its value in memory"):
        write_arrays(prefix, {"x": np.zeros(1, np.float32)})
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_an_os_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write the checkpoint"):
        write_arrays(str(tmp_path / "file" / "model.ckpt"), {"x": np.zeros(1, np.float32)})


def test_a_model_and_its_encoder_need_two_names():
    with pytest.raises(ValueError, match="two names"):
        PretrainingModel(BertModel(tiny_model().config, name="pretraining"))


def test_heads_that_the_model_does_not_know_are_an_error(tmp_path):
    model = tiny_model()
    values = weights_of(model)
    values["cls/predictions/extra_output_weights"] = np.zeros(3, np.float32)
    write_arrays(str(tmp_path / "model.ckpt"), values)
    with pytest.raises(InputError, match="extra_output_weights"):
        load_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    load_google_checkpoint(model.encoder, str(tmp_path / "model.ckpt"))


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


def test_what_may_be_missing_must_be_part_of_the_model(tmp_path):
    model = tiny_model()
    save_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    with pytest.raises(InputError, match="'clss/'"):
        load_google_checkpoint(model, str(tmp_path / "model.ckpt"), allow_missing=("clss/",))


def test_a_long_list_of_problems_is_cut(tmp_path):
    save_google_checkpoint(tiny_model("albert"), str(tmp_path / "model.ckpt"))
    with pytest.raises(InputError, match=r"; and \d+ more$"):
        load_google_checkpoint(tiny_model("bert"), str(tmp_path / "model.ckpt"))


def test_what_a_killed_run_left_is_removed(tmp_path):
    kept = ("model.ckpt-3.index", "model.ckpt-3.data-00000-of-00001", "other.tmp-1")
    parts = ("data-00000-of-00001", "meta", "index")
    for name in (*kept, *(f"model.ckpt-6.tmp-77.{part}" for part in parts)):
        (tmp_path / name).write_text("")
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


@pytest.mark.parametrize("frozen", (lambda model: model, lambda model: model.encoder))
def test_weights_that_keras_is_told_not_to_train(frozen, tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    model, other = tiny_model(**ONE_LAYER), tiny_model(**ONE_LAYER)
    expected = weights_of(model)
    frozen(model).trainable = frozen(other).trainable = False
    save_google_checkpoint(model, prefix)
    assert set(google_arrays(prefix).shapes) == set(expected)
    load_google_checkpoint(other, prefix)
    assert_loaded(other, expected)


def test_a_training_of_heads_alone_resumes_with_all_weights(tmp_path):
    model, other = tiny_model(**ONE_LAYER), tiny_model(**ONE_LAYER)
    model.encoder.trainable = other.encoder.trainable = False
    prefix = checkpoint_path(tmp_path, 3)
    write_arrays(prefix, TrainingState(model, make_optimizer("adamw", model), step=3).arrays())
    resumed = TrainingState(other, make_optimizer("adamw", other))
    resumed.load(prefix)
    assert resumed.step == 3
    assert_loaded(other, weights_of(model))
