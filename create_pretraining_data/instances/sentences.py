"""Splits running text into sentences, by the analyser kiwipiepy.

Only places are taken from the analyser, never text: every character stays as it is.
"""

import functools
import importlib.util
import platform

from bert_common.errors import InputError
from tokenization.vocab_learning.morphemes import check_limits, kiwi_versions

# Characters that are analysed at a time. The analyser's time grows with the square of the
# sentences in them, and of a word's length; few paragraphs are longer.
WINDOW = 4000


def check_installed():
    """Sees that there is kiwipiepy, and that it can run.

    Raises:
        InputError: there is none, or it cannot.
    """
    if importlib.util.find_spec("kiwipiepy") is None:
        raise InputError(
            "--split_sentences must have kiwipiepy (pip install -e '.[korean]'). Received: not "
            "installed"
        )
    check_limits(1)


def describe_splitter():
    """What decides where sentences are split: versions and, by its arithmetic, the processor."""
    versions = [f"{name} {version}" for name, version in kiwi_versions().items()]
    return ", ".join([*versions, platform.machine()])


def split_documents(documents):
    """Splits every line of documents.

    Args:
        documents: a list of documents, each a list of lines.

    Returns:
        A list of documents, each a list of sentences.
    """
    return [[s for line in document for s in split_line(line)] for document in documents]


def split_line(line):
    """Splits one line.

    A long line is analysed in windows, the last sentence of a window again with the next one, so
    that the time grows with the length alone. A sentence of more than half a window may be cut
    between two words; a word of more than a window is.

    Args:
        line: text.

    Returns:
        A list of sentences, which are not empty: joined, they are the line without some white
        space.
    """
    sentences, start = [], 0
    while start < len(line):
        window = line[start : start + WINDOW]
        is_last = start + WINDOW >= len(line)
        if not is_last:
            words = window.rsplit(None, 1)
            window = words[0] if len(words) == 2 else window  # without half a word
        starts = _sentence_starts(window)
        # The last sentence may go on after the window.
        if not is_last and starts and starts[-1] > len(window) // 2:
            window = window[: starts.pop()]
        for begin, end in zip([0, *starts], [*starts, len(window)], strict=True):
            sentences.append(window[begin:end].strip())
        start += len(window)
    return [sentence for sentence in sentences if sentence]


def _sentence_starts(text):
    """Where sentences begin, but for the first."""
    found = _kiwi().split_into_sents(text, return_sub_sents=False)
    return sorted({sentence.start for sentence in found[1:]})


@functools.cache
def _kiwi():
    """Half a gigabyte, made once in a process."""
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)
