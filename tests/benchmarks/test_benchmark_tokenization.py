"""The morpheme measures, on few enough words to count by hand."""

import importlib.util
import subprocess
import sys

import pytest
from paths import ROOT, TEST_DATA

from tokenization import InputError
from tokenization.comparison import OpenedVocabulary

PATH = ROOT / "benchmarks" / "tokenization.py"
# Under another name: "tokenization" is the package.
SPEC = importlib.util.spec_from_file_location("benchmark_of_tokenization", PATH)
benchmark = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(benchmark)
Word = benchmark.Word

TREEBANK = """\
# sent_id = 1
1-2\t학교에서는\t_\t_\t_\t_\t_\t_\t_\t_
1\t학교에서는\t학교+에서+는\tADV\t_\t_\t0\troot\t_\t_
2\t했다\t하\tVERB\t_\t_\t1\tdep\t_\tOrigLemma=하+었+다|SpaceAfter=No
3\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

# sent_id = 2
1\t나라\t나라\tNOUN\t_\t_\t0\troot\t_\t_
"""


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "treebank.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    return path


def test_reads_morphemes(treebank):
    first, second = benchmark.read_conllu(treebank)
    assert first == [
        Word("학교에서는", ("학교", "에서", "는")),
        Word("했다", ("하", "었", "다")),
        Word(".", (".",)),
    ]
    assert second == [Word("나라", ("나라",))]


def test_refuses_another_format(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("가 나\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1: .*10 fields. Received: 1"):
        benchmark.read_conllu(path)


# word, morphemes -> places that are boundaries, places that are known
GOLD = {
    ("학교에서는", "학교+에서+는"): ({2, 4}, {1, 2, 3, 4}),
    ("했다", "하+었+다"): ({1}, {1}),
    ("같은", "같+ㄴ"): ({1}, {1}),  # the ending is written otherwise, its place is clear
    ("내려간", "내려가+ㄴ"): (set(), {1, 2}),  # it meets inside the last syllable
    ("서울입니다", "서울+이+ㅂ니다"): ({2}, {1, 2, 3, 4}),
    ("새로운", "새롭+ㄴ"): (set(), {1}),  # 롭 + ㄴ became 로 + 운: neither place is one
    ("도와서는", "돕+아서+는"): ({3}, {3}),
}


@pytest.mark.parametrize("word", GOLD)
def test_gold_places(word):
    form, morphemes = word
    gold = benchmark.gold_places(Word(form, tuple(morphemes.split("+"))))
    assert (gold.boundaries, gold.known) == GOLD[word]
    assert gold.contracted == ("".join(morphemes.split("+")) != form)


def cutter(table):
    return OpenedVocabulary(
        "made", "table", len(table), lambda word: table[word].split("|"), lambda p: p
    )


def test_scores(treebank):
    table = {"학교에서는": "학교|에|서는", "했다": "했|다", "나라": "나|라"}
    scores = benchmark.score(cutter(table), benchmark.read_conllu(treebank))
    assert scores.precision == pytest.approx(1 / 3)  # 학교|, not 에|, not 나|
    assert scores.recall == pytest.approx(1 / 2)
    assert scores.f1 == pytest.approx(2 / 5)
    assert scores.contracted_f1 == 1
    assert scores.pieces_per_word == pytest.approx(7 / 3)
    assert (scores.unknown_words, scores.unknown_hangul_words) == (0, 0)


def test_places_within_a_contraction_are_not_counted():
    sentences = [[Word("도와서는", ("돕", "아서", "는"))]]
    assert benchmark.score(cutter({"도와서는": "도|와|서|는"}), sentences).contracted_f1 == 1
    assert benchmark.score(cutter({"도와서는": "도와서는"}), sentences).contracted_f1 == 0


def test_an_unknown_word_is_counted(treebank):
    table = {"학교에서는": "학교|에서|는", "했다": "", "나라": "나라"}
    scores = benchmark.score(cutter(table), benchmark.read_conllu(treebank))
    assert scores.f1 == 1
    assert scores.unknown_words == pytest.approx(1 / 3)
    assert scores.unknown_hangul_words == 1


def test_prints_a_table(treebank):
    sample = PATH.parents[1] / "tests/data/sample_tokenizer"
    command = [sys.executable, str(PATH), f"--conllu={treebank}"]
    vocabs = f"--vocabs={sample},{sample}/vocab.txt"
    run = subprocess.run([*command, vocabs], capture_output=True, text=True, check=True)
    lines = run.stdout.strip().splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {11}
    assert lines[2].startswith("| sample_tokenizer | WordPiece | 2758 |")
    bad = subprocess.run([*command, "--vocabs=none.txt"], capture_output=True, text=True)
    assert bad.returncode == 1
    assert bad.stderr == "error: file must exist. Received: none.txt\n"


def test_speed_of_every_contender(treebank):
    pytest.importorskip("tokenizers", reason="the extra bench is not installed")
    pytest.importorskip("transformers", reason="the extra bench is not installed")
    sample, text = TEST_DATA / "sample_tokenizer", ROOT / "sample_corpus/heldout.txt"
    run = subprocess.run(
        [
            sys.executable, str(PATH), f"--conllu={treebank}",
            f"--vocabs={sample},{sample}/vocab.txt", f"--speed={text}",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [line.split(" | ") for line in run.stdout.splitlines() if "encode" in line]
    assert [row[0] for row in rows] == ["| sample_tokenizer"] * 4 + ["| vocab.txt"] * 10
    assert all(float(row[2]) >= 0 and float(row[4]) > 0 for row in rows)
    assert {row[5] for row in rows if row[1].startswith("Hugging")} == {"1.0 |"}
