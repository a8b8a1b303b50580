"""A small model to adapt, adaptations of it, and their arrays."""

import keras
import numpy as np

from bert_tf.checkpoint import google_arrays, google_variables, write_arrays
from model_formats.model_folder import ModelFolder
from run_scripts.conversion.adapt_checkpoint import main
from tests.support.models.kept_folders import write_kept
from tests.support.tiny_models import tiny_model, write_config
from tests.support.vocabularies import SPECIAL, write_tokenizer

OLD = [*SPECIAL, "[unused1]", "대", "##출", "금리", "##는", "학교", "##에", "갔", "##다", "."]
NEW = ["[MASK]", "##다", "갔", "대출", "학교", "예금", "##에", ".", *SPECIAL[:4], "상환", "##는"]

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


def run(model_dir, output, **flags):
    """Runs the program; returns its exit status."""
    flags = {"model_dir": model_dir, "output_dir": output, **flags}
    return main(["adapt_checkpoint", *(f"--{name}={value}" for name, value in flags.items())])


def adapt(model_dir, output, **flags):
    """Runs the program, which must succeed; returns the arrays it wrote."""
    assert run(model_dir, output, **flags) == 0
    return read(output)


def read(folder):
    """All arrays of a model's folder, by name."""
    arrays = google_arrays(ModelFolder(str(folder)).checkpoint)
    return {name: arrays.read(name) for name in arrays.shapes}


def weights(folder):
    """Those without moments and counters."""
    return {n: array for n, array in read(folder).items() if "adam" not in n and "step" not in n}
