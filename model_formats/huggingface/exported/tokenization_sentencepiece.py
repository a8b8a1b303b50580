"""A tokenizer of `transformers` for ALBERT, by the SentencePiece library itself.

Load it with `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`; it needs
`pip install sentencepiece`. The AlbertTokenizer of `transformers` 5 reads the same model
otherwise: Hangul becomes jamo, and a number before a comma another piece.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from sentencepiece import SentencePieceProcessor
from transformers import PreTrainedTokenizer

MODEL_FILE = "spiece.model"
WORD_START = "\u2581"  # how SentencePiece spells the space before a word


class SentencePieceTokenizer(PreTrainedTokenizer):
    """Cuts text into pieces as the program did that trained the model.

    Args:
        vocab_file: the SentencePiece model.
        source_tokenizer: the options of the tokenization, from tokenizer_config.json.
        **kwargs: for `PreTrainedTokenizer`.
    """

    vocab_files_names = {"vocab_file": MODEL_FILE}
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]

    def __init__(self, vocab_file: str, source_tokenizer: dict[str, Any], **kwargs: Any) -> None:
        with open(vocab_file, "rb") as file:
            self._content = file.read()
        self._options = source_tokenizer
        self._load()
        super().__init__(source_tokenizer=source_tokenizer, **kwargs)

    def _load(self):
        self._model = SentencePieceProcessor()
        self._model.LoadFromSerializedProto(self._content)
        self._vocab = {
            self._model.id_to_piece(index): index for index in range(self._model.get_piece_size())
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self._load()

    @property
    def vocab_size(self) -> int:
        """The number of pieces."""
        return self._model.get_piece_size()

    def get_vocab(self) -> dict[str, int]:
        """Returns the id of each piece."""
        return {**self._vocab, **self.added_tokens_encoder}

    def _tokenize(self, text, **kwargs):
        return split_numbers(self._model, self._model.encode(self._preprocess(text), out_type=str))

    def _preprocess(self, text):
        """Decomposes a text (NFKD), drops combining marks and lower-cases, as ALBERT does."""
        text, lower = re.sub("[\ud800-\udfff]", "\ufffd", text), self._options["do_lower_case"]
        if self._options.get("variant") == "huggingface":
            text = text.replace("``", '"').replace("''", '"')
            text = "".join(character.lower() for character in text) if lower else text
        if lower is None:
            return text
        text = unicodedata.normalize("NFKD", " ".join(text.split()))
        text = "".join(character for character in text if not unicodedata.combining(character))
        return text.lower() if lower else text

    def _convert_token_to_id(self, token):
        return self._vocab.get(token, self._model.unk_id())

    def _convert_id_to_token(self, index):
        return self._model.id_to_piece(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Returns the text that pieces represent."""
        text = b"".join(map(self._spell, tokens)).decode("utf-8", "replace")
        return text.replace(WORD_START, " ").strip(" ")

    def _spell(self, token):
        """Returns the bytes of a token in UTF-8; of a token such as <0xF0>, the byte itself."""
        if token in self._vocab and self._model.is_byte(self._vocab[token]):
            return bytes([int(token[1:-1], 16)])
        return token.encode("utf-8")

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
        """Writes the model as it was read."""
        name = (filename_prefix + "-" if filename_prefix else "") + MODEL_FILE
        path = os.path.join(save_directory, name)
        with open(path, "wb") as file:
            file.write(self._content)
        return (path,)


def split_numbers(model: SentencePieceProcessor, pieces: Iterable[str]) -> list[str]:
    """Cuts pieces such as "199," so that numbers are cut alike with and without a comma."""
    split = []
    for piece in pieces:
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = model.encode(piece[:-1].replace(WORD_START, ""), out_type=str)
            if not piece.startswith(WORD_START):  # the model adds one to any text
                number[0] = number[0].removeprefix(WORD_START)
            split += [part for part in number if part] + [","]
        else:
            split.append(piece)
    return split
