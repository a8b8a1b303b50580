"""Memory that runs out, a disk that is full: one line of error that helps."""

import errno

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.summaries.reporter import Reporter
from bert_tf.training.evaluation import EvaluationStep
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.step import TrainingStep
from run_scripts.session import Session
from tests.support.crosses import slow
from tests.support.programs import NO_DROPOUT, PretrainingJob, one_line

MEMORY = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor\n\tmore of it")
DISK = tf.errors.ResourceExhaustedError(None, None, "output/events.v2; No space left on device")


@pytest.fixture
def job(tmp_path):
    return PretrainingJob(tmp_path, **NO_DROPOUT)


def raising(error):
    """A function that raises, whatever it is called with."""

    def function(*_, **__):
        raise error

    return function


def test_memory():
    with pytest.raises(InputError) as found, explain_out_of_memory(["one", "two"], {"--size": 3}):
        raise MEMORY
    assert str(found.value) == (
        "out of memory; what may help: one, two. Received: --size=3, OOM when allocating tensor"
    )


@pytest.mark.parametrize(
    "number, kind, text",
    (
        (errno.ENOSPC, tf.errors.ResourceExhaustedError, "No space left on device"),
        (errno.EDQUOT, tf.errors.ResourceExhaustedError, "Disk quota exceeded"),
        (errno.EFBIG, tf.errors.OutOfRangeError, "File too large"),
    ),
)
def test_a_full_disk(number, kind, text):
    with pytest.raises(OSError) as found, explain_out_of_memory(["one"], {}, "output"):
        raise kind(None, None, f"output/events; {text}")
    assert (found.value.errno, found.value.filename) == (number, "output")


def test_other_errors_pass():
    with pytest.raises(tf.errors.OutOfRangeError), explain_out_of_memory(["one"], {}):
        raise tf.errors.OutOfRangeError(None, None, "End of sequence")


EVALUATION = "help: a lower --eval_batch_size. Received: --eval_batch_size=16"


@pytest.mark.parametrize(
    "owner, method, flags, said",
    (
        (
            TrainingStep,
            "loop",
            {},
            "--recompute=block, --gradient_accumulation_steps=2 or more, a lower "
            "--train_batch_size. Received: --train_batch_size=8, --gradient_accumulation_steps=1, "
            "OOM when allocating tensor",
        ),
        (TrainingStep, "loop", {"recompute": "block"}, "help: --gradient_accumulation_steps=2 or"),
        # While training, after the checkpoint that precedes it; alone; where XLA compiles it.
        slow(EvaluationStep, "__call__", {"num_train_steps": 2}, EVALUATION),
        slow(EvaluationStep, "__call__", {"do_train": False, "do_eval": True}, EVALUATION),
        (EvaluationStep, "compile", {"do_eval": True, "xla": "on"}, EVALUATION),
        # Weights and moments; nothing of a batch would help.
        (Session, "build", {}, "help: a smaller model, ending other programs"),
    ),
)
def test_a_run(job, capsys, monkeypatch, owner, method, flags, said):
    if "do_train" in flags:  # which needs a checkpoint
        assert job.run(num_train_steps=1) == 0
        capsys.readouterr()
    monkeypatch.setattr(owner, method, raising(MEMORY))
    held_out = {"eval_input_file": job.files[0]} if owner is EvaluationStep else {}
    assert job.run(**flags, **held_out) == 1
    line = one_line(capsys)
    assert line.startswith("error: out of memory; what may help: ") and said in line


@pytest.mark.slow
def test_a_full_disk_at_the_curves(job, capsys, monkeypatch):
    """It is no matter of memory, and the last checkpoint is whole."""
    flush = Reporter.flush

    def full_after_a_checkpoint(self, step):
        if step > 4:
            raise DISK
        flush(self, step)

    monkeypatch.setattr(Reporter, "flush", full_after_a_checkpoint)
    assert job.run(num_train_steps=8) == 1
    line = one_line(capsys)
    assert line.startswith("error: cannot write (") and "No space left on device" in line
    assert str(job.output) in line and "memory" not in line
    assert list_checkpoints(job.output) == [4]
