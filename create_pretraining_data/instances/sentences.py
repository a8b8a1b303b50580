"""Splits running text into sentences with the analyser kiwipiepy.

Only positions are taken from the analyser, never its text, so no character changes.
"""

import functools
import importlib.util
import platform
from collections.abc import Iterable

from bert_common.errors import InputError
from tokenization.vocab_learning.morphemes import check_limits, kiwi_versions

# The number of characters to analyse at a time; few paragraphs are longer. The analyser takes time
# that grows with the square of the number of sentences and with the square of a word's length.
WINDOW = 4000


def check_installed() -> None:
    """Raises InputError if kiwipiepy is not installed or the system's limits are too low for it."""
    if importlib.util.find_spec("kiwipiepy") is None:
        raise InputError(
            "--split_sentences requires kiwipiepy (pip install -e '.[korean]'). Received: not "
            "installed"
        )
    check_limits(1)


def describe_splitter() -> str:
    """Describes what determines the splits: the versions and, for rounding, the processor."""
    versions = [f"{name} {version}" for name, version in kiwi_versions().items()]
    return ", ".join([*versions, platform.machine()])


def split_documents(documents: Iterable[Iterable[str]]) -> list[list[str]]:
    """Turns documents, each a list of lines, into lists of sentences."""
    return [[s for line in document for s in split_line(line)] for document in documents]


def split_line(line: str) -> list[str]:
    """Splits one line into non-empty sentences, losing only whitespace between them.

    A long line is analysed in windows, so that the time is linear in its length; the last sentence
    of a window is analysed again in the next one. A sentence longer than half a window may be cut
    between two words, and a word longer than a window is cut.
    """
    sentences, start = [], 0
    while start < len(line):
        window = line[start : start + WINDOW]
        is_last = start + WINDOW >= len(line)
        if not is_last:
            words = window.rsplit(None, 1)
            window = words[0] if len(words) == 2 else window  # drops an incomplete word
        found = _kiwi().split_into_sents(window, return_sub_sents=False)
        starts = sorted({sentence.start for sentence in found[1:]})
        # The last sentence may continue after the window.
        if not is_last and starts and starts[-1] > len(window) // 2:
            window = window[: starts.pop()]
        for begin, end in zip([0, *starts], [*starts, len(window)], strict=True):
            sentences.append(window[begin:end].strip())
        start += len(window)
    return [sentence for sentence in sentences if sentence]


@functools.cache
def _kiwi():
    """Returns the analyser, which takes half a gigabyte and is created once per process."""
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)
