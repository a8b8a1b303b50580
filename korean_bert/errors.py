"""Defines the error for a text that is too long for a model."""

from bert_common.errors import InputError


class TooManyPiecesError(InputError):
    """Raised if a text or a pair has more tokens than `most`, the model's number of positions.

    `received` is the number of tokens, including [CLS] and [SEP].
    """

    def __init__(self, message: str, most: int, received: int) -> None:
        super().__init__(message)
        self.most, self.received = most, received
