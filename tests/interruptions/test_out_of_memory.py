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


def test_a_step(job, capsys, monkeypatch):
    monkeypatch.setattr(TrainingStep, "loop", raising(MEMORY))
    assert job.run() == 1
    assert one_line(capsys) == (
        "error: out of memory; what may help: --recompute=block, --gradient_accumulation_steps=2 "
        "or more, a lower --train_batch_size. Received: --train_batch_size=8, "
        "--gradient_accumulation_steps=1, OOM when allocating tensor"
    )
    assert job.run(recompute="block") == 1
    assert "what may help: --gradient_accumulation_steps=2 or more" in one_line(capsys)


@pytest.mark.slow
def test_an_evaluation(job, capsys, monkeypatch):
    """While training, after the checkpoint that precedes it, and alone."""
    monkeypatch.setattr(EvaluationStep, "__call__", raising(MEMORY))
    for flags in ({"num_train_steps": 2}, {"do_train": False, "do_eval": True}):
        assert job.run(**flags, eval_input_file=job.files[0]) == 1
        line = one_line(capsys)
        assert "what may help: a lower --eval_batch_size. Received: --eval_batch_size=16" in line


def test_the_trial_of_an_evaluation(job, capsys, monkeypatch):
    """Memory runs out where XLA compiles it, before the first step."""
    monkeypatch.setattr(EvaluationStep, "compile", raising(MEMORY))
    assert job.run(do_eval=True, xla="on") == 1
    line = one_line(capsys)
    assert "what may help: a lower --eval_batch_size. Received: --eval_batch_size=16" in line


def test_what_comes_before_the_first_step(job, capsys, monkeypatch):
    """Weights and moments; nothing of a batch would help."""
    monkeypatch.setattr(Session, "build", raising(MEMORY))
    assert job.run() == 1
    assert "what may help: a smaller model, ending other programs" in one_line(capsys)


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
