"""The encoding of Korean and other text is recognised; an undecodable byte has a line and place."""

import random

import pytest

from bert_common.errors import InputError
from bert_common.text_encoding import NAMES, decode_blocks, decode_text, detect_encoding
from tests.support.paths import ROOT

CORPUS = (ROOT / "sample_corpus" / "train.txt").read_text(encoding="utf-8")
TEXTS = {
    "prose": CORPUS[:20_000],
    "a word": "나는",
    "a sentence": "나는 학교에 갔다.\n",
    "English": "I went to school.\nIt was good.\n",
    "chat": "ㅋㅋㅋ 이거 진짜 꿀잼ㅠㅠ 2024년 GPU 16대!!\r\n" * 3,
    "English with a word": "date,label\n" * 99 + "2024,좋음\n",
}
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\0\0"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949"])
def test_encodings_are_told_apart(text, encoding):
    content = text.encode(encoding, "ignore")
    found = "utf-8" if text.isascii() and encoding == "cp949" else encoding
    assert detect_encoding(content) == found
    assert decode_text(content, "a.txt") == content.decode(encoding)


DRAW = random.Random(1)
OTHERS = {
    "gbk": "数学是研究数量、结构、变化以及空间等概念的一门学科。",
    "big5": "数学是研究数量、结构、变化以及空间等概念的一门学科。\n",
    "euc-jp": "これは日本語の文章です。東京に住んでいます。",
    "shift-jis": "これは日本語の文章です。東京に住んでいます。\n",
    "latin-1": "Ça dépend de l'été.\n",
}
NO_KOREAN = [
    b"\xff",
    b"\xff\n",
    *(DRAW.randbytes(5000) for _ in range(20)),
    *(text.encode(name, "ignore") * times for name, text in OTHERS.items() for times in (1, 30)),
]


@pytest.mark.parametrize("content", NO_KOREAN, ids=range(len(NO_KOREAN)))
def test_what_is_neither_korean_nor_text_is_taken_for_utf8(content):
    assert detect_encoding(content) == "utf-8"
    with pytest.raises(InputError, match=r"a.txt, line \d+: the text must be UTF-8"):
        decode_text(content, "a.txt")


@pytest.mark.parametrize("encoding", MARKS)
def test_marks(encoding):
    content = MARKS[encoding] + CORPUS[:500].encode(encoding)
    assert detect_encoding(content) == encoding
    assert decode_text(content, "a.txt") == CORPUS[:500]
    with pytest.raises(InputError, match="the text must be UTF-8"):
        decode_text(content.removeprefix(MARKS[encoding]), "a.txt")


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_a_sample_that_ends_inside_a_character(encoding):
    content = CORPUS.encode(encoding, "ignore")
    assert {detect_encoding(content[:size]) for size in range(300, 320)} == {encoding}


def test_utf8_with_some_damage_is_utf8():
    content = bytearray(CORPUS[:3000].encode())
    for _ in range(40):
        content[DRAW.randrange(len(content))] = DRAW.choice((0x80, 0xFF, 0xC0))
    for each in (bytes(content), b"", b"\0" * 9):
        assert detect_encoding(each) == "utf-8"


def blocks(content, size):
    return [content[k : k + size] for k in range(0, len(content), size)]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "cp949"])
def test_text_comes_in_blocks(encoding, size):
    content = CORPUS[:2000].encode(encoding, "ignore")
    text = "".join(decode_blocks(blocks(content, size), encoding, "a.txt"))
    assert text == content.decode(encoding)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("encoding", "bad"), [("utf-8", b"\xff"), ("cp949", b"\xff"), ("utf-16-le", b"\x00\xdc")]
)
def test_a_bad_byte_has_a_line_and_a_place(encoding, bad, size):
    before = "가나\n다라 ".encode(encoding)
    content = before + bad + "\n마".encode(encoding)
    place = f"line 2: the text must be {NAMES[encoding]}"
    with pytest.raises(InputError) as raised:
        list(decode_blocks(blocks(content, size), encoding, "a.txt"))
    message = str(raised.value)
    assert place in message and f"byte 0x{bad[0]:02x} at byte {len(before) + 1} of" in message


def test_an_end_inside_a_character():
    with pytest.raises(InputError, match="line 3: .*byte 0xea at byte 6 of"):
        decode_text(b"a\nb\nX\xea\xb0", "a.txt", "utf-8")
