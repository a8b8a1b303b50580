"""run_ner on text without tags: a plain text, tokens, a test file; with and without the data."""

import contextlib
import functools
import io
import unicodedata

import pytest

from bert_common.errors import InputError
from finetuning.ner.data import FORMATS, Sentence
from finetuning.ner.untagged import read_untagged, recognize_form
from korean_bert import load_model
from run_scripts import ner
from run_scripts.flags.parser import parse
from tests.support.programs import ClassifierJob
from tests.support.task_data import klue_sentence, read_table

TRAIN = "the O\nfilm B-X\n\nbad O\ngood B-Y\nis I-Y\n\n" * 12


class NerJob(ClassifierJob):
    name, main = "run_ner.py", staticmethod(ner.main)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    job = NerJob(tmp_path_factory.mktemp("ner"))
    job.data.mkdir()
    for split in ("train", "dev"):
        (job.data / f"{split}.txt").write_text(TRAIN)
    (job.data / "test.txt").write_text("the\nfilm\n\nbad\ngood\nis\n")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert job.run(task_name="conll", do_eval=True, do_predict=True) == 0
    job.printed = printed.getvalue()
    return job


def predict(job, path, **flags):
    flags = {"output_dir": job.output, "xla": "off", "predict_file": path, **flags}
    argv = [f"--{name}={value}" for name, value in flags.items() if value is not None]
    return ner.main(["run_ner.py", "--do_predict", *argv])


def found(job, name):
    return [row[1:5] for row in read_table(job.output / f"predictions_{name}.tsv")[1:]]


def test_the_kinds_of_entities_are_counted(job):
    """But not of the test file, which has no tags."""
    lines = [line for line in job.printed.splitlines() if line.startswith("classes of ")]
    assert lines == [f"classes of {split}: X (12), Y (12)" for split in ("train", "dev")]


def test_a_test_file_without_tags_is_predicted(job):
    assert found(job, "test") == [["4", "8", "X", "film"], ["4", "11", "Y", "good is"]]
    lines = (job.output / "tags_test.tsv").read_text().splitlines()
    assert [len(line.split("\t")) for line in lines if line and line[0] != "#"] == [3] * 5
    rows = read_table(job.output / "eval_classes_dev.tsv")
    assert [row[0] for row in rows] == ["class", "X", "Y"] and rows[1][4] == "12"
    assert "test_entity_f1" not in (job.output / "eval_results.txt").read_text()


@pytest.mark.parametrize("where", ("text", "tokens", "tagged"))
def test_a_file_alone_is_predicted(job, where, tmp_path, capsys):
    path = tmp_path / f"new_{where}.txt"
    contents = {
        "text": "\ufeffthe film\r\n\r\n  bad good is\r\n\u200b\n",
        "tokens": "the\nfilm\n\n\nbad\ngood\nis\n\n",
        "tagged": "the O\nfilm O\n\nbad O\ngood O\nis O\n",
    }
    path.write_bytes(contents[where].encode())
    assert predict(job, path) == 0
    second = ["6", "13"] if where == "text" else ["4", "11"]  # characters of the line
    assert found(job, path.stem) == [["4", "8", "X", "film"], [*second, "Y", "good is"]]
    if where == "text":
        (entity,) = load_model(job.output).predict("  bad good is").entities  # as in Python
        assert [str(entity.start), str(entity.end)] == second
    places = [row[0] for row in read_table(job.output / f"predictions_{path.stem}.tsv")[1:]]
    lines = {"text": (1, 3), "tokens": (1, 5), "tagged": (1, 4)}[where]
    assert places == [f"{path} line {line}" for line in lines]
    assert f"{path}: read as " in capsys.readouterr().out


def test_a_file_named_as_a_split_hides_none(job, tmp_path):
    path = tmp_path / "dev.txt"
    path.write_text("the film\n")
    assert predict(job, path, data_dir=job.data, do_eval=True) == 0
    assert found(job, "file_dev") == [["4", "8", "X", "film"]]
    assert "eval_entity_f1" in (job.output / "eval_results.txt").read_text()


def test_the_form_can_be_given(job, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("film\ngood\n")
    assert recognize_form(str(path), FORMATS["conll"]) == "text"
    assert predict(job, path, predict_format="tokens") == 0
    assert len((job.output / "tags_words.tsv").read_text().split("##")) == 2


@pytest.mark.parametrize(
    "name, content, form, message",
    (
        # Its header, commas and keys would be found to be entities.
        ("new.csv", "id,text\n1,the film\n", None, "must hold only the texts, one per line"),
        ("a.JSONL", '{"text": "the film is"}\n', None, "must hold only the texts, one per line"),
        ("none.txt", " \n\n", None, "must hold a sentence. Received: none"),
        ("a.txt", "the\nfilm\n\nbad good\n", "tokens", "line 4 must have 1 columns: a token, with"),
    ),
)
def test_files_that_are_not_predicted(job, tmp_path, fails, name, content, form, message):
    path = tmp_path / name
    path.write_text(content)
    fails(functools.partial(predict, job, path), message, predict_format=form)
    if name == "new.csv":
        assert predict(job, path, predict_format="text") == 0


def test_nothing_to_evaluate_or_predict(job, fails):
    run = functools.partial(ner.main, ["run_ner.py", f"--output_dir={job.output}", "--do_eval"])
    fails(run, "--data_dir must be given, or --do_predict with --predict_file")


@pytest.mark.parametrize(
    "name, content, form",
    (
        ("klue-ner", klue_sentence("1", "가 나|B-PS O I-PS"), "tagged"),
        ("klue-ner", "가\n \n나\n\n다\n라\n", "tokens"),
        ("klue-ner", "가 나\n다라\n", "text"),
        ("naver-ner", "1\t서울\tLOC_B\n2\t은\t-\n", "tagged"),
        ("naver-ner", "1\t서울\n2\t은\n", "tokens"),
        ("naver-ner", "서울은 춥다\n", "text"),
        ("conll", "서울 B-LC\n은 0\n춥다 O\n", "tagged"),  # one line is wrong: not a text
        ("conll", "서울은 춥다\n나는 간다\n", "text"),
        ("conll-2003", "EU\nrejects\n\nIt\nis\n", "tokens"),
    ),
)
def test_forms_are_recognized(tmp_path, name, content, form):
    path = tmp_path / "any.txt"
    path.write_text(content, encoding="utf-8")
    assert recognize_form(str(path), FORMATS[name]) == form


def test_characters_are_units_without_the_spaces(tmp_path):
    path = tmp_path / "any.txt"
    path.write_text("가\n \n나\n\n다\n", encoding="utf-8")
    first, second = read_untagged(str(path), "tokens", FORMATS["klue-ner"])
    place = f"{path} line 1"
    assert first == Sentence(place, "가 나", ((0, 1), (2, 3)), ("O", "O"), tagged=False)
    assert second.text == "다"


LABELS = "--labels must be O, B-X and I-X of each kind X, each once. Received: "


@pytest.mark.parametrize(
    "tags, labels, message",
    (
        (TRAIN, "O,B-X,B-Y,I-Y", f"{LABELS}O,B-X,B-Y,I-Y"),
        (TRAIN.replace("B-", "I-"), "O,I-X,I-Y", f"{LABELS}O,I-X,I-Y"),
        (TRAIN.replace(" O", " B-X"), "B-X,I-X,B-Y,I-Y", f"{LABELS}B-X,I-X,B-Y,I-Y"),
        (TRAIN.replace("-X", "-X,Z"), None, "train.txt line 2: a tag must not hold a comma"),
    ),
)
def test_tags_that_no_training_can_use(tags, labels, message, tmp_path, fails):
    """A later piece of a word is I-X, I-X that begins an entity becomes B-X, [CLS] is O."""
    job = NerJob(tmp_path)
    job.data.mkdir()
    (job.data / "train.txt").write_text(tags)
    fails(job.run, message, task_name="conll", labels=labels, train_step=1)


def test_spaces_between_tags_on_the_command_line():
    """As run_classifier's --labels may have them."""
    for form in ("NFC", "NFD"):
        labels = unicodedata.normalize(form, "--labels=B-장소, I-장소 ,O")
        values = parse(ner.NerFlags, ["run_ner", "--output_dir=o", labels])
        assert values.labels == "B-장소,I-장소,O"


NONE = "--labels must be given where the model's folder has none. Received: none"


@pytest.mark.parametrize(
    "labels, message",
    (("O,I-X", f"{LABELS}O,I-X"), ("B-X,I-X", f"{LABELS}B-X,I-X"), (None, NONE)),
)
def test_tags_that_no_prediction_can_use(labels, message, tmp_path):
    """A folder of transformers may have them: no entity begins with I-X, and [CLS] is O.

    A model that is not fine-tuned has none.
    """
    (tmp_path / "new.txt").write_text("the film\n")
    flags = {"task_name": "conll", "do_predict": True, "predict_file": str(tmp_path / "new.txt")}
    with pytest.raises(InputError, match=message):
        ner.read_data(ner.NerFlags(output_dir="o", labels=labels, **flags))
