"""The sizes of the reference model, each with its phases of pre-training.

The configuration of a size is flagfiles/reference_SIZE.json, the flags of a phase are in
flagfiles/reference_SIZE_LENGTH.flags: batch, optimizer, learning rate.
"""

import json
from typing import NamedTuple

from run_scripts.flags.flag_files import SHIPPED

# Where the flag files are, as a command in the project's folder names them.
FOLDER = "run_scripts/flagfiles"


class Phase(NamedTuple):
    """A part of pre-training with rows of one length; it starts from the last one's weights."""

    length: int  # pieces of a row
    share: float  # of the hours
    warmup: float  # the share of its updates
    # Places for predictions in a row: 15 % of its pieces, which are rounded for each of its
    # sequences. The head over the vocabulary computes all of them.
    predictions: int


class Size(NamedTuple):
    """A BERT, and how its time is divided."""

    name: str
    phases: tuple[Phase, ...]

    @property
    def vocabulary_size(self):
        """The rows of the model's table, and the most pieces of its vocabulary."""
        return self._config()["vocab_size"]

    @property
    def hidden_size(self):
        """The model's width."""
        return self._config()["hidden_size"]

    @property
    def positions(self):
        """How many positions the model has."""
        return self._config()["max_position_embeddings"]

    def _config(self):
        return json.loads((SHIPPED / f"reference_{self.name}.json").read_text(encoding="utf-8"))

    @property
    def config_file(self):
        """The model's configuration, as a command names it."""
        return f"{FOLDER}/reference_{self.name}.json"

    def flagfile(self, phase):
        """The flag file of a phase, as a command names it."""
        return f"{FOLDER}/reference_{self.name}_{phase.length}.flags"


# Most of the time with short rows, in which attention costs least; the last tenth or so trains the
# positions that the rows before it lack. mini's shares are about reference_model/'s. A tenth
# of warm-up for new weights; less for trained ones, which the moments of a new optimizer alone
# require.
SIZES = {
    size.name: size
    for size in (
        Size("tiny", (Phase(32, 0.7, 0.1, 8), Phase(128, 0.3, 0.05, 22))),
        Size(
            "mini",
            (Phase(64, 0.3, 0.1, 12), Phase(128, 0.6, 0.05, 22), Phase(512, 0.1, 0.05, 80)),
        ),
        Size("small", (Phase(128, 0.85, 0.1, 22), Phase(512, 0.15, 0.05, 80))),
        Size("base", (Phase(128, 0.85, 0.1, 22), Phase(512, 0.15, 0.05, 80))),
    )
}
