"""Serializes many records at a time, without TensorFlow.

A record is a `tf.train.Example`, encoded by Protocol Buffers as a map from names to packed lists.
The names are sorted, so that equal features give equal bytes.

Shapes: B records, L values of a feature, N values of a feature in all records.
"""

import functools
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from create_pretraining_data.records.record_format import RecordFormat

# Tags: a field's number times 8, plus 2 for "length-delimited".
_FEATURES = b"\x0a"  # Example.features
_ENTRY = b"\x0a"  # Features.feature, a map whose entries have key 1 and value 2
_KEY, _VALUE = b"\x0a", b"\x12"
_LISTS = {"int": b"\x1a", "float": b"\x12"}  # Feature.int64_list, Feature.float_list
_PACKED = b"\x0a"  # the values of either list

# The smallest integers whose varints take 2, 3, ... bytes.
MORE_BYTES = np.uint64(1) << np.arange(7, 64, 7, dtype=np.uint64)


def encode_records(features: Mapping[str, np.ndarray], record_format: RecordFormat) -> list[bytes]:
    """Serializes records, each as a `tf.train.Example`.

    `features` are arrays [B, L] with exactly the names and lengths of `record_format.features()`;
    otherwise a ValueError is raised.
    """
    table = record_format.features()
    given = {name: values.shape[1] for name, values in features.items()}
    if given != {name: length for name, (length, _) in table.items()}:
        raise ValueError(f"features must be as in {record_format}. Received: lengths {given}")
    columns = [_encode_feature(name, features[name], table[name][1]) for name in sorted(features)]
    return [
        _FEATURES + _varint(sum(map(len, parts))) + b"".join(parts)
        for parts in zip(*columns, strict=True)
    ]


def encode_record(features: Mapping[str, ArrayLike], record_format: RecordFormat) -> bytes:
    """Serializes one record; takes features as `encode_records` does, without the first axis."""
    arrays = {name: np.asarray(values)[np.newaxis] for name, values in features.items()}
    return encode_records(arrays, record_format)[0]


def _encode_feature(name, values, kind):
    """Encodes one feature as map entries, one per record."""
    if kind == "float":
        data, sizes = values.astype("<f4").tobytes(), np.full(len(values), 4 * values.shape[1])
    else:
        data, sizes = encode_varints(values)
    return [
        _before_payload(name, kind, size) + data[end - size : end]
        for size, end in zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True)
    ]


@functools.cache
def _before_payload(name, kind, size):
    """Encodes the part of a map entry before its packed values, which take `size` bytes."""
    name = name.encode("ascii")
    in_list = len(_PACKED + _varint(size)) + size
    in_feature = len(_LISTS[kind] + _varint(in_list)) + in_list
    key = _KEY + _varint(len(name)) + name
    value = _VALUE + _varint(in_feature) + _LISTS[kind] + _varint(in_list) + _PACKED + _varint(size)
    return _ENTRY + _varint(len(key) + len(value) + size) + key + value


def _varint(number):
    """Encodes a non-negative integer as a varint: seven bits per byte, lowest bits first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def encode_varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Encodes integers [B, L] as varints, negative ones as 64-bit two's complements.

    Returns the concatenated bytes of all records, and the number of bytes per record, [B].
    """
    flat = values.astype(np.int64).view(np.uint64).reshape(-1)  # [N]
    if not flat.size or flat.max() < 0x80:
        return flat.astype(np.uint8).tobytes(), np.full(len(values), values.shape[1])
    limits = [limit for limit in MORE_BYTES if limit <= flat.max()]
    sizes = np.ones(flat.shape, np.int64)
    for limit in limits:
        sizes += flat >= limit
    starts = np.cumsum(sizes) - sizes
    encoded = np.empty(starts[-1] + sizes[-1], np.uint8)
    for byte in range(len(limits) + 1):
        has = sizes > byte
        more = np.where(sizes[has] > byte + 1, 0x80, 0).astype(np.uint8)
        bits = (flat[has] >> np.uint64(7 * byte)).astype(np.uint8)
        encoded[starts[has] + byte] = bits & 0x7F | more
    return encoded.tobytes(), sizes.reshape(values.shape).sum(axis=1)
