"""Words that are added to a vocabulary: where they go, what the tokenizer makes of them."""

import pytest

from bert_common.errors import InputError
from model_formats.adaptation.added_tokens import add_tokens, plan_added_rows, read_tokens
from tests.support.models.released_models import SPM_MODEL
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import SentencePieceTokenizer, load_tokenizer

PIECES = ["[PAD]", "[unused1]", "[unused2]", *SPECIAL[1:], "금", "##리", "##는", "bank", "##s"]


@pytest.fixture
def make(tmp_path):
    def make(kind="korean", pieces=PIECES, **options):
        return load_tokenizer(write_tokenizer(tmp_path, pieces, kind, **options))

    return make


@pytest.mark.parametrize("end", ("", "\r"), ids=repr)
def test_unused_lines_come_first(make, end):
    old = make(pieces=[piece + end for piece in PIECES])
    added = add_tokens(old, ["금리", "대출", "예금"])
    assert (added.filled, added.appended) == (("금리", "대출"), ("예금",))
    new = added.tokenizer
    assert [new.inv_vocab[i] for i in (1, 2, len(PIECES))] == ["금리", "대출", "예금"]
    assert new.vocab_size == len(PIECES) + 1
    for token in PIECES:
        if "unused" not in token:
            assert new.vocab[token] == old.vocab[token]
    assert new.tokenize("금리는 대출 예금는") == ["금리", "##는", "대출", "예금", "##는"]
    assert old.tokenize("금리는") == ["금", "##리", "##는"]
    rows = plan_added_rows(old, added, len(PIECES) + 5)  # the table has five spare rows
    assert len(rows) == len(PIECES) + 5
    assert [old.inv_vocab[i] for i in rows[1].sources] == ["금", "##리"]
    assert rows[2].kind == rows[len(PIECES)].kind == "random"
    rest = [i for i in range(len(rows)) if i not in (1, 2, len(PIECES))]
    assert all(rows[i].kept and rows[i].sources == (i,) for i in rest)


def test_tokens_as_the_tokenizer_sees_them(make):
    """Lower-cased, decomposed; what it splits can never be one piece."""
    added = add_tokens(make("full"), ["Banks", "은행", "bank", "BANK", "e-mail", "두 단어"])
    assert added.filled == ("banks", "\u110b\u1173\u11ab\u1112\u1162\u11bc")
    assert added.known == ("bank", "BANK")
    assert added.impossible == ("e-mail", "두 단어")
    assert added.tokenizer.tokenize("Banks") == ["banks"]
    assert added.tokenizer.options == make("full").options


EMOJI = "\U0001f600"


@pytest.mark.parametrize(
    "kind, options",
    (
        ("korean", {}),
        ("korean", {"unknown": "character"}),
        ("korean", {"split_punctuation": False}),
        ("full", {"do_lower_case": False}),
        ("huggingface", {"do_lower_case": False, "strip_accents": False}),
    ),
    ids=str,
)
def test_an_emoji_usually_follows_a_word(make, kind, options):
    """A character or a sign that the vocabulary cannot spell inside words is added there too."""
    old = make(kind, **options)
    added = add_tokens(old, [EMOJI, "금리", "뷁", EMOJI + "\u2665"])
    assert added.filled == (EMOJI, "금리")  # the list's own come first
    others = ("뷁", EMOJI + "\u2665")
    assert added.appended == (*others, *(f"##{t}" for t in (EMOJI, *others)))
    assert added.known == added.impossible == ()
    cut = added.tokenizer.tokenize
    expected = ["금리", "##는", f"##{EMOJI}", EMOJI, f"##{EMOJI}"]
    assert cut(f"금리는{EMOJI} {EMOJI}{EMOJI}") == expected
    assert cut("금뷁") == ["금", "##뷁"]
    assert cut(f"금{EMOJI}\u2665") == ["금", f"##{EMOJI}\u2665"]
    rows = plan_added_rows(old, added, old.vocab_size)
    assert len(rows) == added.tokenizer.vocab_size


def test_pieces_spelled_as_in_the_vocabulary(make):
    """ "##" before a token is no punctuation, "_" after one no mark of the text."""
    added = add_tokens(make(), ["##" + EMOJI, "##가나요", "##Ｘ는"])
    assert added.filled + added.appended == ("##" + EMOJI, "##가나요", "##Ｘ는")
    assert added.tokenizer.tokenize(f"금가나요 금{EMOJI}") == ["금", "##가나요", "금", "##" + EMOJI]
    rows = plan_added_rows(make(), added, len(PIECES))
    assert rows[1].kind == "random"  # 😀 is unknown to the old vocabulary
    added = add_tokens(make("full"), ["##Banks"])
    assert added.filled == ("##banks",)
    assert add_tokens(make(), ["##리", "##리는"]).known == ("##리",)
    options = {"word_end_marker": "_", "unknown": "character"}
    added = add_tokens(make(pieces=[*PIECES, "##_"], **options), ["##요_", "리는_", EMOJI])
    assert added.filled == ("##요_", "리는_")
    assert added.appended == (EMOJI, "##" + EMOJI)
    assert added.tokenizer.tokenize(f"금요 리는 금{EMOJI}") == [
        "금", "##요_", "리는_", "금", "##" + EMOJI, "##_",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("prefix", "pieces", "token", "text", "expected"),
    [
        ("", ["_", "##리", "는_"], "금리", "금리는 금리", "금리 는_ 금리 _"),
        # Without the marker by itself the word alone is [UNK], but not with what has one.
        ("", ["##리", "는_"], "금리", "금리 금리는", "[UNK] 금리 는_"),
        # A token without the marker is in longer words, where the word alone is another token.
        ("", ["_", "금리_", "는_"], "금리", "금리 금리는", "금리_ 금리 는_"),
        ("##", ["##_", "##리_", "##는_"], "##리", "금리 금리는", "금 ##리_ 금 ##리 ##는_"),
    ],
)
def test_word_end_markers(make, prefix, pieces, token, text, expected):
    options = {"continuation_prefix": prefix, "word_end_marker": "_"}
    added = add_tokens(make(pieces=[*SPECIAL, "금", *pieces], **options), [token])
    assert added.appended == (token,) and added.impossible == ()
    assert added.tokenizer.tokenize(text) == expected.split()


def test_refusals(make, tmp_path):
    tokenizer = make()
    for tokens, words in (
        (["\u200b"], "leaves nothing"),
        (["bank"], "1 that the vocabulary has, 0 that"),
        (["두 단어"], "0 that the vocabulary has, 1 that"),
    ):
        with pytest.raises(InputError, match=words):
            add_tokens(tokenizer, tokens)
    with pytest.raises(InputError, match="SentencePiece"):
        add_tokens(SentencePieceTokenizer(str(SPM_MODEL)), ["금리"])
    path = tmp_path / "words.txt"
    for content, words in (("\n \n", "must hold a token"), ("", "must not be empty")):
        path.write_text(content)
        with pytest.raises(InputError, match=words):
            read_tokens(str(path))
    path.write_text("금리\n\n대출\n금리 \n")  # a joined glossary
    assert read_tokens(str(path)) == ["금리", "대출"]
    path.write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="must be UTF-8"):
        read_tokens(str(path))
    path.write_text("\ufeff금리\r\n대출")  # as Windows writes it
    assert read_tokens(str(path)) == ["금리", "대출"]
