"""Reads the description of a low-rank difference.

This module does not need TensorFlow; `model_formats.difference` reads the weights.
"""

import dataclasses
import hashlib
import os
import re
from typing import Self

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import exists
from model_formats.transformers_files.safetensors_files import open_tensors

DESCRIPTION_FILE, WEIGHTS_FILE = "difference.json", "difference.safetensors"
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Difference:
    """The contents of a difference.json."""

    folder: str  # the folder that contains it
    base: str  # the folder of the base
    digest: str  # `digest_of` the base's weights

    @property
    def weights(self) -> str:
        """The file with the weights."""
        return os.path.join(self.folder, WEIGHTS_FILE)

    @classmethod
    def of(cls, folder: str) -> Self | None:
        """Reads the description in a folder; returns None if there is none.

        Raises:
            InputError: the file is malformed.
        """
        path = os.path.join(folder, DESCRIPTION_FILE)
        if not os.path.isfile(path):
            return None
        content = read_json(read_bytes(path), path)
        content = content if isinstance(content, dict) else {}
        if content.get("version") != VERSION:
            raise InputError(
                f"{path} must hold version {VERSION}. Received: {content.get('version')!r:.60}"
            )
        base, digest = content.get("base"), content.get("base_sha256")
        if not (isinstance(base, str) and isinstance(digest, str)):
            raise InputError(
                f"{path} must hold base, a path from its folder, and base_sha256. Received: "
                f"{content!r:.200}"
            )
        # The base's path is relative to the folder itself, not to a link to it.
        base = os.path.normpath(os.path.join(os.path.realpath(folder), base))
        return cls(folder, base, digest)

    def check_base(self, checkpoint: str) -> None:
        """Raises an `InputError` if the base's weights have changed since the export."""
        found = digest_of(checkpoint)
        if found != self.digest:
            raise InputError(
                f"the base of {self.folder} must have the weights that it was made from, sha256 "
                f"{self.digest[:12]}…. Received: {checkpoint}, {found[:12]}…"
            )


def digest_of(checkpoint: str) -> str:
    """Returns the SHA-256 of a model's weight file, or of the digests of several files.

    Args:
        checkpoint: a checkpoint's prefix, a safetensors file or the index of its shards.
    """
    if exists(checkpoint):
        folder, name = os.path.split(checkpoint)
        pattern = re.compile(re.escape(name) + r"\.data-\d{5}-of-\d{5}")
        names = sorted(filter(pattern.fullmatch, os.listdir(folder or ".")))
        paths = [os.path.join(folder, each) for each in names]
    elif checkpoint.endswith(".json"):
        paths = sorted(set(open_tensors(checkpoint).files.values()))
    else:
        paths = [checkpoint]
    digests = []
    for path in paths:
        with open(path, "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )
