"""Entities of the graph against those that run_ner writes."""

from pathlib import Path

import numpy as np
import pytest

from bert_common.errors import InputError
from finetuning.inputs import ROW_INPUTS
from finetuning.ner import served_entities as entities
from finetuning.ner import serving as ner
from finetuning.ner.data import FORMATS, NerDataset, Sentence
from finetuning.ner.head import TokenClassifier
from finetuning.ner.labels import align, check_tags, decode
from finetuning.ner.task import NamedEntityRecognition
from finetuning.serving.characters import Characters
from tests.support.models.served_models import call_signature, loaded_model, quietly, strong_head
from tests.support.task_data import CONTEXTS, read_table, write_tokenizer
from tests.support.tiny_models import tensors
from tests.support.tokenizer_cases import TEXTS, write_vocabulary
from tokenization import KoreanTokenizer
from tokenization.tf_graph.graph import GraphTokenizer

TAGS = ("B-PS", "I-PS", "O", "B-LC", "I-LC")
LENGTH = 16


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    odd = {
        "word_end_marker": "\u2581", "word_end_marker_at": "eojeol", "unknown": "character",
        "jamo_fallback": True, "do_lower_case": True, "shorten_runs": 2, "drop_invisible": True,
    }  # fmt: skip
    marked = {"word_end_marker": "_", "unknown": "character"}
    made = {"plain": write_tokenizer(folder)}
    for name, options in (("odd", odd), ("marked", marked)):
        path = write_vocabulary(folder / f"{name}.txt", options["word_end_marker"])
        made[name] = quietly(KoreanTokenizer, path, **options)
    return made


def texts():
    words = " ".join(CONTEXTS).split(" ")
    rng = np.random.default_rng(4)
    made = [*CONTEXTS, *(t for t in TEXTS if not any("\ud800" <= c <= "\udfff" for c in t))]
    return [*made, *(" ".join(rng.choice(words, size)) for size in (2, 5, 20, 60))]


def tagger(tokenizer, task):
    """A model of the tags, with random weights that tell texts apart."""
    settings = {"task_name": task, "labels": ",".join(TAGS), "max_seq_length": LENGTH}
    make_head = lambda encoder: strong_head(TokenClassifier(encoder, len(TAGS)), 3.0)  # noqa: E731
    return loaded_model(make_head, "ner", tokenizer, settings)


def sentences(by_character):
    """The texts as run_ner reads them: characters, or words."""
    return [sentence(str(number), text, by_character) for number, text in enumerate(texts())]


def sentence(name, text, by_character):
    if by_character:
        units = [(i, i + 1) for i, character in enumerate(text) if character != " "]
    else:
        words, units, place = text.split(), [], 0
        for word in words:
            place = text.index(word, place)
            units.append((place, place + len(word)))
            place += len(word)
    return Sentence(name, text, tuple(units), ("O",) * len(units))


@pytest.mark.parametrize("by_character", (True, False))
@pytest.mark.parametrize("name", ("plain", "odd", "marked"))
def test_alignment(tokenizers, name, by_character):
    """A marker before punctuation, or instead of a space, has an empty span inside a word."""
    import tensorflow as tf

    tokenizer = tokenizers[name]
    raw = sentences(by_character)
    raw += [sentence("marked", "학교,나 영화\u2581영화. 나\u2581\u2581나", by_character)]
    text = tf.constant([sentence.text for sentence in raw])
    characters = Characters(text)
    units = entities.find_units(characters, by_character)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, task", [("odd", "klue-ner"), ("plain", "klue-ner"), ("odd", "conll")]
)
def test_entities_of_run_ner(tokenizers, name, task, tmp_path):
    tokenizer = tokenizers[name]
    loaded = tagger(tokenizer, task)
    raw = sentences(by_character=not FORMATS[task].glue)
    recognition = NamedEntityRecognition(NerDataset(FORMATS[task], TAGS, {}), tokenizer, LENGTH)
    examples = recognition.encode(raw, False)
    batch = examples.make_batch(np.arange(len(examples.lengths)), LENGTH)
    logits = loaded.model(tensors({n: batch[n] for n in ROW_INPUTS}))["logits"].numpy()
    paths = recognition.write_predictions(tmp_path, "test", examples, {"logits": list(logits)})
    _, *expected = read_table(Path(paths[0]))
    assert len(expected) > 10 and {row[3] for row in expected} == {"PS", "LC"}

    found = call_signature(ner.signatures(loaded), text=texts())
    rows = []
    for i, text in enumerate(texts()):
        for start, end, kind, entity, share in zip(
            *(found[key][i] for key in ("starts", "ends", "kinds", "entities", "probabilities")),
            strict=True,
        ):
            assert (start == -1) == (kind == "") == (share == 0)
            if start >= 0:
                assert entity == text[start:end]
                rows.append([str(i), str(start), str(end), kind, " ".join(entity.split()), share])
    assert [row[:5] for row in rows] == [row[:5] for row in expected]
    shares = [float(row[5]) for row in expected]
    np.testing.assert_allclose([row[5] for row in rows], shares, atol=2e-6)


def test_ids(tokenizers):
    loaded = tagger(tokenizers["plain"], "klue-ner")
    ids = np.array([[2, 5, 6, 7, 3]], np.int32)
    batch = {"input_ids": ids, "input_mask": ids**0, "segment_ids": ids * 0}
    found = call_signature(ner.signatures(loaded), "ids", **batch)
    logits = loaded.model(tensors(batch))["logits"].numpy()
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"].sum(axis=-1), 1, atol=1e-6)
    assert found["tags"].tolist() == [[TAGS[i] for i in logits[0].argmax(axis=1)]]


def test_decoding_of_ties_and_of_every_length():
    import tensorflow as tf

    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 3, (size, len(TAGS))).astype(np.float32) for size in (0, 1, 2, 9, 30)]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [len(row) for row in rows])
    found = entities.decode(ragged, entities.Tags(list(TAGS)))
    assert found.to_list() == [decode(row, TAGS).tolist() for row in rows]


@pytest.mark.parametrize("names", (
    ["PER-B", "PER-I", "O"], ["LABEL_0", "LABEL_1"], ["B-X", "I-X"], ["O", "I-X"],
))  # fmt: skip
def test_classes_that_are_no_tags(names):
    """With I-X alone no entity would ever be found, as none begins."""
    with pytest.raises(InputError, match="the classes must be O and, of each kind X, B-X "):
        check_tags(names, "model.safetensors")
    check_tags(list(TAGS), "model.safetensors")
    check_tags(["O", "B-X"], "model.safetensors")
