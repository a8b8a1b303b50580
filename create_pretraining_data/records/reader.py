"""Reads pre-training records with TensorFlow."""

import functools
import gzip
import json
import os
import zlib
from collections.abc import Sequence

import tensorflow as tf
from google.protobuf.message import DecodeError

from bert_common.errors import InputError
from create_pretraining_data.records.metadata import described_records, read_sidecar, sidecar_path
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from create_pretraining_data.records.tfrecord import FRAME

# A record with any of these features is packed.
_PACKED_NAMES = ("segment_index", "position_ids", "sequence_starts")
_DTYPES = {"int": tf.int64, "float": tf.float32}
# Maps a field of tf.train.Feature to the name of its kind.
_KINDS = {"int64_list": "int", "float_list": "float", "bytes_list": "bytes"}

# The number of bytes of a compressed record to read at a time.
_PART = 1 << 20


def parsing_spec(record_format: RecordFormat) -> dict[str, tf.io.FixedLenFeature]:
    """Returns the `features` argument of `tf.io.parse_example`."""
    return {
        name: tf.io.FixedLenFeature([length], _DTYPES[kind])
        for name, (length, kind) in record_format.features().items()
    }


def open_records(files: str | Sequence[str]) -> tf.data.TFRecordDataset:
    """Opens one file, or several that are all compressed or all not, as serialized records."""
    first = files if isinstance(files, str) else files[0]
    return tf.data.TFRecordDataset(files, compression_type=compression_of(first))


def compression_of(path: str) -> str:
    """Detects a file's compression by its first bytes: "GZIP" or "", as in TensorFlow."""
    try:
        with open(path, "rb") as file:
            # In an uncompressed file, these bytes would mean a first record of half a megabyte.
            return "GZIP" if file.read(3) == b"\x1f\x8b\x08" else ""
    except OSError:
        return ""  # reading the file will raise the error


def inspect_record(serialized: bytes) -> dict[str, tuple[int, str]]:
    """Lists the features of one serialized record: name -> (length, "int", "float" or "bytes").

    Raises:
        ValueError: the bytes are not a `tf.train.Example`.
    """
    try:
        example = tf.train.Example.FromString(serialized)
    except DecodeError:
        raise ValueError("not a tf.train.Example") from None
    features = {}
    for name, feature in example.features.feature.items():
        field = feature.WhichOneof("kind")
        length = len(getattr(feature, field).value) if field else 0
        features[name] = (length, _KINDS.get(field, "nothing"))
    return features


def read_format(path: str) -> RecordFormat:
    """Infers the format of this project's or Google's record file from its first record."""
    try:
        features = inspect_record(next(open_records(path).as_numpy_iterator()))
    except StopIteration:
        raise InputError(f"{path} must hold records. Received: no record") from None
    except tf.errors.DataLossError:
        raise InputError(
            f"{path} must be a complete TFRecord file. Received: a first record that is truncated "
            "or corrupted, or a file of another kind"
        ) from None
    except tf.errors.NotFoundError:
        raise InputError(f"{path} must exist. Received: no such file") from None
    except tf.errors.OpError as error:  # for example, no permission
        reason = error.message.splitlines()[0]
        raise InputError(f"{path} must be a file that can be read. Received: {reason}") from None
    except ValueError as error:
        raise InputError(f"{path} must hold pre-training records. Received: {error}") from None
    inferred = _described_format(path) if "segment_lengths" in features else _infer(features)
    missing = [name for name in inferred.features() if name not in features]
    if missing:
        raise InputError(
            f"{path} must hold pre-training records. Received: a record without "
            f"{', '.join(missing)} (it holds {', '.join(sorted(features)) or 'nothing'})"
        )
    for name, expected in inferred.features().items():
        if features[name] != expected or features[name][0] == 0:
            raise InputError(
                f"{path}: {name} must hold {max(expected[0], 1)} values of kind {expected[1]}. "
                f"Received: {features[name][0]} of kind {features[name][1]}"
            )
    return inferred


def _infer(features):
    """Infers the format of a record with stored masks from its features."""
    packed = any(name in features for name in _PACKED_NAMES)
    return RecordFormat(
        max_seq_length=features.get("input_ids", (0, ""))[0],
        max_predictions_per_seq=features.get("masked_lm_positions", (0, ""))[0],
        sentence_label="next_sentence_labels" in features,
        token_boundary="token_boundary" in features,
        packed_sequences=max(features.get("sequence_starts", (0, ""))[0], 1) if packed else 0,
    )


def _described_format(path):
    """Reads the format and masking rules of records without masks from their description."""
    description = read_sidecar(path)
    if description is None:
        raise InputError(
            f"{path} must have {sidecar_path(path)} beside it, unchanged: the records hold "
            "no masks, and the JSON file has the rules for masking. Received: no such file, or one "
            "that describes other records"
        )
    try:
        values = description["record_format"]
        rules = MaskingRules(**values["masking"])
        described = RecordFormat(**{**values, "masking": rules})
    except (KeyError, TypeError):
        described = None
    if described is None or described.max_predictions_per_seq != rules.max_predictions:
        raise InputError(
            f"{sidecar_path(path)} must have the rules for masking, unchanged. Received: "
            f'"record_format" is {json.dumps(description.get("record_format"))}'
        )
    return described


def count_records(path: str) -> int:
    """Returns the number of records in a file, from its description or by counting them."""
    described = described_records(path)
    if described is not None:  # descriptions only apply to files of this size
        return described
    return _scan_once(path, os.path.getsize(path), os.stat(path).st_mtime_ns)


@functools.lru_cache(maxsize=4096)  # the files of a run, each counted once
def _scan_once(path, size, modified):
    return scan_records(path)


def scan_records(path: str) -> int:
    """Counts the records of a file by their lengths and raises `InputError` if it is incomplete.

    Contents are skipped, about a million records per second, but compressed files are inflated.
    """
    if compression_of(path):
        return _count_compressed_records(path)
    size, offset, count = os.path.getsize(path), 0, 0
    with open(path, "rb", buffering=0) as file:
        while offset + FRAME <= size:
            length = int.from_bytes(os.pread(file.fileno(), 8, offset), "little")
            offset += FRAME + length
            count += 1
    if offset != size:
        raise InputError(
            f"{path} must be a complete TFRecord file. Received: it ends within record {count}"
            if offset > size
            else f"{path} must be a complete TFRecord file. Received: it ends after record {count} "
            "with the beginning of another"
        )
    return count


def _count_compressed_records(path):
    count = 0
    try:
        with gzip.open(path) as file:
            while head := file.read(8):
                rest = FRAME - 8 + int.from_bytes(head, "little")
                # Read in parts because a damaged length may be any number.
                while rest and (part := file.read(min(rest, _PART))):
                    rest -= len(part)
                if rest:
                    raise EOFError(f"it ends within record {count + 1}")
                count += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} must be a complete TFRecord file. Received: {error}") from None
    return count
