"""What run_pretraining resolves before TensorFlow starts: flags, records, an earlier training."""

import json
import os
import shutil
import warnings
from types import SimpleNamespace
from unittest import mock

import pytest

from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.pretrain import load_records
from run_scripts.pretraining_job import make_job
from tests.support.crosses import slow
from tests.support.programs import NO_DROPOUT, PretrainingJob, arrays
from tests.support.refusals import refused
from tests.support.tiny_models import write_config
from tests.support.vocabularies import SPECIAL, write_tokenizer


@pytest.fixture
def job(tmp_path):
    return PretrainingJob(tmp_path, **NO_DROPOUT)


def resolve(job, kind="bert", **flags):
    """What the program works with."""
    return make_job(parse(PretrainFlags, job.argv(kind, **flags)))


EVALUATES = {"do_train": False, "do_eval": True}


@pytest.mark.parametrize(
    "start, count, hours, words",
    (
        (4, 2, 0, None),
        (0, 7, 0, "^--num_warmup_steps=7 is more than --num_train_steps=6: the learning rate"),
        (5, 2, 0, "^--start_warmup_step=5 . --num_warmup_steps=2 is more than --num_train_steps=6"),
        (5, 0, 0, "--start_warmup_step=5 has no effect with --num_warmup_steps=0"),
        (5, 2, 1, None),
    ),
)
def test_a_warm_up_that_is_not_what_was_meant(job, start, count, hours, words):
    silent = warnings.catch_warnings(action="error")
    with pytest.warns(UserWarning, match=words) if words else silent:
        resolve(job, start_warmup_step=start, num_warmup_steps=count, max_train_hours=hours)


@pytest.mark.parametrize(
    "flag, names",
    (
        ("eval_input_file", {"files of --eval_input_file"}),
        ("input_file", {"records", "record files"}),  # no message names a flag that is not given
    ),
)
def test_workers_compare_the_files(job, flag, names):
    """Where the machines share no folder, one path may name other files on each."""
    held_out, compared = job.make_held_out(), []
    session = SimpleNamespace(check_agreement=compared.append)
    for _ in range(2):
        load_records(resolve(job, **{flag: held_out}), session)
        shutil.copy(job.files[0], held_out)
    one, other = compared
    assert {name for name in one if one[name] != other[name]} == names


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", (slow("bert"), "albert"))
def test_the_table_is_as_large_as_the_vocabulary(job, kind, fails):
    """Unless the configuration says its size; a run that is resumed keeps what it began with."""
    path = job.folder / f"{kind}.json"
    config = json.loads(path.read_text())
    del config["vocab_size"]
    path.write_text(json.dumps(config))
    said = "vocab_size must be in the configuration where there is no tokenizer"
    fails(job.run, said, kind=kind)
    vocabulary = job.folder / "vocab.txt"
    pieces = [*SPECIAL, *(f"p{i}" for i in range(56))]
    for left_out in (None, -1):
        vocabulary.write_text("\n".join(pieces[:left_out]) + "\n")
        assert job.run(kind, vocab_file=vocabulary, num_train_steps=1) == 0
        saved = json.loads((job.output / f"{kind}_config.json").read_text())
        assert saved["vocab_size"] == 61
    assert len(arrays(job.output, 1)["bert/embeddings/word_embeddings"]) == 61


@pytest.mark.parametrize(
    "kind, change, refused_for",
    (
        ("bert", {"hidden_act": "relu"}, "hidden_act of the configuration must be gelu"),
        ("albert", {"num_hidden_layers": 3}, "num_hidden_layers of the configuration must be 1"),
        ("bert", {"hidden_act": "GELU_tanh", "hidden_dropout_prob": 0.2}, None),
    ),
)
def test_a_run_goes_on_as_the_network_that_it_began_as(job, kind, change, refused_for):
    """Where no shape tells: nothing would show that the weights are read as another network's."""
    job.output.mkdir()
    write_config(job.output / f"{kind}_config.json", kind)
    job.configure(**change)
    for flags in ({}, EVALUATES):
        (job.output / "model.ckpt-1.index").touch()
        if refused_for is None:
            assert resolve(job, kind, **flags).config.hidden_dropout_prob == 0.2
            continue
        with refused(refused_for):
            resolve(job, kind, **flags)
        (job.output / "model.ckpt-1.index").unlink()
        if not flags:  # one that begins there is free to choose
            resolve(job, kind)


def test_an_evaluation_beside_another_kind_of_model(job):
    job.output.mkdir()
    (job.output / "model.ckpt-1.index").touch()
    left = write_config(job.output / "albert_config.json", "albert")
    with refused("another kind ", f" {left}, now for BERT"):
        resolve(job, **EVALUATES)
    resolve(job, "albert", **EVALUATES)


PIECES = [*SPECIAL, *(f"p{i}" for i in range(55))]


def test_the_case_is_the_tokenizers(job):
    folder = write_tokenizer(job.folder / "tokenizer", PIECES)
    resolve(job, tokenizer_dir=folder, do_lower_case=False)
    with refused("--do_lower_case=True, the tokenizer: False"):
        resolve(job, tokenizer_dir=folder, do_lower_case=True)


def test_a_run_goes_on_with_the_tokenizer_that_it_began_with(job):
    """Else the folder would have the other one, also after an evaluation alone."""
    begun, other = (write_tokenizer(job.folder / name, PIECES) for name in ("begun", "other"))
    with (other / "vocab.txt").open("a") as file:
        file.write("new\n")
    job.configure(vocab_size=61)
    shutil.copytree(begun, job.output)
    resolve(job, tokenizer_dir=other)  # what begins there is free to choose
    (job.output / "model.ckpt-1.index").touch()
    resolve(job, tokenizer_dir=begun)
    for flags in ({}, EVALUATES):
        with refused("the tokenizer must be that in ", "output, with which"):
            resolve(job, tokenizer_dir=other, **flags)


def test_what_a_training_left_is_opened_once(job):
    shutil.copytree(write_tokenizer(job.folder / "tokenizer", PIECES), job.output)
    shutil.copy(job.folder / "bert.json", job.output / "bert_config.json")
    (job.output / "training.json").write_text('[{"program": "pre-training", "settings": {}}]')
    (job.output / "model.ckpt-1.index").touch()
    given = parse(PretrainFlags, job.argv(tokenizer_dir=job.folder / "tokenizer"))
    with mock.patch("builtins.open", wraps=open) as spy:
        make_job(given)
    opened = [os.path.relpath(call.args[0], job.output) for call in spy.call_args_list]
    files = ["bert_config.json", "tokenizer_config.json", "training.json", "vocab.txt"]
    assert sorted(name for name in opened if not name.startswith("..")) == files


def test_unused_rows_are_said(job, capsys):
    job.configure(vocab_size=600)
    resolve(job, tokenizer_dir=write_tokenizer(job.folder / "tokenizer", PIECES))
    said = "note: 540 of the 600 rows of the embedding table have no token, 17,280 weights"
    assert said in capsys.readouterr().out
