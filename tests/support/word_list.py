"""A format of exports that no package of the project knows: the pieces of the vocabulary."""

import os


def export(loaded, directory):
    """Writes the pieces, a line each; returns how they are loaded."""
    tokenizer = loaded.tokenizer
    pieces = tokenizer.convert_ids_to_tokens(range(tokenizer.vocab_size))
    with open(os.path.join(directory, "pieces.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(pieces))
    return "open('{folder}/pieces.txt').read().split()"
