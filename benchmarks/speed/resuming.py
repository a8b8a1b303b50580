"""Measures how long a run waits for its first batch.

    python -m benchmarks.speed.resuming --work_dir=work

It writes records of random pieces, 1,100,000 of 128 pieces in 64 files by default (450 MB), and
removes them afterwards. It times a new pipeline up to its first batch, at the start of a run and
after many records.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

from benchmarks.common import argument_parser, median_and_spread, print_table
from bert_tf.config import BertConfig
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.metadata import KIND, sidecar_path
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.tfrecord import frame

VOCAB_SIZE = 30_000
DISTINCT = 1000  # records, which are repeated


def write_files(arguments, record_format):
    """Writes the record files; returns their paths."""
    rng = np.random.default_rng(0)
    values = {
        name: rng.integers(0, 2, (DISTINCT, size)).astype(np.float32 if kind == "float" else int)
        for name, (size, kind) in record_format.features().items()
    }
    values["input_ids"] = rng.integers(5, VOCAB_SIZE, (DISTINCT, arguments.length))
    frames = [frame(record) for record in encode_records(values, record_format)]
    shares = np.bincount(np.arange(arguments.records) % arguments.files)
    paths = []
    for number, share in enumerate(shares.tolist()):
        name = f"resume-{number:05d}-of-{arguments.files:05d}.tfrecord"
        paths.append(str(arguments.work_dir / name))
        with open(paths[-1], "wb") as file:
            file.writelines(frames[i % DISTINCT] for i in range(share))
    return paths


def describe(paths, counts):
    """Writes the JSON file beside record files, with as much as counting them needs."""
    shards = [
        {"file": os.path.basename(path), "size": os.path.getsize(path), "records": count}
        for path, count in zip(paths, counts, strict=True)
    ]
    description = {"kind": KIND, "shards": shards, "record_format": {}, "tokenizer": {}}
    Path(sidecar_path(paths[0])).write_text(json.dumps(description))


def seconds_of(task):
    """How long a function without arguments takes, and what it returns."""
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def main():
    """Measures, and prints the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--records", type=int, default=1_100_000)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--after", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    from bert_tf.input.batch_plan import BatchPlan
    from bert_tf.input.pipeline import training_dataset
    from create_pretraining_data.records.reader import count_records

    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    record_format = RecordFormat(arguments.length, 20, True, False)
    paths = write_files(arguments, record_format)
    try:
        scanning, counts = seconds_of(lambda: list(map(count_records, paths)))
        describe(paths, counts)
        reading, _ = seconds_of(lambda: list(map(count_records, paths)))
        config = BertConfig.from_preset("base", vocab_size=VOCAB_SIZE)
        plan = BatchPlan(paths, record_format, config, arguments.batch, 1)
        times = {}
        for _ in range(arguments.rounds):
            for position in (0, arguments.after):
                step = position // arguments.batch
                seconds, _ = seconds_of(lambda step=step: next(iter(training_dataset(plan, step))))
                times.setdefault(position, []).append(seconds)
    finally:
        for path in (*paths, sidecar_path(paths[0])):
            Path(path).unlink(missing_ok=True)
    print(
        f"{arguments.records:,} records of {arguments.length} in {arguments.files} files; "
        f"counted in {scanning:.2f} s, with the JSON file beside them in {reading:.3f} s; "
        f"{arguments.rounds} rounds.\n"
    )
    rows = []
    for position, found in times.items():
        median, spread = median_and_spread(found)
        rows.append([f"{position:,}", f"{median:.2f}", f"{spread:.0%}"])
    print_table(["records before", "s to the first batch", "spread"], rows)


if __name__ == "__main__":
    main()
