"""Measures how many rows per second the input pipeline reads, to compare with the GPUs' needs."""

import contextlib
import tempfile
import time
from pathlib import Path

import numpy as np

from bert_tf.config import BertConfig
from create_pretraining_data.instances.packing import MAX_SEQUENCES, row_predictions
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from create_pretraining_data.records.tfrecord import frame

SEED = 1
VOCAB_SIZE = 32_000
MASKED_SHARE = 0.15
WORDS = 0.55  # the share of tokens that begin a word, as in Korean text
SEQUENCES = 3  # in a packed row

# The number of random records, which the pipeline reads repeatedly, and of their files.
RECORDS, FILES = 4096, 4

BATCH = 256


def measure_pipeline(task):
    """Reads packed rows with masks drawn on the fly; returns an answer with "rows_per_second".

    Args:
        task: a dict with "length", "seconds" (how long to read) and "mask_processes" (the number of
            processes that draw masks; 0 for this process).
    """
    from bert_tf.input.batch_plan import BatchPlan
    from bert_tf.input.pipeline import training_dataset
    from create_pretraining_data.instances.mask_processes import MaskProcesses

    count = task["mask_processes"]
    record_format = dynamic_format(task["length"])
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


def dynamic_format(length):
    """Returns the `RecordFormat` of packed rows without masks, as in the jobs for eight GPUs."""
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
    return RecordFormat(length, predictions, True, False, MAX_SEQUENCES, rules)


def random_records(rows, length):
    """Makes packed rows of random tokens, as a dict of int32 arrays like parsed records."""
    rng = np.random.default_rng(0)
    lengths = np.zeros((rows, MAX_SEQUENCES, 2), np.int32)
    lengths[:, :SEQUENCES] = length // SEQUENCES // 2
    filled = np.arange(length) < lengths[0].sum()
    return {
        "input_ids": np.where(filled, rng.integers(5, VOCAB_SIZE, (rows, length)), 0).astype("i4"),
        "word_starts": (filled & (rng.random((rows, length)) < WORDS)).astype("i4"),
        "segment_lengths": lengths.reshape(rows, -1),
        "next_sentence_labels": rng.integers(0, 2, (rows, MAX_SEQUENCES), np.int32),
    }


def write_files(folder, record_format, count):
    """Writes random records; returns the paths."""
    records = encode_records(random_records(count, record_format.max_seq_length), record_format)
    paths = [str(folder / f"random-{i}.tfrecord") for i in range(FILES)]
    for i, path in enumerate(paths):
        with open(path, "wb") as file:
            file.writelines(map(frame, records[i::FILES]))
    return paths
