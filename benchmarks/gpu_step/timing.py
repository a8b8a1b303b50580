"""Times one exported program."""

import statistics
import time

import jax
import numpy as np

from benchmarks.gpu_step.runtime import peak_memory, read_description
from benchmarks.gpu_step.state import new_state
from benchmarks.gpu_step.train import Training
from benchmarks.speed.cards import find_card

WARM_UP = 3  # steps; the first one may still choose kernels
ROUND_SECONDS = 0.5  # of a round at least, so that its one wait for the device does not count


def time_exported(folder, rounds):
    """Times a program's folder on JAX's first device: a dict for `report`."""
    description, device = read_description(folder), jax.devices()[0]
    start = time.perf_counter()
    training = Training(folder, device, new_state(description))
    compiled = time.perf_counter() - start
    batch = {f"batch/{name}": v for name, v in random_batch(description).items()}
    batch = training.gradients.put({**batch, **training.denominators(batch)})
    step = training.step_on_device
    seconds = time_rounds(lambda: step(batch, 1e-4), jax.block_until_ready, rounds)
    memory = {name: program.memory() for name, program in training.programs().items()}
    return {
        **numbers(description, seconds, device.device_kind),
        "runtime": f"JAX {jax.__version__}",
        "compile_seconds": compiled,
        "compiled_memory": memory,
        "peak_bytes": peak_memory(device),
    }


def random_batch(description):
    """Full rows of random ids; a row's masked positions are distinct and ascending."""
    rng = np.random.default_rng(0)
    rows, length = description["batch"], description["length"]
    count, vocabulary = description["predictions"], description["config"]["vocab_size"]
    positions = np.argsort(rng.random((rows, length)), axis=1)[:, :count]
    return {
        "input_ids": rng.integers(1, vocabulary, (rows, length)),
        "input_mask": np.ones((rows, length)),
        "segment_ids": rng.integers(0, 2, (rows, length)),
        "masked_lm_positions": np.sort(positions, axis=1),
        "masked_lm_ids": rng.integers(1, vocabulary, (rows, count)),
        "masked_lm_weights": np.ones((rows, count)),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1)),
        "next_sentence_weights": np.ones(rows),
    }


def time_rounds(step, wait, rounds):
    """Seconds per step in each round; `wait` waits for what `step` returned."""
    for _ in range(WARM_UP):
        wait(step())
    start = time.perf_counter()
    wait(step())
    steps = max(1, round(ROUND_SECONDS / (time.perf_counter() - start)))
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            result = step()
        wait(result)
        seconds.append((time.perf_counter() - start) / steps)
    return seconds


def numbers(description, seconds, device_kind):
    """What `report` shows of the times."""
    median = statistics.median(seconds)
    spread = 0.0
    if len(seconds) > 1:
        low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
        spread = (high - low) / median
    card = find_card(device_kind)
    # In float32 JAX multiplies in TF32, at half of the speed.
    half = 1 if description["precision"] == "bfloat16" else 0.5
    peak = card.bfloat16_flops * half if card else None
    return {
        "device": device_kind,
        "ms": median * 1000,
        "spread": spread,
        "rows_per_second": description["batch"] / median,
        "utilisation": description["flops"] / median / peak if peak else None,
        "peak_flops_source": card.source if card else "",
    }
