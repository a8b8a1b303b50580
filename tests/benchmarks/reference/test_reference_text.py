"""Tests of the text that the reference run trains on."""

import gzip
import json

from benchmarks.common import parser_of
from benchmarks.reference import text
from benchmarks.reference.tasks import find_tasks
from tests.support.task_data import squad_entry, squad_file, write_published, write_questions


def divide(tmp_path, **flags):
    out = tmp_path / "out"
    given = [f"--{name}={value}" for name, value in {**flags, "output_dir": out}.items()]
    text.main(parser_of(text.__doc__, text.FLAGS).parse_args(given))
    report = json.loads((out / "report.json").read_text())
    return (out / "train.txt").read_text(), (out / "heldout.txt").read_text(), report


def test_text_is_divided(tmp_path):
    """Files end documents; a held-out document is not trained on; reviews are documents."""
    (tmp_path / "a.txt").write_text("가.\n나.\n\n다.\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("라.\n\n\n마.\n바.\n")
    (tmp_path / "held.txt").write_text("다.\n\n사.\n")
    reviews = "id\tdocument\tlabel\n1\t재밌다\t1\n2\t\t0\n3\t별로 \t0\n"
    (tmp_path / "ratings_train.txt").write_text(reviews)
    train, held_out, report = divide(
        tmp_path,
        corpus=f"{tmp_path}/a.txt,{tmp_path}/b.txt.gz",
        held_out=f"{tmp_path}/held.txt",
        reviews=f"{tmp_path}/ratings_train.txt",
        repeat_reviews=2,
    )
    assert train == "가.\n나.\n\n라.\n\n마.\n바.\n\n" + 2 * "재밌다\n\n별로\n\n"
    assert held_out == "다.\n\n사.\n\n"
    counted = {"documents": 3, "reviews": 4, "held_out_documents": 2, "left_out_documents": 1}
    assert {name: report[name] for name in counted} == counted
    assert report["megabytes"] == len(train.encode()) / 1e6


def test_what_is_held_out_is_not_trained_on(tmp_path):
    """Where a document repeats, before or after its hundredth place; a byte-order mark is none."""
    lines = [f"{i}" for i in range(1, 301)]
    lines[99] = lines[249] = "later"  # held out; left out
    lines[10] = lines[199] = "earlier"  # trained on; not held out
    text = "".join(f"{line}\n\n" for line in lines)
    (tmp_path / "a.txt").write_text(text, encoding="utf-8-sig")
    reviews = "id\tdocument\tlabel\n1\t재밌다\t1\n"
    (tmp_path / "reviews.txt").write_text(reviews, encoding="utf-8-sig")
    train, held_out, report = divide(
        tmp_path, corpus=f"{tmp_path}/a.txt", reviews=f"{tmp_path}/reviews.txt"
    )
    assert held_out == "later\n\n300\n\n"
    assert train.startswith("1\n\n2\n") and train.endswith("299\n\n재밌다\n\n")
    assert "later" not in train and train.count("earlier") == 2
    assert report["left_out_documents"] == 1


def test_text_of_dev_and_test_parts_is_left_out(tmp_path):
    """Sentences of reviews, questions and tagged text, whatever the spaces; not what is short."""
    review = "배우들의 연기가 훌륭하고 음악도 아름다워서 두 번이나 다시 본 영화"
    context = "서울은 대한민국의 수도이며 한강을 끼고 있는 오래된 도시이다. " + "가나다라마 " * 20
    tagged = "세종대왕은 훈민정음을 만들어 백성들이 글을 쉽게 배우도록 하였다"
    write_tasks(tmp_path / "tasks", review, context, tagged)
    kept = "아주 다른 글이며 어디에도 나오지 않는 문장이라서 그대로 남아 있어야 한다"
    documents = (
        [kept, context.replace(" ", "  ")[:50]], [kept, tagged], [kept, "서울은 대한민국의 수도"],
        ["머리말 " + review * 2],
    )  # fmt: skip
    (tmp_path / "a.txt").write_text("\n\n".join("\n".join(lines) for lines in documents))
    (tmp_path / "reviews.txt").write_text(f"{review}\n재미있다\n{kept}\n")
    (tmp_path / "held.txt").write_text("다.\n")
    train, _, report = divide(
        tmp_path,
        corpus=f"{tmp_path}/a.txt",
        held_out=f"{tmp_path}/held.txt",
        reviews=f"{tmp_path}/reviews.txt",
        tasks_dir=f"{tmp_path}/tasks",
    )
    assert train == f"{kept}\n서울은 대한민국의 수도\n\n재미있다\n\n{kept}\n\n"
    assert (report["left_out_documents"], report["left_out_reviews"]) == (3, 1)
    assert list(find_tasks(tmp_path / "tasks")) == ["nsmc", "korquad"]


def write_tasks(folder, review, context, tagged):
    """A test part, and two dev parts, of one example each; of one without a training part."""
    write_published(folder / "nsmc", "nsmc", train=[("나", 1)], test=[(review, 1)])
    (folder / "korquad").mkdir()
    (folder / "klue-ner-v1.1").mkdir()
    for split, passage, sentence in (("train", "가", "나"), ("dev", context, tagged)):
        qas = [squad_entry("1", passage, passage[0], question="언제?")]
        path = folder / "korquad" / f"KorQuAD_v1.0_{split}.json"
        write_questions(path, squad_file([{"context": passage, "qas": qas}]))
        body = "".join(f"{letter}\tO\n" for letter in sentence)
        if split == "train":
            continue
        path = folder / "klue-ner-v1.1" / f"klue-ner-v1.1_{split}.tsv"
        path.write_text(f"## klue-ner-v1_{split}_00000\t{sentence}\n{body}\n")
