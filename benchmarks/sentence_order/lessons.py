"""Declares lessons: the parts of a training, each with the kinds of its rows."""

import dataclasses
import json

from bert_common.errors import InputError

# The kinds of sequences of which a lesson has shares.
KINDS = {
    "natural": "pairs of documents with two sentences or more, labelled by their order",
    "single": "documents of one sentence, for their masked words alone: they have no order",
    "clear": "natural pairs in which neighbouring passages share many words",
    "next": "pairs of which the second segment is random in half of the cases, labelled 1",
    "middle": "segments of three documents, with the boundary in the middle (splice.py)",
    "anywhere": "the same with the boundary anywhere",
}

# The least values of whole numbers; a length below leaves no room for passages.
LEAST = {"updates": 1, "length": 16}


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A part of a training."""

    updates: int
    shares: dict  # of the pieces: a name of KINDS -> its share; the shares add up to 1
    length: int = 512  # the most pieces of a sequence of the kinds next, middle and anywhere
    rate: float = 1.0  # the factor of the learning rate
    masked_lm: float = 1.0  # the factor of the masked-LM loss

    def __post_init__(self):
        for name in ("updates", "length", "rate", "masked_lm"):
            value = getattr(self, name)
            kinds = (int,) if name in ("updates", "length") else (int, float)
            if type(value) not in kinds or not value >= LEAST.get(name, 0) or value == 0:
                least = f"{LEAST[name]} or more" if name in LEAST else "above 0"
                raise InputError(
                    f"{name} of a lesson must be a number, {least}. Received: {value!r}"
                )
        unknown, total = set(self.shares) - set(KINDS), sum(self.shares.values())
        if unknown or min(self.shares.values(), default=0) < 0 or abs(total - 1) > 1e-6:
            raise InputError(
                f"the shares of a lesson must be 0 or more of {', '.join(KINDS)}, and add up to 1. "
                f"Received: {self.shares}"
            )


def read_lessons(path):
    """Reads a file, a list of objects with the fields of `Lesson`: a list of `Lesson`.

    Raises:
        InputError: it is not such a list.
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
