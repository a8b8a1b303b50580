"""run_classifier on a user's own file: every format gives the same answers."""

import csv
import functools
import importlib
import io
import json

import pytest

from finetuning.classification.columns import Columns, find_columns
from finetuning.classification.custom_data import own_dataset
from finetuning.datasets import DATASETS
from finetuning.readers import read_split
from run_scripts import classifier
from tests.support.programs import ClassifierJob
from tests.support.refusals import refused
from tests.support.task_data import read_table

TEXTS = (
    "나는 학교에 갔다", "the book is", "학교 book", 'the "book", 학교', "갔다 나는", "book 갔다",
)  # fmt: skip
ROWS = [
    (f"{TEXTS[i % 6]} {'나' * (i // 6)}".strip(), "좋음" if i % 3 else "나쁨") for i in range(24)
]
OWN = {"data_dir": None, "task_name": None}  # in place of a task's folder
NEW = ["나는 book", "the 학교", "갔다", 'the "book"']
# Each form in one encoding; `test_every_encoding` has the readers in each.
FORMS = {"csv": "cp949", "tsv": "utf-16", "jsonl": "utf-8", "json": "cp949", "parquet": ""}


def write(path, kind, encoding, names, rows):
    """Writes rows as a file of a kind; returns its path."""
    path = path.with_name(f"{path.name}.{kind}")
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
        parquet = importlib.import_module("pyarrow.parquet")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(arrow.table(columns), path)
        return path
    if kind == "csv":
        table = io.StringIO(newline="")
        csv.writer(table).writerows([names, *rows])
        text = table.getvalue()
    elif kind == "tsv":
        text = "".join("\t".join(row) + "\n" for row in (names, *rows))
    else:
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        lines = [json.dumps(each, ensure_ascii=False) for each in objects]
        text = "\n".join(lines) + "\n" if kind == "jsonl" else f"[{','.join(lines)}]"
    path.write_bytes(text.encode(encoding))
    return path


def read(path):
    columns = find_columns(str(path), Columns(None, None, None))
    dataset = own_dataset({"data": str(path)}, "single_label", columns)
    splits = [read_split(dataset, split, "")[0] for split in ("train", "dev")]
    return dataset.labels, [[(e.text, e.label) for e in split] for split in splits]


@pytest.mark.parametrize("kind, encoding", FORMS.items())
def test_the_same_examples_are_read(tmp_path, kind, encoding):
    path = write(tmp_path / "orders", kind, encoding, ("내용", "분류"), ROWS)
    labels, (train, dev) = read(path)
    plain = read(write(tmp_path / "plain", "jsonl", "utf-8", ("text", "label"), ROWS))
    assert (labels, [train, dev]) == plain and labels == ("나쁨", "좋음")
    assert len(dev) == 3 and {label for _, label in dev} == {0, 1}
    assert not set(train) & set(dev) and len(train) + len(dev) == len(ROWS)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    job = ClassifierJob(folder)
    path = write(folder / "orders", "csv", "cp949", ("내용", "분류"), ROWS)
    assert job.run(**OWN, data_file=path, do_eval=True) == 0
    return job


def predict(job, path=None, **flags):
    flags = {**OWN, "predict_file": path, **flags}
    return job.run(do_train=False, do_eval=False, do_predict=True, **flags)


def write_new(path, kind="csv", names=("내용", "주문"), count=4, encoding="utf-8"):
    """Writes rows to predict."""
    return write(path, kind, encoding, names, [(text, "1") for text in NEW[:count]])


def predictions(job, path):
    assert predict(job, path) == 0
    content = (job.output / f"{path.name.removesuffix('.csv')}_predictions.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_a_file_is_predicted_beside_its_columns(trained, tmp_path):
    header, *found = predictions(trained, write_new(tmp_path / "new", encoding="utf-16"))
    more = ["label", "probability", "second_label", "second_probability"]
    assert header == ["내용", "주문", *more]
    assert [row[:2] for row in found] == [[text, "1"] for text in NEW]
    for row in found:
        assert {row[2], row[4]} == {"나쁨", "좋음"} and float(row[3]) >= float(row[5])
        assert abs(float(row[3]) + float(row[5]) - 1) < 2e-4


def test_predictions_are_predicted_again(trained, tmp_path):
    """By one model after the other: every column has its own name, so that the file can be read."""
    names = ("내용", "label", " probability")
    path = write(tmp_path / "a", "csv", "utf-8", names, [("책", "", "")])
    for times in range(3):
        header, row = predictions(trained, path)
        names = [name.strip() for name in header]
        assert len(set(names)) == len(names) == len(row) == 3 + 4 * (times + 1)
        path = trained.output / f"{path.stem}_predictions.csv"


@pytest.mark.usefixtures("eagerly")
def test_a_file_to_predict_needs_no_ids(tmp_path, fails):
    """The flag that the folder remembers cannot be taken back; one that is given must be right."""
    job = ClassifierJob(tmp_path)
    rows = [(text, label, i) for i, (text, label) in enumerate(ROWS)]
    path = write(tmp_path / "orders", "csv", "utf-8", ("내용", "분류", "번호"), rows)
    assert job.run(**OWN, data_file=path, id_column="번호", train_step=1) == 0
    new = write_new(tmp_path / "new")
    assert predict(job, new) == 0
    ids = [row[0] for row in read_table(job.output / "predictions_new.tsv")[1:]]
    assert ids == [f"{new} line {i}" for i in range(2, 2 + len(NEW))]
    run = functools.partial(predict, job, new)
    fails(run, f"--id_column must name a column of {new}: 내용, 주문", id_column="번호")


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    ("kind", "labels", "shares"),
    [("multi_label", ("좋음", "좋음,나쁨"), ["나쁨", "좋음"]), ("regression", ("1", "2.5"), [])],
)
def test_labels_in_any_number_and_scores_have_one_column(tmp_path, kind, labels, shares):
    """The probabilities of independent labels lie in the other file."""
    job = ClassifierJob(tmp_path)
    rows = [(text, labels[i % 2]) for i, (text, _) in enumerate(ROWS)]
    path = write(tmp_path / "orders", "csv", "utf-8", ("내용", "분류"), rows)
    assert job.run(**OWN, data_file=path, task_type=kind, train_step=1) == 0
    assert predict(job, write_new(tmp_path / "new")) == 0
    table = (job.output / "new_predictions.csv").read_text("utf-8-sig").splitlines()
    assert table[0] == "내용,주문,label" and len(table) == 1 + len(NEW)
    header = read_table(job.output / "predictions_new.tsv")[0]
    assert sorted(header[header.index("prediction") + 1 :]) == shares


def test_the_predictions_of_files_with_one_name_lie_beside_each_other(trained, tmp_path):
    for kind, count in (("csv", 4), ("jsonl", 3), ("tsv", 2)):
        assert predict(trained, write_new(tmp_path / "two", kind, count=count)) == 0
    for name, count in (("two", 4), ("two.jsonl", 3), ("two.tsv", 2)):
        for path in (f"{name}_predictions.csv", f"predictions_{name}.tsv"):
            lines = (trained.output / path).read_text("utf-8-sig").splitlines()
            assert len(lines) == 1 + count, path


def test_a_file_to_predict_may_call_its_text_otherwise(trained, tmp_path, fails, prints):
    path = write_new(tmp_path / "other", names=("문장", "주문"))
    run = functools.partial(predict, trained, path.rename(path.with_suffix(".CSV")))
    assert "text '문장' (--text_column names another)" in prints(run)
    path = write_new(tmp_path / "two", names=("text", "문장"))
    run = functools.partial(predict, trained, path)
    fails(run, "--text_column must name a column")
    assert run(text_column="text") == 0
    fails(run, "--text_column must name a column", text_column="txt")


def test_the_encoding_of_the_flag_decides(trained, tmp_path, capsys, fails):
    run = functools.partial(predict, trained, write_new(tmp_path / "new", encoding="cp949"))
    assert run(encoding="cp949") == 0
    assert "is read as" not in capsys.readouterr().err
    fails(run, "byte 0x", encoding="utf-8")


def test_dev_and_test_may_call_their_columns_otherwise(tmp_path):
    files = {
        "train": write(tmp_path / "train", "csv", "utf-8", ("내용", "분류"), ROWS),
        "dev": write(tmp_path / "dev", "tsv", "cp949", ("text", "label"), ROWS[:3]),
        "test": write(tmp_path / "test", "jsonl", "utf-16", ("review", "분류"), ROWS[:3]),
    }
    columns = Columns("내용", None, "분류", None)
    dataset = own_dataset({s: str(p) for s, p in files.items()}, "single_label", columns)
    found = {split: read_split(dataset, split, "")[0] for split in files}
    rows = [(e.text, dataset.labels[e.label]) for e in found["train"][:3]]
    assert rows == [(text.strip(), label) for text, label in ROWS[:3]]
    for split in ("dev", "test"):
        assert [(e.text, dataset.labels[e.label]) for e in found[split]] == rows


def test_a_test_file_without_labels(trained, tmp_path, prints):
    """Its table, and Google's file of probabilities, each in its own file."""
    path = write_new(tmp_path / "orders")
    shown = prints(functools.partial(predict, trained), test_file=path)
    assert f"orders_predictions.csv: the rows of {path} with" in shown
    table = (trained.output / "orders_predictions.csv").read_text("utf-8-sig").splitlines()
    assert table[0].startswith("내용,주문,label,probability") and len(table) == 1 + len(NEW)
    shares = (trained.output / "test_results.tsv").read_text().splitlines()
    assert len(shares) == len(NEW) and all(len(line.split("\t")) == 2 for line in shares)


def test_a_test_file_whose_labels_are_not_found_is_said(trained, tmp_path, prints):
    dev = write(tmp_path / "dev", "csv", "utf-8", ("내용", "분류"), ROWS[:5])
    test = write(tmp_path / "test", "csv", "utf-8", ("내용", "정답"), ROWS[:5])
    flags = {**OWN, "do_train": False, "do_eval": True, "test_file": test}
    for more, is_said in (({"dev_file": dev}, True), ({"label_column": "정답"}, False)):
        out = prints(trained.run, **flags, **more)
        assert ("test: no labels, so it is not evaluated on (--label_column" in out) == is_said
        assert ("test: 5 examples" in out) != is_said


def test_a_trained_model_takes_files_given_another_way(trained, tmp_path, prints):
    """Trained on --data_file: measured on a folder, on files, whatever their kind."""
    names, data = ("내용", "분류"), tmp_path / "data"
    data.mkdir()
    for kind, flags in (
        ("tsv", {"data_dir": data}),
        ("json", {"data_dir": data, "task_name": "csv"}),
        ("json", {"data_dir": None, "dev_file": data / "dev.json"}),
    ):
        path = write(data / "dev", kind, "utf-8", names, ROWS[:7])
        measure = {"task_name": None, "do_train": False, "do_eval": True}
        assert "dev: 7 examples" in prints(trained.run, **{**measure, **flags})
        path.unlink()
    write(data / "dev", "csv", "utf-8", names, ROWS[:5])
    flags = {"data_dir": data, "task_name": None, "do_train": False, "do_predict": True}
    assert "dev: 5 examples" in prints(trained.run, **flags)
    write_new(data / "test")
    assert trained.run(**flags) == 0
    assert (trained.output / "test_predictions.csv").exists()


@pytest.mark.usefixtures("eagerly")
def test_a_model_of_a_folder_takes_a_file(tmp_path, prints):
    """Trained on --task_name=tsv and --data_dir."""
    job = ClassifierJob(tmp_path)
    job.data.mkdir()
    write(job.data / "train", "tsv", "utf-8", ("text", "label"), ROWS)
    assert job.run(train_step=2) == 0
    path = write(tmp_path / "dev", "csv", "utf-8", ("문장", "분류"), ROWS[:5])
    out = prints(job.run, **OWN, dev_file=path, do_train=False, do_eval=True)
    assert "text '문장', label '분류' (--text_column, --label_column name others)" in out
    assert "dev: 5 examples" in out


def test_what_contradicts(tmp_path, fails):
    job = ClassifierJob(tmp_path)
    job.data.mkdir()
    path = write(tmp_path / "orders", "csv", "utf-8", ("text", "label"), ROWS)
    book = tmp_path / "book.xlsx"
    book.write_bytes(b"PK")
    for flags, said in (
        ({"data_file": path}, "--data_file and --data_dir: only one may be given"),
        (OWN, "--data_dir must be given, or --data_file or"),
        ({"data_dir": None, "task_name": "nsmc", "data_file": path}, "and --task_name: only one"),
        ({**OWN, "data_file": path, "text_column": "txt"}, "--text_column must name a column of"),
        ({**OWN, "data_file": path, "id_column": "no"}, "text, label. Received: no"),
        ({**OWN, "data_file": book}, "(save a workbook as CSV UTF-8)"),
    ):
        fails(job.run, said, do_eval=True, **flags)


def read_new(folder, task, content):
    """Reads a table as a task's --predict_file."""
    new = folder / "new.csv"
    new.write_text(content)
    values = classifier.ClassifierFlags(
        predict_file=str(new), predict_split="new", task_name=task, output_dir="o"
    )
    return read_split(classifier.add_predicted(DATASETS[task], values), "new", "")[0]


@pytest.mark.parametrize(
    "task, content, said",
    (
        # pandas writes 0,1,2,3 where columns have no names; CoLA's files have their text at 3.
        ("cola", "0,1,2,3\nthe film,so good,a,b\n", "--text_column must name a column"),
        ("klue-nli", "premise,b\n가,나\n", "line 1 must name the columns hypothesis"),
        ("klue-re", "sentence,subject_entity,object_entity\n가,나,다\n", "must be JSON, whose"),
    ),
)
def test_a_file_to_predict_that_lacks_columns_of_its_task(tmp_path, task, content, said):
    with refused(said):
        read_new(tmp_path, task, content)


def test_a_file_to_predict_has_the_columns_of_the_test(tmp_path):
    """XNLI's training files have other names."""
    (example,) = read_new(tmp_path, "xnli", "sentence1,sentence2\n가,나\n")
    assert (example.text, example.second) == ("가", "나")
