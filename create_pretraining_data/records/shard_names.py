"""The names of records that are written in shards: name@3 and the three files it stands for."""

import os
import re

from bert_common.errors import InputError


def expand_output_file(path):
    """The files that a name with "@" and a number after it stands for.

    Args:
        path: for example "dir/ko.tfrecord@64", or a plain name.

    Returns:
        A list, for example "dir/ko-00000-of-00064.tfrecord" and so on; of a plain name itself.

    Raises:
        InputError: no shards, or more than the names have room for.
    """
    match = re.fullmatch(r"(.+)@(\d{1,4000})", path)  # Python reads no longer numbers
    if not match:
        return [path]
    name, count = match[1], int(match[2])
    if not 1 <= count < 100_000:
        raise InputError(
            f"the number after @ must be from 1 to 99999, that of the shards. Received: {path}"
        )
    stem, extension = os.path.splitext(name)
    return [f"{stem}-{shard:05d}-of-{count:05d}{extension}" for shard in range(count)]


# What it puts after the stem of a name.
_SHARD = r"-\d{5}-of-(\d{5})$"


def without_shard(path):
    """The name without the part that `expand_output_file` put into it."""
    stem, extension = os.path.splitext(path)
    return re.sub(_SHARD, "", stem) + extension


def collapse_output_file(path):
    """The inverse of `expand_output_file`, of any of the files."""
    match = re.search(_SHARD, os.path.splitext(path)[0])
    return f"{without_shard(path)}@{int(match[1])}" if match else path
