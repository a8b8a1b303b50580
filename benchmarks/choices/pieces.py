"""What a piece of the work is: a program to run, what it needs, what it gives."""

import dataclasses
from typing import NamedTuple

from run_scripts.reference.measure import read_scores


class Use(NamedTuple):
    """A place where a piece's result is needed."""

    question: str
    variant: str
    task: str


def no_flags(scores):
    """The further flags of a piece whose flags are all known: none."""
    return {}


@dataclasses.dataclass(eq=False)
class Piece:
    """A run of a program; its folder's name tells it from every other."""

    name: str  # in the ledger
    kind: str  # pieces of a kind take about as long
    folder: str
    program: tuple  # with its fixed flags
    flags: dict
    needs: tuple  # of `Piece`: what must be there before
    # A function: the ledger's scores, a dict name -> scores -> further flags.
    computed: object = no_flags
    # A function: the folder -> a dict of scores, {} if the program has not ended.
    read: object = read_scores
    size: float = 1.0  # of the work, relative to its kind's
    seed: int | None = None
    leaves: tuple = ()  # globs in the folder: what is removed once the piece is done
    uses: list = dataclasses.field(default_factory=list)

    def command(self, scores):
        """The command line, "python" for the interpreter.

        Args:
            scores: a dict: the name of each piece that this one needs -> its scores.
        """
        flags = {**self.flags, **self.computed(scores)}
        return ["python", *self.program, *(f"--{name}={flags[name]}" for name in flags)]


def equal_passes(records, dupe_factor, passes, updates, scores):
    """The flags of `updates` updates that together pass over the text `passes` times.

    Args:
        records: the name of the records' piece.
        dupe_factor: the passes over the text that the records hold.
        passes, updates: numbers.
        scores: the ledger's.
    """
    rows = scores[records]["records"] / dupe_factor
    return {"train_batch_size": max(1, round(passes * rows / updates)), **_steps(updates)}


def baseline_batch(records, passes, updates, scores):
    """The batch of the baseline, by the name of its records' piece."""
    flags = equal_passes(records, 1, passes, updates, scores)
    return {"train_batch_size": flags["train_batch_size"]}


def equal_time(records, baseline_trial, trial, passes, updates, scores):
    """The flags of as many updates, of the baseline's batch, as take the baseline's time."""
    ratio = scores[baseline_trial]["seconds_per_update"] / scores[trial]["seconds_per_update"]
    return {
        **baseline_batch(records, passes, updates, scores),
        **_steps(max(1, round(updates * ratio))),
    }


def _steps(updates):
    return {"num_train_steps": updates, "num_warmup_steps": updates // 10}
