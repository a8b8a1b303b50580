"""Measures the memory of this project's training step, batch by batch.

    python -m benchmarks.speed.memory --length=128 --batch=8 --recompute=none,block
    python -m benchmarks.speed.memory --estimate --limit-gib=12                    runs nothing
    python -m benchmarks.speed.memory --length=512,2048 --tokens=2048 --attention=full,blockwise

Each measurement runs some steps in a new process, and reports the peak memory (the GPU's if there
is one) and the seconds per example. The estimate of the largest batch within a limit comes from
`bert_tf.memory_estimate`, which run_pretraining prints before training. Several kinds of attention
are run in turn, and compared with the first one.
"""

import bisect
import contextlib
import dataclasses
import math
import statistics

from benchmarks.common import flag, launch, print_table, ratios, some_of, whole_numbers
from benchmarks.contender import ContenderFailed
from benchmarks.speed import contenders
from benchmarks.speed.contender_steps.shared import MODEL_FLAGS, read_config
from bert_tf.memory_estimate import GIB, estimate_bytes
from bert_tf.names import ATTENTION_NAMES

# The lengths in google-research/bert's README, "Out-of-memory issues".
GOOGLE_LENGTHS = [64, 128, 256, 320, 384, 512]

# The share of tokens to predict in a row: 20 of 128, 77 of 512, as in google-research/bert.
MASKED_SHARE = 0.15

# The upper limit of the search for the largest batch; no device holds this many examples.
MAX_BATCH = 2**20

# The number of rounds in which the kinds of attention take turns.
ROUNDS = 5

HEADINGS = [
    "length", "precision", "recompute", "XLA", "attention", "batch", "peak memory GiB", "s/example",
]  # fmt: skip
RATIO_HEADINGS = [*HEADINGS, "memory ratio", "time ratio"]
ESTIMATE_HEADINGS = [
    "length", "float32", "bfloat16", "float32, --recompute=block", "bfloat16, --recompute=block",
]  # fmt: skip
FLAGS = {
    **MODEL_FLAGS,
    "recompute": some_of(["none"], ("none", "block")),
    "xla": flag("auto", choices=("auto", "on", "off")),
    "length": flag(None, "one or more; 128, or those of Google's table", type=whole_numbers),
    "attention": some_of(["auto"], ATTENTION_NAMES),
    "batch": flag([8], "one or more"),
    "tokens": flag(None, "of a batch of any length; in place of --batch", type=int),
    "steps": 3,
    "estimate": flag(False, "of the largest batch; no run"),
    "limit-gib": 12.0,
}


def measure(kinds, length, batch, steps):
    """Measures kinds of attention, in turn if there are several.

    Args:
        kinds: kind of attention -> task.
        length, batch: the length of a row, and the rows of a step.
        steps: the number of steps per round.

    Yields:
        The kind, peak memory in GiB, the median of the seconds per example, and both divided by
        the first kind's; (kind, inf, nan) if memory ran out.
    """
    sizes = {
        "length": length,
        "batch": batch,
        "predictions": math.ceil(MASKED_SHARE * length),
        "warm_up": 1,  # a step of the largest batches takes minutes on a CPU
    }
    running = []
    with contextlib.ExitStack() as stack:
        try:
            for task in kinds.values():
                contender = contenders.start("project", {**task, **sizes})
                running.append(stack.enter_context(contextlib.closing(contender)))
            contenders.in_turns(running, ROUNDS if len(kinds) > 1 else 1, steps)
        except ContenderFailed as error:
            if not error.out_of_memory:
                raise
            yield from ((name, math.inf, math.nan) for name in kinds)
            return
    first = running[0]
    for name, contender in zip(kinds, running, strict=True):
        numbers = [contender.memory, statistics.median(contender.seconds) / batch]
        if len(kinds) > 1:
            ratio = statistics.median(ratios(contender.seconds, first.seconds))
            numbers += [contender.memory / first.memory, ratio]
        yield name, *numbers


def largest_batch(limit, config, length, predictions, precision="float32", recompute="none"):
    """Returns the largest batch whose estimate by `estimate_bytes` fits into `limit` bytes."""
    return bisect.bisect_right(
        range(1, MAX_BATCH),
        limit,
        key=lambda batch: estimate_bytes(config, batch, length, predictions, precision, recompute),
    )


def estimated_rows(lengths, config, limit):
    """Yields table rows with each length's largest batches that are estimated to fit."""
    for length in lengths:
        predictions = math.ceil(MASKED_SHARE * length)
        batches = [
            largest_batch(limit * GIB, config, length, predictions, precision, recompute)
            for recompute in ("none", "block")
            for precision in ("float32", "bfloat16")
        ]
        yield [str(number) for number in (length, *batches)]


def measured_rows(arguments, lengths, task):
    """Measures and yields the rows of the table."""
    for length in lengths:
        batches = [arguments.tokens // length] if arguments.tokens else arguments.batch
        for precision in arguments.precision:
            for recompute in arguments.recompute:
                one = {**task, "precision": precision, "recompute": recompute}
                first = [str(length), precision, recompute, arguments.xla]
                kinds = {name: {**one, "attention": name} for name in arguments.attention}
                for batch in batches:
                    for name, *numbers in measure(kinds, length, batch, arguments.steps):
                        yield [*first, name, str(batch), *(f"{n:.3g}" for n in numbers)]


def main(arguments):
    """Measures or estimates memory, and prints the table."""
    config = read_config(arguments.model, arguments.config)
    if arguments.estimate:
        print(f"The largest batch in {arguments.limit_gib:g} GiB, estimated:\n")
        rows = estimated_rows(arguments.length or GOOGLE_LENGTHS, config, arguments.limit_gib)
        return print_table(ESTIMATE_HEADINGS, rows)
    lengths = arguments.length or [128]
    # The table of positions must be as long as the rows.
    positions = max(config.max_position_embeddings, *lengths)
    config = dataclasses.replace(config, max_position_embeddings=positions)
    task = {"model": arguments.model, "config": dataclasses.asdict(config), "xla": arguments.xla}
    headings = RATIO_HEADINGS if len(arguments.attention) > 1 else HEADINGS
    print_table(headings, measured_rows(arguments, lengths, task))


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
