"""The morpheme measures, on few enough words to count by hand."""

import pytest

from benchmarks.vocabularies import morphemes as benchmark
from benchmarks.vocabularies.morphemes import Word
from tokenization import InputError
from tokenization.comparison import OpenedVocabulary

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
