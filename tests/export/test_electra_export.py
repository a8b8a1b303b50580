"""An ELECTRA is exported for transformers and for Google's code, and read from there.

Shapes: B batch, T tokens.
"""

import numpy as np
import pytest
from transformers_jobs import assert_close, make_inputs, run_jobs, write_job

from bert_common.errors import InputError
from bert_tf.checkpoint import google_arrays, google_variables
from korean_bert import load_model
from model_formats.electra_generator import generator_alone
from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder
from model_formats.transformers_files.electra_classifier import as_two_layers
from run_scripts.conversion.export_model import main
from run_scripts.tools import fill_masks
from tests.support.libraries import needs_torch
from tests.support.models.model_folders import write_folder

BOTH = ("generator/", "discriminator_predictions/")
SCORES = {"task_name": "klue-sts", "labels": None}

# Name -> the task, its settings, the class of transformers without "Electra", its outputs -> ours.
HEADS = {
    "discriminator": (None, {}, "ForPreTraining", {"logits": "discriminator_logits"}),
    "generator": (None, {}, "ForMaskedLM", {"logits": "masked_lm_logits"}),
    "words": ("pretraining", {}, "ForMaskedLM", {"logits": "masked_lm_logits"}),
    "classes": ("classification", {}, "ForSequenceClassification", {"logits": "logits"}),
    "scores": ("classification", SCORES, "ForSequenceClassification", {"logits": "logits"}),
    "tags": ("ner", {}, "ForTokenClassification", {"logits": "logits"}),
    "spans": ("question_answering", {}, "ForQuestionAnswering", {
        "start_logits": "start_logits", "end_logits": "end_logits"}),
    "options": ("multiple_choice", {}, "ForMultipleChoice", {"logits": "logits"}),
}  # fmt: skip
SIZES = {"narrow": {"generator_size": 0.25}, "wide": {"embedding_size": 32, "generator_size": 0.5}}


def load(folder, head, size):
    """Makes a folder of a head's model; what `load_folder` returns for it."""
    task, settings, _, _ = HEADS[head]
    names = () if task else BOTH
    write_folder(folder, "electra", task or "pretraining", SIZES[size], names, **settings)
    loaded = load_folder(str(folder))
    return generator_alone(loaded) if head == "generator" else loaded


def outputs_of(loaded, inputs):
    """The outputs at every position, as arrays."""
    rows = {} if loaded.task != "pretraining" else {"masked_lm_positions": np.tile(
        np.arange(16, dtype=np.int32), (len(inputs["input_ids"]), 1))}  # fmt: skip
    return {name: np.asarray(x) for name, x in loaded.model({**inputs, **rows}).items()}


@pytest.mark.parametrize(
    "head, size",
    [
        pytest.param(head, size, marks=() if size == "narrow" else pytest.mark.slow)
        for head in HEADS
        for size in SIZES
    ],
)
def test_what_is_written_for_transformers_is_read_again(tmp_path, head, size):
    loaded = load(tmp_path / "in", head, size)
    (tmp_path / "out").mkdir()
    precision = "float16" if head == "classes" else "float32"
    line = export(loaded, str(tmp_path / "out"), precision=precision)
    assert f"transformers.Electra{HEADS[head][2]}." in line
    again = load_folder(str(tmp_path / "out"))
    assert again.model_type == "electra"
    inputs = make_inputs((3, 4, 16) if head == "options" else (3, 16))
    found, expected = outputs_of(again, inputs), outputs_of(loaded, inputs)
    for name in HEADS[head][3].values():
        if precision == "float32":
            assert_close(found[name], expected[name])
        else:
            np.testing.assert_allclose(found[name], expected[name], atol=5e-3)


@pytest.mark.slow
@needs_torch
def test_transformers_computes_the_same(tmp_path):
    """Every class, strictly: no key missing, none left over."""
    made, jobs = {}, []
    for head in HEADS:
        for size in SIZES:
            folder = tmp_path / f"{head}-{size}"
            loaded = load(folder / "in", head, size)
            (folder / "out").mkdir()
            export(loaded, str(folder / "out"))
            inputs = make_inputs((3, 4, 16) if head == "options" else (3, 16))
            made[folder] = (head, loaded, inputs)
            jobs.append(write_job(folder, f"Electra{HEADS[head][2]}", inputs))
    run_jobs(tmp_path, jobs)
    for folder, (head, loaded, inputs) in made.items():
        expected = outputs_of(loaded, inputs)
        with np.load(folder / "outputs.npz") as file:
            for theirs, ours in HEADS[head][3].items():
                assert_close(file[theirs], expected[ours])


def test_more_classes_than_the_head_has_room_for():
    with pytest.raises(InputError, match="must have two hidden units a class. Received: 5 classes"):
        as_two_layers(np.zeros((5, 8), np.float32), np.zeros(5, np.float32))


def test_google_s_names(tmp_path):
    """The folder for google-research/electra has both networks; tanh is refused, erf is not."""
    write_folder(tmp_path / "in", "electra", names=BOTH)
    argv = [f"--model_dir={tmp_path}/in", f"--output_dir={tmp_path}/out", "--format=google"]
    assert main(["export_model", *argv]) == 0
    names = set(google_arrays(str(tmp_path / "out" / "electra_model.ckpt")).shapes)
    # Of google-research/electra's graph, as run_pretraining.py and modeling.py name them.
    assert names >= {
        "electra/embeddings/word_embeddings", "electra/embeddings/LayerNorm/gamma",
        "electra/embeddings_project/kernel", "electra/encoder/layer_1/output/LayerNorm/beta",
        "generator/embeddings_project/bias", "generator_predictions/output_bias",
        "generator/encoder/layer_0/attention/self/query/kernel",
        "generator_predictions/dense/kernel", "generator_predictions/LayerNorm/gamma",
        "discriminator_predictions/dense/kernel", "discriminator_predictions/dense_1/bias",
    }  # fmt: skip
    assert not any("bert" in name or "cls" in name for name in names)
    one, two = (load_folder(str(tmp_path / name)) for name in ("in", "out"))
    for name, variable in google_variables(one.model).items():
        np.testing.assert_array_equal(google_variables(two.model)[name], variable, err_msg=name)
    write_folder(tmp_path / "tanh", "electra", sizes={"hidden_act": "gelu"}, names=BOTH)
    argv[0] = f"--model_dir={tmp_path}/tanh"
    assert main(["export_model", *argv]) == 1


def test_masks_are_filled_by_the_generator(tmp_path, capsys):
    """Of the folder with both networks, by program and in Python; and of the generator alone."""
    write_folder(tmp_path / "in", "electra", names=BOTH)
    argv = [f"--model_dir={tmp_path}/in", f"--output_dir={tmp_path}/out", "--generator"]
    assert main(["export_model", *argv, "--format=huggingface"]) == 0
    text = "the book [MASK] red"
    one, two = (load_model(tmp_path / name).fill_mask(text, max_pieces=1) for name in ("in", "out"))
    assert [guess.text for guess in one[0]] == [guess.text for guess in two[0]]
    assert one[0][0].probability == pytest.approx(two[0][0].probability, abs=1e-5)
    capsys.readouterr()
    argv = [f"--model_dir={tmp_path}/in", f"--text={text}", "--guesses=1"]
    assert fill_masks.main(["fill_masks", *argv]) == 0
    share = f"{100 * one[0][0].probability:.0f}%"
    assert share in capsys.readouterr().out
    # Its vectors are the discriminator's.
    assert load_model(tmp_path / "in").embed("the book").shape == (32,)


def test_a_discriminator_alone_fills_no_masks(tmp_path):
    write_folder(tmp_path / "in", "electra", names=BOTH)
    argv = [f"--model_dir={tmp_path}/in", f"--output_dir={tmp_path}/out", "--format=huggingface"]
    assert main(["export_model", *argv]) == 0
    model = load_model(tmp_path / "out")
    with pytest.raises(InputError, match="guesses need a pre-trained model"):
        model.fill_mask("the book [MASK] red")
    with pytest.raises(InputError, match="--generator needs an ELECTRA with both networks"):
        generator_alone(model.loaded)
