"""Measures the memory of this project's training step, batch by batch up to a limit.

    python -m benchmarks.speed.memory --length=128 --batch=8 --recompute=none,block
    python -m benchmarks.speed.memory --search --limit-gib=12 --verify --recompute=block
    python -m benchmarks.speed.memory --estimate --limit-gib=12                    runs nothing
    python -m benchmarks.speed.memory --length=512,2048 --tokens=2048 --attention=full,blockwise

Every measurement runs some steps in a fresh process and reports its peak of memory (of the GPU's if
there is one) and the seconds per example. The search measures three small batches for each length,
fits memory = a + b * batch, and computes which batch fills the limit; with --verify that batch is
run too, and the result is the largest batch that did fit. The estimate comes from
`bert_tf.memory_estimate`, which run_pretraining prints before it trains. Several kinds of attention
are run in turn, and compared with the first of them.
"""

import bisect
import dataclasses
import math
import statistics

import numpy as np

from benchmarks.common import (
    add_model_flags,
    argument_parser,
    one_of,
    print_table,
    read_config,
    take_turns,
    whole_numbers,
)
from benchmarks.speed.contender import Contender, ContenderFailed
from bert_tf.memory_estimate import GIB, estimate_bytes
from bert_tf.names import ATTENTION_NAMES

# google-research/bert README, "Out-of-memory issues": the largest batches of BERT-base on a GPU
# with 12 GB, fine-tuning with Adam (no logits over the vocabulary, unlike here).
GOOGLE_BATCHES = {64: 64, 128: 32, 256: 16, 320: 14, 384: 12, 512: 6}

# The share of a row's tokens that is predicted: 20 of 128, 77 of 512, as google-research/bert.
MASKED_SHARE = 0.15

# The smallest batch of a search has about this many tokens, the largest four times as many: enough
# for the memory of activations to show beside the weights'.
FIRST_TOKENS = 512

# The upper end of the estimate's search for the largest batch: no device holds this many examples.
MAX_BATCH = 2**20

# How many batches --verify may run: a fit from small batches can be off by one or two.
ATTEMPTS = 4

# How often the kinds of attention take turns.
ROUNDS = 5

HEADINGS = [
    "length", "precision", "recompute", "XLA", "attention", "batch", "peak memory GiB", "s/example",
]  # fmt: skip
RATIO_HEADINGS = [*HEADINGS, "memory ratio", "time ratio"]
SEARCH_HEADINGS = [
    "length", "precision", "recompute", "XLA", "attention", "memory in GiB", "largest residual",
    "largest batch", "its memory GiB", "s/example", "google-research/bert, 12 GB card",
]  # fmt: skip
ESTIMATE_HEADINGS = [
    "length", "float32", "bfloat16", "float32, --recompute=block", "bfloat16, --recompute=block",
]  # fmt: skip


def sized(task, length, batch):
    """The task with the sizes of its batch."""
    return {
        **task,
        "length": length,
        "batch": batch,
        "predictions": math.ceil(MASKED_SHARE * length),
        "warm_up": 1,  # a step of the largest batches takes minutes on a CPU
    }


def measure(task, length, batch, steps):
    """Measures peak memory in GiB and seconds per example; (inf, nan) if memory ran out."""
    try:
        contender = Contender("project", sized(task, length, batch))
        contender.run(steps)
    except ContenderFailed as error:
        if error.out_of_memory:
            return math.inf, math.nan
        raise
    contender.close()
    return contender.memory, contender.seconds[-1] / batch


def compare(tasks, length, batch, steps):
    """Measures tasks that take turns.

    Returns:
        For each task peak memory in GiB, the median of the seconds per example, and both divided by
        the first task's, the seconds round by round.
    """
    contenders = [Contender("project", sized(task, length, batch)) for task in tasks]
    seconds = take_turns(contenders, ROUNDS, steps)
    for contender in contenders:
        contender.close()
    first, rounds = contenders[0], seconds[0]
    return [
        (
            contender.memory,
            statistics.median(own) / batch,
            contender.memory / first.memory,
            statistics.median(a / b for a, b in zip(own, rounds, strict=True)),
        )
        for contender, own in zip(contenders, seconds, strict=True)
    ]


def fit(memories):
    """Fits memory = a + b * batch to {batch: memory}; returns a, b and the largest residual."""
    batches, values = np.array([*memories], float), np.array([*memories.values()])
    b, a = np.polyfit(batches, values, 1)
    return a, b, np.abs(a + b * batches - values).max()


def largest_fitted(memories, limit):
    """The largest batch within the limit by the fit of {batch: memory}; 0 if none is.

    None if memory does not grow with the batch: the model is too small to show beside the
    libraries, and larger batches should be measured.
    """
    a, b, _ = fit(memories)
    return max(math.floor((limit - a) / b), 0) if b > 0 else None


def search(task, length, limit, steps, verify):
    """A row of the search's table, without its first columns."""
    first = max(1, FIRST_TOKENS // length)
    measured = {n: measure(task, length, n, steps) for n in (first, 2 * first, 4 * first)}
    memories = {batch: memory for batch, (memory, _) in measured.items()}
    a, b, residual = fit(memories)
    answer = largest_fitted(memories, limit)
    memory, seconds = "not run", "not run"
    if verify and answer:
        for _ in range(ATTEMPTS):
            tried = largest_fitted(memories, limit)
            if not tried or tried in measured:
                break
            measured[tried] = measure(task, length, tried, steps)
            # A batch for which there was no memory cannot be fitted.
            memories[tried] = min(measured[tried][0], 2 * limit)
        answer = max((batch for batch, (value, _) in measured.items() if value <= limit), default=0)
        if answer:
            memory, seconds = (f"{number:.3g}" for number in measured[answer])
    google = GOOGLE_BATCHES.get(length, "") if task["model"] == "bert" else ""
    line = f"{a:.2f} {b:+.4f} * batch"
    answer = "unknown" if answer is None else str(answer)
    return [line, f"{residual:.3f}", answer, memory, seconds, str(google)]


def largest_batch(limit, config, length, predictions, precision="float32", recompute="none"):
    """The largest batch estimated to fit into `limit` bytes; the rest as for `estimate_bytes`."""
    return bisect.bisect_right(
        range(1, MAX_BATCH),
        limit,
        key=lambda batch: estimate_bytes(config, batch, length, predictions, precision, recompute),
    )


def estimated_rows(lengths, config, limit):
    """Yields for each length the largest batches that are estimated to fit."""
    for length in lengths:
        predictions = math.ceil(MASKED_SHARE * length)
        batches = [
            largest_batch(limit * GIB, config, length, predictions, precision, recompute)
            for recompute in ("none", "block")
            for precision in ("float32", "bfloat16")
        ]
        yield [str(number) for number in (length, *batches)]


def main():
    """Measures, prints the table."""
    parser = argument_parser(__doc__)
    add_model_flags(parser)
    parser.add_argument("--recompute", type=one_of("none", "block"), default=["none"])
    parser.add_argument("--xla", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--length", type=whole_numbers, help="one or more; 128, or Google's table")
    parser.add_argument("--attention", type=one_of(*ATTENTION_NAMES), default=["auto"])
    parser.add_argument("--batch", type=whole_numbers, default=[8], help="one or more")
    parser.add_argument("--tokens", type=int, help="of a batch of any length; in place of --batch")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--search", action="store_true", help="find the largest batch")
    parser.add_argument("--estimate", action="store_true", help="of the largest batch; no run")
    parser.add_argument("--limit-gib", type=float, default=12.0)
    parser.add_argument("--verify", action="store_true", help="run the batches that were found")
    arguments = parser.parse_args()
    config = read_config(arguments.model, arguments.config)
    lengths = arguments.length or [*GOOGLE_BATCHES]
    if arguments.estimate:
        print(f"The largest batch in {arguments.limit_gib:g} GiB, estimated:\n")
        print_table(ESTIMATE_HEADINGS, estimated_rows(lengths, config, arguments.limit_gib))
        return
    # The table of positions must be as long as the rows.
    positions = max(config.max_position_embeddings, *lengths)
    config = dataclasses.replace(config, max_position_embeddings=positions)
    task = {"model": arguments.model, "config": dataclasses.asdict(config), "xla": arguments.xla}
    headings = RATIO_HEADINGS if len(arguments.attention) > 1 else HEADINGS
    if arguments.search:
        print(f"The largest batch in {arguments.limit_gib:g} GiB:\n")
        headings = SEARCH_HEADINGS
    print_table(headings, measured_rows(arguments, task))


def measured_rows(arguments, task):
    """Yields the rows of the table."""
    for length in arguments.length or (GOOGLE_BATCHES if arguments.search else [128]):
        batches = [arguments.tokens // length] if arguments.tokens else arguments.batch
        for precision in arguments.precision:
            for recompute in arguments.recompute:
                one = {**task, "precision": precision, "recompute": recompute}
                first = [str(length), precision, recompute, arguments.xla]
                kinds = {name: {**one, "attention": name} for name in arguments.attention}
                if arguments.search:
                    limits = (arguments.limit_gib, arguments.steps, arguments.verify)
                    for name, kind in kinds.items():
                        yield [*first, name, *search(kind, length, *limits)]
                    continue
                for batch in batches:
                    for name, numbers in measured(kinds, length, batch, arguments.steps):
                        yield [*first, name, str(batch), *(f"{n:.3g}" for n in numbers)]


def measured(kinds, length, batch, steps):
    """Pairs of a kind of attention and what was measured of it, with ratios if there are several.

    Args:
        kinds: kind of attention -> task.
        length, batch, steps: as for `measure`.
    """
    if len(kinds) > 1:
        return zip(kinds, compare([*kinds.values()], length, batch, steps), strict=True)
    return [(name, measure(task, length, batch, steps)) for name, task in kinds.items()]


if __name__ == "__main__":
    main()
