"""Every program takes a folder that transformers wrote, as --model_dir or as --init_checkpoint."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
from transformers_models import FOLDERS

from bert_common.errors import InputError
from finetuning.tasks import TASKS
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from model_formats.weights import open_weights
from run_scripts import classifier, create_data, extract_features, pretrain, race, similarity, squad
from run_scripts.downstream.saved_settings import find_model, saved_task_flags
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.given_model import GivenModel
from run_scripts.tools import fill_masks, glue_plan
from tests.support.models.model_folders import change_json
from tests.support.models.released_models import PIECES, WRITERS
from tests.support.programs import features, one_line
from tests.support.task_data import WORDS, write_splits

VOCABULARY = [*PIECES, *(f"[unused{i}]" for i in range(61 - len(PIECES)))]


@pytest.fixture
def folder(tmp_path):
    """Two models with a vocabulary, and text."""
    for name in ("bert_erf", "roberta"):
        shutil.copytree(FOLDERS / name, tmp_path / name)
        (tmp_path / name / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
        values = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
        (tmp_path / name / "tokenizer_config.json").write_text(json.dumps(values))
    sentences = [" ".join(np.random.default_rng(i).choice(WORDS, 6)) for i in range(12)]
    documents = ["\n".join(sentences[i : i + 6]) for i in range(0, 12, 6)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents) + "\n")
    rows = [(sentence, ("yes", "no")[i % 2]) for i, sentence in enumerate(sentences)]
    write_splits(tmp_path / "classes", ("text", "label"), rows, train=(0, 8), dev=(8, 12))
    return tmp_path


def test_the_folder_has_the_parts_of_the_model(folder):
    given = PretrainFlags(input_file="a", output_dir="b", model_dir=str(folder / "roberta"))
    model = GivenModel.of(given)
    assert model.config_file.path == str(folder / "roberta" / "config.json")
    assert model.checkpoint == str(folder / "roberta" / "model.safetensors")
    assert model.model_type == "bert"


@pytest.mark.slow
def test_features(folder, capsys):
    model = folder / "roberta"
    argv = (folder / "text.txt", folder / "x.npz", "--max_seq_length=16")
    expected = features(*argv, f"--model_dir={model}")
    single = (*argv, f"--bert_config_file={model}/config.json", f"--tokenizer_dir={model}")
    for weights in (model, model / "model.safetensors"):
        found = features(*single, f"--init_checkpoint={weights}")
        np.testing.assert_array_equal(found, expected, err_msg=str(weights))
    assert "was trained with" not in capsys.readouterr().err
    other = features(*single, f"--init_checkpoint={folder}/bert_erf")
    shown = capsys.readouterr().err
    assert "with layer_norm_eps=1e-12, but the model has layer_norm_eps=1e-05" in shown
    assert np.abs(other - expected).max() > 0.1


def test_guesses(folder, capsys):
    argv = ["fill_masks", f"--model_dir={folder}/bert_erf", "--text=The [MASK] is tall."]
    assert fill_masks.main(argv) == 0
    assert capsys.readouterr().out.count("%") == 5


@pytest.mark.slow
def test_pretraining_continues(folder, capsys):
    records, model = folder / "records.tfrecord", folder / "bert_erf"
    argv = ["create", f"--model_dir={model}", f"--input_file={folder}/text.txt"]
    flags = [f"--output_file={records}", "--max_seq_length=16", "--num_workers=1"]
    assert create_data.main([*argv, *flags]) == 0
    argv = ["run", f"--model_dir={model}", f"--input_file={records}"]
    flags = ["--do_train", "--train_batch_size=2", "--num_train_steps=1", "--xla=off"]
    assert pretrain.main([*argv, f"--output_dir={folder}/trained", *flags]) == 0
    shown = capsys.readouterr().out
    assert f"starting from --init_checkpoint: {model}/model.safetensors: " in shown
    assert ", 0 in the file ignored" in shown and "initial values" not in shown
    config = json.loads((folder / "trained" / "bert_config.json").read_text())
    assert config["hidden_act"] == "gelu_erf" and "layer_norm_eps" not in config
    # The result is a folder of this project.
    assert fill_masks.main(["f", f"--model_dir={folder}/trained", "--text=The [MASK] is."]) == 0
    # Without a pooler that, with the head that reads it, is new.
    argv[1] = f"--model_dir={folder}/roberta"
    assert pretrain.main([*argv, f"--output_dir={folder}/other", *flags]) == 0
    shown = capsys.readouterr().out
    assert "4 keep their initial values (bert/pooler/dense/kernel, " in shown
    config = json.loads((folder / "other" / "bert_config.json").read_text())
    assert config["layer_norm_eps"] == 1e-5 and config["type_vocab_size"] == 2


@pytest.fixture
def model(tmp_path):
    """A classifier of transformers, whose config.json a test may change."""
    return shutil.copytree(FOLDERS / "bert_classifier", tmp_path / "m")


def saved(model, flags_of=classifier.ClassifierFlags, task="classification", **flags):
    """The flags of a program for a model, and what the model's folder has saved of them."""
    flags = {"model_dir": str(model), "output_dir": f"{model}/../out", **flags}
    given = flags_of(**flags)
    return given, saved_task_flags(given, find_model(given), TASKS[task])


ON_TABLES = {"data_dir": "d", "task_name": "tsv"}


def test_the_order_of_the_classes_in_an_evaluation(model, capsys):
    """It is that of config.json, as the head has it; the flags of a known task must not differ."""

    def labels(names, task, **flags):
        change_json(model / "config.json", id2label=dict(enumerate(names)))
        given, found = saved(model, data_dir="d", task_name=task, **flags)
        return found.get("labels", given.labels)

    assert labels(("good", "bad"), "tsv") == "good,bad"
    assert labels(("good", "bad"), "tsv", labels="bad,good") == "bad,good"
    assert labels(("good", "bad"), "tsv", do_train=True) is None
    # Then nothing says whether the classes are in the order of the files' labels.
    for task, more, is_said in (
        ("tsv", {}, True),
        ("tsv", {"labels": "b,a"}, False),
        ("nsmc", {}, False),
    ):
        assert labels(("LABEL_0", "LABEL_1"), task, **more) == more.get("labels")
        assert ("the model's classes have no names" in capsys.readouterr().out) == is_said
    assert labels(("0", "1"), "nsmc") is None
    other_order = "the classes 0, 1 in this order. Received: .* with 1, 0"
    with pytest.raises(InputError, match=other_order):
        labels(("1", "0"), "nsmc")
    # Google's configuration beside it says nothing of classes.
    shutil.copy(model / "config.json", model / "bert_config.json")
    assert labels(("good", "bad"), "tsv") == "good,bad"
    with pytest.raises(InputError, match=other_order):
        labels(("1", "0"), "nsmc")


def test_a_file_to_predict_needs_no_task_name(model, tmp_path):
    """A transformers folder records none; the file is the user's own."""
    change_json(model / "config.json", id2label={"0": "좋음", "1": "나쁨"})
    (tmp_path / "new.csv").write_text("내용\n빨라요\n")
    flags = {"predict_file": f"{tmp_path}/new.csv", "do_predict": True, "predict_split": "new"}
    given, found = saved(model, **flags)
    dataset = classifier.read_data(dataclasses.replace(given, **found))
    assert dataset.labels == ("좋음", "나쁨") and list(dataset.sources) == ["new"]
    with pytest.raises(InputError, match="--task_name must be one of .* Received: none"):
        classifier.read_data(dataclasses.replace(given, predict_file=None, data_dir="d"))


@pytest.mark.parametrize(
    "kind, flags, task_type",
    (
        ("multi_label_classification", {}, "multi_label"),
        ("multi_label_classification", {"labels": "a,b,c"}, "multi_label"),
        ("multi_label_classification", {"task_type": "single_label"}, "single_label"),
        ("multi_label_classification", {"task_name": "klue-nli"}, None),
        ("single_label_classification", {}, "single_label"),
        (None, {}, "single_label"),
        ("regression", {}, "regression"),
    ),
    ids=str,
)
def test_the_kind_of_labels_in_an_evaluation(kind, flags, task_type, model):
    """It is that of config.json: probabilities of several labels do not add up to one."""
    names = {"0": "x"} if kind == "regression" else {"0": "x, y", "1": "z", "2": "w"}
    names |= {} if "labels" in flags or kind == "regression" else {"0": "x"}
    change_json(model / "config.json", id2label=names, problem_type=kind)
    given, found = saved(model, **{**ON_TABLES, **flags})
    assert found.get("task_type", given.task_type) == task_type


@pytest.mark.parametrize(
    "name, found",
    (("BertForTokenClassification", "ner"), ("BertForMultipleChoice", "multiple_choice")),
)
def test_a_head_of_another_task_is_not_evaluated(name, found, model):
    """Its weights may have the same shapes, and a pooler that it lacks would be a random one."""
    change_json(model / "config.json", architectures=[name])
    with pytest.raises(InputError, match=f"one for this program, .* of the task {found}$"):
        saved(model, **ON_TABLES)
    assert saved(model, **ON_TABLES, do_train=True)[1] == {}


def test_the_settings_of_an_export_in_an_evaluation(model):
    """They are those of the training, as in the folder that was exported, unless a flag differs."""
    config = model / "config.json"

    def resolved(*of_task, **flags):
        given, found = saved(model, *of_task, **flags)
        return resolve_model_defaults(given, "bert", **found)

    change_json(config, finetuning={"task": "classification", "max_seq_length": 20})
    assert resolved(**ON_TABLES).max_seq_length == 20
    assert resolved(**ON_TABLES, max_seq_length=9).max_seq_length == 9
    assert resolved(**ON_TABLES, do_train=True).max_seq_length == 128
    settings = {"task": "question_answering", "version_2_with_negative": True, "doc_stride": 7}
    change_json(config, architectures=["BertForQuestionAnswering"], finetuning=settings)
    values = resolved(squad.SquadFlags, "question_answering")
    found = values.version_2_with_negative, values.doc_stride, values.max_seq_length
    assert found == (True, 7, 384)
    change_json(config, finetuning={**settings, "doc_stride": "7"})
    with pytest.raises(InputError, match="setting doc_stride must be a whole number"):
        resolved(squad.SquadFlags, "question_answering")


@pytest.fixture
def choices(tmp_path):
    """An ELECTRA with a head that is not computed."""
    folder = shutil.copytree(FOLDERS / "electra_small", tmp_path / "m")
    values = {"architectures": ["ElectraForMultipleChoice"], "summary_use_proj": False}
    change_json(folder / "config.json", **values)
    return folder


def test_an_electra_whose_head_is_not_computed_gives_its_encoder(choices):
    """Nothing evaluates, loads or adapts such a head; vectors are trained from the encoder."""
    options = race.RaceFlags, "multiple_choice"
    for task in ((similarity.SimilarityFlags, "similarity"), options):
        assert saved(choices, *task, data_dir="d", do_train=True)[1] == {}
    for read in (
        lambda: saved(choices, *options, data_dir="d"),
        lambda: load_folder(str(choices)),
        lambda: ModelFolder(str(choices)).settings,
    ):
        with pytest.raises(InputError, match="summary_activation must be ''"):
            read()


@pytest.mark.parametrize("name, flags", (("x.jsonl", []), ("x.npz", ["--pooling=mean"])))
def test_features_need_no_settings_of_a_head(name, flags, choices, tmp_path):
    """They are the encoder's; without a pooling, vectors are as the settings say."""
    (choices / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (tmp_path / "in.txt").write_text("나는\n")
    argv = ["x", f"--model_dir={choices}", f"--input_file={tmp_path}/in.txt", *flags]
    argv += ["--layers=-1", "--max_seq_length=8", f"--output_file={tmp_path}/{name}"]
    assert extract_features.main(argv) == 0


def test_a_benchmark_s_flags(folder):
    model = str(folder / "roberta")
    found, flags = glue_plan.model_flags(model)
    assert flags == [f"--model_dir={model}"] and glue_plan.read_kind(found) == ("bert", 32)
    path = f"{model}/model.safetensors"
    _, flags = glue_plan.model_flags(path)
    assert flags == [f"--model_dir={model}", f"--init_checkpoint={path}"]


@pytest.mark.parametrize(
    "change, message",
    (
        (lambda d: (d / "model.safetensors").write_bytes(b"\0" * 5), "a whole safetensors file"),
        (lambda d: (d / "config.json").write_text("{"), "must hold bert_config.json or"),
        (lambda d: (d / "config.json").unlink(), "must hold bert_config.json or"),
        (lambda d: (d / "model.safetensors").rename(d / "pytorch_model.bin"), "must be in safe"),
        (lambda d: (d / "model.safetensors").unlink(), "a model's folder must hold a checkpoint"),
        (
            lambda d: (d / "config.json").write_text('{"model_type": "t5", "vocab_size": 61}'),
            "model_type must be one of bert, albert, electra, roberta",
        ),
    ),
    ids=("short_weights", "bad_config", "no_config", "pickle", "no_weights", "another_model"),
)
def test_bad_folders_cost_one_line(folder, change, message, capsys):
    change(folder / "bert_erf")
    argv = ["fill_masks", f"--model_dir={folder}/bert_erf", "--text=The [MASK] is tall."]
    assert fill_masks.main(argv) == 1
    assert message in one_line(capsys)


def test_other_files_as_init_checkpoint(folder, capsys):
    (folder / "empty").mkdir()
    (folder / "weights.bin").write_bytes(b"\x80\x04N.")
    for path, message in (
        (folder / "empty", "a model's folder must hold a checkpoint"),
        (folder / "text.txt", "Received: .*text.txt, another file"),
        (folder / "weights.bin", "must be in safetensors files"),
    ):
        model = folder / "bert_erf"
        argv = ["extract_features", f"--model_dir={model}", f"--input_file={folder}/text.txt"]
        argv += [f"--output_file={folder}/x.npz", f"--init_checkpoint={path}"]
        assert extract_features.main(argv) == 1
        assert re.search(message, one_line(capsys))


def test_a_released_folder_stands_for_its_checkpoint(tmp_path):
    for kind, name in (("bert", "bert_model.ckpt"), ("albert", "model.ckpt-best")):
        WRITERS[kind](tmp_path / kind, True)
        prefix = str(tmp_path / kind / name)
        for path in (prefix, str(tmp_path / kind)):
            arrays = open_weights(path)
            assert arrays.source == prefix and arrays.optional == ()
