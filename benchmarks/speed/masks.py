"""Measures how many records a second dynamic masks are drawn for, without TensorFlow.

    python -m benchmarks.speed.masks --processes=1,2,4,8,16

It needs NumPy alone, so it runs on any machine. Records of random pieces are masked as the input
pipeline of run_pretraining masks them, in 0 (this process) or more processes; all numbers of
processes take turns, round after round. Masks must be equal, whatever the number.
"""

import concurrent.futures
import contextlib
import functools
import sys
import time

import numpy as np

from benchmarks.common import cells, flag, launch, print_table, ratios, take_turns
from bert_common.cpu import available_cores
from create_pretraining_data.instances.dynamic_masking import draw_masks
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.instances.packing import MAX_SEQUENCES, row_predictions
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat

MASKED_SHARE = 0.15
VOCAB_SIZE = 32_000
WORDS = 0.55  # the share of pieces that begin a word, as in Korean text
SEQUENCES = 3  # of a packed row
HEADINGS = ["processes", "rows/s", "spread", "to the first", "spread", "s to start"]
FLAGS = {
    "processes": [0, 1, 2],
    "length": 512,
    "rows": flag(128, "that are masked at a time"),
    "packed": False,
    "batches": flag(24, "for each process in a round"),
}


def dynamic_format(length, packed, ngram=3):
    """The `RecordFormat` of records without masks, with 15 % of the pieces to predict."""
    places = row_predictions(length, MASKED_SHARE)
    rules = MaskingRules(
        masked_lm_prob=MASKED_SHARE,
        max_predictions_per_seq=places,
        do_whole_word_mask=True,
        ngram=ngram,
        favor_shorter_ngram=True,
        do_permutation=False,
        mask_id=4,
        vocab_size=VOCAB_SIZE,
    )
    return RecordFormat(length, places, True, False, MAX_SEQUENCES if packed else 0, rules)


def random_records(rows, record_format, seed=0):
    """Full rows of random pieces: a dict of int32 arrays, as records without masks are parsed."""
    rng = np.random.default_rng(seed)
    length, slots = record_format.max_seq_length, record_format.packed_sequences or 1
    sequences = SEQUENCES if record_format.packed_sequences else 1
    lengths = np.zeros((rows, slots, 2), np.int32)
    lengths[:, :sequences] = length // sequences // 2
    filled = np.arange(length) < lengths[0].sum()
    return {
        "input_ids": np.where(filled, rng.integers(5, VOCAB_SIZE, (rows, length)), 0).astype("i4"),
        "word_starts": (filled & (rng.random((rows, length)) < WORDS)).astype("i4"),
        "segment_lengths": lengths.reshape(rows, -1),
        "next_sentence_labels": rng.integers(0, 2, (rows, slots), np.int32),
    }


class Masking:
    """Draws masks with some number of processes.

    Args:
        count: the processes; 0 for this one.
        arguments: the command line's.
        stack: an `ExitStack`, which ends the processes.
    """

    def __init__(self, count, arguments, stack):
        self.record_format = dynamic_format(arguments.length, arguments.packed)
        self.names = sorted(self.record_format.with_masks().features())
        self.stored = random_records(arguments.rows, self.record_format)
        self.draw = draw_masks
        start = time.perf_counter()
        if count:
            self.draw = stack.enter_context(MaskProcesses(count)).draw_masks
        self.starting = time.perf_counter() - start
        # As the pipeline has it: one more batch is ready for the first process that has none.
        self.threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(count + 1))

    def batch(self, number, draw=None):
        """The features of a batch of other positions each time."""
        positions = np.arange(len(self.stored["input_ids"])) + number * 1000
        return (draw or self.draw)(self.stored, positions, self.record_format, 1, self.names)

    def measure(self, batches):
        """Masks some batches: the rows a second."""
        start = time.perf_counter()
        for _ in self.threads.map(self.batch, range(batches)):
            pass
        return batches * len(self.stored["input_ids"]) / (time.perf_counter() - start)


def main(arguments):
    """Measures, and prints the table."""
    with contextlib.ExitStack() as stack:
        kinds = {n: Masking(n, arguments, stack) for n in arguments.processes}
        expected = next(iter(kinds.values())).batch(1, draw_masks)
        for kind in kinds.values():
            pairs = zip(expected, kind.batch(1), strict=True)
            if any(one.tobytes() != other.tobytes() for one, other in pairs):
                sys.exit("error: masks must not depend on the number of processes")
        rates = take_turns(
            {
                count: functools.partial(kind.measure, arguments.batches * max(count, 1))
                for count, kind in kinds.items()
            },
            arguments.rounds,
        )
    print(
        f"{arguments.rows} {'packed ' if arguments.packed else ''}rows of {arguments.length} at a "
        f"time, {available_cores()} cores, {arguments.rounds} rounds; spread: the quartiles' "
        "distance over the median. All masks are equal.\n"
    )
    of_first = rates[arguments.processes[0]]
    print_table(
        HEADINGS,
        (
            [
                str(count), *cells(rates[count], ",.0f"),
                *cells(ratios(rates[count], of_first), ".2f"), f"{kind.starting:.2f}",
            ]
            for count, kind in kinds.items()
        ),
    )  # fmt: skip


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=7)
