"""Estimates what pieces will cost, by the measured ones where there are some."""

import collections
import statistics

# Beginning of a kind -> seconds of a piece of size 1, before any of its kind has been measured, for
# 37 MB of text on two cores of a virtual machine of 2026. The vocabularies, the records, the
# pre-training of four layers with 16,000 pieces and NSMC's 30,000 reviews are extrapolated from the
# processor's time in short trials; the rest is reckoned from these.
SECONDS = {
    "text": 10,
    "vocabulary kiwi": 480,
    "vocabulary plain": 160,
    "vocabulary usual": 40,
    "records": 40,
    "held-out records": 5,
    "trial": 70,
    # For each pass over the text.
    "pretraining bert, 2 layers": 480,
    "pretraining bert, 4 layers, 8000 pieces": 690,
    "pretraining bert, 4 layers, 16000 pieces": 730,
    "pretraining bert, 4 layers, 32000 pieces": 900,
    "pretraining albert": 2100,
    "pretraining as long as the baseline": 730,
    "task nsmc-30k": 180,
    "task nsmc": 350,
    "task 3i4k": 180,
    "task klue-nli": 250,
    "task korsts": 80,
    "task klue-ner": 120,
    "task korquad": 150,
    "objectives": 30,
    "bits": 120,
    "linear nsmc": 600,
    "linear": 300,
}


def first_estimate(kind):
    """The seconds of a piece of this kind and of size 1, by `SECONDS`."""
    for beginning, seconds in SECONDS.items():
        if kind.startswith(beginning):
            return seconds
    raise LookupError(f"SECONDS must have a beginning of each kind. Received: {kind}")


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
        return piece.size * (self.of_kind.get(piece.kind) or first_estimate(piece.kind))

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
