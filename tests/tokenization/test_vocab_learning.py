"""The vocabulary learner, part by part: text, marks, choice, file."""

import dataclasses
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import threading
import unicodedata
from collections import Counter, namedtuple

import pytest
from paths import ROOT
from shared import SHARED

from create_pretraining_data.engine.plain_lines import open_texts
from tokenization import InputError, load_tokenizer
from tokenization.vocab_learning.endings import mark_by_endings, read_words
from tokenization.vocab_learning.learn import (
    JAMO,
    LearningSettings,
    cover_characters,
    learn_vocabulary,
    write_vocabulary,
)
from tokenization.vocab_learning.morphemes import check_limits, mark_places, mark_with_kiwi
from tokenization.vocab_learning.pieces import (
    PIECE_COST,
    choose_pieces,
    cut_greedily,
    piece_worths,
    split_kinds,
)
from tokenization.vocab_learning.text_sample import LONGEST_READ, read_sample, read_sentences

CORPUS = ROOT / "sample_corpus" / "train.txt"
Token = namedtuple("Token", "form tag start len")


def sample(path, most_bytes=10**9, seed=1, strict=False):
    counts = Counter()
    texts = open_texts([str(path)], "text")
    return list(read_sample(texts, most_bytes, seed, strict, counts)), counts


def test_small_text_is_read_whole(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeff하나\r\n\n둘\u2028셋\n".encode())
    lines, counts = sample(path)
    assert lines == ["하나", "둘\u2028셋"]
    assert (counts["lines"], counts["sampled_lines"], counts["bytes"]) == (
        3,
        3,
        path.stat().st_size,
    )


def test_large_text_is_sampled_by_the_seed(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"줄{i:05}\n" for i in range(4000)), encoding="utf-8")
    lines, counts = sample(path, path.stat().st_size // 4)
    assert 850 < len(lines) < 1150  # 1,000 expected, five standard deviations are 137
    assert counts["sampled_lines"] == len(lines) and counts["lines"] == 4000
    assert sample(path, path.stat().st_size // 4)[0] == lines
    assert sample(path, path.stat().st_size // 4, seed=2)[0] != lines
    assert lines == sorted(lines)


def test_bytes_that_are_not_utf8_are_counted_or_refused(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("가나\n".encode() + b"\xb0\xa1 ok\n")
    lines, counts = sample(path)
    assert lines == ["가나", "ok"]
    assert (counts["lines_not_utf8"], counts["bytes_not_utf8"]) == (1, 2)
    with pytest.raises(InputError, match=r"text.txt, line 2: .*UTF-8.*0xb0"):
        sample(path, strict=True)


@pytest.mark.parametrize("space", [" ", ""])
def test_an_endless_line_comes_in_parts_of_whole_characters(tmp_path, space):
    path = tmp_path / "text.txt"
    text = f"가나{space}" * (LONGEST_READ // 2)
    path.write_text(text, encoding="utf-8")
    lines, counts = sample(path)
    assert len(lines) > 2 and counts["lines_not_utf8"] == 0
    assert max(len(line.encode()) for line in lines) <= LONGEST_READ + 8
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_sentences_are_words_of_bearable_length():
    characters = Counter()
    lines = ["가 나다", "하" * 65 + " 끝", "말 " * 1500]
    sentences = list(read_sentences(lines, str.split, characters))
    assert sentences[:2] == ["가 나다", "끝"]
    assert max(map(len, sentences)) <= 1000
    assert " ".join(sentences[2:]).split() == ["말"] * 1500
    assert (characters["하"], characters["##하"], characters["##다"]) == (1, 64, 1)


def mark(sentence, *tokens):
    return mark_places(sentence, [Token(*token) for token in tokens])


def test_marks_between_morphemes():
    tokens = [("학교", "NNG", 0, 2), ("에서", "JKB", 2, 2), ("는", "JX", 4, 1)]
    assert mark("학교에서는", *tokens) == "101011"


def test_a_contraction_may_be_cut_off_or_not():
    # 내려가 + ㄴ share 간; 하 + 았 share 했 whole, so that only the place after it is a boundary.
    assert mark("내려간", ("내려가", "VV", 0, 3), ("ㄴ", "ETM", 2, 1)) == "10?1"
    tokens = [("하", "VV", 0, 1), ("었", "EP", 0, 1), ("다", "EF", 1, 1)]
    assert mark("했다", *tokens) == "111"
    assert mark("간다", ("가", "VV", 0, 1), ("ㄴ다", "EF", 0, 2)) == "1?1"


def test_where_grammars_disagree_both_are_right():
    assert mark("전문성", ("전문", "NNG", 0, 2), ("성", "XSN", 2, 1)) == "10?1"
    assert mark("비합법", ("비", "XPN", 0, 1), ("합법", "NNG", 1, 2)) == "1?01"
    assert mark("우리나라", ("우리", "NP", 0, 2), ("나라", "NNG", 2, 2)) == "10?01"
    assert mark("친구들", ("친구", "NNG", 0, 2), ("들", "XSN", 2, 1)) == "1011"


@pytest.mark.parametrize("limit", [1_000_000_000, 1_599_999_999])
def test_too_little_address_space_for_kiwi_is_said_before(monkeypatch, limit):
    """The analyser's own way is to end the process."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, -1))
    message = r"requires 1.6 GB of address space for 1 threads. Received: .* \(ulimit -v\)"
    with pytest.raises(InputError, match=message):
        check_limits(1)


def test_threads_that_cannot_start_are_said_before(monkeypatch):
    start, started = threading.Thread.start, []

    def start_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        start(thread)
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    with pytest.raises(InputError, match="4 threads .* can't start new thread after 2 of them"):
        check_limits(4)
    assert not any(thread.is_alive() for thread in started)


def test_kiwi_marks_the_words_of_its_sentence():
    pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    sentences = ["학교에서는 공부했다 .", "나는 갔다"]
    marked = list(mark_with_kiwi(sentences, num_threads=2))
    assert [word for word, _ in marked] == " ".join(sentences).split()
    assert dict(marked)["학교에서는"] == "0101"
    assert dict(marked)["공부했다"] == "011"


def test_endings_are_found_by_the_company_of_stems():
    nouns = ["학교", "회의", "서울", "나라", "친구", "하늘", "바람", "도서관"]
    particles = ["은", "는", "이", "가", "을", "를", "에서", "에는", "까지", "도"]
    words = Counter({noun + particle: 2 for noun in nouns for particle in ["", *particles]})
    marked = dict(mark_by_endings(words))
    cut = {word: marks for word, marks in marked}
    assert cut["학교에서"] == "010"
    assert cut["서울까지"] == "010"
    assert cut["도서관에는"] == "0011"
    assert cut["회의를"] == "01"
    assert cut["회의"] == "0"
    assert sum(marked.values()) == sum(words.values())


# Readings that need, in this order: that a word has no vote for itself as a stem; that stems
# rarely end like tails; that stems are weighed by all words, not by their tail alone.
READINGS = {
    "강아지에게": "강아지 에게",
    "고민했는데": "고민 했 는데",
    "골목마다": "골목 마다",
    "걱정했다": "걱정 했 다",
    "가득하다": "가득 하 다",
    "강아지": "강아지",
    "고양이는": "고양이 는",
    "과일을": "과일 을",
}


def test_readings_in_running_text():
    text = CORPUS.read_text(encoding="utf-8")
    readings, stems = read_words(sorted(set(re.findall("[가-힣]+", text))))
    assert {word: " ".join(readings[word]) for word in READINGS} == READINGS
    assert stems["강아지"] > 3


def test_digits_and_letters_are_parts_of_their_own():
    marked = dict(mark_by_endings(Counter({"2019년에": 1, "GPU로": 1, "abc": 1, "가": 1})))
    marks = {word: marks for word, marks in marked}
    assert marks["2019년에"][3] == "1" and len(marks["2019년에"]) == 5
    assert marks["GPU로"] == "001"
    assert (marks["abc"], marks["가"]) == ("00", "")


def test_greedy_cut():
    starts, rests = split_kinds(["학교", "##에서", "##에", "##"])
    assert (starts, rests) == ({"학교", "##"}, {"에서", "에"})
    assert cut_greedily("학교에서는", starts, rests, 2) == [2, 4, 5]


def test_the_worth_of_a_piece_is_what_its_absence_costs():
    starts, rests = {"나라", "나라는"}, {"에서"}
    words = [("나라는", "01", 2.0), ("나라에서", "010", 1.0)]
    worths = piece_worths(words, starts, rests, set(), {"서"})
    # Without 나라는: 나라 + 는, no boundary missed, one piece more.
    assert worths["나라는"] == pytest.approx(2 * (PIECE_COST - 1))
    # Without 나라 (나라는 stands): 나 + 라 + 에서, one cut inside a morpheme, one piece more.
    assert worths["나라"] == pytest.approx(1 + PIECE_COST)
    assert worths["##에서"] == pytest.approx(1 + PIECE_COST)
    assert "##서" not in worths


def test_an_absent_candidate_is_worth_what_it_would_save():
    words = [("도서관에", "001", 3.0)]
    worths = piece_worths(words, {"도서"}, set(), {"도서관", "도서관에"}, set())
    assert worths["도서관"] == pytest.approx(3 * (1 + PIECE_COST))
    # One piece instead of three: the cut inside is gone, the boundary too.
    assert worths["도서관에"] == pytest.approx(3 * (2 * PIECE_COST))


def test_choice_is_for_the_greedy_matcher():
    """A frequent morpheme that swallows the beginning of others is not kept for its count."""
    words = Counter()
    for stem in ["사과", "나무", "구름", "바람", "하늘", "자동차", "도서관", "선생님"]:
        words[stem + "는", "0" * (len(stem) - 1) + "1"] += 50
        words[stem + "를", "0" * (len(stem) - 1) + "1"] += 50
    words["는를", "0"] += 3
    chosen = choose_pieces(words, 8, [])
    assert set(chosen) >= {"자동차", "도서관", "선생님"}
    assert "사과는" not in chosen
    assert choose_pieces(words, 3, ["자동차"]) == sorted({*choose_pieces(words, 3, ["자동차"])})
    assert "자동차" not in choose_pieces(words, 3, ["자동차"])


def test_no_piece_is_kept_that_does_harm_or_nothing():
    words = Counter({("가나다", "01"): 5, ("가나", "0"): 5})
    assert choose_pieces(words, 100, []) == ["가나"]


def test_a_candidate_that_does_harm_goes():
    words = Counter({("나라는", "00"): 1, ("나라는", "01"): 50, ("나라", "0"): 9})
    assert choose_pieces(words, 100, []) == ["나라"]


@pytest.mark.parametrize(("count", "chosen"), [(10_000, "나무"), (1_000, "##나라")])
def test_many_rare_words_weigh_more_than_their_count(count, chosen):
    words = Counter({(chr(0xAC00 + i) + "나라", "10"): 1 for i in range(300)})
    words["나무", "0"] = count
    assert choose_pieces(words, 1, []) == [chosen]


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
    assert sorted(os.listdir(tmp_path / "out")) == [
        "report.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
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
    with pytest.raises(InputError, match="one line only"):
        write_vocabulary(dataclasses.replace(learned, pieces=[*learned.pieces, "[PAD]"]), tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == before
    assert len(os.listdir(tmp_path)) == 3


def test_the_same_bytes_whatever_the_hash_seed(tmp_path):
    code = (
        "import sys; from create_pretraining_data.engine.plain_lines import open_texts\n"
        "from tokenization.vocab_learning.learn import *\n"
        "texts = open_texts([sys.argv[1]], 'text')\n"
        "write_vocabulary(learn_vocabulary(texts, LearningSettings(vocab_size=2500, "
        "analyser='none')), sys.argv[2])"
    )
    text = tmp_path / "text.txt"
    text.write_text(CORPUS.read_text(encoding="utf-8")[:20000], encoding="utf-8")
    outputs = []
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(text), str(tmp_path / seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        outputs.append([path.read_bytes() for path in sorted((tmp_path / seed).iterdir())])
    assert outputs[0] == outputs[1]


BAD_SETTINGS = {
    "vocab_size must be at least 1": {"vocab_size": 0},
    "num_unused must be at least 0": {"num_unused": -1},
    "character_coverage must be above 0": {"character_coverage": 1.5},
    "analyser must be one of": {"analyser": "mecab"},
    "hold no space": {"user_symbols": ("a b",)},
    "on another line too": {"user_symbols": ("[UNK]",)},
}


@pytest.mark.parametrize("message", BAD_SETTINGS)
def test_bad_settings_are_refused(message):
    with pytest.raises(InputError, match=message):
        settings(**BAD_SETTINGS[message])


def test_text_without_a_word_is_refused(tmp_path):
    path = tmp_path / "text.txt"
    for content in ("", "\n \n", "\u200b\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="at least one word. Received: .*text.txt"):
            learn_vocabulary(open_texts([path], "text"), settings())


def test_too_small_a_vocabulary_names_the_size_that_would_do(tmp_path):
    with pytest.raises(InputError, match="vocab_size must be at least ([0-9]+)") as caught:
        learn_vocabulary(open_texts([CORPUS], "text"), settings(vocab_size=100))
    least = int(str(caught.value).split()[5].rstrip(":"))
    learned = learn_vocabulary(open_texts([CORPUS], "text"), settings(vocab_size=least))
    assert len(learned.pieces) == least


def test_a_symbol_that_the_tokenizer_takes_apart_is_named():
    with pytest.warns(UserWarning, match="<name>"):
        learn_vocabulary(open_texts([CORPUS], "text"), settings(user_symbols=("<name>",)))


def test_the_sample_does_not_depend_on_the_form_of_the_text(tmp_path):
    text = CORPUS.read_bytes()[:50_000].replace(b"\r", b"")
    lines = text.decode("utf-8", "ignore").split("\n")
    (tmp_path / "a").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open(tmp_path / "a.zip", "wb") as file:  # two members, a name that says nothing
        for part in ("\n".join(lines[:99]) + "\n", "\n".join(lines[99:]) + "\n"):
            file.write(gzip.compress(part.encode()))
    found, counts = sample(tmp_path / "a", 10_000)
    assert 0 < counts["sampled_lines"] < counts["lines"] / 2
    assert sample(tmp_path / "a.zip", 10_000) == (found, counts)
    objects = [{"id": 7, "text": "\n".join(lines[start : start + 9])} for start in range(0, 90, 9)]
    (tmp_path / "a.json").write_text("\n\n".join(map(json.dumps, objects)))
    (tmp_path / "b").write_text("\n".join(lines[:90]) + "\n", encoding="utf-8")
    for most in (10**9, 3000):
        counts, (expected, counted) = Counter(), sample(tmp_path / "b", most)
        texts = open_texts([str(tmp_path / "a.json")], "jsonl")
        assert list(read_sample(texts, most, 1, False, counts)) == expected
        assert counts == counted


@pytest.mark.slow
@pytest.mark.parametrize(("analyser", "least"), [("kiwi", 0.90), ("none", 0.70)])
def test_pieces_of_32000_are_morphemes_and_leave_no_hangul_unknown(analyser, least, tmp_path):
    """The targets, on every second sentence of the treebank; settings were chosen on the others."""
    corpus = SHARED / "data" / "kowiki" / "kowiki_24MB.txt"
    treebank = SHARED / "data" / "ud_kaist" / "ko_kaist-ud-dev.conllu"
    reviews = [SHARED / "data" / "nsmc" / f"ratings_{part}.txt" for part in ("train", "test")]
    if not all(path.exists() for path in (corpus, treebank, *reviews)):
        pytest.skip("the reference data is not here")
    if analyser == "kiwi":
        pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    write_vocabulary(
        learn_vocabulary(open_texts([corpus], "text"), LearningSettings(analyser=analyser)),
        tmp_path,
    )
    run = subprocess.run(
        [
            sys.executable,
            str(ROOT / "benchmarks" / "tokenization.py"),
            f"--conllu={treebank}",
            f"--vocabs={tmp_path}",
            "--sentences=odd",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    row = run.stdout.splitlines()[-1].split("|")
    assert float(row[6]) >= least
    assert float(row[8]) <= 2.25

    texts = [field for path in (treebank, *reviews) for field in second_fields(path)]
    assert len(texts) > 225_000
    tokenizer = load_tokenizer(tmp_path)
    for text in texts:
        for id_, (start, end) in zip(*tokenizer.encode_with_offsets(text), strict=True):
            if id_ == tokenizer.unk_id:
                assert not any(map(is_hangul, text[start:end])), text


def second_fields(path):
    """The second field of each line that has several: words of a treebank, texts of reviews."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line.split("\t")[1] for line in lines if "\t" in line]


def is_hangul(character):
    """Syllables and jamo of every kind, of half width too."""
    return unicodedata.name(character, "").startswith(("HANGUL", "HALFWIDTH HANGUL"))
