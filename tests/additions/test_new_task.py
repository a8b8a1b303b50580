"""A downstream task is a folder and a row of TASKS: trained, loaded, asked, shown and exported."""

import json

import numpy as np
import pytest
import tensorflow as tf

from explorer.answers import Explored, describe
from explorer.predictions import show_prediction
from finetuning.settings import Setting
from finetuning.tasks import TASKS, Task, TransformersClass
from korean_bert import load_model
from run_scripts import classifier
from run_scripts.conversion.export_model import main as export_model
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags.parser import run_program
from tests.support.programs import ClassifierJob, results
from tests.support.task_data import single_rows, write_splits

SETTINGS = {
    "task_name": Setting(str, "tsv", needed=True),
    "max_seq_length": Setting(int, 16, least=3),
    "labels": Setting(str, needed=True),
}
POLARITY = Task(
    name="polarity",
    package="tests.support.polarity",
    description="fine-tuned to say what is good",
    takes="texts",
    settings=SETTINGS,
    labels="classes",
    fields=("text",),
    view="labels",
    transformers=TransformersClass("ForPolarity", "text-classification"),
)


def train(values):
    """The program of the task."""
    parts = (classifier.read_data, classifier.read_examples, classifier.make_task)
    finetune(values, Program(POLARITY, *parts))


def main(argv=None):
    return run_program(train, classifier.ClassifierFlags, argv)


class PolarityJob(ClassifierJob):
    name, main = "run_polarity.py", staticmethod(main)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that the program trained."""
    place = tmp_path_factory.mktemp("polarity")
    job = PolarityJob(place)
    write_splits(job.data, ["text", "label"], single_rows(80), train=(0, 64), dev=(64, 80))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "polarity", POLARITY)
        assert job.run(do_eval=True, labels="bad,good") == 0
    assert results(job.output)["eval_accuracy"] > 0.9
    return job.output


@pytest.fixture
def model(folder, monkeypatch):
    monkeypatch.setitem(TASKS, "polarity", POLARITY)
    return load_model(folder)


def text_of(label):
    return next(text for text, found in single_rows(80) if found == label)


def test_its_folder_names_it(folder):
    recorded = json.loads((folder / "finetuning.json").read_text())
    assert recorded["task"] == "polarity" and recorded["labels"] == "bad,good"


def test_python_predicts_and_the_page_shows(model):
    found = model.predict([text_of("good"), text_of("bad")])
    assert [each.label for each in found] == ["good", "bad"]
    shown = show_prediction(Explored(model), text_of("good"), None, None)
    assert shown["view"] == "labels" and shown["labels"][0]["label"] == "good"
    described = describe(Explored(model))
    assert described["description"] == POLARITY.description
    assert described["fields"] == ("text",)


def test_it_is_served_and_exported(model, folder, tmp_path):
    for name in ("saved_model", "huggingface"):
        flags = (f"--model_dir={folder}", f"--output_dir={tmp_path / name}", f"--format={name}")
        assert export_model(["export_model.py", *flags]) == 0
    served = tf.saved_model.load(str(tmp_path / "saved_model"))
    shares = served.signatures["serving_default"](text=tf.constant([text_of("good")]))["shares"]
    expected = [*model.predict(text_of("good")).probabilities.values()]
    np.testing.assert_allclose(shares[0], expected, atol=1e-5)
    config = json.loads((tmp_path / "huggingface" / "config.json").read_text())
    assert config["architectures"] == ["BertForPolarity"]
    assert config["id2label"] == {"0": "bad", "1": "good"}
    assert POLARITY.description in (tmp_path / "huggingface" / "README.md").read_text()
    again = load_model(tmp_path / "huggingface")  # the class names the task
    assert again.loaded.task == "polarity"
    assert again.predict(text_of("bad")).label == "bad"
