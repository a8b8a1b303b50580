"""Cuts documents into unmasked sequences with their sentence label.

The plan is that of google-research/albert create_pretraining_data.py: sentences are gathered
until they reach a target length, the chunk is split into A and B between two sentences, and B is
kept, replaced (next sentence prediction) or swapped with A (sentence order prediction).

What differs, because Google's label can be guessed without reading the text:
  * the label is a fair coin, always. Google labels a chunk of one sentence 1; here a chunk goes
    on to two sentences, or takes earlier ones along when the document has no more;
  * sentence-order data holds no sentence of another document;
  * in sentence-order data the lengths of A and B do not tell the order. The sentence that
    oversteps the target is the last one gathered, hence longer than average; half of the passes
    gather from the end of the document, so that it lies in the first segment as often. Texts
    have a trend of their own (an encyclopedia's first sentences are long), which
    `LengthBalance` takes out.

In next-sentence data, where Google's way of filling up B is kept, the total length still says a
little: a random B goes on to the target, a true one ends with its document. On English text in
documents of a dozen sentences, at 128 pieces, the best guess by length alone is right 53 % of
the time.
"""

import bisect
import collections
import dataclasses
from typing import NamedTuple

from create_pretraining_data.documents import Sentence, join

# Below this a pair does not fit: [CLS] a [SEP] b [SEP].
SHORTEST_SEQUENCE = 5


class Sequence(NamedTuple):
    """One unmasked training sequence, not padded."""

    ids: list[int]  # [T] with [CLS] and [SEP]
    segment_ids: list[int]  # [T] 0 for [CLS] A [SEP], 1 for B [SEP]
    words: list[tuple[int, int]]  # [W] (start, end) in ids; none holds [CLS] or [SEP]
    sentence_label: int | None  # 1: B is random (nsp), or A and B are swapped (sop)


@dataclasses.dataclass(frozen=True)
class PairRules:
    """How sequences are cut.

    Attributes:
        objective: "nsp", "sop" or "none".
        max_seq_length: the most pieces of a sequence, [CLS] and [SEP] included.
        short_seq_prob: the share of document passes with a shorter target length.
        cls_id: the id of [CLS].
        sep_id: the id of [SEP].
    """

    objective: str
    max_seq_length: int
    short_seq_prob: float
    cls_id: int
    sep_id: int


class LengthBalance:
    """Keeps an account of which segment was the longer one, to choose splits that even it out.

    For each size of the difference it counts how often the first segment was longer less how
    often the second was. A split that would add to a surplus is exchanged for the one that pays
    off most of another, if the chunk has one. So the difference in text order becomes as often
    positive as negative at every size, and swapping the segments by a fair coin leaves no trace
    in it.

    A chunk of two sentences leaves no choice. Where a text is so one-sided that most chunks must
    have the longer sentence first, some of it stays.
    """

    # Pieces. Measured on encyclopedia articles, whole and cut to three or four sentences: at 8
    # and 16 every size is even, at 32 differences within one bin begin to show.
    BIN = 16

    def __init__(self):
        self._surplus = collections.Counter()

    def choose(self, differences, rng):
        """Chooses one of the splits of a chunk.

        Args:
            differences: for each split the first segment's length minus the second's.
            rng: a `random.Random`.

        Returns:
            The index of the split.
        """
        choice = rng.randrange(len(differences))
        effects = [self._effect(difference) for difference in differences]
        if effects[choice] > 0:
            best = min(effects)
            choice = rng.choice([k for k, effect in enumerate(effects) if effect == best])
        self._surplus[abs(differences[choice]) // self.BIN] += _sign(differences[choice])
        return choice

    def _effect(self, difference):
        """Positive if a split of this difference adds to a surplus, negative if it pays one."""
        return self._surplus[abs(difference) // self.BIN] * _sign(difference)


def _sign(number):
    return (number > 0) - (number < 0)


def make_sequences(documents, index, rules, balance, rng):
    """Makes the sequences of one pass over one document.

    Args:
        documents: all documents; the others are where random sentences come from.
        index: which document.
        rules: `PairRules`.
        balance: a `LengthBalance`, the same for all documents; only "sop" writes to it.
        rng: a `random.Random`.

    Returns:
        A list of `Sequence`; empty for a document of one word under "nsp" and "sop".
    """
    return _OBJECTIVES[rules.objective](documents, index, rules, balance, rng)


def is_too_short_for_a_pair(document):
    """Whether a document is a single word, which cannot be cut into A and B."""
    return len(document) == 1 and len(document[0].word_starts) == 1


def _next_sentence_sequences(documents, index, rules, balance, rng):
    document = _at_least_two(documents[index], rng)
    room = rules.max_seq_length - 3  # [CLS] [SEP] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    sequences, start = [], 0
    while start < len(document):
        chunk = find_chunk(document, start, target, rng)
        split = rng.randint(chunk.start + 1, chunk.stop - 1)
        first = join(document[chunk.start : split])
        is_random = rng.random() < 0.5
        if is_random:
            second = _random_sentences(documents, index, target - len(first.ids), rng)
            # The sentences that were not used go back, except behind the last chunk: it was
            # widened with sentences that had their turn, and would come up for ever.
            start = chunk.stop if chunk.start < start else split
        else:
            second = join(document[split : chunk.stop])
            start = chunk.stop
        sequences.append(_pair(first, second, int(is_random), room, rules, rng))
    return sequences


def _sentence_order_sequences(documents, index, rules, balance, rng):
    document = _at_least_two(documents[index], rng)
    room = rules.max_seq_length - 3  # [CLS] [SEP] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    from_the_end = rng.random() < 0.5
    if from_the_end:
        document = document[::-1]
    sequences, start = [], 0
    while start < len(document):
        chunk = find_chunk(document, start, target, rng)
        start = chunk.stop
        sentences = document[chunk.start : chunk.stop]
        if from_the_end:
            sentences.reverse()
        split = 1 + balance.choose(_length_differences(sentences, room), rng)
        pair = join(sentences[:split]), join(sentences[split:])
        is_swapped = rng.random() < 0.5
        first, second = reversed(pair) if is_swapped else pair
        sequences.append(_pair(first, second, int(is_swapped), room, rules, rng))
    return sequences


def _single_segment_sequences(documents, index, rules, balance, rng):
    document = documents[index]
    room = rules.max_seq_length - 2  # [CLS] [SEP]
    target = _target_length(room, rules.short_seq_prob, rng)
    sequences, start = [], 0
    while start < len(document):
        end = _gather(document, start, target, at_least=1)
        segment = join(document[start:end])
        segment = _cut(segment, len(segment.ids) - room, rng)
        sequences.append(assemble([segment], None, rules.cls_id, rules.sep_id))
        start = end
    return sequences


_OBJECTIVES = {
    "nsp": _next_sentence_sequences,
    "sop": _sentence_order_sequences,
    "none": _single_segment_sequences,
}
OBJECTIVES = tuple(_OBJECTIVES)


def find_chunk(document, start, target, rng):
    """Gathers sentences from `start` to at least `target` pieces, and at least two sentences.

    When only the last sentence is left, the chunk is widened backwards over sentences that were
    used before, at least one, to a length drawn up to the target: a last chunk is of any length,
    and what it repeats stays little.

    Args:
        document: at least two sentences.
        start: the first sentence that was not used yet.
        target: pieces.
        rng: a `random.Random`.

    Returns:
        A range of sentence indices; it starts before `start` if the chunk was widened.
    """
    end = _gather(document, start, target, at_least=2)
    if end - start >= 2:
        return range(start, end)
    wanted = rng.randint(1, target)
    length = len(document[start].ids)
    first = start
    while first > 0 and (first == start or length < wanted):
        first -= 1
        length += len(document[first].ids)
    return range(first, end)


def _gather(document, start, target, at_least):
    length = 0
    for end in range(start + 1, len(document) + 1):
        length += len(document[end - 1].ids)
        if length >= target and end - start >= at_least:
            return end
    return len(document)


def _at_least_two(document, rng):
    """The document; one of a single sentence is cut in two between words, if it has two."""
    if len(document) > 1:
        return document
    if is_too_short_for_a_pair(document):
        return []
    ids, word_starts = document[0]
    word = rng.randint(1, len(word_starts) - 1)
    cut = word_starts[word]
    return [
        Sentence(ids[:cut], word_starts[:word]),
        Sentence(ids[cut:], [start - cut for start in word_starts[word:]]),
    ]


def _target_length(room, short_seq_prob, rng):
    # Mostly full sequences; some short ones, as fine-tuning will have them. Drawn once for each
    # pass over a document, as in google-research/bert.
    return rng.randint(2, room) if rng.random() < short_seq_prob else room


def _random_sentences(documents, index, target, rng):
    """Consecutive sentences of another document, to at least `target` pieces if it has them."""
    other = index
    if len(documents) > 1:
        other = rng.randrange(len(documents) - 1)
        other += other >= index  # skips `index` itself
    document = documents[other]
    start = rng.randrange(len(document))
    return join(document[start : _gather(document, start, target, at_least=1)])


def _length_differences(sentences, room):
    """For each split of a chunk: the first segment's length in A minus the second's in A.

    Both are asked for place A, since A keeps one piece more when both must be shortened.
    """
    lengths = [len(sentence.ids) for sentence in sentences]
    total, first, differences = sum(lengths), 0, []
    for length in lengths[:-1]:
        first += length
        second = total - first
        differences.append(_fit(first, second, room)[0] - _fit(second, first, room)[0])
    return differences


def _fit(first, second, room):
    """The two lengths after shortening the longer one until both fit.

    Of two equal ones the second gives way, as in google-research/bert.
    """
    kept = min(second, max(room // 2, room - first))
    return min(first, room - kept), kept


def _pair(first, second, label, room, rules, rng):
    lengths = _fit(len(first.ids), len(second.ids), room)
    first, second = (
        _cut(segment, len(segment.ids) - length, rng)
        for segment, length in zip((first, second), lengths, strict=True)
    )
    return assemble([first, second], label, rules.cls_id, rules.sep_id)


def _cut(segment, excess, rng):
    """Takes `excess` pieces away, each from a random end; nothing if it is not positive."""
    if excess <= 0:
        return segment
    front = rng.getrandbits(excess).bit_count()  # so many of `excess` fair coins
    end = len(segment.ids) - (excess - front)
    first = bisect.bisect_left(segment.word_starts, front)
    last = bisect.bisect_left(segment.word_starts, end)
    starts = [start - front for start in segment.word_starts[first:last]]
    if not starts or starts[0] != 0:
        starts.insert(0, 0)  # what is left of a word that was cut counts as a word
    return Sentence(segment.ids[front:end], starts)


def assemble(segments, label, cls_id, sep_id):
    """Puts [CLS] before the first segment, [SEP] behind each.

    Args:
        segments: one or two `Sentence`.
        label: the sentence label, or None.
        cls_id: the id of [CLS].
        sep_id: the id of [SEP].

    Returns:
        A `Sequence`.
    """
    ids, segment_ids, words = [cls_id], [0], []
    for segment_id, segment in enumerate(segments):
        offset = len(ids)
        starts = [start + offset for start in segment.word_starts]
        ids += segment.ids
        words += zip(starts, [*starts[1:], len(ids)], strict=True)
        ids.append(sep_id)
        segment_ids += [segment_id] * (len(ids) - len(segment_ids))
    return Sequence(ids, segment_ids, words, label)
