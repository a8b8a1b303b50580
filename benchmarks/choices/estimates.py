"""Estimates what pieces will cost, by the measured ones where there are some."""

import collections
import statistics

# Seconds of a piece of size 1 before any of its kind has been measured: on two cores of a virtual
# machine of 2026, alone on it. Keys are beginnings of kinds.
SECONDS = {
    "text": 10,
    "vocabulary kiwi": 150,
    "vocabulary": 60,
    "records": 60,
    "held-out records": 10,
    "trial": 60,
    "pretraining": 300,  # for each pass over the text
    "task": 120,
    "objectives": 30,
    "bits": 120,
    "linear": 200,
}


class Estimates:
    """The seconds of pieces.

    Args:
        pieces: all `Piece`s of a plan.
        runs: the ledger's, name -> `Run`.
    """

    def __init__(self, pieces, runs):
        self.runs, measured = runs, collections.defaultdict(list)
        for piece in pieces:
            if piece.name in runs:
                measured[piece.kind].append(runs[piece.name].seconds / piece.size)
        self.of_kind = {kind: statistics.median(values) for kind, values in measured.items()}

    def seconds(self, piece):
        """The measured seconds of a piece, or about as many as it will take."""
        if piece.name in self.runs:
            return self.runs[piece.name].seconds
        guess = next(value for kind, value in SECONDS.items() if piece.kind.startswith(kind))
        return piece.size * self.of_kind.get(piece.kind, guess)

    def hours(self, pieces):
        """The hours of several pieces."""
        return sum(map(self.seconds, pieces)) / 3600

    def table(self, pieces):
        """A row for each question and each of its variants: pieces, hours, those measured.

        A piece that several variants share counts for the first of them.
        """
        rows = collections.defaultdict(list)
        for piece in pieces:
            rows["/".join(piece.name.split("/")[:3])].append(piece)
        for name, part in [*rows.items(), ("all", list(pieces))]:
            done = sum(piece.name in self.runs for piece in part)
            left = [piece for piece in part if piece.name not in self.runs]
            yield [name, f"{len(part)}", f"{done}", f"{self.hours(part):.2f}",
                   f"{self.hours(left):.2f}"]  # fmt: skip
