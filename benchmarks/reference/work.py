"""What a reference run trains, phase after phase, in which folders."""

import os
from typing import NamedTuple

from benchmarks.reference.sizes import SIZES, Size
from model_formats.model_folder import ModelFolder
from run_scripts.flags.training import ascending_numbers


class Work(NamedTuple):
    """A reference run: what is trained, from what, and where everything lies."""

    flags: object  # `ReferenceFlags`
    size: Size
    phases: tuple  # of `Phase`: the size's phases to run, with their shares of the hours

    def out(self, *names):
        """A path in the folder of the run."""
        return os.path.join(self.flags.output_dir, *names)

    @property
    def tokenizer_dir(self):
        """The folder of the vocabulary: of the model to begin with, or one of its own."""
        return self.flags.begin_with or self.out("vocabulary")

    @property
    def model_dir(self):
        """The folder of the model to measure: of the last phase, if there is one."""
        return self.weights_before(len(self.phases))

    def weights_before(self, number):
        """The folder of the weights that there are before a phase; None: there are none."""
        if number:
            return self.out("pretraining", str(self.phases[number - 1].length))
        return self.flags.begin_with

    def lacks_positions(self, number):
        """Whether the rows of a phase are longer than all that its weights were trained on."""
        trained = 0
        if self.flags.begin_with:
            trained = ModelFolder(self.flags.begin_with).trained_positions
        if number and trained is not None:  # None: not known, so all of them
            trained = max(trained, self.phases[number - 1].length)
        return bool(trained) and trained < self.phases[number].length

    def start_of(self, number):
        """The folder of the weights that a phase starts from; None: from random ones."""
        if self.lacks_positions(number):
            return self.out("positions", str(self.phases[number].length))
        return self.weights_before(number)


def make_work(flags):
    """Makes the `Work` of `ReferenceFlags`: all phases of the size, or the ones in --lengths."""
    size = SIZES[flags.size]
    lengths = ascending_numbers(flags.lengths) if flags.lengths else [p.length for p in size.phases]
    phases = [p for p in size.phases if flags.hours and p.length in lengths]
    whole = sum(phase.share for phase in phases)
    return Work(flags, size, tuple(p._replace(share=p.share / whole) for p in phases))
