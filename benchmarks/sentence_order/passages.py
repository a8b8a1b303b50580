"""Draws rows of passages of three documents, whose subjects show the order of the segments."""

from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError

# Documents that are drawn for a row before the text is refused: few have no place for a passage.
MOST_DRAWS = 10_000

# [CLS], and a [SEP] after each segment.
SPECIAL_PIECES = 3

# The smallest share of a segment in a row, if the boundary is anywhere.
SMALLEST_SHARE = 0.2


class Document(NamedTuple):
    """The pieces of a document, and where its sentences end."""

    ids: np.ndarray  # [N] int32
    ends: np.ndarray  # the number of pieces up to the end of each sentence, rising


class Passages:
    """Draws passages of documents.

    Args:
        documents: a list of `Document`, three or more.
        rng: a NumPy generator.
    """

    def __init__(self, documents, rng):
        self.documents, self.rng = documents, rng

    def draw(self, *lengths):
        """Draws passages around places between sentences, each from another document.

        Args:
            lengths: for each passage (pieces before the place, pieces after it). The beginning and
                the end of a document are places too.

        Returns:
            A list of pairs of arrays: the pieces before and after the place.

        Raises:
            InputError: no document has such a place.
        """
        passages, used = [], set()
        for _ in range(MOST_DRAWS):
            if len(passages) == len(lengths):
                return passages
            before, after = lengths[len(passages)]
            index = int(self.rng.integers(len(self.documents)))
            ids, ends = self.documents[index]
            places = np.concatenate([[0], ends])
            places = places[(places >= before) & (places <= len(ids) - after)]
            if index in used or not places.size:
                continue
            used.add(index)
            place = self.rng.choice(places)
            passages.append((ids[place - before : place], ids[place : place + after]))
        raise InputError(
            f"the text must hold three documents, each with a sentence that ends after {before} "
            f"pieces or more, {after} or more before the document does. Received: {len(passages)}"
        )


def room_of(length):
    """The pieces of both segments in a row of `length`: even, so that halves are equally long."""
    return (length - SPECIAL_PIECES) // 2 * 2


def splice(passages, room, middle):
    """Draws the segments of a row, as they are in order: two arrays of ids, `room` together.

    Passages x, y and z are of three documents. One segment is x and the beginning of y, the other
    the end of y and z.

    Args:
        passages: `Passages`.
        room: pieces of a row, an even number.
        middle: whether the segments are equally long.
    """
    least = room // 2 if middle else round(room * SMALLEST_SHARE)
    first = int(passages.rng.integers(least, room - least + 1))
    second = room - first
    end, beginning = first // 2, second // 2  # of y
    lengths = (0, first - end), (end, beginning), (second - beginning, 0)
    (_, x), (y_end, y_beginning), (z, _) = passages.draw(*lengths)
    return np.concatenate([x, y_end]), np.concatenate([y_beginning, z])
