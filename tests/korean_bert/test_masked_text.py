"""Texts with [MASK]: characters that tokenizers drop, words after a mask, marks of a word's end."""

import sys
import unicodedata

import pytest

from korean_bert.masked_text import encode_masked
from tests.support.paths import TEST_DATA
from tests.support.vocabularies import write_pieces
from tokenization import FullTokenizer, KoreanTokenizer, SentencePieceTokenizer
from tokenization.huggingface.tokenizer import HuggingFaceTokenizer

SPM = TEST_DATA / "tokenization" / "spm_small.model"
WORDS = ["나", "##는", "학교", "##에", "갔", "##갔", "##다", ".", "##.", "가", "##가"]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    return write_pieces(tmp_path_factory.mktemp("vocabulary"), WORDS)


KINDS = {
    "korean": lambda path: KoreanTokenizer(path),
    "full": lambda path: FullTokenizer(path, do_lower_case=False),
    "lower": lambda path: FullTokenizer(path, do_lower_case=True),
    "huggingface": lambda path: HuggingFaceTokenizer(
        path, do_lower_case=False, strip_accents=False
    ),
    "sentencepiece": lambda path: SentencePieceTokenizer(SPM, do_lower_case=False),
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request, vocabulary):
    return KINDS[request.param](vocabulary)


def test_a_dropped_character_changes_nothing(tokenizer):
    """One that is assigned, no whitespace, and leaves no piece."""
    characters = map(chr, range(sys.maxunicode + 1))
    assigned = [c for c in characters if unicodedata.category(c) not in ("Cn", "Co", "Cs", "Lo")]
    dropped = [c for c in assigned if not c.isspace() and not tokenizer.tokenize(c)]
    together = tokenizer.tokenize("가가")
    dropped = [c for c in dropped if tokenizer.tokenize(f"가{c}가") == together]
    if hasattr(tokenizer, "basic_tokens"):
        assert {"\u00ad", "\u200c", "\ufeff", "\x00"} <= set(dropped)
    texts = ("[MASK]", "[MASK] 갔다", "[MASK]갔다", "학교[MASK].", "[MASK][MASK]는")
    wanted = {text: encode_masked(tokenizer, text) for text in texts}
    for character in dropped:
        for text, expected in wanted.items():
            for changed in (f"[MASK]{character}", f"{character}[MASK]"):
                found = encode_masked(tokenizer, text.replace("[MASK]", changed, 1))
                assert found.ids == expected.ids, ascii(changed)
                assert found.places == expected.places, ascii(changed)


@pytest.mark.parametrize(
    "part", ("\u0301", "\u200b", "\u1161", "\U0001f468\u200d", "½", "１", "㎏")
)
def test_any_character_may_follow_a_mask(tokenizer, part):
    for text in (f"[MASK]{part}", f"학교[MASK]{part} 갔다", f"[MASK]{part}[MASK]", f"{part}[MASK]"):
        found = encode_masked(tokenizer, text)
        assert len(found.ids) == len(found.spans)
        assert found.ids.count(tokenizer.mask_id) == text.count("[MASK]") == len(found.places)
        for place in found.places:
            assert found.ids[place.position] == tokenizer.mask_id
            start, end = found.spans[place.position]
            assert text[start:end] == "[MASK]"


@pytest.mark.parametrize(
    "text", ("학교[MASK]에 갔다", "[MASK].", "[MASK]가.", "나는[MASK] [MASK]다")
)
def test_spans_are_the_pieces_places(vocabulary, text):
    tokenizer = KoreanTokenizer(vocabulary)
    ids, spans, _ = encode_masked(tokenizer, text)
    for token, (start, end) in zip(tokenizer.convert_ids_to_tokens(ids), spans, strict=True):
        assert text[start:end] == token.removeprefix("##")


def test_sentencepiece_cuts_a_word_after_a_mask_into_what_it_has():
    """A word whose only whole piece begins with a space."""
    tokenizer = SentencePieceTokenizer(SPM, do_lower_case=False)
    words = [
        piece[1:]
        for piece in tokenizer.vocab
        if piece.startswith("\u2581")
        and piece[1:] not in tokenizer.vocab
        and len(piece) > 1
        and all(character in tokenizer.vocab for character in piece[1:])
    ]
    assert words
    for word in words:
        ids = encode_masked(tokenizer, f"학교[MASK]{word} a").ids
        rest = ids[ids.index(tokenizer.mask_id) + 1 :]
        assert tokenizer.unk_id not in rest
        assert tokenizer.decode(rest).startswith(word)
        assert not tokenizer.convert_ids_to_tokens(rest)[0].startswith("\u2581")


@pytest.mark.parametrize("kind", ("korean", "full", "lower", "huggingface"))
def test_a_mark_or_a_hanja_after_a_mask_is_a_word(tmp_path, kind):
    """Released vocabularies have "##." too, as which no text is cut."""
    tokenizer = KINDS[kind](write_pieces(tmp_path, [*WORDS, "大", "##大"]))
    for mark in (".", "大"):
        found = encode_masked(tokenizer, f"[MASK]{mark}[MASK]{mark}")
        assert tokenizer.convert_ids_to_tokens(found.ids) == ["[MASK]", mark, "[MASK]", mark]
        assert found.places == [(0, False, False), (2, False, False)]


def test_a_mark_that_is_not_split_off_continues_a_word(vocabulary):
    tokenizer = KoreanTokenizer(vocabulary, split_punctuation=False)
    ids = encode_masked(tokenizer, "학교[MASK].").ids
    assert tokenizer.convert_ids_to_tokens(ids) == ["학교", "[MASK]", "##."]


MARKED = ["학교_", "학교", "에", "에_", "갔", "다_", "다", "나", "는_", "(", "(_"]


@pytest.mark.parametrize("marks_last", (True, False))
def test_marks_of_a_words_end_beside_a_mask(tmp_path, marks_last):
    options = {"continuation_prefix": "", "word_end_marker": "_", "strict_vocabulary": False}
    path = write_pieces(tmp_path, MARKED)
    tokenizer = KoreanTokenizer(path, mark_final_word=marks_last, **options)
    last = "다_" if marks_last else "다"
    for text, pieces in {
        "학교[MASK] 갔다": ["학교", "[MASK]", "갔", last],
        "학교 [MASK]에 갔다": ["학교_", "[MASK]", "에_", "갔", last],
        "나는 학교[MASK]": ["나", "는_", "학교", "[MASK]"],
        "나는 ([MASK]다": ["나", "는_", "(_", "[MASK]", last],
    }.items():
        ids = encode_masked(tokenizer, text).ids
        assert tokenizer.convert_ids_to_tokens(ids) == pieces


def test_an_unknown_character_later_in_a_word_changes_no_piece_before_it(vocabulary):
    tokenizer = KoreanTokenizer(vocabulary, unknown="character")
    pieces = [
        tokenizer.convert_ids_to_tokens(encode_masked(tokenizer, text).ids)
        for text in ("[MASK]는 갔다", "[MASK]는뷁 갔다", "[MASK]뷁는 갔다")
    ]
    assert pieces[0][:2] == pieces[1][:2] == ["[MASK]", "##는"]
    assert pieces[1][2] == pieces[2][1] == "[UNK]"
