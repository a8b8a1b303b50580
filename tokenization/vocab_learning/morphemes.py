"""Marks morpheme boundaries inside words with the analyser kiwipiepy."""

import resource
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from bert_common.errors import InputError
from bert_common.progress import format_bytes

# The mark of each place between two characters of a word. FREE is inside a name, a number or
# foreign letters: a cut there is hardly a mistake.
BOUNDARY, INSIDE, EITHER, FREE = "1", "0", "?", "~"

NOUNS = ("NNG", "NNP", "NNB")
BEFORE_NOUNS = ("NNG", "NNP", "NNB", "NP", "MM", "MAG")
PREFIX, SUFFIX = "XPN", "XSN"

# Names, numerals, Latin letters. If a cut inside them counts like any other, they take the places
# of common words: 5,200 of 32,000 pieces were longer runs of Latin letters and digits. Boundary F1
# against UD Korean Kaist (choosing half / test set) is 0.912 / 0.898 with INSIDE for all, 0.912 /
# 0.901 with FREE for names, and 0.916 / 0.904 with FREE for all three.
FREE_TAGS = ("NNP", "SN", "SL")

# Suffixes that are separate morphemes in every grammar: plural, -적, -님; and those that follow
# whole phrases, as particles do. The others derive words, which dictionaries list (전문성, 활성화):
# the treebank joins 92 % of them. While they were EITHER, a quarter of the wrong cuts were in nouns
# of three syllables, mostly derived ones.
INFLECTING_SUFFIXES = ("들", "적", "님", "씩", "쯤", "경", "여", "가량")

# The analyser does not separate these particles from what they follow: the ending of a quoted
# sentence (갔다+고, 가자+고) and a particle (서울로+부터). A quarter of the missing cuts were
# there, a fifth before the 히 and 이 of adverbs, which dictionaries do not separate.
QUOTED, QUOTATIVE = ("다고", "라고", "자고", "냐고"), "고"
AFTER_PARTICLES = "부터"

# The address space that the analyser reserves (it uses a third of it), and what each thread adds.
KIWI_BYTES, THREAD_BYTES = 1_500_000_000, 100_000_000


def mark_with_kiwi(sentences: Iterable[str], num_threads: int) -> Iterator[list[tuple[str, str]]]:
    """Yields a list of (word, marks) for every sentence of words joined by single spaces.

    The result does not depend on the number of the analyser's threads.
    """
    kiwi = _open_kiwi(num_threads)
    for tokens, sentence in kiwi.tokenize(iter(sentences), echo=True):
        marks = mark_places(sentence, tokens)
        marked, start = [], 0
        for word in sentence.split(" "):
            marked.append((word, marks[start + 1 : start + len(word)]))
            start += len(word) + 1
        yield marked


def kiwi_versions() -> dict[str, str]:
    """Returns the versions of the analyser and its model, which determine the result."""
    from importlib.metadata import version

    return {name: version(name) for name in ("kiwipiepy", "kiwipiepy_model")}


def _open_kiwi(num_threads):
    try:
        from kiwipiepy import Kiwi
    except ImportError:
        raise InputError(
            "--analyser=kiwi requires kiwipiepy (pip install -e '.[korean]'). Received: not "
            "installed; --analyser=none learns without it"
        ) from None
    check_limits(num_threads)
    return Kiwi(num_workers=num_threads)


def check_limits(num_threads: int) -> None:
    """Raises InputError if the system's limits would make the analyser abort or hang."""
    needed = KIWI_BYTES + num_threads * THREAD_BYTES
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise InputError(
            f"kiwipiepy requires {format_bytes(needed)} of address space for {num_threads} "
            f"threads. Received: a limit (ulimit -v) of {format_bytes(limit)}"
        )
    end, threads = threading.Event(), []
    try:
        for _ in range(num_threads):
            thread = threading.Thread(target=end.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError as error:
        raise InputError(
            f"{num_threads} threads of kiwipiepy must start. Received: {error} after "
            f"{len(threads)} of them; fewer are enough (--num_threads)"
        ) from None
    finally:
        end.set()
        for thread in threads:
            thread.join()


def mark_places(sentence: str, tokens: Iterable[Any]) -> str:
    """Marks the places of a sentence, one more than its characters: place i is before character i.

    Two kinds of places are EITHER, so that learning is free to join or to cut there:

    * Next to a contraction. In 내려간, 내려가 and ㄴ share the last syllable: the morphemes meet
      inside it, so the places before and after that syllable are equally good.
    * Where grammars disagree: between the nouns of a compound (우리나라).

    Prefixes and suffixes that derive nouns are INSIDE (비합법, 전문성). The analyser's tokens, in
    order, have start, len, tag and form.
    """
    marks = [INSIDE] * (len(sentence) + 1)
    previous = None
    for token in tokens:
        start, end = token.start, token.start + token.len
        if token.tag in FREE_TAGS:
            marks[start + 1 : end] = FREE * (token.len - 1)
        for place in (start, end):
            if marks[place] == INSIDE:
                marks[place] = BOUNDARY
        particle = _last_particle(token)
        if 0 < particle < token.len:
            marks[end - particle] = BOUNDARY
        if previous is not None:
            previous_end = previous.start + previous.len
            if start < previous_end:
                first, last = min(start, previous.start), max(end, previous_end)
                for place in (start, previous_end):
                    if first < place < last:
                        marks[place] = EITHER
            elif start == previous_end:
                marks[start] = _mark_between(previous, token)
        previous = token
    return "".join(marks)


def _last_particle(token):
    """Returns the length of a particle that the analyser left at the end of a token, or 0."""
    if token.tag.startswith("E") and token.form.endswith(QUOTED):
        return len(QUOTATIVE)
    if token.tag.startswith("J") and token.form.endswith(AFTER_PARTICLES):
        return len(AFTER_PARTICLES)
    return 0


def _mark_between(left, right):
    """Returns the mark between two morphemes that meet."""
    if left.tag == PREFIX or right.tag == SUFFIX:
        return BOUNDARY if right.form in INFLECTING_SUFFIXES else INSIDE
    return EITHER if left.tag in BEFORE_NOUNS and right.tag in NOUNS else BOUNDARY
