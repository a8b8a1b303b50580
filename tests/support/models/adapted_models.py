"""A small model to adapt, adaptations of it, what an adapted one computes."""

import json

import keras
import numpy as np

from bert_tf.checkpoint import google_arrays, google_variables, write_arrays
from model_formats.model_folder import ModelFolder
from run_scripts.conversion.adapt_checkpoint import main
from tests.support.models.kept_folders import write_kept
from tests.support.tiny_models import tiny_model, write_config
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import load_tokenizer

OLD = [*SPECIAL, "[unused1]", "대", "##출", "금리", "##는", "학교", "##에", "갔", "##다", "."]
NEW = ["[MASK]", "##다", "갔", "대출", "학교", "예금", "##에", ".", *SPECIAL[:4], "상환", "##는"]
TEXT = "학교에 갔다."  # the same pieces in both

WORDS, BIAS = "bert/embeddings/word_embeddings", "cls/predictions/output_bias"
POSITIONS = "bert/embeddings/position_embeddings"


def write_model(folder, kind="bert"):
    """A folder as training leaves it: a table with spare rows, moments, counters, a task's head."""
    write_kept(folder, _write_adaptable, kind)
    return folder


def _write_adaptable(folder, kind):
    write_tokenizer(folder, OLD)
    write_config(folder / f"{kind}_config.json", kind, num_hidden_layers=2)
    (folder / "pretraining.json").write_text('{"trained_positions": 24}')
    (folder / "finetuning.json").write_text('{"task": "classification", "task_name": "tsv"}')
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(5)
    arrays = {}
    for name, variable in google_variables(tiny_model(kind)).items():
        # Away from their initial values, so that nothing is equal by chance.
        arrays[name] = variable.numpy() + 0.1 * rng.normal(size=variable.shape).astype(np.float32)
        arrays[f"{name}/adam_m"] = np.ones(variable.shape, np.float32)
    heads = {"output_weights": rng.normal(size=(3, 32)), "output_bias": rng.normal(size=3)}
    arrays |= {name: value.astype(np.float32) for name, value in heads.items()}
    write_arrays(str(folder / "model.ckpt-3"), {**arrays, "global_step": np.int64(3)})


def adapt(model_dir, output, **flags):
    """Runs the program, which must succeed; returns the arrays it wrote."""
    argv = [f"--{name}={value}" for name, value in flags.items()]
    argv += [f"--model_dir={model_dir}", f"--output_dir={output}"]
    assert main(["adapt_checkpoint", *argv]) == 0
    return read(output)


def read(folder):
    """All arrays of a model's folder, by name."""
    arrays = google_arrays(ModelFolder(str(folder)).checkpoint)
    return {name: arrays.read(name) for name in arrays.shapes}


def outputs(folder, kind, text):
    """What the model makes of a text, the logits by piece."""
    sizes = json.loads((folder / f"{kind}_config.json").read_text())
    model = tiny_model(kind, **sizes)
    arrays = read(folder)
    for name, variable in google_variables(model).items():
        variable.assign(arrays[name])
    tokenizer = load_tokenizer(folder)
    ids = [tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id]
    ids[2] = tokenizer.mask_id
    found = model({"input_ids": np.array([ids]), "masked_lm_positions": np.array([[2, 3]])})
    (logits,) = found.pop("masked_lm_logits").numpy()
    pieces = {token: logits[:, index] for token, index in tokenizer.vocab.items()}
    encoded = model.encoder({"input_ids": np.array([ids])})
    both = {**found, **encoded}
    return pieces, {name: value.numpy() for name, value in both.items() if hasattr(value, "numpy")}
