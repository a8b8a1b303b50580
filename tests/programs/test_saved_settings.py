"""Which flags may differ from what a fine-tuned model's folder has saved."""

import contextlib
import dataclasses
import json
import unicodedata

import pytest

from finetuning.tasks import TASKS
from model_formats.transformers_files.task_settings import SETTINGS_KEY
from run_scripts.classifier import ClassifierFlags
from run_scripts.conversion import export_model
from run_scripts.downstream.saved_settings import find_model, saved_task_flags
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import find_fine_tuned
from run_scripts.flags.parser import parse
from run_scripts.ner import NerFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.squad import SquadFlags
from tests.support.models.model_folders import change_json, write_folder
from tests.support.refusals import refused

SAVED = {"text_column": "text", "label_column": "label", "task_name": "tsv"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Task -> the folder of a model that was fine-tuned on it."""
    place = tmp_path_factory.mktemp("saved")
    write_folder(place / "classification", task="classification", **SAVED)
    write_folder(place / "question_answering", task="question_answering")
    return place


def filled(folders, name, flags_class, task=None, **flags):
    given = flags_class(output_dir=str(folders / name), **flags)
    saved = saved_task_flags(given, find_model(given), TASKS[task or name])
    return resolve_model_defaults(given, "bert", **saved)


def test_what_is_not_given_is_the_folder_s(folders):
    values = filled(folders, "classification", ClassifierFlags, data_dir="d")
    assert (values.task_name, values.text_column, values.max_seq_length) == ("tsv", "text", 16)
    assert values.labels == "나쁨,보통,좋음" and values.second_column is None
    values = filled(folders, "question_answering", SquadFlags)
    assert (values.max_seq_length, values.version_2_with_negative) == (24, False)


@pytest.mark.parametrize("name, value", (("max_seq_length", 10**20), ("task_name", "trivia")))
def test_what_the_folder_holds_is_checked(name, value, tmp_path):
    write_folder(tmp_path / "qa", task="question_answering", **{name: value})
    with refused(f"finetuning.json: the setting {name} must be"):
        filled(tmp_path, "qa", SquadFlags, "question_answering")


def test_what_a_model_to_start_from_holds_is_checked(tmp_path):
    write_folder(tmp_path / "s", task="similarity", pooling="median")
    flags = {"model_dir": str(tmp_path / "s"), "do_train": True}
    with refused("finetuning.json: the setting pooling must be mean or"):
        filled(tmp_path, "new", SimilarityFlags, "similarity", **flags)


@pytest.mark.parametrize("value", (True, "24", 10**10))
def test_what_a_folder_for_transformers_holds_is_checked(value, tmp_path):
    write_folder(tmp_path / "qa", task="question_answering")
    exported = ["--format=huggingface", f"--output_dir={tmp_path / 'hub'}"]
    assert export_model.main(["export_model", f"--model_dir={tmp_path / 'qa'}", *exported]) == 0
    path = tmp_path / "hub" / "config.json"
    kept = json.loads(path.read_text())[SETTINGS_KEY]
    change_json(path, **{SETTINGS_KEY: {**kept, "doc_stride": value}})
    with refused("config.json: the setting doc_stride must be a whole"):
        filled(tmp_path, "new", SquadFlags, "question_answering", model_dir=str(tmp_path / "hub"))


@pytest.mark.parametrize(
    "task, flags_class, labels",
    (
        ("classification", ClassifierFlags, "나쁨,보통,좋음"),
        ("ner", NerFlags, "B-장소,I-장소,O"),
    ),
)
def test_labels_that_an_earlier_version_saved_as_given(task, flags_class, labels, tmp_path):
    """The command that trained the model goes on with it."""
    apart = unicodedata.normalize("NFD", labels)
    write_folder(tmp_path / task, task=task, labels=apart)
    values = parse(flags_class, ["x", f"--output_dir={tmp_path / task}", f"--labels={apart}"])
    filled(tmp_path, task, flags_class, labels=values.labels, do_train=True)
    with refused("was trained with"):
        filled(tmp_path, task, flags_class, labels=values.labels[:-2], do_train=True)


@pytest.mark.parametrize(
    "task, flags_class, flags, evaluates, trains",
    (
        ("classification", ClassifierFlags, {"max_seq_length": 12}, True, True),
        ("classification", ClassifierFlags, {"text_column": "document"}, True, False),
        ("classification", ClassifierFlags, {"task_name": "csv"}, True, False),
        ("classification", ClassifierFlags, {"metrics": "macro_f1"}, True, False),
        # The file has null: the training left the default to the program.
        ("classification", ClassifierFlags, {"task_type": "single_label"}, True, True),
        ("classification", ClassifierFlags, {"labels": "좋음,나쁨"}, False, False),
        ("classification", ClassifierFlags, {"task_name": "nsmc"}, False, False),  # no own file
        ("classification", ClassifierFlags, {"task_type": "multi_label"}, False, False),
        ("question_answering", SquadFlags, {"doc_stride": 4, "n_best_size": 7}, True, True),
        ("question_answering", SquadFlags, {"version_2_with_negative": True}, False, False),
    ),
    ids=str,
)
def test_what_may_differ(task, flags_class, flags, evaluates, trains, folders):
    (name, *_) = flags
    said = f"--{name} must be what the model in {folders / task} was trained with"
    for may, do_train in ((evaluates, False), (trains, True)):
        given = {**flags, "do_train": do_train}
        with contextlib.nullcontext() if may else refused(said):
            values = filled(folders, task, flags_class, **given)
            assert {name: getattr(values, name) for name in given} == given


@pytest.mark.parametrize("name", ("model.ckpt-best", "model.ckpt-7"))
def test_a_trained_checkpoint_in_the_output_folder_is_used(name, tmp_path):
    """Of google-research/albert's run_squad only the best may be left, without a record here."""
    albert, output = tmp_path / "albert", tmp_path / "output"
    write_folder(albert, "albert")
    given = {"output_dir": str(output), "model_dir": str(albert)}
    asked = (SquadFlags(**given), SquadFlags(**given, init_checkpoint=str(albert / "model.ckpt")))
    assert all(find_model(flags).checkpoint for flags in asked)
    output.mkdir()
    (output / f"{name}.index").touch()
    for flags in asked:
        model = find_model(flags)
        assert model.checkpoint is None and find_fine_tuned(flags, model) == str(output / name)
        trains = dataclasses.replace(flags, do_train=True)
        assert find_model(trains).checkpoint.startswith(str(albert))
