"""Questions with options: RACE's folders, JSON lines, rows as Google makes them."""

import json

import pytest

from finetuning.multiple_choice.data import (
    ChoiceQuestion,
    check_lengths,
    encode_choices,
    fill_in,
    make_rows,
    pad_choices,
    read_choices,
    read_race,
)
from tests.support.models.released_models import SPM_MODEL
from tests.support.refusals import refused
from tests.support.task_data import write_tokenizer
from tests.support.vocabularies import write_lines
from tokenization import SentencePieceTokenizer

ARTICLE = {
    "article": "It rained.",
    "questions": ["What did it do?", "It _ ."],
    "options": [["rain", "snow", "hail", "stop"], ["ran", "rained", "fell", "sat"]],
    "answers": ["A", "B"],
    "id": "high3.txt",
}
LINE = {"context": "c", "question": "q", "options": ["x", "y", "z"], "label": 2}


def write_race(folder, **changes):
    """Two articles, one of each level; changes are of the second."""
    for level, name in (("high", "3.txt"), ("middle", "10.txt"), ("middle", "2.txt")):
        path = folder / "train" / level / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**ARTICLE, "article": name}))
    path = folder / "train" / "high" / "3.txt"
    path.write_text(json.dumps({**ARTICLE, **changes}))
    (folder / "train" / "high" / "notes.md").write_text("no article")


OF_THE_SECOND = ("It rained.", "It _ .", ("ran", "rained", "fell", "sat"), 1)


@pytest.mark.parametrize("inside", ("", "RACE"))
def test_race(tmp_path, inside):
    write_race(tmp_path / inside)
    choices = read_race(tmp_path, "train")
    assert [c.id for c in choices] == [f"{file}.txt-{i}" for file in (10, 2, 3) for i in (0, 1)]
    assert choices[5] == ChoiceQuestion("3.txt-1", *OF_THE_SECOND)
    assert [c.id for c in read_race(tmp_path, "train", ("high",))] == ["3.txt-0", "3.txt-1"]


@pytest.mark.parametrize(
    "changes, words",
    (
        ({"answers": ["A"]}, ("questions, options and answers must be equal. Received: 2, 2, 1",)),
        ({"answers": ["A", "E"]}, ("question 2: the label must be 0 to 3, ", " A. Received: 'E'")),
        ({"article": None}, ("'article' must be a string. Received: None",)),
        ({"options": [["x", "y"], ["x", "y"]], "answers": ["A", "A"]}, ("Received: 2 and 4",)),
    ),
)
def test_broken_race(tmp_path, changes, words):
    write_race(tmp_path, **changes)
    with refused(*words):
        read_race(tmp_path, "train")


def test_race_with_an_article_a_line(tmp_path):
    """The layout that google-research/albert reads, with or without the single articles beside."""
    write_race(tmp_path)
    path = tmp_path / "train" / "high" / "all.txt"
    lines = [{**ARTICLE, "id": "high7.txt"}, ARTICLE, {k: ARTICLE[k] for k in ARTICLE if k != "id"}]
    write_lines(path, map(json.dumps, lines))
    choices = read_race(tmp_path, "train", ("high",))
    names = [choice.id.rpartition("-")[0] for choice in choices]
    assert names == ["high7.txt"] * 2 + ["high3.txt"] * 2 + ["3"] * 2
    assert choices[1] == ChoiceQuestion("high7.txt-1", *OF_THE_SECOND)
    path.write_text(json.dumps(ARTICLE) + "\n" + json.dumps({**ARTICLE, "answers": ["A", "E"]}))
    with refused("all.txt line 2 question 2: the label ", " Received: 'E'"):
        read_race(tmp_path, "train")


def test_an_article_whose_name_is_not_utf8(tmp_path):
    """Its id is written to a table, which is."""
    write_race(tmp_path)
    path = tmp_path / "train" / "high" / "3.txt"
    try:
        path.rename(path.with_name("\udcff.txt"))
    except OSError:
        pytest.skip("this file system has no such names")
    choices = read_race(tmp_path, "train", ("high",))
    assert [c.id for c in choices] == ["\ufffd.txt-0", "\ufffd.txt-1"]


def test_missing_race(tmp_path):
    with refused("RACE needs a folder ", "dev", " Received: no such folder"):
        read_race(tmp_path, "dev")
    (tmp_path / "dev" / "middle").mkdir(parents=True)
    with refused("middle must hold articles"):
        read_race(tmp_path, "dev")


def test_json_lines(tmp_path):
    """pandas writes the whole numbers of a table that lacks some as floats."""
    labels = {"2": 2, "n": "B", None: None, 7.0: 1.0}
    lines = [{**LINE, "label": label, "id": name} for name, label in labels.items()]
    choices = read_choices(write_lines(tmp_path / "c.jsonl", map(json.dumps, [LINE, *lines])))
    expected = [("1", 2), ("2", 2), ("n", 1), ("4", None), ("7", 1)]
    assert [(c.id, c.label) for c in choices] == expected
    assert choices[0].options == ("x", "y", "z")


@pytest.mark.parametrize(
    "changes, words",
    (
        ("{", ("line 1 must hold JSON",)),
        ("3", ("line 1 must be an object. Received: 3",)),
        ({"label": 3}, ("line 1: the label must be 0 to 2, or a letter ", " 3")),
        ({"label": True}, ("Received: True",)),
        ({"label": 1.5}, ("Received: 1.5",)),
        ({"label": 3.0}, ("Received: 3.0",)),
        ({"label": float("nan")}, ("Received: nan",)),
        ({"options": "xy"}, ("'options' must be a list. Received: 'xy'",)),
        ({"options": ["x", 3]}, ("at least two strings",)),
        ({"options": ["x"]}, ("at least two strings",)),
        ({"question": 3}, ("'question' must be a string. Received: 3",)),
    ),
)
def test_broken_lines(tmp_path, changes, words):
    text = changes if isinstance(changes, str) else json.dumps({**LINE, **changes})
    (tmp_path / "c.jsonl").write_text(f"{text}\n")
    with refused(*words):
        read_choices(tmp_path / "c.jsonl")


def test_rows(tmp_path):
    assert fill_in("그는 _ 있다.", "집에") == "그는 집에 있다."
    tokenizer = write_tokenizer(tmp_path)
    context, options = "임종석은 서울에서 체포됐다.", ("그", "학생은 누구가")
    choice = ChoiceQuestion("x", context, "누구가", options, 0)

    def rows(*lengths):
        made = make_rows(tokenizer, *encode_choices(tokenizer, [choice], lengths[1]), lengths[0])
        return [" ".join(tokenizer.convert_ids_to_tokens(row.ids.tolist())) for row in made], made

    whole = "[CLS] 임종석 ##은 서울 ##에서 체포 ##됐 ##다 . [SEP] 누구 ##가 그 [SEP]"
    assert rows(32, 8)[0][0] == whole
    # The context loses its end, question and option their beginning.
    tokens, made = rows(10, 4)
    assert tokens == [
        "[CLS] 임종석 ##은 서울 ##에서 [SEP] 누구 ##가 그 [SEP]",
        "[CLS] 임종석 ##은 서울 [SEP] 학생 ##은 누구 ##가 [SEP]",
    ]
    assert made[1].segment_ids.tolist() == [0] * 5 + [1] * 5
    batch = pad_choices([made, made, made], 12, pad_id=0)
    assert batch["input_ids"].shape == (3, 2, 12)
    assert batch["input_ids"][2, 1].tolist() == [*made[1].ids, 0, 0]
    assert batch["input_mask"][0, 0].tolist() == [1] * 10 + [0, 0]
    with refused("from 1 to 7, as rows of ", " Received: 8"):
        check_lengths(10, 8)


@pytest.mark.parametrize("question", ("He went _.", "Is it (_)?", "He went to"))
def test_options_are_prepared_as_google_s(tmp_path, question):
    """race_utils.py preprocesses question and option, each by itself, for SentencePiece alone."""
    options = (" home\u00a0", "\u3000to  the city\n", "home")
    choice = ChoiceQuestion("x", "He left.", question, options, 0)
    spm, words = SentencePieceTokenizer(SPM_MODEL), write_tokenizer(tmp_path)
    prepared = [fill_in(question, " ".join(option.split())) for option in options]
    as_is = [fill_in(question, option) for option in options]
    for tokenizer, texts in ((spm, prepared), (words, as_is)):
        (encoded,) = encode_choices(tokenizer, [choice], 32)
        assert [pair.tolist() for pair in encoded.pairs] == [tokenizer.encode(t) for t in texts]
