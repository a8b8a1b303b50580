"""Characters without a piece, spelled by their bytes: nothing is [UNK], every word comes back."""

import random
import unicodedata

import pytest

from bert_tf.summaries.mask_predictions import without_markers
from korean_bert.guesses import PieceKinds
from model_formats.adaptation.added_tokens import add_tokens, plan_added_rows
from model_formats.adaptation.new_rows import plan_rows
from model_formats.huggingface.exported.korean_wordpiece import KoreanWordPiece
from tests.support.refusals import refused
from tests.support.tokenizer_cases import TEXTS, check_offsets, check_round_trip
from tests.support.vocabularies import write_pieces
from tokenization import KoreanTokenizer, load_tokenizer
from tokenization.byte_pieces import byte_vocabulary, join_bytes
from tokenization.vocab_learning.learn import LearningSettings, learn_vocabulary, write_vocabulary
from tokenization.vocab_learning.text_sample import TextFile

HOSTILE = [
    "👨\u200d👩\u200d👧 최고👍🏽 👍🏿나",
    "🇰🇷 한국🇰🇷 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "❤\ufe0f 좋아요❤\ufe0f\u200d🔥",
    "ᄒᆞᆫ글 나랏말ᄊᆞ미 ꥠᅡᇹ ᅟᅠ",
    "𠀀 𠮷野家 한𠀀자 𪚥",
    "\u0301 가\u0301 \u0323\u0301 \u20dd",
    "ｋｏｒｅａ １２３ ① ½ ﬁ ㎏",
    "[UNK] <0xF0> ##<0xF0> [MASK] <0x41>",
    "\U000f0000\ue000 \U0010ffff \u0378",
    "Ж ж ۝ ༄༅ 𝄞 🜁 ꙮ",
    "".join(map(chr, range(0x2500, 0x2600))),
]

LEARNED = "나는 학교에서 책을 읽었다. 좋아요ㅋㅋ ㅠㅠ ㅎ 3번, 2024년!\n" * 30


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Tokenizers learned from a few words, by their options."""
    content = LEARNED.encode()
    text = TextFile("text", len(content), lambda: content.splitlines(keepends=True))

    def learn(**options):
        folder = tmp_path_factory.mktemp("vocab")
        settings = LearningSettings(vocab_size=1200, analyser="none", **options)
        vocabulary = learn_vocabulary([text], settings)
        write_vocabulary(vocabulary, folder)
        return load_tokenizer(folder), vocabulary, folder

    return {
        "bytes": learn(unknown="bytes"),
        "bytes NFKC": learn(unknown="bytes", normalization="NFKC"),
        "NFKC": learn(normalization="NFKC"),
        "default": learn(),
    }


def random_texts(count, seed=1):
    """Characters of all of Unicode between Korean words, lone surrogates among them."""
    rng, texts = random.Random(seed), []
    for _ in range(count):
        characters = [chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 4))]
        characters += rng.choices([*"나학교책읽a3 .,!ㅋㅠ", *"".join(HOSTILE)], k=rng.randint(1, 9))
        rng.shuffle(characters)
        texts.append("".join(characters))
    return texts


def test_a_character_without_a_piece_is_its_bytes(learned):
    tokenizer, vocabulary, _ = learned["bytes"]
    face = ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert tokenizer.tokenize("책😀 😀") == ["책", "##<0xF0>", *face[1:], *face]
    # The rest of the word stays as it is; syllables are spelled by jamo, of fewer pieces.
    assert tokenizer.tokenize("학교에서😀는")[0] == "학교"
    assert tokenizer.tokenize("뷁") == ["ᄇ", "##ᅰ", "##ᆰ"]
    assert tokenizer.tokenize("👨\u200d👩")[4:5] == ["##\u200d"]
    lines = vocabulary.pieces
    assert lines[5 : 5 + 307] == byte_vocabulary("##") and len(lines) <= 1200
    assert [f"<0x{byte:02X}>" for byte in range(256)] == lines[5:261]
    assert vocabulary.report["vocabulary"]["bytes"] == 307
    # In whole-word masking, and where words are shown, bytes belong to their word.
    assert list(map(len, tokenizer.tokenize_words("책😀는 😀! 𠀀가"))) == [6, 4, 1, 4, 2]
    begins = [begin for begin, _ in without_markers(tokenizer, tokenizer.tokenize("책😀 😀"))]
    assert begins == [True, *[False] * 4, True, *[False] * 3]
    # By default there are none.
    tokenizer, vocabulary, _ = learned["default"]
    assert tokenizer.tokenize("책😀 😀") == ["책", "[UNK]", "[UNK]"]
    assert vocabulary.config == {
        "kind": "korean", "do_lower_case": False, "jamo_fallback": True, "unknown": "character",
    }  # fmt: skip
    assert not any("<0x" in piece or "\u200d" in piece for piece in vocabulary.pieces)


@pytest.mark.parametrize("name", ["bytes", "default"])
def test_the_report_counts_the_tokens(learned, name):
    tokenizer, vocabulary, _ = learned[name]
    tokens, words = tokenizer.tokenize(LEARNED), tokenizer.basic_tokens(LEARNED)
    assert vocabulary.report["pieces_per_word"] == round(len(tokens) / len(words), 4)


@pytest.mark.parametrize("name", ["bytes", "bytes NFKC", "NFKC"])
def test_words_come_back(learned, name):
    """decode(encode(x)) is the words of x, each separated by a space; x itself if it is that."""
    tokenizer = learned[name][0]
    core = KoreanWordPiece(tokenizer.vocab, tokenizer.config())
    for text in [*HOSTILE, *TEXTS, *random_texts(1500)]:
        ids = tokenizer.encode(text)
        check_round_trip(tokenizer, text, ids)
        check_offsets(tokenizer, text, ids)
        assert core.tokenize(text) == tokenizer.tokenize(text), text  # the exported code
    if name != "NFKC":
        text = "👨\u200d👩\u200d👧 최고👍🏽 🇰🇷 가\u0301 ᄒᆞᆫ글 𠀀"
        assert tokenizer.decode(tokenizer.encode(text)) == core.join(core.tokenize(text)) == text


@pytest.mark.parametrize("name", ["bytes", "bytes NFKC"])
def test_punctuation_that_is_not_split(learned, name, tmp_path):
    """Inside a word it is a byte without the prefix, as the vocabulary has no "##,"."""
    (tmp_path / "vocab.txt").write_bytes(learned[name][0].vocabulary_bytes)
    options = {**vars(learned[name][0].options), "split_punctuation": False}
    tokenizer = KoreanTokenizer(tmp_path / "vocab.txt", **options)
    core = KoreanWordPiece(tokenizer.vocab, tokenizer.config())
    assert "<0x2C>" in tokenizer.tokenize("3,000")
    for text in ("값은 3,000원이다.", "(책) e-mail, !책 가.", *HOSTILE, *TEXTS, *random_texts(300)):
        words, ids = " ".join(tokenizer.basic_tokens(text)), tokenizer.encode(text)
        assert tokenizer.decode(ids) == words, text
        assert core.join(core.tokenize(text)) == words, text


def test_bytes_that_spell_no_character():
    assert join_bytes(["가", "##<0xF0>", "<0x9F>", "나"], "##") == ["가", "##\ufffd", "나"]
    assert join_bytes(["<0x80>", "<0xFF>", "<0x41>"], "##") == ["\ufffd", "\ufffd", "A"]
    assert join_bytes(["<0xE2>", "##<0xE2>", "<0x97>", "<0x8B>"], "##") == ["\ufffd", "##○"]


def test_normalization_of_compatible_characters(learned):
    for name in ("NFKC", "bytes NFKC"):
        tokenizer = learned[name][0]
        assert tokenizer.basic_tokens("ｋｏｒｅａ １２３ ①⑳ ﬁ") == ["korea", "123", "120", "fi"]
        words = " ".join(tokenizer.basic_tokens("ㅋㅋㅠㅠ ㄱㅏ 하ㄳ ﾡﾡ"))
        assert words == "ㅋㅋㅠㅠ ㄱㅏ 하ㄳ ㄱㄱ"
        assert tokenizer.config()["normalization"] == "NFKC"
        ids, spans = tokenizer.encode_with_offsets("나①２")
        assert spans == [(0, 1), (1, 2), (2, 3)] and len(ids) == 3
    for text in random_texts(1500):
        if not any("\u3131" <= c <= "\u318e" or "\uffa0" <= c <= "\uffdc" for c in text):
            text = tokenizer.normalize(text)
            assert unicodedata.is_normalized("NFKC", text), text
    assert learned["default"][0].basic_tokens("１①") == ["１①"]
    prints = {made.fingerprint() for made, _, _ in learned.values()}
    assert len(prints) == len(learned)


def test_what_follows_a_mask(learned):
    """An emoji continues the word that a mask stands for, punctuation and Hanja begin one."""
    tokenizer = learned["bytes"][0]

    def first(text):
        ids = tokenizer.encode_part(text, follows_mask=True).ids
        return tokenizer.convert_ids_to_tokens(ids)[0]

    assert first("😀는") == "##<0xF0>"
    assert (first("※"), first("𠀀")) == ("<0xE2>", "<0xF0>")
    assert first(".") == "."
    kinds = PieceKinds(tokenizer)
    for piece in byte_vocabulary("##"):
        number = kinds.ids.index(tokenizer.vocab[piece])
        assert not kinds.begin[number] and not kinds.inside[number], piece
        assert tokenizer.vocab[piece] in kinds.special


def test_refusals(tmp_path):
    path = write_pieces(tmp_path, byte_vocabulary("##")[:-1])
    with refused("tokens of all bytes", "Received: 1 missing, such as '##<0xF4>'"):
        KoreanTokenizer(path, unknown="bytes")
    with refused("must not be on another line too"):
        LearningSettings(unknown="bytes", user_symbols=("<0xF0>",))
    with refused("larger than its 312 reserved lines"):
        LearningSettings(unknown="bytes", vocab_size=300)


def test_bytes_in_adapted_vocabularies(learned):
    """A byte is no text: its row is kept or drawn; a new character begins as the mean of bytes."""
    old, new = learned["bytes"][0], learned["default"][0]
    rows = {row.token: row for row in plan_rows(new, old)}
    assert rows["<0xF0>"].kind == rows["##<0xF0>"].kind == "random" and rows["학교"].kept
    same = {row.token: row for row in plan_rows(old, learned["bytes NFKC"][0])}
    assert same["<0xF0>"].sources == (old.vocab["<0xF0>"],) and same["<0xF0>"].kept
    added = add_tokens(old, ["😀"])
    assert added.appended == ("😀", "##😀")
    assert added.tokenizer.tokenize("책😀") == ["책", "##😀"]
    planned = {row.token: row for row in plan_added_rows(old, added, old.vocab_size)}
    assert old.convert_ids_to_tokens(planned["##😀"].sources)[0] == "##<0xF0>"
    assert add_tokens(old, ["뷁", "<0xF0>"]).impossible == ("<0xF0>",)
