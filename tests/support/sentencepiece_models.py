"""Trains small SentencePiece models."""

import io


def train(path, lines, **options):
    """Writes a SentencePiece model of some lines; returns its path."""
    import sentencepiece  # here: a test that needs the library may be skipped without it

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, minloglevel=2, hard_vocab_limit=False,
        **options,
    )  # fmt: skip
    path.write_bytes(written.getvalue())
    return path


# As Google's ALBERT numbers and names them.
NAMES = {
    "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]"],
    "user_defined_symbols": ["[MASK]"],
}  # fmt: skip
