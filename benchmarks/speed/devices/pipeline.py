"""Measures the rows a second that the input pipeline reads, to compare with what GPUs need."""

import contextlib
import tempfile
import time
from pathlib import Path

from benchmarks.speed.masks import VOCAB_SIZE, dynamic_format, random_records
from bert_tf.config import BertConfig
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.tfrecord import frame

SEED = 1

# Random records, which the pipeline reads again and again.
RECORDS, FILES = 4096, 4

BATCH = 256


def measure_pipeline(task):
    """Reads packed rows whose masks are drawn: an answer with "rows_per_second".

    Args:
        task: a dict with "length", "seconds", how long to read, and "mask_processes", how many
            draw the masks; 0 for this process.
    """
    from bert_tf.input.batch_plan import BatchPlan
    from bert_tf.input.pipeline import training_dataset
    from create_pretraining_data.instances.mask_processes import MaskProcesses

    count = task["mask_processes"]
    # As the jobs for eight GPUs mask them.
    record_format = dynamic_format(task["length"], packed=True, ngram=1)
    config = BertConfig.from_preset("base", vocab_size=VOCAB_SIZE)
    mask_processes = MaskProcesses(count) if count else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, mask_processes as processes:
        records, batch = task.get("records", RECORDS), task.get("batch", BATCH)
        files = write_files(Path(folder), record_format, records)
        plan = BatchPlan(files, record_format, config, batch, SEED, mask_processes=processes)
        batches = iter(training_dataset(plan))
        next(batches)  # reads the first block
        read, start = 0, time.perf_counter()
        while time.perf_counter() - start < task["seconds"]:
            read += len(next(batches)["input_ids"])
        seconds = time.perf_counter() - start
    return {"result": "ok", "rows_per_second": read / seconds}


def write_files(folder, record_format, count):
    """Writes random records; returns the paths."""
    records = encode_records(random_records(count, record_format), record_format)
    paths = [str(folder / f"random-{i}.tfrecord") for i in range(FILES)]
    for i, path in enumerate(paths):
        with open(path, "wb") as file:
            file.writelines(map(frame, records[i::FILES]))
    return paths
