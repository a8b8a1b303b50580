"""Training goes on from checkpoints of Google's training as Google's went on."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoint import google_variables, write_arrays
from bert_tf.training.state import TrainingState, restore
from tests.support.golden import (
    GOLDEN,
    TRAJECTORY,
    arrays,
    batch_of,
    facts,
    optimizer_of,
    pretraining_model,
)
from tests.support.tiny_models import step_of

ADAMW = "bert_optim_adamw"


def resume(folder, start, optimizer_name, output_dir):
    """A new state, resumed from the checkpoints in a folder, and its optimizer."""
    model = pretraining_model(start)
    optimizer = optimizer_of(folder, optimizer_name, model)
    state = TrainingState(model, optimizer)
    assert "resuming from" in restore(state, str(output_dir))
    return state


@pytest.mark.usefixtures("eagerly")
def test_a_trajectory_continues(tmp_path):
    """Weights, moments and step after one update of Google's; three more are made here."""
    stored = arrays(ADAMW, "variables_step1.npz")
    assert stored["global_step"] == 1 and sum(key.endswith("/adam_v") for key in stored) > 40
    write_arrays(str(tmp_path / "model.ckpt-1"), stored)
    state = resume(ADAMW, ADAMW, "adamw", tmp_path)
    assert state.step == state.optimizer.iterations.numpy() == 1
    step = step_of(state.model, state.optimizer)
    losses = [float(step(batch_of(ADAMW, i))["loss"]) for i in (2, 3, 4)]
    assert state.optimizer.iterations.numpy() == 4
    googles = facts(ADAMW, "trajectory.json")["per_step"]["total_loss"]
    np.testing.assert_allclose(losses, googles[1:4], atol=TRAJECTORY, rtol=0)


def test_a_genuine_checkpoint_of_google_s_training(tmp_path):
    """What tf.train.Saver wrote after ten updates of LAMB, in place of a run's own checkpoint."""
    for suffix in (".index", ".data-00000-of-00001"):
        source = GOLDEN / "albert_optim_lamb_onehot" / f"model.ckpt-10{suffix}"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    state = resume("albert_optim_lamb_onehot", "albert_optim_lamb", "lamb", tmp_path)
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-10"))
    assert state.step == 10
    for name, variable in google_variables(state.model).items():
        first, second = state.optimizer.slot_variables(variable)
        for key, found in ((name, variable), (f"{name}/adam_m", first), (f"{name}/adam_v", second)):
            np.testing.assert_array_equal(found, reader.get_tensor(key), err_msg=key)
