"""The files of a model's folder are found, in this project's and in released ones."""

import dataclasses
import json

import pytest

from model_formats.model_folder import ModelFolder
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags.create_data import CreateDataFlags, choose_objective
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.record_files import RecordFiles, find_tokenizer
from run_scripts.flags.training import check_checkpoint
from run_scripts.given_model import GivenModel, named_tokenizer
from tests.support.refusals import refused
from tests.support.tiny_models import SIZES

VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused1]\nred\n##s\n"

BERT = ("bert_config.json", "bert_model.ckpt.index", "bert_model.ckpt.meta", "vocab.txt")
BERT_FILES = {"bert_config_file": BERT[0], "init_checkpoint": "bert_model.ckpt"}
ALBERT = ("albert_config.json", "model.ckpt-best.index", "30k-clean.model", "30k-clean.vocab")


def write(folder, *names):
    """Empty files of these names, but for the vocabulary."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(VOCABULARY if name.startswith("vocab") else "{}")
    return folder


def found(model_dir, **flags):
    """The parts of the model of these flags by their flags' names, with paths below the folder."""
    values = {"input_file": "a", "output_file": "b", "model_dir": model_dir, **flags}
    model = GivenModel.of(ExtractFeaturesFlags(**values))
    parts = {
        f"{model.model_type}_config_file": model.config_file.path,
        "init_checkpoint": model.checkpoint,
        **vars(named_tokenizer(model.flags, *model.folders)),
    }
    start = f"{model_dir}/"
    return {
        name: value.removeprefix(start) if isinstance(value, str) else value
        for name, value in parts.items()
        if value is not None
    }


def test_google_s_bert(tmp_path):
    files = {**BERT_FILES, "vocab_file": "vocab.txt"}
    for name, case in (
        ("uncased_L-12_H-768_A-12", True),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("cased_L-12_H-768_A-12", False),
        ("multi_cased_L-12_H-768_A-12", False),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
        ("bert-base-cased", False),
    ):
        expected = {**files, "do_lower_case": case}
        assert found(str(write(tmp_path / name, *BERT))) == expected, name
    # A name without a hint: Google's default, or the vocabulary's case, or the flag.
    model = write(tmp_path / "disgraced", *BERT)
    assert found(str(model)) == files
    assert found(str(model), do_lower_case=False) == {**files, "do_lower_case": False}
    (model / "vocab.txt").write_text(VOCABULARY + "<S>\n<T>\n")  # as Google's Chinese vocabulary
    assert found(str(model)) == files
    (model / "vocab.txt").write_text(VOCABULARY + "Red\n")
    assert found(str(model)) == {**files, "do_lower_case": False}
    assert found(str(model), do_lower_case=True) == {**files, "do_lower_case": True}


def test_google_s_albert(tmp_path):
    common = {"albert_config_file": ALBERT[0], "init_checkpoint": "model.ckpt-best"}
    files = {**common, "spm_model_file": "30k-clean.model"}
    assert found(str(write(tmp_path / "v2" / "albert_base", *ALBERT))) == files
    # The folder that the archive was unpacked into.
    inside = {name: f"albert_base/{path}" for name, path in files.items()}
    assert found(str(tmp_path / "v2")) == inside
    chinese = str(write(tmp_path / "zh", *ALBERT[:2], "vocab_chinese.txt"))
    assert found(chinese) == {**common, "vocab_file": "vocab_chinese.txt"}


def test_the_hub_s_albert(tmp_path, monkeypatch):
    write(tmp_path / "assets", "albert_config.json", "30k-clean.model", "30k-clean.vocab")
    write(tmp_path, "saved_model.pb", "variables/variables.index")
    assert found(str(tmp_path)) == {
        "albert_config_file": "assets/albert_config.json",
        "init_checkpoint": "variables/variables",
        "spm_model_file": "assets/30k-clean.model",
    }
    monkeypatch.chdir(tmp_path / "assets")
    assert ModelFolder.open(".").checkpoint == str(tmp_path / "variables" / "variables")


def test_this_project_s(tmp_path):
    """The best checkpoint, the newest, the export, in this order; the tokenizer as described."""
    names = ("bert_config.json", "tokenizer_config.json", "vocab.txt")
    model = str(write(tmp_path / "uncased", *names, "model.ckpt.index"))
    expected = {"bert_config_file": "bert_config.json", "tokenizer_dir": model}
    assert found(model) == {**expected, "init_checkpoint": "model.ckpt"}
    for file, checkpoint in (
        ("model.ckpt-9.index", "model.ckpt-9"),
        ("model.ckpt-10.index", "model.ckpt-10"),
        ("unreadable-model.ckpt-11.index", "model.ckpt-10"),
        ("model.ckpt-best.index", "model.ckpt-best"),
        ("best/model.ckpt-9.index", "best/model.ckpt-9"),
    ):
        write(tmp_path / "uncased", file)
        assert found(model) == {**expected, "init_checkpoint": checkpoint}


@pytest.mark.parametrize("named", (True, False), ids=("of its own", "inside"))
def test_a_folder_called_best(tmp_path, named):
    """A user's own folder of that name, and the one of an evaluation, inside the model's."""
    folder = write(tmp_path / "best", "model.ckpt-2.index", "model.ckpt-3.index")
    (folder / "eval_results.txt").write_text("global_step = 2\n")
    own = write(folder if named else tmp_path, "bert_config.json")
    assert ModelFolder.beside(str(folder / "model.ckpt-3")).path == str(own)
    found = ModelFolder(str(folder)).checkpoint
    assert found == str(folder / f"model.ckpt-{3 if named else 2}")


def test_other_flags_win(tmp_path):
    model = str(write(tmp_path / "uncased_L-2", *BERT))
    flags = {"albert_config_file": "c", "init_checkpoint": "i", "tokenizer_dir": "t"}
    assert found(model, **flags) == flags
    # One tokenizer flag replaces all of the folder's tokenizer.
    flags = {"vocab_file": "v", "do_lower_case": False}
    assert found(model, **flags) == {**BERT_FILES, **flags}
    # Where flags give everything, the folder needs only its configuration.
    model = str(write(tmp_path / "m", "bert_config.json"))
    assert found(model, init_checkpoint="i")["init_checkpoint"] == "i"


@pytest.mark.parametrize("ending", ("index", "meta", "data-00000-of-00001"))
def test_a_file_of_a_checkpoint_in_place_of_its_name(tmp_path, ending):
    """As a shell completes it."""
    prefix = write(tmp_path, *BERT, "bert_model.ckpt.data-00000-of-00001") / "bert_model.ckpt"
    said = f"--init_checkpoint: a checkpoint must be named without .{ending}: {prefix}. Received: "
    with refused(said):
        check_checkpoint(f"{prefix}.{ending}")


MODELS = [f"{name}/{file}" for name in ("base", "large") for file in ALBERT]


@pytest.mark.parametrize(
    "files, flags, words",
    (
        (["a.txt"], {}, "--model_dir must hold bert_config.json or albert_config.json"),
        ([*BERT, "albert_config.json"], {}, "with both"),
        (["bert_config.json"], {}, "must hold a checkpoint"),
        (["bert_config.json", "unreadable-model.ckpt-3.index"], {}, "hold a checkpoint. R"),
        ([*BERT, "other.ckpt.index"], {}, "with bert_model.ckpt, other.ckpt"),
        (MODELS, {}, "which holds base, large"),
        ([*ALBERT, "other.model"], {}, "with 30k-clean.model, other.model"),
        ([*BERT, "pretraining.json"], {}, "must hold tokenizer_config.json, or --vocab_file"),
        (BERT, {"do_lower_case": True}, "--do_lower_case=true, "),
        ([], {}, "must be a folder. Received: "),
    ),
)
def test_refused(files, flags, words, tmp_path):
    model = write(tmp_path / "multi_cased_L-12", *files)
    with refused(words, model):
        found(str(model), **flags)


def test_names_with_brackets(tmp_path):
    assert found(str(write(tmp_path / "[1]" / "[2]", *BERT)))["vocab_file"] == "vocab.txt"
    assert ModelFolder(str(tmp_path / "[1]" / "[2]")).checkpoint.endswith("bert_model.ckpt")


def test_records_for_a_model(tmp_path):
    """Tokenizer and objective are the model's, where no flag says otherwise."""

    def plan(model, *flags):
        given = [f"--model_dir={model}", "--input_file=a", *flags]
        flags = parse(CreateDataFlags, ["create", *given])
        folder = ModelFolder.open(flags.model_dir)
        chosen = choose_objective(flags, folder)
        return chosen.objective, chosen.model_type, named_tokenizer(flags, folder)

    bert = write(tmp_path / "uncased_L-2_H-128_A-2", *BERT)
    albert = write(tmp_path / "albert_base", *ALBERT)
    *kind, flags = plan(bert, "--ngram=3")
    assert kind == ["nsp", "bert"] and flags.do_lower_case is True
    assert flags.vocab_file == f"{bert}/vocab.txt"
    *kind, flags = plan(albert)
    assert kind == ["sop", "albert"] and flags.spm_model_file == f"{albert}/30k-clean.model"
    assert plan(albert, "--objective=none")[:2] == ("none", "bert")
    assert plan(albert, "--vocab_file=v")[2].spm_model_file is None


def test_the_tokenizer_that_pretraining_puts_beside_its_checkpoints(tmp_path):
    model = write(tmp_path / "cased_L-2_H-128_A-2", *BERT)
    (model / "bert_config.json").write_text(json.dumps(SIZES))
    values = PretrainFlags(input_file="a", output_dir="b", model_dir=str(model))
    folder = GivenModel.of(values).folder
    assert folder.checkpoint == f"{model}/bert_model.ckpt"
    others = folder, folder.config, RecordFiles([]), RecordFiles([])
    tokenizer, size = find_tokenizer(values, *others)
    assert tokenizer.kind == "full" and tokenizer.do_lower_case is False and size == 8
    with refused("do_lower_case"):
        find_tokenizer(dataclasses.replace(values, do_lower_case=True), *others)
    (model / "vocab.txt").unlink()
    assert find_tokenizer(values, *others) == (None, None)
