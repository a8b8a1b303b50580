"""Folders of tiny models with random weights, as the training programs leave them."""

import json

import keras

from bert_tf.checkpoint import google_arrays, save_google_checkpoint, write_arrays
from bert_tf.checkpoint_files import checkpoint_path
from finetuning.tasks import TASKS
from model_formats.encoders import ENCODERS
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import objective_of
from run_scripts.conversion import export_model
from tests.support.models.kept_folders import write_kept
from tests.support.tiny_models import SIZES
from tests.support.vocabularies import SPECIAL, write_lines
from tokenization import FullTokenizer

WORDS = ("the", "book", "is", "red", "##s", "나", "##는", "학교", "##에", "갔", "##다", ".", "?")
PIECES = [*SPECIAL, *WORDS]

# A folder's settings are None where no value is given here.
VALUES = {
    "classification": {"task_name": "tsv", "labels": "나쁨,보통,좋음", "max_seq_length": 16},
    "ner": {"task_name": "conll", "labels": "O,B-LC,I-LC", "max_seq_length": 16},
    "question_answering": {
        "task_name": "squad", "max_seq_length": 24, "doc_stride": 8, "max_query_length": 8,
        "n_best_size": 5, "max_answer_length": 6, "null_score_diff_threshold": 0.0,
        "version_2_with_negative": False,
    },
    "multiple_choice": {"task_name": "race", "max_seq_length": 24, "max_qa_length": 8},
    "similarity": {
        "task_name": "files", "max_seq_length": 16, "pooling": "mean", "normalize": True,
    },
}  # fmt: skip
assert set(VALUES) == set(TASKS)


def settings_of(task, **values):
    """What finetuning.json holds; empty for "pretraining"."""
    if task == "pretraining":
        return {}
    return {**dict.fromkeys(TASKS[task].settings), **VALUES[task], **values}


def write_folder(folder, *arguments, **settings):
    """As `write_model`, without a model to return; the second time for the same it is a copy."""
    write_kept(folder, write_model, *arguments, **settings)
    keras.utils.set_random_seed(5)  # as after the first


def change_json(path, **values):
    """Writes an object again with other values."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def export_folder(folder, output, form="huggingface", *flags, status=0):
    """Runs export_model, which ends with the status; returns the folder of the export."""
    argv = [f"--model_dir={folder}", f"--output_dir={output}", f"--format={form}", *flags]
    assert export_model.main(["export_model", *argv]) == status
    return output


def drop_weights(prefix, part):
    """Writes a checkpoint again without the variables whose names have this part."""
    arrays = google_arrays(str(prefix))
    write_arrays(str(prefix), {n: arrays.read(n) for n in arrays.shapes if part not in n})


def write_model(folder, kind="bert", task="pretraining", sizes=None, names=(), **settings):
    """Writes a folder with a model of two layers; returns the model.

    Args:
        folder: a `Path`; created.
        kind: a key of `model_formats.encoders.ENCODERS`.
        task: a key of `finetuning.tasks.TASKS`, or "pretraining".
        sizes: changes to the configuration, a dict.
        names: some of Google's names of the weights, which tell a pre-trained model's objective.
        settings: changes to what finetuning.json records.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_lines(folder / "vocab.txt", PIECES)
    width = {"embedding_size": 16} if kind in ("albert", "electra") else {}
    width |= {"hidden_act": "gelu_erf"} if kind == "electra" else {}
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = ENCODERS[kind].config(**{**SIZES, **width, **rates, **(sizes or {})})
    keras.utils.set_random_seed(5)
    recorded = settings_of(task, **settings)
    encoder = ENCODERS[kind].model_class(config)
    if task == "pretraining":
        model = objective_of(names).make_model(encoder)
    else:
        model, _ = TASKS[task].module("head").from_settings(encoder, recorded)
    for variable in model.trainable_variables:  # no bias is zero, no scale is one
        variable.assign(variable + 0.05 * keras.random.normal(variable.shape))
    save_google_checkpoint(model, checkpoint_path(folder, 3))
    tokenizer = FullTokenizer(vocabulary, do_lower_case=False)
    ModelFolder.write(
        folder, kind, config, tokenizer=tokenizer, positions=16, task=task, settings=recorded
    )
    return model
