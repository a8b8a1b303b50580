"""The task: what the model says of a user's texts."""

from finetuning.classification.task import Classification
from finetuning.readers import Example, check_strings


class Polarity(Classification):
    """Takes a single text."""

    def read_input(self, name, value):
        """The example of a text."""
        return Example(name, *check_strings(value), None, None)


TASK = Polarity
