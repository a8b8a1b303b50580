"""The vocabulary learner: worths of pieces, their choice, the files that are written."""

import dataclasses
import itertools
import json
import os
import re
import unicodedata
from collections import Counter

import pytest

from create_pretraining_data.engine.plain_lines import open_texts
from tests.support.paths import ROOT, SHARED, printed_by
from tests.support.refusals import refused
from tokenization import InputError, load_tokenizer
from tokenization.comparison import open_vocabulary
from tokenization.vocab_learning import weights
from tokenization.vocab_learning.learn import (
    JAMO,
    LearningSettings,
    cover_characters,
    learn_vocabulary,
    write_vocabulary,
)
from tokenization.vocab_learning.pieces import (
    PIECE_COST,
    choose_pieces,
    cut_greedily,
    piece_worths,
    split_kinds,
)
from tokenization.vocab_learning.weights import count_in_blocks, spread_weights

CORPUS = ROOT / "sample_corpus" / "train.txt"


def test_greedy_cut():
    starts, rests = split_kinds(["학교", "##에서", "##에", "##"])
    assert (starts, rests) == ({"학교", "##"}, {"에서", "에"})
    assert cut_greedily("학교에서는", starts, rests, 2) == [2, 4, 5]


# Words with their marks and weights; pieces that begin words, and that continue them; candidates;
# syllables that jamo would spell; what some pieces are worth.
WORTHS = {
    # Without 나라는: 나라 + 는, no boundary missed, one piece more. Without 나라 (나라는 stays):
    # 나 + 라 + 에서, one cut inside a morpheme, one piece more.
    "what its absence costs": (
        [("나라는", "01", 2.0), ("나라에서", "010", 1.0)],
        ({"나", "나라", "나라는"}, {*"라는에서", "에서"}, set(), {"서는"}),
        {"나라는": 2 * (PIECE_COST - 1), "나라": 1 + PIECE_COST, "##에서": 1 + PIECE_COST},
    ),
    "the jamo that would spell it": (
        [("뷁뷁", "0", 2.0), ("한", "", 1.0), ("漢", "", 1.0)],
        ({"뷁"}, set(), {"한"}, {"뷁"}),
        {"뷁": 4 * PIECE_COST, "##뷁": 4 * PIECE_COST, "한": 2 * PIECE_COST},
    ),
    "little for a cut in a name": (
        [("레닌", "~", 1.0)], ({"레", "레닌"}, {"닌"}, set(), set()), {"레닌": PIECE_COST + 0.2}
    ),
    # One piece instead of three: the cut inside is gone, the boundary too.
    "what a candidate would save": (
        [("도서관에", "001", 3.0)],
        ({"도서"}, {*"관에"}, {"도서관", "도서관에"}, set()),
        {"도서관": 3 * (1 + PIECE_COST), "도서관에": 3 * (2 * PIECE_COST)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("words", "pieces", "expected"), WORTHS.values(), ids=WORTHS)
def test_the_worth_of_a_piece(words, pieces, expected):
    worths = piece_worths(words, *pieces)
    assert {piece: worths[piece] for piece in expected} == pytest.approx(expected)
    assert "##서는" not in worths
    if len(words) == 3:
        assert worths.keys() == expected.keys()


def test_choice_is_for_the_greedy_matcher():
    """A frequent morpheme that swallows the beginning of others is not kept for its count."""
    words = Counter({("는를", "0"): 3})
    for stem in ["사과", "나무", "구름", "바람", "하늘", "자동차", "도서관", "선생님"]:
        for particle in "는를":
            words[stem + particle, "0" * (len(stem) - 1) + "1"] += 50
    characters = characters_of(words)
    chosen = choose_pieces(words, 8, characters)
    assert set(chosen) >= {"자동차", "도서관", "선생님"} and "사과는" not in chosen
    chosen = choose_pieces(words, 3, [*characters, "자동차"])
    assert chosen == sorted(set(chosen)) and "자동차" not in chosen


def characters_of(words):
    """The pieces of one character that spell words."""
    return {("##" if i else "") + c for word, _ in words for i, c in enumerate(word)}


@pytest.mark.parametrize(
    ("words", "size", "chosen"),
    [
        ({("가나다", "01"): 5, ("가나", "0"): 5}, 100, ["가나"]),  # the rest does harm or nothing
        ({("나라는", "00"): 1, ("나라는", "01"): 50, ("나라", "0"): 9}, 100, ["나라"]),
        # Rare syllables compete with longer pieces.
        ({("뷁는", "1"): 1, ("학교는", "01"): 9}, 1, ["학교"]),
        ({("뷁는", "1"): 1, ("학교는", "01"): 9}, 2, ["뷁", "학교"]),
    ],
)
def test_what_is_chosen(words, size, chosen):
    characters = characters_of(words)
    if ("뷁는", "1") in words:
        characters = ["학", "##교", "##는"]
    assert choose_pieces(Counter(words), size, characters) == chosen


@pytest.mark.parametrize(("weight", "chosen"), [(400, "나무"), (200, "##나라")])
def test_many_rare_words_weigh_as_much_as_a_frequent_one(weight, chosen):
    words = Counter({(chr(0xAC00 + i) + "나라", "10"): 1 for i in range(300)})
    words["나무", "0"] = weight
    assert choose_pieces(words, 1, characters_of(words)) == [chosen]


def test_characters_are_covered_by_frequency():
    characters = Counter({"가": 90, "##나": 9, "漢": 1})
    assert cover_characters(characters, 0.9) == (["가"], 0.9)
    assert cover_characters(characters, 0.95) == (["가", "##나"], 0.99)
    assert cover_characters(characters, 1) == (["가", "##나", "漢"], 1.0)


def settings(**changes):
    return LearningSettings(**{"vocab_size": 3000, "analyser": "none", **changes})


@pytest.fixture(scope="module")
def learned():
    return learn_vocabulary(
        open_texts([CORPUS], "text"), settings(num_unused=3, user_symbols=("뷁뷁", "##읿"))
    )


def test_the_vocabulary_begins_with_what_is_reserved(learned):
    assert learned.pieces[:10] == [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
        "[unused0]", "[unused1]", "[unused2]", "뷁뷁", "##읿",
    ]  # fmt: skip
    assert len(learned.pieces) == len(set(learned.pieces)) <= 3000
    assert set(learned.pieces) >= {*JAMO, *(f"##{jamo}" for jamo in JAMO)}
    assert set(learned.pieces) >= {"<", "Q", "##Q", "##7"}  # the corpus has no <


def test_a_vocabulary_of_lower_case_has_no_capitals():
    learned = learn_vocabulary(open_texts([CORPUS], "text"), settings(do_lower_case=True))
    assert not [piece for piece in learned.pieces[5:] if piece != piece.lower()]
    assert {"q", "##q", "7"} < set(learned.pieces)


def test_every_modern_syllable_can_be_spelled_with_the_jamo():
    spelled = {
        jamo for code in range(0xAC00, 0xD7A4) for jamo in unicodedata.normalize("NFD", chr(code))
    }
    assert spelled < set(JAMO)
    assert {*"ㅋㅎㅠㅡㅏㆍ"} < set(JAMO)


def test_the_report_counts_what_is_there(learned):
    report = learned.report
    assert report["vocabulary"]["lines"] == len(learned.pieces)
    assert report["settings"]["random_seed"] == 12345
    assert report["text"]["words"] > 5000
    assert 0.9995 <= report["character_coverage"] <= 1
    assert 1 < report["pieces_per_word"] < 3
    assert "num_threads" not in report["settings"]


def test_a_tokenizer_reads_what_was_written(learned, tmp_path):
    write_vocabulary(learned, tmp_path / "out")
    files = sorted(os.listdir(tmp_path / "out"))
    assert files == ["report.json", "tokenizer_config.json", "vocab.txt"]
    tokenizer = load_tokenizer(tmp_path / "out")
    assert tokenizer.vocab_size == len(learned.pieces)
    assert tokenizer.tokenize("뷁뷁") == ["뷁뷁"]
    text = CORPUS.read_text(encoding="utf-8")
    pieces = tokenizer.tokenize(text)
    assert pieces.count("[UNK]") < 0.001 * len(pieces)
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8")) == json.loads(
        json.dumps(learned.report)
    )


def test_what_no_tokenizer_reads_is_not_written(learned, tmp_path):
    write_vocabulary(learned, tmp_path)
    before = (tmp_path / "vocab.txt").read_bytes()
    with refused("one line only"):
        write_vocabulary(dataclasses.replace(learned, pieces=[*learned.pieces, "[PAD]"]), tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == before
    assert len(os.listdir(tmp_path)) == 3


def test_the_same_bytes_whatever_the_hash_seed(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(CORPUS.read_text(encoding="utf-8")[:20000], encoding="utf-8")
    outputs = []
    for seed in ("1", "2"):
        given = f"--input_file={text}", f"--output_dir={tmp_path / seed}", "--analyser=none"
        printed_by(ROOT / "build_vocab.py", *given, "--vocab_size=2500", PYTHONHASHSEED=seed)
        outputs.append([path.read_bytes() for path in sorted((tmp_path / seed).iterdir())])
    assert outputs[0] == outputs[1]


BAD_SETTINGS = {
    "vocab_size must be at least 1": {"vocab_size": 0},
    "num_unused must be at least 0": {"num_unused": -1},
    "character_coverage must be above 0": {"character_coverage": 1.5},
    "analyser must be one of": {"analyser": "mecab"},
    "hold no space": {"user_symbols": ("a b",)},
    "text after ##. Received: '##'": {"user_symbols": ("##",)},
    "on another line too": {"user_symbols": ("[UNK]",)},
}


@pytest.mark.parametrize("message", BAD_SETTINGS)
def test_bad_settings_are_refused(message):
    with refused(message):
        settings(**BAD_SETTINGS[message])


@pytest.mark.parametrize("content", ["", "\n \n", "\u200b\n"])
def test_text_without_a_word_is_refused(tmp_path, content):
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    with refused("at least one word. Received: ", "text.txt"):
        learn_vocabulary(open_texts([path], "text"), settings())


def test_too_small_a_vocabulary_names_the_size_that_would_do(tmp_path):
    with pytest.raises(InputError, match="vocab_size must be at least ([0-9]+)") as caught:
        learn_vocabulary(open_texts([CORPUS], "text"), settings(vocab_size=100))
    least = int(str(caught.value).split()[5].rstrip(":"))
    learned = learn_vocabulary(open_texts([CORPUS], "text"), settings(vocab_size=least))
    assert len(learned.pieces) == least


def test_a_symbol_that_the_tokenizer_takes_apart_is_named():
    symbols = ("<name>", "##!", "!!", "##大", "##가나", "大", "!")
    with pytest.warns(UserWarning, match="text never becomes") as warned:
        learn_vocabulary(open_texts([CORPUS], "text"), settings(user_symbols=symbols))
    named = [str(warning.message).split()[3] for warning in warned]
    assert named == ["<name>", "##!", "!!", "##大"]


@pytest.mark.slow
@pytest.mark.parametrize(("analyser", "least"), [("kiwi", 0.915), ("none", 0.88)])
def test_pieces_of_32000_are_morphemes_and_leave_no_hangul_unknown(analyser, least, tmp_path):
    """The targets, on every second sentence of the treebank; settings were chosen on the others."""
    corpus = SHARED / "data" / "kowiki" / "kowiki_24MB.txt"
    treebank = SHARED / "data" / "ud_kaist" / "ko_kaist-ud-dev.conllu"
    reviews = [SHARED / "data" / "nsmc" / f"ratings_{part}.txt" for part in ("train", "test")]
    if not all(path.exists() for path in (corpus, treebank, *reviews)):
        pytest.skip("needs Korean Wikipedia, UD Korean-Kaist, NSMC: not in the repository")
    if analyser == "kiwi":
        pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    settings = LearningSettings(analyser=analyser)
    write_vocabulary(learn_vocabulary(open_texts([corpus], "text"), settings), tmp_path)
    half = treebank.read_text("utf-8").strip().split("\n\n")[1::2]
    f1, per_word = agreement(open_vocabulary(tmp_path), list(words_of("\n".join(half))))
    assert f1 >= least
    assert per_word <= 2.25

    texts = [field for path in (treebank, *reviews) for field in second_fields(path)]
    assert len(texts) > 225_000
    tokenizer = load_tokenizer(tmp_path)
    for text in texts:
        for id_, (start, end) in zip(*tokenizer.encode_with_offsets(text), strict=True):
            if id_ == tokenizer.unk_id:
                assert not any(map(is_hangul, text[start:end])), text


def words_of(treebank):
    """The words of CoNLL-U with a letter or digit, and their morphemes, which are the lemmas."""
    for line in treebank.split("\n"):
        fields = line.split("\t")
        if fields[0].isdigit() and any(map(str.isalnum, fields[1])):
            found = re.search(r"(?:^|\|)OrigLemma=([^|]*)", fields[9])
            lemma = found[1] if found else fields[2]
            yield unicodedata.normalize("NFC", fields[1]), lemma.split("+")


def agreement(vocabulary, words):
    """F1 of cuts between morphemes, over words that these spell; pieces per word, over all."""
    hits = found = wanted = pieces = 0
    for word, morphemes in words:
        cut = vocabulary.pieces(word)
        pieces += len(cut)
        if (gold := cuts(word, morphemes)) is not None:
            own = cuts(word, map(vocabulary.plain, cut)) or set()
            hits, found, wanted = hits + len(own & gold), found + len(own), wanted + len(gold)
    return 2 * hits / (found + wanted), pieces / len(words)


def cuts(word, parts):
    """Where parts of a word meet between its characters, in NFD; None if they do not spell it."""
    parts, characters = (
        [unicodedata.normalize("NFD", text) for text in texts] for texts in (parts, word)
    )
    if "".join(parts) != "".join(characters):
        return None
    first, second = ({*itertools.accumulate(map(len, t[:-1]))} for t in (parts, characters))
    return first & second


def second_fields(path):
    """The second field of each line that has several: words of a treebank, texts of reviews."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line.split("\t")[1] for line in lines if "\t" in line]


def is_hangul(character):
    """Syllables and jamo of every kind, of half width too."""
    return unicodedata.name(character, "").startswith(("HANGUL", "HALFWIDTH HANGUL"))


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(weights, "SENTENCES_PER_BLOCK", 2)


def test_blocks_hold_each_item_once(short_blocks):
    counts, blocks = count_in_blocks([["b", "a", "b"], ["c"], ["a"], ["a"], ["c"]])
    assert dict(counts) == {"b": 2, "a": 3, "c": 2}
    assert [[list(counts)[place] for place in block] for block in blocks] == [
        ["b", "a", "c"], ["a"], ["c"],
    ]  # fmt: skip


def test_no_sentence_is_no_word():
    counts, blocks = count_in_blocks([])
    assert spread_weights(list(counts), blocks) == {}


def test_the_words_of_a_stem_share_one_in_each_block(short_blocks):
    school, in_school, tree = ("학교", "0"), ("학교에", "01"), ("나무", "0")
    counts, blocks = count_in_blocks(
        [[school, in_school, tree], [school, school], [school], [tree]]
    )
    assert spread_weights(list(counts), blocks) == {school: 1.5, in_school: 0.5, tree: 2.0}
