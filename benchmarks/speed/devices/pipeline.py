"""Measures the rows a second that the input pipeline reads, to compare with what GPUs need.

Shapes: S sequences of a row.
"""

import contextlib
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.speed.devices.models import VOCAB_SIZE
from bert_tf.config import BertConfig
from create_pretraining_data.instances.packing import MAX_SEQUENCES, row_predictions
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from create_pretraining_data.records.tfrecord import frame

SEED = 1
MASKED_SHARE = 0.15

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
    record_format = packed_format(task["length"])
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


def packed_format(length):
    """The `RecordFormat` of the jobs for eight GPUs, with rows of this length."""
    predictions = row_predictions(length, MASKED_SHARE)
    rules = MaskingRules(
        masked_lm_prob=MASKED_SHARE,
        max_predictions_per_seq=predictions,
        do_whole_word_mask=True,
        ngram=1,
        favor_shorter_ngram=True,
        do_permutation=False,
        mask_id=4,
        vocab_size=VOCAB_SIZE,
    )
    return RecordFormat(
        max_seq_length=length,
        max_predictions_per_seq=predictions,
        sentence_label=True,
        token_boundary=False,
        packed_sequences=MAX_SEQUENCES,
        masking=rules,
    )


def write_files(folder, record_format, count):
    """Writes random records of two sequences each; returns the paths."""
    length, rng = record_format.max_seq_length, np.random.default_rng(SEED)
    segments = np.zeros((count, 2 * MAX_SEQUENCES), np.int64)  # [count, 2 S]
    segments[:, :4] = [length // 4, length // 4, length // 4, length - 3 * (length // 4)]
    features = {
        "input_ids": rng.integers(5, VOCAB_SIZE, (count, length)),
        # Words of about two pieces.
        "word_starts": rng.integers(0, 2, (count, length)),
        "segment_lengths": segments,
        "next_sentence_labels": rng.integers(0, 2, (count, MAX_SEQUENCES)),
    }
    # Where [CLS] and [SEP] are no word begins.
    ends = np.cumsum(segments[0, :4])
    features["word_starts"][:, [0, ends[1], *(ends - 1)]] = 0
    records = encode_records(features, record_format)
    paths = [str(folder / f"random-{i}.tfrecord") for i in range(FILES)]
    for i, path in enumerate(paths):
        with open(path, "wb") as file:
            file.writelines(map(frame, records[i::FILES]))
    return paths
