"""What a training on a lent card has learned, packed, and gone on with."""

import numpy as np
import pytest

from benchmarks.gpu.packed_state import SQUARE_DOUBLINGS, pack_array, unpack_array
from tests.support.benchmark_programs import run_benchmark
from tests.support.paths import ROOT, TEST_DATA

TOKENIZER = TEST_DATA / "sample_tokenizer"
MOMENT = {"mean": "w/adam_m", "square": "w/adam_v"}


def through(name, array):
    """An array that was packed and unpacked."""
    return unpack_array(name, pack_array(name, array))


def test_moments_and_weights_keep_their_size():
    rng = np.random.default_rng(0)
    scale = np.exp2(-rng.uniform(0, SQUARE_DOUBLINGS / 2, (64, 1)))
    mean = (rng.standard_normal((64, 32)) * scale).astype(np.float32)
    largest = np.abs(mean).max(axis=1, keepdims=True)
    # Half a step of 1/127 of the row's largest.
    assert np.all(np.abs(through(MOMENT["mean"], mean) - mean) <= 0.51 / 127 * largest)
    square = (mean**2).astype(np.float32)
    square[0, :3] = 0
    back = through(MOMENT["square"], square)
    kept = square > square.max() * 2.0 ** (-SQUARE_DOUBLINGS + 1)
    half_step = 2 ** (0.51 * SQUARE_DOUBLINGS / 254)
    assert kept.mean() > 0.9
    assert np.all(np.abs(np.log2(back[kept] / square[kept])) <= np.log2(half_step))
    assert np.all(back[square == 0] == 0) and np.all(back[square > 0] > 0)
    np.testing.assert_allclose(through("w", mean), mean, rtol=2**-10, atol=1e-7)


def test_small_arrays_and_integers_are_kept():
    for array in (np.int64(7), np.ones(20, np.float32) / 3):
        assert np.array_equal(through("global_step", np.asarray(array)), array)


@pytest.mark.slow
def test_a_training_goes_on_from_its_packed_state(tmp_path):
    def train(folder, steps, *flags):
        done = run_benchmark(
            "gpu.minutes", "train", tmp_path / folder, *flags,
            f"--text={ROOT}/sample_corpus/heldout.txt",
            f"--data_flags=--tokenizer_dir={TOKENIZER} --max_seq_length=32 --objective=none "
            "--max_predictions_per_seq=5",
            "--", f"--tokenizer_dir={TOKENIZER}", "--max_seq_length=32",
            "--max_predictions_per_seq=5", "--train_batch_size=4",
            f"--bert_config_file={ROOT}/run_scripts/flagfiles/bert_mini.json",
            f"--num_train_steps={steps}", "--save_summary_steps=2",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout + done.stderr

    train("first", 4)
    parts = list((tmp_path / "first").glob("state_*.bin"))
    assert parts and all(part.stat().st_size <= 15_000_000 for part in parts)
    printed = train("second", 8, f"--state={tmp_path / 'first'}")
    assert "model.ckpt-4, the newest checkpoint" in printed
    assert "model.ckpt-8: " in printed  # packed
