"""Rows of sentence order: checks the kind of their records, finds their parts, describes them."""

import dataclasses
import os

import numpy as np

from bert_common.errors import InputError
from create_pretraining_data.records.metadata import KIND, described_objective, write_sidecars


def check_kind(flag, path, record_format):
    """Raises an InputError unless these are ordinary records of sentence order with masks.

    Args:
        flag: the flag that names them.
        path: of the records.
        record_format: their `RecordFormat`.
    """
    objective = described_objective(path)
    packed, unmasked = record_format.packed_sequences > 0, record_format.masking is not None
    if objective != "sop" or packed or unmasked:
        masking = "dynamic" if unmasked else "static"
        raise InputError(
            f"{flag} must hold records of create_pretraining_data.py --objective=sop "
            f"--masking=static --packing=false. Received: {path}, --objective={objective} "
            f"--masking={masking} --packing={str(packed).lower()}"
        )


def segment_places(fields):
    """Where the segments of a record are, without [CLS] and [SEP]: two slices.

    Args:
        fields: a parsed ordinary record, a dict name -> array.
    """
    length = int(fields["input_mask"].sum())
    second = length - int(fields["segment_ids"].sum())
    return slice(1, second - 1), slice(second, length - 1)


def unmasked_ids(fields):
    """The ids of a record with the masked pieces restored, [T] int32.

    Args:
        fields: a parsed ordinary record, a dict name -> array.
    """
    ids, count = fields["input_ids"].astype(np.int32), int(fields["masked_lm_weights"].sum())
    ids[fields["masked_lm_positions"][:count]] = fields["masked_lm_ids"][:count]
    return ids


def write_description(path, arguments, record_format, tokenizer):
    """Writes the description beside a record file, and the tokenizer.

    Args:
        path: of the records, which are complete.
        arguments: the flags they were made with, --rows among them.
        record_format: their `RecordFormat`.
        tokenizer: their tokenizer.
    """
    size = os.path.getsize(path)
    description = {
        "kind": KIND,
        "record_format": dataclasses.asdict(record_format),
        "settings": {"--objective": "sop", **{f"--{k}": v for k, v in vars(arguments).items()}},
        "tokenizer": {"fingerprint": tokenizer.fingerprint(), "vocab_size": tokenizer.vocab_size},
        "shards": [{"file": os.path.basename(path), "records": arguments.rows, "size": size}],
    }
    write_sidecars([path], description, tokenizer)
