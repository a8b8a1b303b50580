"""Declares lessons, the parts of a training, each with the kinds of its rows."""

import dataclasses
import json

from bert_common.errors import InputError

# The kinds of sequences that a lesson mixes.
KINDS = {
    "natural": "pairs of documents with two sentences or more, labelled by their order",
    "single": "documents of one sentence, for their masked words alone: they have no order",
}


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A part of a training."""

    updates: int
    shares: dict  # a name of KINDS -> its share of the tokens; the shares add up to 1
    rate: float = 1.0  # the factor of the learning rate

    def __post_init__(self):
        if type(self.updates) is not int or self.updates < 1:
            raise InputError(
                f"updates of a lesson must be a number, 1 or more. Received: {self.updates!r}"
            )
        if type(self.rate) not in (int, float) or not self.rate > 0:
            raise InputError(f"rate of a lesson must be a number above 0. Received: {self.rate!r}")
        unknown, total = set(self.shares) - set(KINDS), sum(self.shares.values())
        if unknown or min(self.shares.values(), default=0) < 0 or abs(total - 1) > 1e-6:
            raise InputError(
                f"the shares of a lesson must be 0 or more of {', '.join(KINDS)}, and add up to 1. "
                f"Received: {self.shares}"
            )


def read_lessons(path):
    """Reads a list of `Lesson`s from a JSON list of objects with their fields.

    Raises:
        InputError: the file is not such a list.
    """
    with open(path, encoding="utf-8") as file:
        try:
            rows = json.load(file)
            if not isinstance(rows, list) or not rows:
                raise TypeError("no list of lessons")
            return [Lesson(**row) for row in rows]
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path} must be a JSON list of lessons, each with the fields "
                f"{', '.join(f.name for f in dataclasses.fields(Lesson))}. Received: {error}"
            ) from None
