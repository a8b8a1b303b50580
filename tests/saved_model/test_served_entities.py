"""What finds entities in the graph: alignment, decoding, probabilities."""

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from finetuning.ner import served_entities as entities
from finetuning.ner.data import FORMATS, untagged_sentence
from finetuning.ner.labels import Alignment, align, check_tags, decode
from finetuning.ner.task import entity_probability
from finetuning.serving.characters import Characters
from tests.support.task_data import CONTEXTS
from tests.support.tokenizer_cases import TEXTS
from tokenization.tf_graph.graph import GraphTokenizer

TAGS = ("B-PS", "I-PS", "O", "B-LC", "I-LC")


def texts():
    words = " ".join(CONTEXTS).split(" ")
    rng = np.random.default_rng(4)
    made = [*CONTEXTS, *(t for t in TEXTS if not any("\ud800" <= c <= "\udfff" for c in t))]
    return [*made, *(" ".join(rng.choice(words, size)) for size in (2, 5, 20, 60))]


@pytest.mark.parametrize("task", ("klue-ner", "conll"))
@pytest.mark.parametrize("name", ("plain", "odd", "marked"))
def test_alignment(tokenizers, name, task):
    """A marker before punctuation, or instead of a space, has an empty span inside a word."""
    tokenizer, asked = tokenizers[name], [*texts(), "학교,나 영화\u2581영화. 나\u2581\u2581나"]
    raw = [untagged_sentence(str(i), text, FORMATS[task]) for i, text in enumerate(asked)]
    text = tf.constant([sentence.text for sentence in raw])
    characters = Characters(text)
    units = entities.find_units(characters, by_character=not FORMATS[task].glue)
    graph = GraphTokenizer(tokenizer)
    _, spans = graph.encode_with_offsets(text)
    found = entities.align(units, spans, characters.rows.row_starts())
    unit_starts, piece_starts = units.splits.numpy(), spans.row_splits.numpy()
    for i, one in enumerate(raw):
        expected = align(tokenizer, one)
        of_units = found.owners.numpy()[unit_starts[i] : unit_starts[i + 1]]
        pieces = slice(piece_starts[i], piece_starts[i + 1])
        of_pieces = found.units.numpy()[pieces]
        moved = np.where(of_units < 0, -1, of_units - piece_starts[i])
        assert moved.tolist() == expected.owners, one.text
        moved = np.where(of_pieces < 0, -1, of_pieces - unit_starts[i])
        assert moved.tolist() == expected.units, one.text
        assert found.begins.numpy()[pieces].tolist() == expected.begins, one.text


def test_decoding_of_ties_and_of_every_length():
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 3, (size, len(TAGS))).astype(np.float32) for size in (0, 1, 2, 9, 30)]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [len(row) for row in rows])
    found = entities.decode(ragged, entities.Tags(list(TAGS)))
    assert found.to_list() == [decode(row, TAGS).tolist() for row in rows]


def test_units_without_a_piece_do_not_count():
    alignment = Alignment(np.array([5, 6]), [0, -1, 1], [0, 2], [True, True])
    assert entity_probability(alignment, [0.5, 1.0, 0.7], 0, 2) == pytest.approx(0.6)
    assert entity_probability(alignment, [0.5, 1.0, 0.7], 0, 1) == pytest.approx(0.5)


def test_units_without_a_piece_do_not_count_where_they_are_served():
    """Three units, of which the second has no piece; two pieces."""
    shares = np.array([[0.5, 0.25, 0.25], [0.15, 0.7, 0.15]])
    places = tf.range(3, dtype=tf.int64)
    units = entities.Units(places, places + 1, tf.constant([0, 3], tf.int64), places * 0)
    owners, firsts = tf.constant([0, -1, 1], tf.int64), tf.constant([0, 2], tf.int64)
    found = entities.find_entities(
        tf.constant(np.log(shares), tf.float32),
        tf.constant([0, 2], tf.int64),
        units,
        entities.Alignment(owners, firsts, tf.constant([True, True])),
        entities.Tags(("B-PS", "I-PS", "O")),
    )
    assert (found.starts.numpy().tolist(), found.ends.numpy().tolist()) == ([0], [3])
    np.testing.assert_allclose(found.probabilities, [0.6], rtol=1e-6)


@pytest.mark.parametrize("names", (
    ["PER-B", "PER-I", "O"], ["LABEL_0", "LABEL_1"], ["B-X", "I-X"], ["O", "I-X"],
))  # fmt: skip
def test_classes_that_are_no_tags(names):
    """With I-X alone no entity would ever be found, as none begins."""
    with pytest.raises(InputError, match="the classes must be O and, of each kind X, B-X "):
        check_tags(names, "model.safetensors")
    check_tags(list(TAGS), "model.safetensors")
    check_tags(["O", "B-X"], "model.safetensors")
