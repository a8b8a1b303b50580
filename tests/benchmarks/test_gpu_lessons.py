"""Training by lessons under JAX: it resumes, and leaves frozen weights alone."""

import json
import shutil
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from benchmarks.gpu_step.export import export_step
from benchmarks.gpu_step.lesson_batches import BLOCK
from benchmarks.gpu_step.state import STATE_FILE, read_state, write_arrays
from benchmarks.reference.text import documents
from benchmarks.sentence_order.lesson_rows import LessonRows
from benchmarks.sentence_order.lessons import Lesson
from benchmarks.sentence_order.text_file import TextFile, write_text
from bert_tf.checkpoint import google_variables
from bert_tf.training.state import TrainingState
from bert_tf.training.step import StepConfig
from create_pretraining_data.instances.text import TokenizedText, tokenize_documents
from tests.support.paths import ROOT
from tests.support.tiny_models import make_optimizer, tiny_model
from tokenization import load_tokenizer

pytest.importorskip("jax", reason="pip install jax")

LENGTH, PREDICTIONS, SLOTS, ROWS, VOCABULARY = 64, 16, 4, 4, 60
FROZEN = "bert/embeddings/word_embeddings"
UPDATES = BLOCK + 2, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The exported step of a tiny model, a text whose ids it has, lessons."""
    path = tmp_path_factory.mktemp("lessons")
    tokenizer = load_tokenizer(ROOT / "reference_model")
    text = tokenize_documents(documents([ROOT / "sample_corpus" / "heldout.txt"]), tokenizer)
    text = TokenizedText(5 + text.ids % (VOCABULARY - 5), *text[1:])
    content = TextFile(text, text, {"cls_id": 1, "sep_id": 2, "mask_id": 3})
    write_text(str(path / "text"), content)
    shares = {"natural": 1.0}
    first, second = ({"updates": count, "shares": shares} for count in UPDATES)
    lessons = [first, {**second, "rate": 0.5}]
    (path / "lessons.json").write_text(json.dumps(lessons))
    keras.utils.set_random_seed(3)
    model = tiny_model("bert", max_position_embeddings=LENGTH)
    state = TrainingState(model, make_optimizer("adamw", model, sum(UPDATES)))
    rows = LessonRows(content, LENGTH, PREDICTIONS, SLOTS, VOCABULARY, 0)
    batch = rows.block(0, Lesson(1, shares), ROWS)
    batch = {
        name: values.astype(np.float32 if name.endswith("weights") else np.int32)
        for name, values in batch.items()
    }
    schedule = state.optimizer._learning_rate.get_config()
    details = {"model": "bert", "precision": "float32", "schedule": schedule}
    export_step(str(path / "run"), state, StepConfig(), batch, details)
    weights = {f"weights/{n}": v.numpy() for n, v in google_variables(model).items()}
    write_arrays(str(path / "run" / STATE_FILE), {**weights, "iterations": np.int64(0)})
    return path


def train(folder, run, **changed):
    from benchmarks.gpu_step import train as program

    arguments = dict(
        folder=str(run), text=str(folder / "text"), lessons=str(folder / "lessons.json"),
        freeze=FROZEN, processes=2, eval_every=5, train_steps=None, save_seconds=60.0, seed=1,
    )  # fmt: skip
    program.train(SimpleNamespace(**{**arguments, **changed}))
    return read_state(run / "state.npz")


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(folder / "run", run)
    return train(folder, run)


@pytest.mark.slow
def test_it_goes_on_where_it_was(folder, whole, tmp_path, capfd):
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    train(folder, run, train_steps=BLOCK + 1)  # in the middle of a block
    found = train(folder, run)
    printed = capfd.readouterr().out
    assert f"update {BLOCK + 1}, lessons of {sum(UPDATES)}" in printed
    assert "held out, beginnings: masked words" in printed and "held out, others" in printed
    assert found["iterations"] == sum(UPDATES) and found.keys() == whole.keys()
    for name, values in whole.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.slow
def test_frozen_weights_stay(folder, whole):
    for name, values in read_state(folder / "run" / STATE_FILE).items():
        if name.startswith("weights/"):
            same = np.array_equal(values, whole[name])
            assert same == (name == f"weights/{FROZEN}"), name
