"""Tokenizers of every switch, texts that are hard for them, and checks that every one passes."""

import itertools
import unicodedata
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.vocabularies import INITIALS, LATER_JAMO, SPECIAL, write_lines
from tokenization import FullTokenizer, KoreanTokenizer
from tokenization.byte_pieces import byte_vocabulary

# What can begin a word, then what can stand inside one; some stand in one of them only.
BEGIN = [
    "영화", "영", "화", "재미", "가", "각", "나", "하", "하다", "ㅋ", "ㅋㅋㅋ", "ㅠㅠ", "韓", "國",
    "!", "!!", ".", ",", "#", "##", "[", "]", "good", "go", "GOOD", "Go", "e", "é", "ß", "σ", "ς",
    "i", "I", "i\u0307", "3", "3,", "♥", "^", "^^", "≠", "=", "A", "a", "q\u0301", "ᄀ", "가",
    "□", "⊠", "\u0301", "_a", "a_", "\U0001f600", "\ue000",
]  # fmt: skip
INSIDE = [
    "가", "각", "나", "는", "다", "있", "화", "ㅋ", "ㅋㅋ", "ㅠ", "s", "d", "od", "e", "é",
    "\u0301", "0", "00", ",", "!", "^", "♥", "a", "b", "σ", "ς", "ᄀ", "ᅡ", "ᆨ", "_b", "#", "]", "國",
]  # fmt: skip


def write_vocabulary(path, marker="", prefix="##", unknown="word"):
    """A vocabulary with all jamo, with some pieces that end in the marker."""
    begin = [*BEGIN, *INITIALS]
    inside = [*INSIDE, *INITIALS, *LATER_JAMO]
    if marker:
        begin += [marker, "가" + marker, "영화" + marker, "a" + marker, "!" + marker, "^" + marker]
        inside += [marker, "다" + marker, "는" + marker, "b" + marker, "ㅋ" + marker]
    spelled = byte_vocabulary(prefix) if unknown == "bytes" else []
    if spelled:  # of ASCII no bytes are marked
        inside += map(chr, range(33, 127))
    lines = dict.fromkeys([*SPECIAL, *spelled, *begin, *(prefix + piece for piece in inside)])
    return write_lines(path, lines)


def korean_tokenizers(folder):
    """Pairs of a name and a KoreanTokenizer: every switch, in all that matter together."""
    switches = {}
    markings = (("", "word"), ("_", "word"), ("\u2581", "eojeol"))
    for unknown, prefix, (marker, at), rest in itertools.product(
        ("word", "character"), ("##", ""), markings, (False, True)
    ):
        if at == "eojeol" and unknown == "word":
            continue
        pieces = {"unknown": unknown, "continuation_prefix": prefix, "shorten_runs": 2 * rest}
        marks = {"word_end_marker": marker, "word_end_marker_at": at}
        others = ("jamo_fallback", "fold_width", "drop_invisible", "do_lower_case")
        name = f"{unknown}-{prefix}-{marker}-{at}-{rest}"
        switches[name] = {**pieces, **marks, **dict.fromkeys(others, rest)}
    all_on = switches["character-##-\u2581-eojeol-True"]
    marked = switches["word--_-word-False"]
    for split in ("split_punctuation", "split_chinese_characters"):
        switches[split] = all_on | {split: False}
        switches["default-" + split] = {split: False}
    switches["neither"] = all_on | {"split_punctuation": False, "split_chinese_characters": False}
    switches["as it is"] = {"normalization": None, "do_lower_case": True}
    switches["final"] = all_on | {"mark_final_word": False}
    switches["final word"] = marked | {"mark_final_word": False}
    switches["final, not split"] = switches["final word"] | {"split_punctuation": False}
    switches["marked, not split"] = marked | {"split_punctuation": False, "normalization": None}
    switches["fallback only"] = {"jamo_fallback": True}
    switches["long runs"] = {"shorten_runs": 7, "unknown": "character"}
    switches["bytes"] = {"unknown": "bytes"}
    switches["bytes, jamo"] = {"unknown": "bytes", "jamo_fallback": True, "normalization": "NFKC"}
    switches["bytes, all on"] = all_on | {"unknown": "bytes", "normalization": "NFKC"}
    switches["bytes, no prefix"] = {"unknown": "bytes", "continuation_prefix": ""}
    switches["bytes, marked"] = marked | {"unknown": "bytes", "mark_final_word": False}
    switches["bytes, not split"] = switches["neither"] | {"unknown": "bytes"}
    switches["NFKC"] = {"normalization": "NFKC"}
    switches["NFKC, lower"] = all_on | {"normalization": "NFKC", "fold_width": False}
    made = []
    for number, (name, chosen) in enumerate(switches.items()):
        names = {"marker": "word_end_marker", "prefix": "continuation_prefix", "unknown": "unknown"}
        given = {name: chosen[switch] for name, switch in names.items() if switch in chosen}
        path = write_vocabulary(folder / f"{number}.txt", **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of more jamo than syllables
            made.append((name, KoreanTokenizer(path, **chosen)))
    return made


def full_tokenizers(folder):
    """Pairs of a name and a FullTokenizer."""
    path = write_vocabulary(folder / "full.txt")
    return [(f"full-{lower}", FullTokenizer(path, lower)) for lower in (True, False)]


TEXTS = [
    "",
    " ",
    "\n\t\u3000\u2028",
    "영화가 재미있다!!",
    "  가  나,  다 . ",
    unicodedata.normalize("NFD", "영화각 재미있다 é"),
    "뷁쀍뷁 뷁",
    "ㅋㅋㅋㅋㅋㅋ ㅠㅠㅠㅠ ㅋㅠ",
    "韓國, 國韓a국",
    "😀😁 가😀나😀 😀",
    "가…나 …가 ‽!",
    "ＧＯＯＤ　Ａ！ ￦",
    "가\u200b나 ㄱ\u3164ㄱ ♥\ufe0f♥\ufe0f♥\ufe0f♥",
    "e\u200d\u0301 ᄀ\u200bᅡ\u200bᆨ",
    "ΑΣ ΑΣ. Σ Α.Σ' aΣa ΣΣ",
    "İstanbul I\u0307 ẞ H\u0331",
    "_ __ a_ a_b _a_ 가_나 ▁ ▁가▁",
    "= \u0338 =\u0338 ≠ q\u0301\u0323 q\u0323\u0301",
    "[UNK] [MASK]a a[UNK]b ##가 # ## ###",
    "\ud800 가\udc00나 \ud83d\ude00 \ufffd",
    "^^^^^ ^_^ ♥♥♥♥♥",
    "뷁" * 300,
    "ㅋ" * 201 + " " + "가" * 200,
    "\u1161\u11a8 ᄀ가 각 ᄊᆞ",
    "a\u0378\u0301 \u0378 \U00050000e\u0301",
    "⊠ ⊡ □ \ue000 \ue001 \uf8ff",
    "가👨\u200d👩\u200d👧 👍🏽나 🇰🇷 🏴\U000e0067\U000e0062\U000e007f ❤\ufe0f",
    "ｋｏｒｅａ １２３ ①⑳㉠㉮㈜ ½ ﬁ ㎏ ｡ﾊﾞ ﾡﾃﾾ \u00a0…℡ ﷺ",
    "가ㄳ ㅋㅋㅠㅠ 아ㅏ ㄱㅏ",
    "𠀀가𠮷 \u0301 \u0301\u0323가 가\u0301 <0xF0> <0xf0>",
    "가\u0344\u0f75 나\u0301\u0f73\u0323 \u0f81\u0f71가",  # Tibetan letters of marks alone
]

# Characters that meet each other more often than chance would let them.
_CLOSE = st.sampled_from(
    "가각나뷁하다영화는있ㅋㅋㅠ韓國  !.,_▁^^♥♥=#[]aeiqAEIΣσςİéß30"
    "\u0301\u0323\u0338\u0307\u200b\u200d\u3164\ufe0f\u3000\u2028\n\ufffd\u115f\u212a\u212b\uf900"
    "각ᄊᆞＡ！￦～…😀\ud800\udc00\u0378\u0345\u00b7\u0f71\u0f72\U0001d15e\U000e0100\U000f0000"
)
ANY_TEXT = st.one_of(
    st.text(st.characters(), max_size=30),  # all of Unicode, lone surrogates too
    st.text(_CLOSE, max_size=30),
    st.text(st.one_of(_CLOSE, st.characters()), max_size=30),
)


def check_any(check, examples, at_once):
    """Calls a check with lists of so many texts, as often as there shall be examples."""

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    @given(st.lists(ANY_TEXT, min_size=at_once, max_size=at_once))
    def any_texts(texts):
        check(texts)

    any_texts()


def check_graph(tokenizer, texts):
    """Compares the graph form's words of pieces with Python's; names the text that differs.

    Returns:
        Python's ids of each text.
    """
    found = tokenizer.encode_words(texts)  # [B, (words), (pieces)]
    expected = [
        [tokenizer.convert_tokens_to_ids(word) for word in tokenizer.tokenize_words(text)]
        for text in texts
    ]
    words = list(itertools.chain(*expected))
    ids = [list(itertools.chain(*row)) for row in expected]
    # Arrays: to make lists of a ragged tensor takes a hundred times as long as to compute it.
    pairs = [
        (found.row_lengths(), list(map(len, expected))),
        (found.values.row_lengths(), list(map(len, words))),
        (found.flat_values, list(itertools.chain(*ids))),
    ]
    if not all(np.array_equal(tensor.numpy(), numbers) for tensor, numbers in pairs):
        for text, row, words in zip(texts, found, expected, strict=True):
            assert row.to_list() == words, (tokenizer.config(), text)
        raise AssertionError(f"parts differ that no text has: {tokenizer.config()}")
    return ids


def check_round_trip(tokenizer, text, ids=None):
    """What is decoded is cut into the same pieces; eojeols that are marked come back themselves."""
    ids = tokenizer.encode(text) if ids is None else ids
    decoded = tokenizer.decode(ids)
    if decoded != text:
        assert tokenizer.encode(decoded) == ids, (tokenizer.config(), text, decoded)
    if getattr(tokenizer.options, "unknown", "") == "bytes":
        assert tokenizer.unk_id not in ids, (tokenizer.config(), text)
        if tokenizer.options.continuation_prefix and not tokenizer.options.word_end_marker:
            expected = " ".join(tokenizer.basic_tokens(text))
            assert decoded == expected, (tokenizer.config(), text, decoded)
    marks_eojeols = getattr(tokenizer.options, "marks_eojeols", False)
    if marks_eojeols and tokenizer.unk_id not in ids:
        expected = " ".join(tokenizer.normalize(text).split())
        assert decoded == expected, (tokenizer.config(), text)
        assert unicodedata.is_normalized("NFC", decoded), (tokenizer.config(), text)


def check_offsets(tokenizer, text, ids=None):
    """The same ids, with spans inside the text that go forward."""
    ids = tokenizer.encode(text) if ids is None else ids
    found, spans = tokenizer.encode_with_offsets(text)
    assert found == ids, (tokenizer.config(), text)
    assert len(spans) == len(ids)
    if spans:
        starts, ends = map(list, zip(*spans, strict=True))
        right = starts[0] >= 0 and ends[-1] <= len(text) and all(map(int.__le__, starts, ends))
        right = right and starts == sorted(starts) and ends == sorted(ends)
        assert right, (tokenizer.config(), text, spans)
