"""The format of pre-training records, with their writer beside their reader."""

import contextlib
import dataclasses
import os
from typing import NamedTuple

import tensorflow as tf
from google.protobuf.message import DecodeError

from tokenization.errors import InputError


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """What every record of a data set holds; the names are those of google-research/bert.

    An ordinary record is one sequence. A packed record is a row of several, one after the
    other, which must not see each other; what it has beyond Google's names says where they are.

    Attributes:
        max_seq_length: positions of a record.
        max_predictions_per_seq: places for predictions of a record.
        sentence_label: whether next_sentence_labels is there (not with --objective=none).
        token_boundary: whether token_boundary is there (as in google-research/albert).
        packed_sequences: places for sequences of a packed record; 0 for ordinary records.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    sentence_label: bool
    token_boundary: bool
    packed_sequences: int = 0

    def features(self):
        """The table {name: (length, kind)}; kind is "int" (int64) or "float" (float32)."""
        sequence, predictions = self.max_seq_length, self.max_predictions_per_seq
        table = {
            "input_ids": (sequence, "int"),
            "input_mask": (sequence, "int"),
            "segment_ids": (sequence, "int"),
            "masked_lm_positions": (predictions, "int"),
            "masked_lm_ids": (predictions, "int"),
            "masked_lm_weights": (predictions, "float"),
        }
        if self.packed_sequences:
            # 1 for the first sequence of the row, 2 for the second, ...; 0 for padding.
            table["segment_index"] = (sequence, "int")
            # From 0 on in every sequence.
            table["position_ids"] = (sequence, "int")
            # Where the [CLS] of each sequence is; 0 for a sequence that is not there.
            table["sequence_starts"] = (self.packed_sequences, "int")
        if self.sentence_label:
            # Named so in ALBERT's records too, where it is the sentence order.
            table["next_sentence_labels"] = (self.packed_sequences or 1, "int")
        if self.sentence_label and self.packed_sequences:
            # 0 for a sequence that is not there.
            table["next_sentence_weights"] = (self.packed_sequences, "float")
        if self.token_boundary:
            table["token_boundary"] = (sequence, "int")
        return table

    def parsing_spec(self):
        """The argument of `tf.io.parse_example`: a dict of `tf.io.FixedLenFeature`."""
        return {
            name: tf.io.FixedLenFeature([length], _DTYPES[kind])
            for name, (length, kind) in self.features().items()
        }


# A record with any of these is a packed one.
_PACKED_NAMES = ("segment_index", "position_ids", "sequence_starts")
_DTYPES = {"int": tf.int64, "float": tf.float32}
# As a serialized Example names what it holds.
_KINDS = {"int64_list": "int", "float_list": "float", "bytes_list": "bytes"}


def serialize(features, record_format):
    """Serializes one record.

    Args:
        features: a dict from name to values, exactly those of `record_format.features()`.
        record_format: a `RecordFormat`.

    Returns:
        Bytes of a `tf.train.Example`; the same features give the same bytes.

    Raises:
        ValueError: another name or another length than the format has.
    """
    table = record_format.features()
    given = {name: len(values) for name, values in features.items()}
    if given != {name: length for name, (length, _) in table.items()}:
        raise ValueError(f"features must be those of {record_format}. Received: lengths {given}")
    encoded = {}
    for name, (_, kind) in table.items():
        if kind == "int":
            values = tf.train.Int64List(value=features[name])
            encoded[name] = tf.train.Feature(int64_list=values)
        else:
            values = tf.train.FloatList(value=features[name])
            encoded[name] = tf.train.Feature(float_list=values)
    example = tf.train.Example(features=tf.train.Features(feature=encoded))
    # Without it the order of the features changes from run to run.
    return example.SerializeToString(deterministic=True)


def write_records(files, rows, record_format):
    """Writes records to the files in turn, the first to the first, and so on round.

    A file appears under its name only when all of them are complete; until then it is a hidden
    file beside it, which is removed when anything fails.

    Args:
        files: paths in existing folders.
        rows: an iterable of features, as `serialize` takes them.
        record_format: a `RecordFormat`.

    Returns:
        How many records were written.

    Raises:
        InputError: the files cannot be written, for example on a full disk.
    """
    partial = [_partial_name(path) for path in files]
    written = 0
    try:
        with contextlib.ExitStack() as stack:
            writers = [stack.enter_context(tf.io.TFRecordWriter(path)) for path in partial]
            for features in rows:
                writers[written % len(writers)].write(serialize(features, record_format))
                written += 1
        for temporary, path in zip(partial, files, strict=True):
            os.replace(temporary, path)
    except tf.errors.OpError as error:  # what TensorFlow makes of an OSError
        raise InputError(
            f"{', '.join(files)} must be writable. Received: {error.message}"
        ) from None
    finally:
        for temporary in partial:
            with contextlib.suppress(FileNotFoundError):
                os.remove(temporary)
    return written


def _partial_name(path):
    # Hidden, so that no glob for the finished files finds it; in the same folder, so that the
    # renaming is one step.
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.getpid()}.partial")


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
        found = inspect_record(next(tf.data.TFRecordDataset(path).as_numpy_iterator()))
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
    packed = any(name in found for name in _PACKED_NAMES)
    inferred = RecordFormat(
        max_seq_length=found.get("input_ids", (0, ""))[0],
        max_predictions_per_seq=found.get("masked_lm_positions", (0, ""))[0],
        sentence_label="next_sentence_labels" in found,
        token_boundary="token_boundary" in found,
        packed_sequences=max(found.get("sequence_starts", (0, ""))[0], 1) if packed else 0,
    )
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
            for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
                good += 1
                size += len(record) + _FRAME
        except tf.errors.DataLossError:
            return Corruption(path, good)
        # TensorFlow takes a file that ends within the length of a record for a whole one.
        if size != os.path.getsize(path):
            return Corruption(path, good)
    return None


# Bytes around a record: its length (8), a checksum of that (4), a checksum of the record (4).
_FRAME = 16


def count_records(path):
    """Counts a file's records by their lengths alone, which also shows whether its end is there.

    About a million records a second; the contents are not read. (TensorFlow takes a file that
    ends within the length of a record for a whole one.)

    Args:
        path: an uncompressed TFRecord file.

    Returns:
        How many records it holds.

    Raises:
        InputError: the file ends within a record; the message names the file.
    """
    size, offset, count = os.path.getsize(path), 0, 0
    with open(path, "rb", buffering=0) as file:
        while offset + _FRAME <= size:
            length = int.from_bytes(os.pread(file.fileno(), 8, offset), "little")
            offset += _FRAME + length
            count += 1
    if offset != size:
        raise InputError(
            f"{path} must be a whole TFRecord file. Received: it ends within record {count}"
            if offset > size
            else f"{path} must be a whole TFRecord file. Received: it ends after record {count} "
            "with the beginning of another"
        )
    return count
