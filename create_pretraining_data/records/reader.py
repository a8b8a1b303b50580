"""Reads files of pre-training records."""

import gzip
import json
import os
import zlib
from typing import NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError

from bert_common.errors import InputError
from create_pretraining_data.records.masking_rules import MaskingRules
from create_pretraining_data.records.metadata import read_sidecar, sidecar_path
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.tfrecord import FRAME

# A record with any of these is a packed one.
_PACKED_NAMES = ("segment_index", "position_ids", "sequence_starts")
_DTYPES = {"int": tf.int64, "float": tf.float32}
# As a serialized Example names what it holds.
_KINDS = {"int64_list": "int", "float_list": "float", "bytes_list": "bytes"}


def parsing_spec(record_format):
    """The argument of `tf.io.parse_example`: a dict of `tf.io.FixedLenFeature`."""
    return {
        name: tf.io.FixedLenFeature([length], _DTYPES[kind])
        for name, (length, kind) in record_format.features().items()
    }


def open_records(files):
    """The dataset of the serialized records of files.

    Args:
        files: a path, or several of files that are all compressed or all not.

    Returns:
        A `tf.data.TFRecordDataset`.
    """
    first = files if isinstance(files, str) else files[0]
    return tf.data.TFRecordDataset(files, compression_type=compression_of(first))


def compression_of(path):
    """What TensorFlow calls the compression of a file: "GZIP" or "", by its first bytes."""
    try:
        with open(path, "rb") as file:
            # Of a plain file they would be the length of a first record of half a megabyte.
            return "GZIP" if file.read(3) == b"\x1f\x8b\x08" else ""
    except OSError:
        return ""  # who reads it will say what is wrong


def inspect_record(serialized):
    """Reads what one serialized record holds.

    Args:
        serialized: bytes.

    Returns:
        A dict from feature name to (length, kind), kind "int", "float" or "bytes".

    Raises:
        ValueError: not a `tf.train.Example`.
    """
    try:
        example = tf.train.Example.FromString(serialized)
    except DecodeError:
        raise ValueError("not a tf.train.Example") from None
    found = {}
    for name, feature in example.features.feature.items():
        field = feature.WhichOneof("kind")
        length = len(getattr(feature, field).value) if field else 0
        found[name] = (length, _KINDS.get(field, "nothing"))
    return found


def read_format(path):
    """Infers the `RecordFormat` of a file from its first record.

    Args:
        path: a TFRecord file, of this program or of Google's.

    Returns:
        A `RecordFormat`.

    Raises:
        InputError: no such file, no record in it, its first record damaged, or not a record to
            pre-train on; the message names the file.
    """
    try:
        found = inspect_record(next(open_records(path).as_numpy_iterator()))
    except StopIteration:
        raise InputError(f"{path} must hold records. Received: no record") from None
    except tf.errors.DataLossError:
        raise InputError(
            f"{path} must be a whole TFRecord file. Received: a first record that is truncated, "
            "corrupted or no TFRecord at all"
        ) from None
    except tf.errors.NotFoundError:
        raise InputError(f"{path} must exist. Received: no such file") from None
    except tf.errors.OpError as error:  # no permission, say
        reason = error.message.splitlines()[0]
        raise InputError(f"{path} must be a file that can be read. Received: {reason}") from None
    except ValueError as error:
        raise InputError(f"{path} must hold pre-training records. Received: {error}") from None
    inferred = _described_format(path) if "segment_lengths" in found else _infer(found)
    missing = [name for name in inferred.features() if name not in found]
    if missing:
        raise InputError(
            f"{path} must hold pre-training records. Received: a record without "
            f"{', '.join(missing)} (it holds {', '.join(sorted(found)) or 'nothing'})"
        )
    for name, expected in inferred.features().items():
        if found[name] != expected or found[name][0] == 0:
            raise InputError(
                f"{path}: {name} must hold {max(expected[0], 1)} values of kind {expected[1]}. "
                f"Received: {found[name][0]} of kind {found[name][1]}"
            )
    return inferred


def _infer(found):
    """The format of a record that holds its masks, by what it holds."""
    packed = any(name in found for name in _PACKED_NAMES)
    return RecordFormat(
        max_seq_length=found.get("input_ids", (0, ""))[0],
        max_predictions_per_seq=found.get("masked_lm_positions", (0, ""))[0],
        sentence_label="next_sentence_labels" in found,
        token_boundary="token_boundary" in found,
        packed_sequences=max(found.get("sequence_starts", (0, ""))[0], 1) if packed else 0,
    )


def _described_format(path):
    """The format of records without masks: how to draw them says the JSON file beside them."""
    description = read_sidecar(path)
    if description is None:
        raise InputError(
            f"{path} must have {sidecar_path(path)} beside it, as they were made: its records hold "
            "no masks, and the JSON file says how to draw them. Received: no such file, or one "
            "about other records"
        )
    try:
        values = description["record_format"]
        rules = MaskingRules(**values["masking"])
        made = RecordFormat(**{**values, "masking": rules})
    except (KeyError, TypeError):
        made = None
    if made is None or made.max_predictions_per_seq != rules.places:
        raise InputError(
            f"{sidecar_path(path)} must say how to draw masks, as it was written. Received: "
            f'"record_format" is {json.dumps(description.get("record_format"))}'
        )
    return made


class Corruption(NamedTuple):
    """Where a data set is damaged."""

    file: str
    good_records: int  # how many can be read before the damage


def find_corruption(files):
    """Looks for the first file with a truncated or corrupted record.

    It reads everything, so it is for after TensorFlow has reported a DataLossError, which does
    not say where.

    Args:
        files: paths of TFRecord files.

    Returns:
        A `Corruption`, or None if all files are whole.
    """
    for path in files:
        good = size = 0
        try:
            for record in open_records(path).as_numpy_iterator():
                good += 1
                size += len(record) + FRAME
        except tf.errors.DataLossError:
            return Corruption(path, good)
        # TensorFlow takes a file that ends within the length of a record for a whole one.
        if size != _plain_size(path):
            return Corruption(path, good)
    return None


def _plain_size(path):
    """Bytes of a file, inflated; -1 of a compressed file that is damaged."""
    if not compression_of(path):
        return os.path.getsize(path)
    try:
        with gzip.open(path) as file:
            return file.seek(0, os.SEEK_END)
    except (EOFError, OSError, zlib.error):
        return -1


def count_records(path):
    """Counts a file's records by their lengths alone, which also shows whether its end is there.

    About a million records a second; the contents are not read. A compressed file is inflated.
    (TensorFlow takes a file that ends within the length of a record for a whole one.)

    Args:
        path: a TFRecord file.

    Returns:
        How many records it holds.

    Raises:
        InputError: the file ends within a record; the message names the file.
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
            f"{path} must be a whole TFRecord file. Received: it ends within record {count}"
            if offset > size
            else f"{path} must be a whole TFRecord file. Received: it ends after record {count} "
            "with the beginning of another"
        )
    return count


def _count_compressed_records(path):
    count = 0
    try:
        with gzip.open(path) as file:
            while head := file.read(8):
                rest = FRAME - 8 + int.from_bytes(head, "little")
                if len(file.read(rest)) != rest:
                    raise EOFError(f"it ends within record {count + 1}")
                count += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} must be a whole TFRecord file. Received: {error}") from None
    return count
