"""Converts between the name of sharded records, such as name@3, and their file names."""

import os
import re

from bert_common.errors import InputError


def expand_output_file(path: str) -> list[str]:
    """Lists the files of a name with "@" and a number of shards; a plain name is one file.

    "dir/ko.tfrecord@64" expands to "dir/ko-00000-of-00064.tfrecord" and so on.
    """
    match = re.fullmatch(r"(.+)@(\d{1,4000})", path)  # Python cannot parse longer numbers
    if not match:
        return [path]
    name, count = match[1], int(match[2])
    if not 1 <= count < 100_000:
        raise InputError(
            f"the number of shards, after @, must be from 1 to 99999. Received: {path}"
        )
    stem, extension = os.path.splitext(name)
    return [f"{stem}-{shard:05d}-of-{count:05d}{extension}" for shard in range(count)]


# The part of a shard's name after the stem.
_SHARD = r"-\d{5}-of-(\d{5})$"


def without_shard(path: str) -> str:
    """Removes the part of a name that `expand_output_file` inserted."""
    stem, extension = os.path.splitext(path)
    return re.sub(_SHARD, "", stem) + extension


def collapse_output_file(path: str) -> str:
    """Inverts `expand_output_file`, given any of the files."""
    match = re.search(_SHARD, os.path.splitext(path)[0])
    return f"{without_shard(path)}@{int(match[1])}" if match else path
