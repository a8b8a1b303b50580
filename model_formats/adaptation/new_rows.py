"""Makes the rows of a new vocabulary from the rows of the old one.

A token that both vocabularies have keeps its row. Any other row starts as the mean of the rows of
the tokens that the old tokenizer produces for its text at the same place in a word. If the old
tokenizer produces only [UNK], the row is drawn at random, like a typical row of the old table.

Shapes: V rows of the old table, W rows of the new one, E embedding.
"""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from model_formats.adaptation.spelling import Spelling, spelling_of
from tokenization.loading import Tokenizer

# Special tokens are matched by role, as one vocabulary's <pad> is another's [PAD].
ROLES = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")


@dataclasses.dataclass(frozen=True)
class NewRow:
    """Describes the source of one row of the new table."""

    token: str | None  # its token; None for a row without a token
    sources: tuple[int, ...]  # the old rows that are averaged; empty for a random row
    kept: bool = False  # whether it is the old row of the same token

    @property
    def kind(self) -> str:
        """The kind of row in the report, one of `KINDS`."""
        if self.kept:
            return "kept"
        return "averaged" if self.sources else "random"


KINDS = ("kept", "averaged", "random")


def plan_rows(old: Tokenizer, new: Tokenizer) -> list[NewRow]:
    """Finds the source of each row of a new vocabulary."""
    old_spelling, new_spelling = spelling_of(old), spelling_of(new)
    roles = {getattr(new, name): getattr(old, name) for name in ROLES}
    rows = []
    for index in range(new.vocab_size):
        token = new.inv_vocab.get(index)
        if token is None:
            rows.append(NewRow(None, ()))
        elif roles.get(index) is not None:
            rows.append(NewRow(token, (roles[index],), kept=True))
        else:
            rows.append(plan_row(token, old_spelling, new_spelling))
    return rows


def plan_row(token: str, old_spelling: Spelling, new_spelling: Spelling) -> NewRow:
    """Plans the row of a token that is not special."""
    vocab = old_spelling.tokenizer.vocab
    piece = new_spelling.read(token)
    if piece is None or old_spelling.scheme == new_spelling.scheme:
        if token in vocab:
            return NewRow(token, (vocab[token],), kept=True)
        if piece is None:
            return NewRow(token, ())
    same = [vocab[spelled] for spelled in old_spelling.spell(piece) if spelled in vocab]
    if same:
        return NewRow(token, tuple(same), kept=len(same) == 1)
    return NewRow(token, tuple(vocab[part] for part in old_spelling.cut(piece)))


def draw_all_new(rows: Sequence[NewRow]) -> list[NewRow]:
    """Makes all rows that are not kept random, as a baseline for averaging."""
    return [row if row.kept else dataclasses.replace(row, sources=()) for row in rows]


def new_embeddings(
    table: np.ndarray, rows: Sequence[NewRow], typical: Sequence[int], rng: np.random.Generator
) -> np.ndarray:
    """Computes the embeddings of a new vocabulary.

    Args:
        table: [V, E], the old embeddings.
        typical: the ids of the old rows that random rows resemble. Random rows are drawn from a
            normal distribution with the mean and standard deviation of each column of these rows.

    Returns:
        [W, E], of the table's type; kept rows are bit-equal.
    """
    usual = table[typical].astype(np.float64)  # [typical, E]
    drawn = rng.normal(usual.mean(0), usual.std(0), (len(rows), table.shape[1]))  # [W, E]
    return _fill(table, rows, drawn)


def new_output_bias(bias: np.ndarray, rows: Sequence[NewRow], typical: Sequence[int]) -> np.ndarray:
    """Computes the output biases of a new vocabulary; random rows get the mean of typical rows.

    An averaged row gets the mean of its sources' biases, each reduced by the logarithm of the
    number of rows that use the source, so that new tokens share the old token's probability.
    Otherwise thousands of rare words would each be as probable as the frequent syllables in them.
    Kept rows are bit-equal.
    """
    mean = bias[typical].astype(np.float64).mean()
    new = _fill(bias, rows, np.full(len(rows), mean))  # [W]
    uses = collections.Counter(source for row in rows for source in set(row.sources))
    for index, row in enumerate(rows):
        if row.kind == "averaged":
            new[index] -= np.mean([np.log(uses[source]) for source in row.sources])
    return new


def _fill(old, rows, drawn):
    """Overwrites the drawn rows with the kept and averaged ones; averages in float64."""
    new = drawn.astype(old.dtype)
    for index, row in enumerate(rows):
        if row.kept:
            new[index] = old[row.sources[0]]
        elif row.sources:
            new[index] = old[list(row.sources)].mean(0, dtype=np.float64)
    return new


def typical_rows(tokenizer: Tokenizer) -> list[int]:
    """Returns the ids of all tokens that text can produce, without special and reserved ones."""
    spelling = spelling_of(tokenizer)
    special = {getattr(tokenizer, name) for name in ROLES}
    pieces = sorted((index, token) for token, index in tokenizer.vocab.items())
    return [i for i, token in pieces if i not in special and spelling.read(token) is not None]
