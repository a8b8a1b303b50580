"""Declares the description of records, a JSON file in the same folder."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_common.atomic_write import remove_partial_files, write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from create_pretraining_data.records.shard_names import collapse_output_file, without_shard
from tokenization.loading import CONFIG_FILE, Tokenizer, save_tokenizer

if TYPE_CHECKING:  # both modules import this one
    from create_pretraining_data.engine.work_plan import WorkPlan
    from create_pretraining_data.instances.make_instances import CorpusStatistics

# The "kind" in the file; JSON files of a different kind are never modified.
KIND = "pre-training records"

# Larger than any sequence length, vocabulary or number of predictions.
LARGEST = 2**24


def sidecar_names(record_file: str) -> tuple[str, str]:
    """Returns the two possible paths of a description: the usual one and the alternative.

    ko.tfrecord and ko-00000-of-00064.tfrecord are described by ko.json, or, if ko.json describes
    other records or holds records itself, by ko.tfrecord.json and ko.tfrecord@64.json.
    """
    stem = os.path.splitext(without_shard(record_file))[0]
    return f"{stem}.json", f"{collapse_output_file(record_file)}.json"


def sidecar_path(record_file: str) -> str:
    """Returns the path of a record file's description, whether or not it exists."""
    path, *_ = _find(record_file)
    return path or sidecar_names(record_file)[0]


def _tokenizer_folder(sidecar):
    """Returns the folder of the described records' tokenizer, such as ko.tokenizer."""
    return f"{os.path.splitext(sidecar)[0]}.tokenizer"


def tokenizer_beside(record_file: str) -> str | None:
    """Returns the folder of a record file's tokenizer, or None if there is none."""
    path, *_ = _find(record_file)
    folder = _tokenizer_folder(path) if path else None
    return folder if folder and os.path.exists(os.path.join(folder, CONFIG_FILE)) else None


def describe_records(
    plan: "WorkPlan",
    statistics: "CorpusStatistics",
    shards: Sequence[Mapping[str, int]],
    repeats: Mapping[str, Any],
) -> dict[str, Any]:
    """Creates the description of a data set, a dict of JSON values.

    `statistics` and `repeats` are for the whole text, and `shards` has the number of records and
    the size in bytes of each shard.
    """
    record_format, tokenizer = plan.settings.record_format, plan.tokenizer
    positions = statistics.examples * record_format.max_seq_length
    filled = sum(length * count for length, count in statistics.lengths.items())
    counted = statistics.as_json()
    # The tables are listed after the numbers.
    lengths, left_out, lost = map(counted.pop, ("lengths", "left_out", "pieces_in_no_row"))
    return {
        "kind": KIND,
        "record_format": dataclasses.asdict(record_format),
        "settings": plan.manifest,
        "tokenizer": {
            "kind": tokenizer.kind,
            "fingerprint": tokenizer.fingerprint(),
            "vocabulary_sha256": hashlib.sha256(tokenizer.vocabulary_bytes).hexdigest(),
            "vocab_size": tokenizer.vocab_size,
        },
        **counted,
        "label_1_share": _share(statistics.label_ones, statistics.sequences)
        if record_format.sentence_label
        else None,
        "padding_share": _share(positions - filled, positions),
        "unknown_share": _share(statistics.unknown_pieces, statistics.pieces),
        "pieces_per_word": _share(statistics.pieces, statistics.words),
        "documents_left_out": left_out,
        "pieces_in_no_row": lost,
        "pieces_in_no_row_share": _share(sum(lost.values()), statistics.pieces),
        "repeats": repeats,
        "lengths": lengths,
        "shards": [
            {"file": os.path.basename(path), **shard}
            for path, shard in zip(plan.output_files, shards, strict=True)
        ],
    }


def _share(part, whole):
    return round(part / whole, 6) if whole else 0.0


def choose_sidecars(output_files: Iterable[str]) -> list[str]:
    """Returns the paths for the description of a data set, given all of its record files.

    They replace neither records nor the description of other existing records; if both names are
    taken, an `InputError` is raised. Record files with different names have several paths.
    """
    outputs = set(map(os.path.realpath, output_files))
    chosen = set()
    for names in {sidecar_names(path) for path in output_files}:
        free = (path for path in names if os.path.realpath(path) not in outputs)
        path = next((path for path in free if not any(_described_by(path, outputs))), None)
        if path is None:
            raise InputError(
                f"--output_file must leave a name for the description beside it. Received: "
                f"{' and '.join(sorted(set(names)))}, which are, or describe, other records"
            )
        chosen.add(path)
    return sorted(chosen)


def write_sidecars(
    output_files: Iterable[str], description: Mapping[str, Any], tokenizer: Tokenizer
) -> None:
    """Writes the tokenizer, then the description, to the paths of `choose_sidecars`."""
    for path in choose_sidecars(output_files):
        save_tokenizer(tokenizer, _tokenizer_folder(path))
        write_json(path, description)


def restore_tokenizer(output_files: Iterable[str], tokenizer: Tokenizer) -> None:
    """Rewrites the tokenizer of finished records if its folder is missing."""
    for path in output_files:
        if tokenizer_beside(path) is None:
            save_tokenizer(tokenizer, _tokenizer_folder(sidecar_path(path)))


def remove_sidecars(output_files: Iterable[str]) -> None:
    """Removes descriptions that apply only to the records about to be replaced."""
    outputs = set(map(os.path.realpath, output_files))
    paths = {path for file in output_files for path in sidecar_names(file)}
    remove_partial_files(sorted(paths))
    for path in paths:
        if _is_sidecar(path) and not any(_described_by(path, outputs)):
            os.remove(path)


def read_sidecar(record_file: str) -> dict[str, Any] | None:
    """Returns the description of a record file from `describe_records`; None if there is none."""
    path, description, _ = _find(record_file)
    for part in ("record_format", "tokenizer") if description else ():
        values = description.get(part, {})
        if not _fits(values):
            raise InputError(
                f'{path} must be unchanged. Received: "{part}" is {json.dumps(values)}'
            )
    return description


def described_objective(description: Mapping[str, Any]) -> str | None:
    """Returns the sentence objective of records ("nsp", "sop", "none"); None if unknown."""
    settings = description.get("settings")
    objective = settings.get("--objective") if isinstance(settings, dict) else None
    return objective if objective in ("nsp", "sop", "none") else None


def one_value(described: Mapping[str, str | None], rule: str) -> str | None:
    """Returns the value that several record files share; None if no file has one.

    Raises an `InputError` with the violated `rule` if two values differ.
    """
    known = {path: value for path, value in described.items() if value}
    if len(set(known.values())) > 1:
        one = next(iter(known))
        other = next(path for path in known if known[path] != known[one])
        raise InputError(f"{rule}. Received: {one} with {known[one]}, {other} with {known[other]}")
    return next(iter(known.values()), None)


def described_records(record_file: str) -> int | None:
    """Returns the number of records in a file from its description; None if it is unknown."""
    *_, shard = _find(record_file)
    count = shard.get("records") if shard else None
    return count if type(count) is int and count > 0 else None


# The least values of whole numbers where they are not 1.
_LEAST = {"packed_sequences": 0, "mask_id": 0}

_KINDS = {
    field.name: field.type
    for field in (*dataclasses.fields(RecordFormat), *dataclasses.fields(MaskingRules))
} | {"fingerprint": str, "vocabulary_sha256": str}


def _fits(values):
    """Returns True if every known value in a dict has the right type and range."""
    return isinstance(values, dict) and all(_value_fits(*item) for item in values.items())


def _value_fits(name, value):
    kind = _KINDS.get(name)
    if name == "masking":
        return value is None or _fits(value)
    if name == "masked_lm_prob" and value == 1:  # would mask [CLS] and [SEP] too
        return False
    if kind is int:
        return type(value) is int and _LEAST.get(name, 1) <= value <= LARGEST
    if kind is float:
        return type(value) in (int, float) and 0 <= value <= 1
    return kind not in (bool, str) or type(value) is kind


def _find(record_file):
    """Finds the description of a record file; returns its path, all of it, and what it says of it.

    Returns three None if there is none.
    """
    record_file = os.path.realpath(record_file)  # a description is next to a link's target
    # The alternative name comes first, as it applies only to these records.
    for path in reversed(sidecar_names(record_file)):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            description, shards = _load(path, os.stat(path).st_mtime_ns)
            # A description does not apply to records that were replaced later.
            shard = shards.get((os.path.basename(record_file), os.path.getsize(record_file)))
            if shard and description["kind"] == KIND:
                return path, description, shard
    return None, None, None


def _described_by(path, excluded):
    """Yields the existing, not excluded record files that a description applies to."""
    path, files = os.path.realpath(path), []
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        shards = _load(path, os.stat(path).st_mtime_ns)[0]["shards"]
        files = [os.path.join(os.path.dirname(path), shard["file"]) for shard in shards]
    yield from (file for file in files if file not in excluded and _find(file)[0] == path)


def _is_sidecar(path):
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return _load(path, os.stat(path).st_mtime_ns)[0]["kind"] == KIND
    return False


@functools.lru_cache(maxsize=8)
def _load(path, modified):
    """Parses a description once for all of its shards, unless it was modified.

    Returns it, and (name, size) -> what it says about this record file.
    """
    with open(path, encoding="utf-8") as file:
        head = file.read(16)
        if not head.lstrip().startswith("{") or "\0" in head:  # a record file of any size
            raise ValueError
        content = parse_json(head + file.read())
    return content, {(shard["file"], shard["size"]): shard for shard in content.get("shards", ())}


def are_up_to_date(output_files: Iterable[str], manifest: Mapping[str, Any]) -> bool:
    """Returns True if all record files exist and were made with these settings."""
    settings = json.loads(json.dumps(manifest))  # tuples become lists
    descriptions = map(read_sidecar, output_files)
    return all(d is not None and d.get("settings") == settings for d in descriptions)


def check_names(output_files: Iterable[str], protected: Iterable[str]) -> None:
    """Raises `InputError` if record files or their descriptions would replace a protected file."""
    for path in output_files:
        for described in _described_by(path, ()):
            raise InputError(
                "--output_file must not be the description of other records. Received: "
                f"{path}, which describes {described}"
            )
    outputs = set(map(os.path.realpath, output_files))
    for path in choose_sidecars(output_files):
        folder = os.path.realpath(_tokenizer_folder(path))
        if folder in outputs or (os.path.exists(folder) and not os.path.isdir(folder)):
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
                "--output_file must not conflict with other JSON files: a description is written "
                f"beside the records. Received: {path}, which is another kind of file"
            )
