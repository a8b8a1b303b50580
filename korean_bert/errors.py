"""Defines the error for a text that is too long for a model."""

from bert_common.errors import InputError


class TooManyPiecesError(InputError):
    """A text, or a pair of texts, has more tokens than the model has positions, `most`.

    `received` are the tokens, [CLS] and [SEP] included.
    """

    def __init__(self, message: str, most: int, received: int) -> None:
        super().__init__(message)
        self.most, self.received = most, received
