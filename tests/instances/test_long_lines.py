"""Lines longer than a row are split, so that next to nothing of the text is lost."""

import collections
import json
import random
import time

import numpy as np
import pytest

from create_pretraining_data.instances.coverage import LONG_LINES, ROW_ENDS
from create_pretraining_data.instances.layout_checks import find_lost_text
from create_pretraining_data.instances.long_lines import cut_words, split_at_punctuation
from create_pretraining_data.instances.pairs import PairRules
from tests.support.create_data_runs import records, run
from tests.support.crosses import quick_by_pairs
from tests.support.sequences import CLS, LENGTH, SEP, Syllables, all_records, parsed, settings_for

OBJECTIVES = ("nsp", "sop", "none")
STORED = {"static": {}, "packed": {"packed": True}, "dynamic": {"dynamic": True}}


def make(documents, objective, long_lines="split", packed=False, dynamic=False, passes=1):
    """The records of documents, serialized, with their format and `CorpusStatistics`."""
    settings = settings_for(objective, packed, dynamic, passes, long_lines=long_lines)
    found, statistics = all_records(documents, Punctuated(), settings)
    return found, settings.record_format, statistics


def some_documents(words, seed=0, count=60, punctuation=0.0):
    """Documents of lines of up to so many words of three syllables."""
    rng = random.Random(seed)

    def line():
        found = []
        for _ in range(rng.randint(1, words)):
            word = "".join(chr(ord("가") + rng.randrange(99)) for _ in "123")
            found.append(word + "." * (rng.random() < punctuation))
        return " ".join(found)

    return [[line() for _ in range(rng.randint(1, 6))] for _ in range(count)]


class Punctuated(Syllables):
    """A full stop is a piece too."""

    def convert_tokens_to_ids(self, pieces):
        return [103 if p == "." else 4 + ord(p) - ord("가") for p in pieces]


def share_lost(statistics):
    return sum(statistics.pieces_in_no_row.values()) / statistics.pieces


def count_ids(found, record_format):
    ids = parsed(found, record_format)["input_ids"]
    return collections.Counter(ids[(ids != CLS) & (ids != SEP) & (ids != 0)].tolist())


@pytest.mark.parametrize("words", [3, 20, 400])
@pytest.mark.parametrize("stored", ["dynamic", "both"])
def test_without_pairs_every_piece_is_in_one_row(words, stored):
    documents = some_documents(words)
    flags = {"dynamic": True, "packed": stored == "both"}
    found, record_format, statistics = make(documents, "none", **flags)
    pieces = [piece for document in documents for line in document for piece in line if piece > " "]
    expected = collections.Counter(Syllables().convert_tokens_to_ids(pieces))
    assert count_ids(found, record_format) == expected
    assert not statistics.pieces_in_no_row
    _, _, truncated = make(documents, "none", "truncate", **flags)
    assert share_lost(truncated) >= {3: 0, 20: 0.1, 400: 0.85}[words]
    assert truncated.long_lines == statistics.long_lines


@pytest.mark.parametrize("words", range(LENGTH - 2, 4 * LENGTH, 3))
def test_no_row_without_pairs_has_a_few_pieces(words):
    """As the full stop that a document ends in."""
    found, record_format, statistics = make([[" ".join("가" * words)]], "none", dynamic=True)
    ids = parsed(found, record_format)["input_ids"]
    lengths = (ids == 4).sum(axis=1)  # of "가"
    assert lengths.sum() == words and len(lengths) == -(-words // (LENGTH - 2))
    assert lengths.min() >= (LENGTH - 2) // 4


@pytest.mark.parametrize(
    ("objective", "stored", "punctuation"),
    quick_by_pairs(("nsp", "sop"), STORED, (0, 0.1)),
)
def test_with_pairs_little_is_lost(objective, stored, punctuation):
    documents = some_documents(400, punctuation=punctuation)
    found, record_format, statistics = make(documents, objective, **STORED[stored])
    lines = sum(map(len, documents))
    # Sentences of thirty pieces lose a part at the end of a row, as in any text.
    assert share_lost(statistics) < (0.35 if punctuation else 0.12)
    assert set(statistics.pieces_in_no_row) <= {ROW_ENDS}
    assert lines * 0.8 < statistics.long_lines < lines < statistics.sentences / 5
    _, _, truncated = make(documents, objective, "truncate", **STORED[stored])
    assert truncated.pieces_in_no_row[LONG_LINES] > 0.85 * truncated.pieces
    assert truncated.sentences == lines


@pytest.mark.parametrize("objective", ["nsp", "sop"])
@pytest.mark.parametrize("stored", STORED)
def test_text_without_long_lines_gives_the_same_records(objective, stored):
    documents = some_documents(20)  # at most 60 pieces
    split = make(documents, objective, passes=2, **STORED[stored])
    truncated = make(documents, objective, "truncate", passes=2, **STORED[stored])
    assert split == truncated
    assert split[-1].long_lines == 0


def test_more_passes_reach_what_one_cuts_away():
    documents = some_documents(20)
    lost = [make(documents, "sop", passes=n)[-1].pieces_in_no_row[ROW_ENDS] for n in (1, 2, 6)]
    assert lost[0] > 1.2 * lost[1] > 1.6 * lost[2]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_word_longer_than_a_row(objective):
    documents = [["가" * 1000], ["나" * 200]]
    _, _, statistics = make(documents, objective)
    assert share_lost(statistics) < 0.1
    assert statistics.examples > 15 and not statistics.left_out


def test_words_that_are_cut():
    words = [list("가나"), list("다" * 7), list("라"), list("마")]
    assert cut_words(words, 3) == [
        [list("가나"), list("다다다")], [list("다다다")], [list("다"), list("라"), list("마")]
    ]  # fmt: skip
    assert cut_words(words[:1], 3) == [[list("가나")]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("나는 간다. 너는 온다.", ["나는 간다.", "너는 온다."]),
        ("정말?! 그래… 좋아!  네", ["정말?!", "그래…", "좋아!", "네"]),
        ("“간다.” 그가 말했다.", ["“간다.”", "그가 말했다."]),
        ("(1998년.) 그 뒤", ["(1998년.)", "그 뒤"]),
        ("2026. 11. 27. 오후 3.5도", ["2026. 11. 27. 오후 3.5도"]),
        ("2026.11.27. 오후", ["2026.11.27. 오후"]),
        ("가. 첫째 나. 둘째 J. K. 롤링", ["가. 첫째 나. 둘째 J. K. 롤링"]),
        ("한다.그리고 간다", ["한다.그리고 간다"]),
        ("끝이다。 다음", ["끝이다。", "다음"]),
        ("나는 간다 . 너는 온다 .", ["나는 간다 .", "너는 온다 ."]),
        ("   ", []),
    ],
)  # fmt: skip
def test_sentences_by_punctuation(line, expected):
    assert split_at_punctuation(line) == expected


def test_splitting_at_punctuation_takes_linear_time():
    started = time.perf_counter()
    for text in (
        "가" * 300_000, "." * 300_000, '가."' * 100_000, "1.,:" * 80_000 + ".", "가. " * 99_999,
    ):  # fmt: skip
        assert "".join("".join(split_at_punctuation(text)).split()) == "".join(text.split())
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("seed", range(5))
def test_no_character_changes(seed):
    rng = random.Random(seed)
    for _ in range(300):
        line = "".join(rng.choices("가나 .?!”)1A\u3000\u00a0\t", k=rng.randrange(60)))
        assert "".join("".join(split_at_punctuation(line)).split()) == "".join(line.split())


@pytest.mark.parametrize("objective", ["sop", "none"])
@pytest.mark.parametrize("choice", ["split", "truncate"])
def test_what_is_lost_is_said(corpus, tmp_path, capsys, objective, choice):
    """In the summary, the JSON file and, above 5 %, a warning with the way out."""
    words = np.random.RandomState(0).choice(list("나다라마바사"), 60_000)
    lines = [" ".join(words[k : k + 300]) for k in range(0, len(words), 300)]
    (tmp_path / "text.txt").write_text("\n".join(lines))
    flags = (
        f"--input_file={tmp_path}/text.txt",
        f"--objective={objective}",
        f"--long_lines={choice}",
    )
    said = json.loads(run(corpus, tmp_path / "out", *flags).description)
    captured = capsys.readouterr()
    assert said["long_lines"] == 200 and said["settings"]["--long_lines"] == choice
    share, counts = said["pieces_in_no_row_share"], said["pieces_in_no_row"]
    assert share == round(sum(counts.values()) / said["pieces"], 6)
    summary = "\n".join(captured.out.splitlines()[-4:-1])
    assert f"200 lines longer than a row ({choice})" in summary
    assert f"{share:.1%} of the tokens in no row" in summary
    assert said["examples"] == len(records(tmp_path / "out"))
    warned = [w for w in captured.err.splitlines() if "are in no row" in w]
    if choice == "split":
        assert not warned and share <= (0.05 if objective == "sop" else 0)
        return
    (warning,) = warned
    reason = f"{counts[LONG_LINES]:,} of lines longer than a row)"
    assert f"{reason}; what helps: --long_lines=split" in warning
    assert ("--split_sentences" in warning) is (objective == "sop") and share > 0.75


def test_the_ways_out_suit_the_settings():
    _, _, statistics = make(some_documents(20), "sop")
    rules = PairRules("sop", LENGTH, 0.1, CLS, SEP, "split")
    (line,) = find_lost_text(statistics, rules)
    assert "--split_sentences" in line and "--long_lines" not in line and "--dupe_factor" in line
    (line,) = find_lost_text(statistics, rules, split_sentences=True)
    assert "--split_sentences" not in line and "--objective=none" in line
