"""Tags through pieces and back: particles, [UNK], decomposed syllables, windows, decoding."""

import itertools
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finetuning.inputs import pad_rows
from finetuning.metrics import score_tags
from finetuning.ner.data import FORMATS, Sentence, read_tagged, tags_of_kinds, to_iob2
from finetuning.ner.labels import (
    align,
    decode,
    make_windows,
    pad_labels,
    piece_tags,
    unit_tags,
    window_bounds,
)
from finetuning.ner.task import predict_tags
from tests.support.crosses import slow
from tests.support.paths import SHARED
from tests.support.tokenizer_cases import TEXTS, full_tokenizers, korean_tokenizers
from tests.support.vocabularies import JAMO, write_pieces
from tokenization import FullTokenizer, KoreanTokenizer

TAGS = FORMATS["klue-ner"].tags

PIECES = (
    *("서울", "서울은", "##에서", "##은", "김", "##철", "##수", "##가"),
    *("19", "##mm", "국립", "박물", "##관", "."),
)


def by_characters(text, tags):
    """A sentence whose units are all characters but spaces."""
    units = tuple((i, i + 1) for i, character in enumerate(text) if character != " ")
    return Sentence("0", text, units, tuple(tags.split()))


def by_words(text, tags):
    units = tuple(match.span() for match in re.finditer("[^ ]+", text))
    return Sentence("0", text, units, tuple(tags.split()))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return KoreanTokenizer(write_pieces(tmp_path_factory.mktemp("plain"), PIECES))


def decomposed(text):
    return unicodedata.normalize("NFD", text)


# text, the tags of its characters (or words); the pieces; their tags; what comes back where that
# is not what there was
CASES = (
    # A particle that is a piece by itself, then one within its noun's piece.
    ("서울에서", "B-LC I-LC O O", "서울 ##에서", "B-LC O", None),
    ("서울은", "B-LC I-LC O", "서울은", "B-LC", "B-LC I-LC I-LC"),
    ("김철수가", "B-PS I-PS I-PS O", "김 ##철 ##수 ##가", "B-PS I-PS I-PS O", None),
    # Two entities that touch.
    ("서울김", "B-LC I-LC B-PS", "[UNK]", "B-LC", "B-LC I-LC I-LC"),
    ("김 철", "B-PS I-PS", "김 [UNK]", "B-PS I-PS", None),
    # [UNK] over a whole word: every character gets a tag.
    ("뷁쉛 서울", "B-PS I-PS B-LC I-LC", "[UNK] 서울", "B-PS B-LC", None),
    ("뷁쉛은 .", "B-PS I-PS O O", "[UNK] .", "B-PS O", "B-PS I-PS I-PS O"),
    ("뷁쉛", "O B-PS", "[UNK]", "O", "O O"),
    ("박물관은 .", "B-OG I-OG I-OG O O", "박물 ##관 ##은 .", "B-OG I-OG O O", None),
    # What the tokenizer drops, in an entity, at its end, before it.
    ("김\u200b철", "B-PS I-PS I-PS", "김 ##철", "B-PS I-PS", None),
    ("김\u200b서울\u200b", "B-PS I-PS B-LC I-LC I-LC", "[UNK]", "B-PS", "B-PS I-PS I-PS I-PS O"),
    ("\u200b김", "B-PS I-PS", "김", "I-PS", "I-PS I-PS"),
    ("\u200b", "O", "", "", None),
    # Jamo of a text that the tokenizer composes.
    (decomposed("서울은"), "B-LC" + 4 * " I-LC" + 3 * " O", "서울은", "B-LC",
     "B-LC" + 7 * " I-LC"),
    (decomposed("서울에서"), "B-LC" + 4 * " I-LC" + 4 * " O", "서울 ##에서", "B-LC O", None),
    ("서울에서 19mm", "B-LOC B-NUM", "서울 ##에서 19 ##mm", "B-LOC I-LOC B-NUM I-NUM", None),
    ("국립 박물관", "B-ORG I-ORG", "국립 박물 ##관", "B-ORG I-ORG I-ORG", None),
    ("뷁쉛은 서울", "O B-LOC", "[UNK] 서울", "O B-LOC", None),
    # A word of nothing that the tokenizer keeps, inside an entity and after one.
    ("국립 \u200b 박물관 \u200b", "B-ORG I-ORG I-ORG O", "국립 박물 ##관", "B-ORG I-ORG I-ORG",
     None),
)  # fmt: skip
WORDS = {text for text, *_ in CASES[-4:]}  # whose units are words


@pytest.mark.parametrize("text, tags, pieces, labels, back", CASES)
def test_tags_through_pieces_and_back(tokenizer, text, tags, pieces, labels, back):
    units = by_words if text in WORDS else by_characters
    sentence = units(text, tags)
    alignment = align(tokenizer, sentence)
    assert tokenizer.convert_ids_to_tokens(alignment.ids) == pieces.split()
    assert piece_tags(alignment, sentence.tags) == labels.split()
    assert unit_tags(alignment, labels.split()) == (back or tags).split()


def test_jamo_of_one_syllable(tmp_path):
    """Only the first begins the entity, and only it says what the character is."""
    with_jamo = KoreanTokenizer(write_pieces(tmp_path, [*PIECES, *JAMO]), jamo_fallback=True)
    sentence = by_characters("뷁서울", "B-PS I-PS O")
    alignment = align(with_jamo, sentence)
    assert len(alignment.ids) == 3 + 2 + 3
    assert piece_tags(alignment, sentence.tags) == ["B-PS"] + 4 * ["I-PS"] + 3 * ["O"]
    found = ["B-PS", "O", "B-LC", "I-PS", "O", "O", "B-LC", "B-LC"]
    assert unit_tags(alignment, found) == ["B-PS", "I-PS", "O"]


class Overlapping:
    """As where marks change places: two pieces that share a character."""

    def encode_with_offsets(self, text):
        return [7, 8], [(0, 2), (1, 3)]


def test_pieces_that_share_a_unit():
    """A unit belongs to the first, so the second begins with the unit after it."""
    sentence = by_characters("가나다", "B-PS I-PS B-LC")
    check = align(Overlapping(), sentence)
    assert piece_tags(check, sentence.tags) == ["B-PS", "B-LC"]
    assert unit_tags(check, ["B-PS", "B-LC"]) == list(sentence.tags)


def test_a_tokenizer_that_takes_syllables_apart(tmp_path):
    path = write_pieces(tmp_path, map(decomposed, ("서울", "##에", "##서", "은", "x")))
    sentence = by_characters("서울에서 은X", "B-LC I-LC O O B-PS I-PS")
    alignment = align(FullTokenizer(path, do_lower_case=True), sentence)
    assert piece_tags(alignment, sentence.tags) == ["B-LC", "O", "O", "B-PS"]
    assert unit_tags(alignment, ["B-LC", "O", "O", "B-PS"]) == list(sentence.tags)


def test_every_tokenizer_gives_every_character_a_tag(tmp_path):
    """On hard text; an entity over all of it comes back whole but for what was dropped."""
    tokenizers = korean_tokenizers(tmp_path) + full_tokenizers(tmp_path)
    for (name, each), text in itertools.product(tokenizers, TEXTS):
        count = len("".join(text.split()))
        tags = (["B-PS"] + count * ["I-PS"])[:count]
        units = tuple((i, i + 1) for i, character in enumerate(text) if not character.isspace())
        sentence = Sentence("0", text, units, tuple(tags))
        alignment = align(each, sentence)
        assert len(alignment.ids) == len(each.encode(text))
        windows = make_windows(each, [alignment], [sentence], TAGS, 9, overlap=True)
        logits = [np.eye(len(TAGS))[window.label_ids] for window in windows]
        ((found, _),) = predict_tags([alignment], windows, logits, TAGS)
        covered = [i for i, piece in enumerate(alignment.owners) if piece >= 0]
        assert len(found) == len(units) and to_iob2(found) == found
        if covered and covered[0] == 0:
            end = covered[-1] + 1
            assert found == tags[:end] + ["O"] * (count - end), (name, text)


def test_window_bounds():
    for overlap in (True, False):
        assert window_bounds(4, 4, overlap) == [(0, 4, 0, 4)]
    assert window_bounds(9, 4, overlap=False) == [(0, 4, 0, 4), (4, 8, 4, 8), (8, 9, 8, 9)]
    assert window_bounds(7, 4, overlap=True) == [(0, 4, 0, 3), (2, 6, 3, 5), (4, 7, 5, 7)]


@pytest.mark.parametrize("overlap", (False, True))
def test_every_piece_counts_once_with_what_is_around_it(overlap):
    for count, room in itertools.product(range(40), range(1, 20)):
        windows = window_bounds(count, room, overlap)
        counted = [i for _, _, first, last in windows for i in range(first, last)]
        assert counted == list(range(count))
        for start, end, first, last in windows:
            assert start <= first < last <= end and end - start <= room
            if overlap:  # a quarter of the window, or the end of the sentence
                assert start == 0 or first - start >= room // 4
                assert end == count or end - last >= room // 4


TEXT = "김철수가 서울에서 19mm 국립 박물관은 ."
TEXT_TAGS = "B-PS I-PS I-PS O B-LC I-LC O O B-QT I-QT I-QT I-QT B-OG I-OG I-OG I-OG I-OG O O"


@pytest.mark.parametrize("overlap", (False, True))
@pytest.mark.parametrize("max_length", (3, 5, 8, 64))
def test_windows_and_back(tokenizer, max_length, overlap):
    """From one-hot logits of the labels to the tags, however a sentence was cut."""
    sentences = [
        by_characters(TEXT, TEXT_TAGS),
        Sentence("1", "", (), ()),
        by_characters("뷁쉛 .", "B-OG I-OG O"),
    ]
    alignments = [align(tokenizer, sentence) for sentence in sentences]
    windows = make_windows(tokenizer, alignments, sentences, TAGS, max_length, overlap)
    batch = pad_labels(windows, max_length)
    rows = pad_rows([window.row for window in windows], max_length, tokenizer.pad_id)
    ids, labels, weights = (
        rows["input_ids"], batch["token_label_ids"], batch["token_label_weights"],
    )  # fmt: skip
    assert ids.shape == labels.shape == weights.shape
    assert weights.sum() == sum(len(each.ids) for each in alignments)
    special = np.isin(ids, [tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id])
    assert not weights[special].any() and (overlap or weights[~special].all())
    assert (ids == tokenizer.cls_id).sum() == len(windows)
    logits = np.eye(len(TAGS))[labels]
    logits[weights == 0] = 9 * np.eye(len(TAGS))[0]  # must not be looked at
    found = predict_tags(alignments, windows, logits, TAGS)
    assert [tags for tags, _ in found] == [list(sentence.tags) for sentence in sentences]


def test_a_marker_of_a_words_end_has_no_weight_and_no_say(tmp_path):
    path = write_pieces(tmp_path, "김철_")
    each = KoreanTokenizer(path, continuation_prefix="", word_end_marker="_")
    sentence = by_characters("김 철", "B-PS I-PS")
    alignment = align(each, sentence)
    windows = make_windows(each, [alignment], [sentence], TAGS, 16)
    (window,) = windows
    assert " ".join(each.convert_ids_to_tokens(window.row.ids)) == "[CLS] 김 _ 철 _ [SEP]"
    assert window.label_weights.tolist() == [0, 1, 0, 1, 0, 0]
    found = ("O", "B-PS", "O", "I-PS", "O", "O")
    logits = np.eye(len(TAGS))[[TAGS.index(tag) for tag in found]]
    ((tags, _),) = predict_tags([alignment], windows, [logits], TAGS)
    assert tags == ["B-PS", "I-PS"]


FEW = tags_of_kinds("AB")  # B-A, I-A, B-B, I-B, O


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_decoding_finds_the_best_of_all_valid_sequences(seed, length):
    scores = np.random.default_rng(seed).normal(size=(length, len(FEW)))
    paths = list(itertools.product(range(len(FEW)), repeat=length))
    tags = {path: [FEW[number] for number in path] for path in paths}
    valid = [path for path in paths if to_iob2(tags[path]) == tags[path]]
    best = max(valid, key=lambda path: scores[np.arange(length), path].sum())
    assert tuple(decode(scores, FEW)) == best
    assert tuple(decode(scores + 7.0, FEW)) == best
    assert list(decode(scores[:0], FEW)) == []


def reachable_scores(tokenizer, sentences):
    """The scores of a model that tags every piece correctly: the limit that a vocabulary sets."""
    predictions = []
    for sentence in sentences:
        alignment = align(tokenizer, sentence)
        predictions.append(unit_tags(alignment, piece_tags(alignment, sentence.tags)))
    return score_tags([list(sentence.tags) for sentence in sentences], predictions, TAGS)


@pytest.mark.parametrize(
    "name, entity, character",
    (("bert_multi_cased.txt", 0.9045, 0.9908), slow("kcbert.txt", 0.8341, 0.9829)),
)
def test_reachable_scores_of_real_vocabularies(name, entity, character):
    """On KLUE-NER's development set; the spaces inside entities come back too."""
    pytest.importorskip("sklearn")
    if not (SHARED / "data/klue").exists():
        pytest.skip("the published files are not here")
    sentences, _ = read_tagged(FORMATS["klue-ner"], "dev", str(SHARED / "data/klue"))
    path = SHARED / "data/vocabs" / name
    found = reachable_scores(FullTokenizer(path, do_lower_case=False), sentences)
    assert found["entity_f1"] == pytest.approx(entity, abs=5e-5)
    assert found["character_macro_f1"] == pytest.approx(character, abs=5e-5)
