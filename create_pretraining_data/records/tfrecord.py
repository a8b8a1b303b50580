"""The framing of TFRecord files; needs no TensorFlow.

A record stands between its length (8 bytes, little-endian) with a checksum of that (4), and a
checksum of the record (4).
"""

import struct

import google_crc32c

# Bytes around a record.
FRAME = 16

_HEAD = struct.Struct("<QI")
_TAIL = struct.Struct("<I")


def frame(record):
    """One record as it stands in a TFRecord file."""
    length = len(record).to_bytes(8, "little")
    return b"".join((length, _TAIL.pack(_checksum(length)), record, _TAIL.pack(_checksum(record))))


def split(frames):
    """Finds the records in a piece of a TFRecord file, and checks them.

    Args:
        frames: bytes-like, whole records with their frames.

    Returns:
        A list of (start, end), the frames included.

    Raises:
        ValueError: a checksum or a length is wrong.
    """
    spans, start, view = [], 0, memoryview(frames)
    while start < len(view):
        if start + FRAME > len(view):
            raise ValueError(f"a record is cut off at byte {start}")
        length, length_checksum = _HEAD.unpack_from(view, start)
        if _checksum(view[start : start + 8].tobytes()) != length_checksum:
            raise ValueError(f"the length of a record is damaged at byte {start}")
        end = start + FRAME + length
        if end > len(view):
            raise ValueError(f"a record is cut off at byte {start}")
        record = view[start + _HEAD.size : end - _TAIL.size].tobytes()
        if _checksum(record) != _TAIL.unpack_from(view, end - _TAIL.size)[0]:
            raise ValueError(f"a record is damaged at byte {start}")
        spans.append((start, end))
        start = end
    return spans


def find(content):
    """Finds the records of a file that may be damaged.

    Where a length is damaged, or reaches beyond the end, the next one that fits its checksum is
    looked for.

    Args:
        content: bytes-like.

    Yields:
        (start, end, whole): the frame included, and whether the record fits its checksum.
    """
    start, view = 0, memoryview(content)
    while start + FRAME <= len(view):
        length, length_checksum = _HEAD.unpack_from(view, start)
        end = start + FRAME + length
        if end > len(view) or _checksum(view[start : start + 8].tobytes()) != length_checksum:
            start += 1
            continue
        record = view[start + _HEAD.size : end - _TAIL.size].tobytes()
        yield start, end, _checksum(record) == _TAIL.unpack_from(view, end - _TAIL.size)[0]
        start = end


def _checksum(content):
    """CRC-32C, masked as the format has it: rotated, and a constant added."""
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
