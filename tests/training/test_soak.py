"""Memory does not grow: a run of 2,000 steps ends with as much as it had at step 1,000."""

import pytest

from tests.support.programs import DROPOUT, PretrainingJob, curves
from tests.support.record_files import make_files

STEPS, SAVE_EVERY = 2000, 50

# Twenty checkpoints: each is written by a thread of its own, and glibc gives threads up to eight
# arenas a core in turn, each of which keeps the memory of a copy of the weights.
SETTLED = 1000


@pytest.mark.slow
@pytest.mark.parametrize("kind, xla", (("bert", "auto"), ("albert", "off")))
def test_memory_stays(tmp_path, kind, xla):
    """With all that a long run does on the way: checkpoints, evaluations, points on TensorBoard."""
    folder = tmp_path / "held_out"
    folder.mkdir()
    (held_out,) = make_files(folder, (16,), seed=7)
    # Wider than the other tests' models: a copy that is kept would show beside the libraries.
    sizes = {"hidden_size": 128, "intermediate_size": 512, "vocab_size": 8192}
    job = PretrainingJob(tmp_path, **DROPOUT, **sizes)
    run = job.run_apart(
        *job.argv(
            kind,
            num_train_steps=STEPS,
            save_checkpoints_steps=SAVE_EVERY,
            save_summary_steps=50,
            eval_input_file=held_out,
            eval_every_steps=100,
            learning_rate=1e-4,
            xla=xla,
        )
    )
    assert run.returncode == 0, run.stderr
    memory = dict(curves(job.output)["memory/process_gib"])
    print(
        f"{kind}, XLA {xla}: {memory[SETTLED]:.4f} GiB at {SETTLED}, {memory[STEPS]:.4f} at {STEPS}"
    )
    assert memory[STEPS] == pytest.approx(memory[SETTLED], rel=0.02)
