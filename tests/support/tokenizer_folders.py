"""Folders with a vocabulary and what says which tokenizer it is of."""

import json

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_tokenizer(folder, pieces, kind="korean", **options):
    """Writes both files; returns the folder, which is created."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"kind": kind, **options}))
    return folder
