"""A tokenizer of `transformers` for Korean WordPiece vocabularies.

Load it with `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`. The tokenization
itself is in korean_wordpiece.py.
"""

import os
from typing import Any

from transformers import PreTrainedTokenizer

from .korean_wordpiece import UNKNOWN, KoreanWordPiece

VOCABULARY_FILE = "vocab.txt"


class KoreanWordPieceTokenizer(PreTrainedTokenizer):
    """Cuts text into pieces as the program did that trained the model.

    Args:
        vocab_file: one piece a line.
        source_tokenizer: the options of the tokenization, from tokenizer_config.json.
        **kwargs: for `PreTrainedTokenizer`.
    """

    vocab_files_names = {"vocab_file": VOCABULARY_FILE}
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]

    def __init__(self, vocab_file: str, source_tokenizer: dict[str, Any], **kwargs: Any) -> None:
        with open(vocab_file, "rb") as file:
            self._content = file.read()
        lines = self._content.decode("utf-8").removesuffix("\n").split("\n")
        self._vocab = {line.strip(): index for index, line in enumerate(lines)}
        self._pieces = {index: piece for piece, index in self._vocab.items()}
        self._wordpiece = KoreanWordPiece(self._vocab, source_tokenizer)
        super().__init__(source_tokenizer=source_tokenizer, **kwargs)

    @property
    def vocab_size(self) -> int:
        """The largest id + 1."""
        return max(self._pieces) + 1

    def get_vocab(self) -> dict[str, int]:
        """Returns the id of each piece."""
        return {**self._vocab, **self.added_tokens_encoder}

    def _tokenize(self, text, **kwargs):
        return self._wordpiece.tokenize(text)

    def _convert_token_to_id(self, token):
        return self._vocab.get(token, self._vocab.get(UNKNOWN))

    def _convert_id_to_token(self, index):
        return self._pieces.get(index, UNKNOWN)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Returns the text that pieces represent."""
        return self._wordpiece.join(tokens)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Returns [CLS] a [SEP], or [CLS] a [SEP] b [SEP]."""
        inputs = [self.cls_token_id, *token_ids_0, self.sep_token_id]
        return inputs if token_ids_1 is None else [*inputs, *token_ids_1, self.sep_token_id]

    def create_token_type_ids_from_sequences(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Returns 0 up to the first [SEP], 1 after it."""
        second = 0 if token_ids_1 is None else len(token_ids_1) + 1
        return [0] * (len(token_ids_0) + 2) + [1] * second

    def get_special_tokens_mask(
        self,
        token_ids_0: list[int],
        token_ids_1: list[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        """Returns 1 for each special token, 0 for each piece."""
        if already_has_special_tokens:
            special = set(self.all_special_ids)
            return [int(index in special) for index in token_ids_0]
        first = [1] + [0] * len(token_ids_0) + [1]
        return first if token_ids_1 is None else [*first, *([0] * len(token_ids_1)), 1]

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """Writes the vocabulary as it was read."""
        name = (filename_prefix + "-" if filename_prefix else "") + VOCABULARY_FILE
        path = os.path.join(save_directory, name)
        with open(path, "wb") as file:
            file.write(self._content)
        return (path,)
