"""The JSON file beside records, which says what they are."""

import dataclasses
import functools
import hashlib
import json
import os

from create_pretraining_data.work_folder import write_json
from create_pretraining_data.work_plan import without_shard
from tokenization.errors import InputError

# What the file says it is; another JSON file of the same name is left alone.
KIND = "pre-training records"


def sidecar_path(record_file):
    """The name rule: ko.json for ko.tfrecord, and for ko-00000-of-00064.tfrecord."""
    return os.path.splitext(without_shard(record_file))[0] + ".json"


def describe_records(plan, manifest, tokenizer, statistics, shards):
    """All that is known of a data set.

    Args:
        plan: the `WorkPlan` that it was made by.
        manifest: the settings that decided its bytes, a flat dict.
        tokenizer: what cut the text.
        statistics: `ChunkStatistics` of the whole text.
        shards: for each shard a dict of its records and its size.

    Returns:
        A dict that JSON can hold.
    """
    record_format = plan.settings.record_format
    positions = statistics.examples * record_format.max_seq_length
    filled = sum(length * count for length, count in statistics.lengths.items())
    counted = statistics.as_json()
    return {
        "kind": KIND,
        "record_format": dataclasses.asdict(record_format),
        "settings": manifest,
        "tokenizer": {
            "kind": tokenizer.kind,
            "fingerprint": tokenizer.fingerprint(),
            "vocabulary_sha256": hashlib.sha256(tokenizer.vocabulary_bytes).hexdigest(),
            "vocab_size": tokenizer.vocab_size,
        },
        **{name: value for name, value in counted.items() if name not in ("lengths", "left_out")},
        "label_1_share": _share(statistics.label_ones, statistics.sequences)
        if record_format.sentence_label
        else None,
        "padding_share": _share(positions - filled, positions),
        "unknown_share": _share(statistics.unknown_pieces, statistics.pieces),
        "pieces_per_word": _share(statistics.pieces, statistics.words),
        "documents_left_out": counted["left_out"],
        "lengths": counted["lengths"],
        "shards": [
            {"file": os.path.basename(path), **made}
            for path, made in zip(plan.output_files, shards, strict=True)
        ],
    }


def _share(part, whole):
    return round(part / whole, 6) if whole else 0.0


def write_sidecars(output_files, description):
    """Writes it beside the records: once, or beside each file of other names.

    Raises:
        InputError: it cannot be written.
    """
    for path in sidecar_paths(output_files):
        write_json(path, description)


def sidecar_paths(output_files):
    """The JSON files of a data set."""
    return sorted({sidecar_path(path) for path in output_files})


def read_sidecar(record_file):
    """Reads what is known of a file of records.

    Args:
        record_file: a path.

    Returns:
        A dict as `describe_records` makes it; None if no such file lies beside the records, or
        one that is not about them.
    """
    record_file = os.path.realpath(record_file)  # beside what a link leads to
    path = sidecar_path(record_file)
    try:
        description = _load(path, os.stat(path).st_mtime_ns)
        # Records that were replaced by others are not those that it describes.
        wanted = os.path.basename(record_file), os.path.getsize(record_file)
        known = any((made["file"], made["size"]) == wanted for made in description["shards"])
        return description if known and description["kind"] == KIND else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


@functools.lru_cache(maxsize=8)
def _load(path, modified):
    """Once for all shards that a file is about, unless it was written anew."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def is_made(output_files, manifest):
    """Whether all files are there as these settings would make them."""
    wanted = json.loads(json.dumps(manifest))
    descriptions = map(read_sidecar, output_files)
    return all(found is not None and found.get("settings") == wanted for found in descriptions)


def check_names(output_files, protected):
    """Refuses to write the JSON file over another file.

    Args:
        output_files: the files of records.
        protected: files that are read.

    Raises:
        InputError: names the file.
    """
    for path in sidecar_paths(output_files):
        if not os.path.exists(path):
            continue
        if any(os.path.samefile(path, source) for source in protected):
            raise InputError(
                "--output_file must not have the name of a file that is read, with .json. "
                f"Received: {path}"
            )
        try:
            with open(path, encoding="utf-8") as file:
                kind = json.load(file).get("kind")
        except (ValueError, AttributeError, RecursionError):
            kind = None
        if kind != KIND:
            raise InputError(
                "--output_file must leave other JSON files alone: what is known of the records "
                f"is written beside them. Received: {path}, which is no such file"
            )
