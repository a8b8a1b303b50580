"""Tests of the text that the reference run trains on."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.common import parser_of
from benchmarks.reference import text
from benchmarks.reference.tasks import find_tasks
from tests.support.task_data import squad_entry, squad_file, write_published, write_questions

REVIEWS = "id\tdocument\tlabel\n"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def divide(**flags):
    given = [f"--{name}={value}" for name, value in {**flags, "output_dir": "out"}.items()]
    text.main(parser_of(text.__doc__, text.FLAGS).parse_args(given))
    train, held_out, report = (
        Path("out", name).read_text() for name in ("train.txt", "heldout.txt", "report.json")
    )
    return train, held_out, json.loads(report)


def test_text_is_divided():
    """Files end documents; a held-out document is not trained on; reviews are documents."""
    Path("a.txt").write_text("가.\n나.\n\n다.\n")
    Path("b.txt.gz").write_bytes(gzip.compress("라.\n\n\n마.\n바.\n".encode()))
    Path("held.txt").write_text("다.\n\n사.\n")
    Path("ratings_train.txt").write_text(f"{REVIEWS}1\t재밌다\t1\n2\t\t0\n3\t별로 \t0\n")
    corpus = {"corpus": "a.txt,b.txt.gz", "held_out": "held.txt"}
    train, held_out, report = divide(**corpus, reviews="ratings_train.txt", repeat_reviews=2)
    assert train == "가.\n나.\n\n라.\n\n마.\n바.\n\n" + 2 * "재밌다\n\n별로\n\n"
    assert held_out == "다.\n\n사.\n\n"
    counted = {"documents": 3, "reviews": 4, "held_out_documents": 2, "left_out_documents": 1}
    assert {name: report[name] for name in counted} == counted
    assert report["megabytes"] == len(train.encode()) / 1e6


def test_what_is_held_out_is_not_trained_on():
    """Where a document repeats, before or after its hundredth place; a byte-order mark is none."""
    lines = [f"{i}" for i in range(1, 301)]
    lines[99] = lines[249] = "later"  # held out; left out
    lines[10] = lines[199] = "earlier"  # trained on; not held out
    Path("a.txt").write_text("".join(f"{line}\n\n" for line in lines), encoding="utf-8-sig")
    Path("reviews.txt").write_text(f"{REVIEWS}1\t재밌다\t1\n", encoding="utf-8-sig")
    train, held_out, report = divide(corpus="a.txt", reviews="reviews.txt")
    assert held_out == "later\n\n300\n\n"
    assert train.startswith("1\n\n2\n") and train.endswith("299\n\n재밌다\n\n")
    assert "later" not in train and train.count("earlier") == 2
    assert report["left_out_documents"] == 1


def test_text_of_dev_and_test_parts_is_left_out():
    """Sentences of reviews, questions and tagged text, whatever the spaces; not what is short."""
    review = "배우들의 연기가 훌륭하고 음악도 아름다워서 두 번이나 다시 본 영화"
    context = "서울은 대한민국의 수도이며 한강을 끼고 있는 오래된 도시이다. " + "가나다라마 " * 20
    tagged = "세종대왕은 훈민정음을 만들어 백성들이 글을 쉽게 배우도록 하였다"
    write_tasks(Path("tasks"), review, context, tagged)
    kept = "아주 다른 글이며 어디에도 나오지 않는 문장이라서 그대로 남아 있어야 한다"
    documents = (
        f"{kept}\n{context.replace(' ', '  ')[:50]}",
        f"{kept}\n{tagged}",
        f"{kept}\n서울은 대한민국의 수도",
        f"머리말 {review * 2}",
    )
    Path("a.txt").write_text("\n\n".join(documents))
    Path("reviews.txt").write_text(f"{review}\n재미있다\n{kept}\n")
    Path("held.txt").write_text("다.\n")
    given = {"corpus": "a.txt", "held_out": "held.txt", "reviews": "reviews.txt"}
    train, _, report = divide(**given, tasks_dir="tasks")
    assert train == f"{kept}\n서울은 대한민국의 수도\n\n재미있다\n\n{kept}\n\n"
    assert (report["left_out_documents"], report["left_out_reviews"]) == (3, 1)
    assert list(find_tasks("tasks")) == ["nsmc", "korquad"]


def write_tasks(folder, review, context, tagged):
    """A test part, and two dev parts, of one example each; of one without a training part."""
    write_published(folder / "nsmc", "nsmc", train=[("나", 1)], test=[(review, 1)])
    (folder / "korquad").mkdir()
    for split, passage in (("train", "가"), ("dev", context)):
        qas = [squad_entry("1", passage, passage[0], question="언제?")]
        path = folder / "korquad" / f"KorQuAD_v1.0_{split}.json"
        write_questions(path, squad_file([{"context": passage, "qas": qas}]))
    (folder / "klue-ner-v1.1").mkdir()
    body = "".join(f"{letter}\tO\n" for letter in tagged)
    path = folder / "klue-ner-v1.1" / "klue-ner-v1.1_dev.tsv"
    path.write_text(f"## klue-ner-v1_dev_00000\t{tagged}\n{body}\n")
