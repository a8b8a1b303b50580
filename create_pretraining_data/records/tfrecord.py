"""Frames the records of TFRecord files, without TensorFlow.

A frame is the record's length (8 bytes, little-endian), a checksum of the length (4 bytes), the
record, and a checksum of the record (4 bytes).
"""

import struct
from collections.abc import Iterator

import google_crc32c

# The bytes that a frame adds to a record.
FRAME = 16

_HEAD = struct.Struct("<QI")
_TAIL = struct.Struct("<I")


def frame(record: bytes) -> bytes:
    """Frames a record for a TFRecord file."""
    length = len(record).to_bytes(8, "little")
    return b"".join((length, _TAIL.pack(_checksum(length)), record, _TAIL.pack(_checksum(record))))


def split_frames(frames: bytes | bytearray | memoryview) -> list[tuple[int, int]]:
    """Splits a part of a TFRecord file into frames (start, end) and verifies their checksums.

    Raises ValueError for a wrong checksum or length.
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


def find_frames(content: bytes | bytearray | memoryview) -> Iterator[tuple[int, int, bool]]:
    """Finds the frames in the contents of a file that may be damaged.

    If a length is damaged or points past the end, the search continues at the next length that
    matches its checksum.

    Yields:
        (start, end, intact): where the frame is, and whether the record matches its checksum.
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
    """Returns the CRC-32C, masked as the format requires (rotated, plus a constant)."""
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
