"""Shows a pre-trained model's best guesses for masked words."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from bert_tf.summaries.markdown import escape_markdown
from tokenization.base import TokenizerInterface
from tokenization.byte_pieces import follows_in_character
from tokenization.sentencepiece import WORD_START


def best_guesses(
    model: keras.Model,
    ids: Sequence[int],
    positions: Sequence[int],
    candidates: Sequence[int],
    count: int,
    segment_ids: Sequence[int] | None = None,
    *,
    excluded: Collection[int] = (),
) -> list[list[tuple[int, float]]]:
    """Returns a pre-training model's most probable tokens at some positions of a sequence.

    Args:
        ids: the sequence, including special tokens.
        candidates: the ids to choose from; an embedding table may have rows without a token.
        count: the maximum number of guesses per position.
        segment_ids: 0 or 1 for every id; None for zeros.
        excluded: ids that have a share of the probability but are not returned as guesses.

    Returns:
        For each position a list of (id, probability), the most probable first.
    """
    segment_ids = None if segment_ids is None else [segment_ids]
    probabilities = piece_probabilities(model, [ids], [positions], candidates, segment_ids)[0]
    allowed = np.array([index not in excluded for index in candidates])
    probabilities = tf.where(allowed, probabilities, -1.0)
    values, indices = tf.math.top_k(probabilities, k=min(count, int(allowed.sum())))
    return [
        [(candidates[i], value) for i, value in zip(row_indices, row, strict=True)]
        for row_indices, row in zip(indices.numpy(), values.numpy().tolist(), strict=True)
    ]


def piece_probabilities(
    model: keras.Model,
    ids: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
    candidates: Sequence[int],
    segment_ids: Sequence[Sequence[int]] | None = None,
) -> tf.Tensor:
    """Computes every candidate's probability at positions [B, P] of sequences [B, T].

    Returns float32 [B, P, candidates]. Arguments are as for `best_guesses`, for several sequences.
    """
    inputs = {"input_ids": np.array(ids, np.int32)}
    inputs["masked_lm_positions"] = np.array(positions, np.int32)
    if segment_ids is not None:
        inputs["segment_ids"] = np.array(segment_ids, np.int32)
    logits = tf.cast(model(inputs, training=False)["masked_lm_logits"], tf.float32)  # [B, P, V]
    return tf.nn.softmax(tf.gather(logits, np.asarray(candidates, np.int32), axis=2))


def guesses_as_markdown(
    model: keras.Model,
    tokenizer: TokenizerInterface,
    records: Sequence[Mapping[str, np.ndarray]],
    count: int = 5,
) -> str:
    """Formats sentences with their masked tokens and the model's guesses for each token.

    Shows at most as many sequences as there are `records`, which are dicts as in `first_records`.
    Packed rows have several sequences, and sequences without masks are left out.

    Returns:
        Markdown with each sequence's text, its masked tokens bold and in brackets, and a table of
        the true tokens and the guesses, the correct guesses in bold.
    """
    pieces = sorted(set(tokenizer.vocab.values()))  # the embedding table may have more rows
    parts = []
    sequences = [sequence for record in records for sequence in _masked_sequences(record)]
    for ids, segment_ids, positions, truth in sequences[: len(records)]:
        guesses_of_all = best_guesses(model, ids, positions, pieces, count, segment_ids)
        parts.append(_show_text(tokenizer, ids, dict(zip(positions, truth, strict=True))))
        rows = [
            f"| {_show_piece(tokenizer, true)} | {_show_guesses(tokenizer, true, guesses)} |"
            for true, guesses in zip(truth, guesses_of_all, strict=True)
        ]
        parts.append("\n".join(["| true | guesses |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _masked_sequences(record):
    """Lists each sequence with masked tokens: (ids, segment ids, masked positions, their ids)."""
    # In packed rows, sequences are numbered from 1; 0 is padding.
    index = record.get("segment_index", record["input_mask"])  # [T]
    within = record.get("position_ids", np.arange(len(index)))  # [T]
    masked = record["masked_lm_weights"] > 0  # [P]
    positions, truth = record["masked_lm_positions"][masked], record["masked_lm_ids"][masked]
    sequences = []
    for number in np.unique(index[positions]):
        inside, masks = index == number, index[positions] == number  # [T], [masked]
        ids, segment_ids = record["input_ids"][inside], record["segment_ids"][inside]
        sequences.append((ids, segment_ids, within[positions[masks]], truth[masks]))
    return sequences


def _show_guesses(tokenizer, true, guesses):
    shown = []
    for piece, probability in guesses:
        text = _show_piece(tokenizer, piece)
        shown.append(f"{f'**{text}**' if piece == true else text} {100 * probability:.0f} %")
    return ", ".join(shown)


def _show_piece(tokenizer, piece):
    return escape_markdown(tokenizer.convert_ids_to_tokens([int(piece)])[0])


def _show_text(tokenizer, ids, truth):
    """Formats the original text, one line per segment, and marks the positions in `truth`."""
    tokens = tokenizer.convert_ids_to_tokens(
        int(truth.get(position, piece)) for position, piece in enumerate(ids)
    )
    lines = [""]
    parts = without_markers(tokenizer, tokens)
    for position, (piece, (begins_word, part)) in enumerate(zip(ids, parts, strict=True)):
        if piece == tokenizer.sep_id:
            lines.append("")
        elif piece != tokenizer.cls_id:
            part = escape_markdown(part)
            if position in truth:
                part = f"{escape_markdown('[')}**{part}**{escape_markdown(']')}"
            lines[-1] += f" {part}" if begins_word else part
    return "  \n".join(line.strip() for line in lines if line)  # Markdown's line break


def without_markers(tokenizer: TokenizerInterface, tokens: Iterable[str]) -> list[tuple[bool, str]]:
    """Returns (whether it begins a word, its text without word markers) for every token."""
    # SentencePiece is the only tokenizer without basic tokens. It marks where a word begins; the
    # other tokenizers mark where a word continues or ends.
    if not hasattr(tokenizer, "basic_tokens"):
        return [(t.startswith(WORD_START), t.removeprefix(WORD_START) or t) for t in tokens]
    prefix = tokenizer.wordpiece.continuation_prefix
    end = getattr(tokenizer.options, "word_end_marker", "")
    parts, ended = [], True
    for token in tokens:
        continues = token.startswith(prefix) if prefix else not ended
        continues = continues or follows_in_character(token)
        bare = (token.removeprefix(prefix) if continues else token).removesuffix(end)
        parts.append((not continues, bare or token))
        ended = token.endswith(end)  # always True if no marker is used
    return parts
