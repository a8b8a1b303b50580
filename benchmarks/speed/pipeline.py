"""Measures how many rows a second the input pipeline makes ready.

    python -m benchmarks.speed.pipeline --work_dir=work

Records of random pieces are read, parsed, masked and batched as run_pretraining does it, without
training. All kinds of records and numbers of processes take turns, round after round; ratios are
those within a round. The batches must be equal, whatever the number of processes.
"""

import contextlib
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.common import argument_parser, median_and_spread, print_table, whole_numbers
from benchmarks.speed.masks import VOCAB_SIZE, dynamic_format, random_records
from bert_common.cpu import available_cores
from bert_tf.config import BertConfig
from create_pretraining_data.instances.dynamic_masking import draw_masks
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.tfrecord import frame

FILES = 4
CHECKED = 4  # batches that are compared


def write_files(arguments, packed, masked):
    """Writes records, with their masks or without; returns their paths, format and features."""
    record_format = dynamic_format(arguments.length, packed)
    features = random_records(arguments.records, record_format)
    if masked:
        names = sorted(record_format.with_masks().features())
        positions = np.arange(arguments.records)
        values = draw_masks(features, positions, record_format, 1, names)
        features, record_format = dict(zip(names, values, strict=True)), record_format.with_masks()
    frames = [frame(record) for record in encode_records(features, record_format)]
    paths = []
    for number in range(FILES):
        paths.append(str(arguments.work_dir / f"pipeline-{packed:d}{masked:d}{number}.tfrecord"))
        Path(paths[-1]).write_bytes(b"".join(frames[number::FILES]))
    return paths, record_format


class Pipeline:
    """An input pipeline at work.

    Args:
        data: what `write_files` returns.
        arguments: the command line's.
        processes: `MaskProcesses`, or None.
    """

    def __init__(self, data, arguments, processes=None):
        from bert_tf.input.batch_plan import BatchPlan
        from bert_tf.input.pipeline import training_dataset

        config = BertConfig.from_preset("base", vocab_size=VOCAB_SIZE)
        plan = BatchPlan(*data, config, arguments.batch, 1, mask_processes=processes)
        self.batches = iter(training_dataset(plan))
        self.first = [next(self.batches) for _ in range(CHECKED)]
        self.size, self.rates = arguments.batch, []

    def measure(self, seconds):
        """Reads batches for some seconds; records rows a second."""
        for _ in range(-(-1024 // self.size)):  # what was prefetched while others were measured
            next(self.batches)
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            next(self.batches)
            count += self.size
        self.rates.append(count / (time.perf_counter() - start))


def check_equal(pipelines):
    """Ends the program if the first batches of pipelines differ."""
    for pipeline in pipelines[1:]:
        for one, other in zip(pipeline.first, pipelines[0].first, strict=True):
            if any(one[name].numpy().tobytes() != other[name].numpy().tobytes() for name in one):
                sys.exit("error: masks must not depend on the number of processes")


def main():
    """Measures, and prints the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--processes", type=whole_numbers, default=[0, 1, 2])
    parser.add_argument("--records", type=int, default=16_384)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=2.0, help="a round takes for each kind")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        started = {
            n: stack.enter_context(MaskProcesses(n)) if n else None for n in arguments.processes
        }
        groups = []  # the rows of a group are compared with its first
        for packed in (False, True):
            name = "packed" if packed else "one sequence a row"
            masked = write_files(arguments, packed, masked=True)
            groups.append({f"{name}, masked": Pipeline(masked, arguments)})
            unmasked = write_files(arguments, packed, masked=False)
            groups.append(
                {
                    f"{name}, dynamic masks, {n} processes": Pipeline(unmasked, arguments, each)
                    for n, each in started.items()
                }
            )
            check_equal([*groups[-1].values()])
        for _ in range(arguments.rounds):
            for group in groups:
                for pipeline in group.values():
                    pipeline.measure(arguments.seconds)
    print(
        f"batches of {arguments.batch} rows of {arguments.length}, {available_cores()} cores, "
        f"{arguments.rounds} rounds; spread: the quartiles' distance over the median. All masks "
        "are equal.\n"
    )
    rows = []
    for group in groups:
        first = next(iter(group.values()))
        for name, pipeline in group.items():
            rate, spread = median_and_spread(pipeline.rates)
            ratios = [one / other for one, other in zip(pipeline.rates, first.rates, strict=True)]
            ratio, ratio_spread = median_and_spread(ratios)
            rows.append([name, f"{rate:,.0f}", f"{spread:.0%}", f"{ratio:.2f}",
                         f"{ratio_spread:.0%}"])  # fmt: skip
    print_table(["records", "rows/s", "spread", "to the first", "spread"], rows)


if __name__ == "__main__":
    main()
