"""The JSON file beside records, which says what they are, and their tokenizer beside it."""

import dataclasses
import functools
import hashlib
import json
import os

from bert_common.atomic_write import remove_partial_files, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.records.masking_rules import MaskingRules
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.shard_names import collapse_output_file, without_shard
from tokenization.loading import CONFIG_FILE, save_tokenizer

# What the file says it is; another JSON file of the same name is left alone.
KIND = "pre-training records"

# More than any length, vocabulary or number of predictions.
LARGEST = 2**24


def sidecar_names(record_file):
    """The name rule: where a file's description lies, or, if that is taken, where else.

    ko.json for ko.tfrecord and for ko-00000-of-00064.tfrecord; ko.tfrecord.json, or
    ko.tfrecord@64.json, where ko.json describes other records or holds records itself.
    """
    stem = os.path.splitext(without_shard(record_file))[0]
    return f"{stem}.json", f"{collapse_output_file(record_file)}.json"


def sidecar_path(record_file):
    """Where the description of a file of records lies, or would."""
    path, _ = _find(record_file)
    return path or sidecar_names(record_file)[0]


def _tokenizer_folder(sidecar):
    """The folder of the tokenizer that the described records were made with: ko.tokenizer."""
    return f"{os.path.splitext(sidecar)[0]}.tokenizer"


def tokenizer_beside(record_file):
    """The folder of the tokenizer that a file of records was made with, or None."""
    path, _ = _find(record_file)
    folder = _tokenizer_folder(path) if path else None
    return folder if path and os.path.exists(os.path.join(folder, CONFIG_FILE)) else None


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


def choose_sidecars(output_files):
    """Where the description of a data set is to be written.

    Not over one of other records that are still there, nor over records.

    Args:
        output_files: the files of records, all of them.

    Returns:
        A list of paths: one, or several for files of other names.

    Raises:
        InputError: there is no name left.
    """
    own = set(map(os.path.realpath, output_files))
    chosen = set()
    for names in {sidecar_names(path) for path in output_files}:
        free = (path for path in names if os.path.realpath(path) not in own)
        path = next((path for path in free if not any(_described_by(path, own))), None)
        if path is None:
            raise InputError(
                f"--output_file must leave a name for the description beside it. Received: "
                f"{' and '.join(sorted(set(names)))}, which are, or describe, other records"
            )
        chosen.add(path)
    return sorted(chosen)


def write_sidecars(output_files, description, tokenizer):
    """Writes it beside the records, after the tokenizer: once, or beside each file of other names.

    Raises:
        InputError: it cannot be written.
    """
    for path in choose_sidecars(output_files):
        save_tokenizer(tokenizer, _tokenizer_folder(path))
        write_json(path, description)


def remove_sidecars(output_files):
    """Removes what describes records that are about to be made anew, and nothing else."""
    own = set(map(os.path.realpath, output_files))
    paths = {path for file in output_files for path in sidecar_names(file)}
    remove_partial_files(sorted(paths))
    for path in paths:
        if _is_sidecar(path) and not any(_described_by(path, own)):
            os.remove(path)


def read_sidecar(record_file):
    """Reads what is known of a file of records.

    Args:
        record_file: a path.

    Returns:
        A dict as `describe_records` makes it; None if no such file lies beside the records, or
        one that is not about them.

    Raises:
        InputError: the file has been damaged since.
    """
    path, description = _find(record_file)
    for part in ("record_format", "tokenizer") if description else ():
        values = description.get(part, {})
        masking = values.get("masking") if isinstance(values, dict) else None
        if not (_fits(values) and (masking is None or _fits(masking))):
            raise InputError(
                f'{path} must be as it was written. Received: "{part}" is {json.dumps(values)}'
            )
    return description


# What is counted from 0; all other numbers are counted from 1.
_FROM_ZERO = ("packed_sequences", "mask_id")

_KINDS = {
    field.name: field.type
    for field in (*dataclasses.fields(RecordFormat), *dataclasses.fields(MaskingRules))
} | {"fingerprint": str, "vocabulary_sha256": str}


def _fits(values):
    """Whether what is known of the values of an object is of the right kind and size."""
    if not isinstance(values, dict):
        return False
    for name, value in values.items():
        kind = _KINDS.get(name)
        if kind in (bool, str) and type(value) is not kind:
            return False
        least = 0 if name in _FROM_ZERO else 1
        if kind is int and not (type(value) is int and least <= value <= LARGEST):
            return False
        if kind is float and not (type(value) in (int, float) and 0 <= value < 1):
            return False
    return True


def _find(record_file):
    """The description of a file of records with its path; two times None if there is none."""
    record_file = os.path.realpath(record_file)  # beside what a link leads to
    # The second name is that of these records alone.
    for path in reversed(sidecar_names(record_file)):
        try:
            description = _load(path, os.stat(path).st_mtime_ns)
            # Records that were replaced by others are not those that it describes.
            wanted = os.path.basename(record_file), os.path.getsize(record_file)
            known = any((made["file"], made["size"]) == wanted for made in description["shards"])
            if known and description["kind"] == KIND:
                return path, description
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None, None


def _described_by(path, own):
    """The files of records, but for one's own, that have their description in this file."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    try:
        description = _load(path, os.stat(path).st_mtime_ns)
        files = [os.path.join(folder, made["file"]) for made in description["shards"]]
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from (file for file in files if file not in own and _find(file)[0] == path)


def _is_sidecar(path):
    try:
        return _load(path, os.stat(path).st_mtime_ns)["kind"] == KIND
    except (OSError, ValueError, KeyError, TypeError):
        return False


@functools.lru_cache(maxsize=8)
def _load(path, modified):
    """Once for all shards that a file is about, unless it was written anew."""
    with open(path, encoding="utf-8") as file:
        head = file.read(16)
        if not head.lstrip().startswith("{") or "\0" in head:  # records, of any size
            raise ValueError
        return parse_json(head + file.read())


def is_made(output_files, manifest):
    """Whether all files are there as these settings would make them."""
    wanted = json.loads(json.dumps(manifest))
    descriptions = map(read_sidecar, output_files)
    return all(found is not None and found.get("settings") == wanted for found in descriptions)


def check_names(output_files, protected):
    """Refuses to write the JSON file over another file, or records over another's JSON file.

    Args:
        output_files: the files of records.
        protected: files that are read.

    Raises:
        InputError: names the file, or the files if no name is left.
    """
    for path in output_files:
        for described in _described_by(path, ()):
            raise InputError(
                "--output_file must not be the description of other records. Received: "
                f"{path}, which describes {described}"
            )
    own = set(map(os.path.realpath, output_files))
    for path in choose_sidecars(output_files):
        folder = os.path.realpath(_tokenizer_folder(path))
        if folder in own or (os.path.exists(folder) and not os.path.isdir(folder)):
            raise InputError(
                "--output_file must leave a folder for the tokenizer beside it. Received: "
                f"{folder}, which is a file"
            )
        if not os.path.exists(path):
            continue
        if any(os.path.samefile(path, source) for source in protected):
            raise InputError(
                "--output_file must not have the name of a file that is read, with .json. "
                f"Received: {path}"
            )
        if not _is_sidecar(path):
            raise InputError(
                "--output_file must leave other JSON files alone: what is known of the records "
                f"is written beside them. Received: {path}, which is no such file"
            )
