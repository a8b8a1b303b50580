"""Declares the sizes of the reference model, each with its phases of pre-training.

The configuration of a size is flagfiles/reference_SIZE.json. The flags of a phase (batch,
optimizer, learning rate) are in flagfiles/reference_SIZE_LENGTH.flags.
"""

import json
from typing import NamedTuple

from run_scripts.flags.flag_files import SHIPPED

# The folder of the flag files, relative to the project's folder, in which commands run.
FOLDER = "run_scripts/flagfiles"


class Phase(NamedTuple):
    """A part of pre-training with one row length, starting from the previous phase's weights."""

    length: int  # tokens of a row
    share: float  # its share of the hours
    warmup: float  # the warmup's share of its updates
    # The maximum predictions of a row: 15 % of its tokens, rounded separately for each of its
    # sequences. The head over the vocabulary computes this number for every row.
    predictions: int


class Size(NamedTuple):
    """A size of BERT, and the phases of its pre-training."""

    name: str
    phases: tuple[Phase, ...]

    @property
    def config(self):
        """The model's configuration, a dict, whose vocab_size is the maximum vocabulary size."""
        return json.loads((SHIPPED / f"reference_{self.name}.json").read_text(encoding="utf-8"))

    @property
    def config_file(self):
        """The path of the model's configuration in commands."""
        return f"{FOLDER}/reference_{self.name}.json"

    def flagfile(self, phase):
        """Returns the path of a phase's flag file in commands."""
        return f"{FOLDER}/reference_{self.name}_{phase.length}.flags"


# Most time is spent on short rows, in which attention costs least. The last tenth or so trains the
# positions that earlier rows do not reach. mini's shares are about those used for reference_model/.
# New weights get a tenth of warmup, trained weights less, as only the new optimizer's moments need
# it.
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
