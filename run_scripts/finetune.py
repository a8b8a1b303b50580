"""What the programs of all downstream tasks do first: flags and data in, everything checked."""

import dataclasses
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.training.cluster import read_cluster
from bert_tf.training.output_folder import training_folders
from finetuning.metrics import check_installed
from run_scripts.flags.finetune import (
    check_finetune_flags,
    check_initial,
    find_fine_tuned,
    measured_splits,
    output_dirs,
    read_boundaries,
    resolve_steps,
    split_to_predict,
)
from run_scripts.flags.parser import PerModel, resolve_model_defaults, value_type
from run_scripts.flags.tokenizer import check_tokenizer_flags, open_tokenizer, source_of
from run_scripts.flags.training import choose_model_type, read_config
from run_scripts.model_folder import (
    CONFIG_NAMES,
    SETTINGS_FILE,
    check_table,
    fill_in_model,
    find_config,
    find_folder,
    folder_of,
)
from tokenization import FullTokenizer, validate_case_matches_checkpoint
from tokenization.vocabulary import read_bytes

# Of a task without a dev split this share of the training examples is held out to choose the
# best checkpoint by.
HELD_OUT_SHARE = 0.05


class Program(NamedTuple):
    """What the program of one kind of task is made of.

    Attributes:
        task_flags: the flags that the model's folder remembers.
        read_data: (flags) -> a data set with `splits`, a dict split -> whether it has labels.
        read_split: (dataset, split, data_dir) -> a list of examples, and a dict of how many rows
            something was done to ("left out (short)"). Does not need TensorFlow.
        make_task: (flags, dataset, configuration, tokenizer) -> the task.
        changeable: those of the task's flags that may be others than the model was trained with.
        uses_libraries: whether its metrics are of libraries that need not be installed.
    """

    task_flags: tuple
    read_data: Callable
    read_split: Callable
    make_task: Callable
    changeable: tuple = ("max_seq_length",)
    uses_libraries: bool = True


def finetune(values, program):
    """The whole program: checks what can be checked, then trains, measures, predicts.

    Args:
        values: `FinetuneFlags` of a program.
        program: a `Program`.
    """
    given, values = values, fill_in(take_model(values), program)
    model_type = choose_model_type(values)
    values = resolve_steps(resolve_model_defaults(values, model_type), given)
    check_finetune_flags(values)
    check_tokenizer_flags(values)
    config = read_config(values, model_type)
    if values.max_seq_length > config.max_position_embeddings:
        raise InputError(
            "--max_seq_length must be at most max_position_embeddings of the configuration. "
            f"Received: {values.max_seq_length} and {config.max_position_embeddings}"
        )
    measures = values.do_eval or (values.do_train and values.eval_every_steps)
    if measures and program.uses_libraries:
        check_installed()
    boundaries = read_boundaries(values.bucket_boundaries, values.max_seq_length)
    tokenizer = open_tokenizer(values)
    if isinstance(tokenizer, FullTokenizer):
        validate_case_matches_checkpoint(tokenizer.do_lower_case, values.init_checkpoint)
    check_table(config, tokenizer.vocab_size, source_of(values))
    if values.do_train:
        check_initial(values)
    else:
        find_fine_tuned(values)
    dataset = program.read_data(values)
    cluster = read_cluster(os.environ)
    make_writable(values.output_dir, "--output_dir must be a directory that can be written")
    with training_folders(output_dirs(values) if values.do_train else [], cluster) as held:
        say = print if cluster is None or cluster.index == 0 else lambda *_: None
        read = read_splits(values, dataset, program.read_split, say)
        if cluster:
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import_tensorflow()
        from run_scripts.finetune_run import run

        task = program.make_task(values, dataset, config, tokenizer)
        settings = {name: getattr(values, name) for name in program.task_flags}
        run(values, model_type, config, tokenizer, task, read, boundaries, settings, *held)


def take_model(values):
    """Puts what --model_dir holds where no other flag names it.

    Without --do_train that is the fine-tuned model, unless the folder is a pre-trained model's and
    --output_dir holds a fine-tuned one: a command goes on without its --do_train.
    """
    filled = fill_in_model(values)
    if values.do_train or not values.model_dir or not latest_checkpoint(values.output_dir):
        return filled
    if os.path.exists(os.path.join(find_folder(values.model_dir), SETTINGS_FILE)):
        return filled
    return dataclasses.replace(filled, init_checkpoint=values.init_checkpoint)


def fill_in(values, program):
    """Puts what --output_dir remembers where no flag was given.

    Raises:
        InputError: a flag says something else than what the folder's model was trained for, or
            another program trained it.
    """
    folder, saved = read_settings(values)
    if saved is None:
        return values
    missing = [name for name in program.task_flags if name not in saved]
    if missing:
        raise InputError(
            "the model's folder must be one that this program trained. Received: "
            f"{os.path.join(folder, SETTINGS_FILE)} without {missing[0]}"
        )
    check_remembered(values, program.task_flags, saved, os.path.join(folder, SETTINGS_FILE))
    found = {}
    for name in program.task_flags:
        value = getattr(values, name)
        if value is None or isinstance(value, PerModel):
            found[name] = saved[name]
        elif value != saved[name] and name not in program.changeable:
            raise InputError(
                f"--{name} must be what the model in {folder} was trained with: {saved[name]}. "
                f"Received: {value}"
            )
    if not any(getattr(values, f"{model_type}_config_file") for model_type in CONFIG_NAMES):
        model_type, config = find_config(folder)
        found[f"{model_type}_config_file"] = config
    if not (values.tokenizer_dir or values.vocab_file or values.spm_model_file):
        found["tokenizer_dir"] = folder
    return dataclasses.replace(values, **found)


def check_remembered(values, names, saved, path):
    """Refuses what a flag could not be: the file has been changed by another hand.

    Args:
        values: `FinetuneFlags` of a program.
        names: the flags that a model's folder remembers.
        saved: their values.
        path: the file.
    """
    for field in dataclasses.fields(values):
        value = saved.get(field.name)
        if field.name not in names or value is None:
            continue
        kind, choices = value_type(field), field.metadata["choices"]
        if type(value) not in ((int, float) if kind is float else (kind,)) or (
            choices and value not in choices
        ):
            raise InputError(
                f"{path} must be as it was written: {field.name} must be "
                f"{' or '.join(choices or [kind.__name__])}. Received: {value!r}"
            )


def read_settings(values):
    """The folder of the fine-tuned model with what it remembers; None where there is none yet.

    Without --do_train that is the folder of the weights, if --init_checkpoint names any.
    """
    folders = [values.output_dir]
    if values.init_checkpoint and not values.do_train:
        prefix = values.init_checkpoint
        inside = os.path.join(prefix, "any")
        folders.insert(0, folder_of(inside if os.path.isdir(prefix) else prefix))
    for folder in folders:
        path = os.path.join(folder, SETTINGS_FILE)
        if os.path.exists(path):
            saved = read_json(read_bytes(path), path)
            if not isinstance(saved, dict):
                raise InputError(f"{path} must hold an object. Received: {type(saved).__name__}")
            return folder, saved
    return None, None


def read_splits(values, dataset, read_split, say):
    """The examples of every split that is needed, as they were read: split -> list."""
    splits = dataset.splits
    measured = measured_splits(dataset)
    needed = ["train"] if values.do_train else []
    if values.do_eval:
        if not measured:
            raise InputError("--do_eval needs a split with labels, dev or test. Received: none")
        needed += measured
    elif values.do_train and values.eval_every_steps:
        needed += [name for name in measured if name == "dev"]
    if values.do_predict:
        needed.append(split_to_predict(values, splits))
    read = {}
    for split in dict.fromkeys(needed):
        if split not in splits:
            raise InputError(f"the task must have {split}. Received: {', '.join(splits)}")
        read[split], left_out = read_split(dataset, split, values.data_dir)
        shown = "".join(f", {count:,} {what}" for what, count in left_out.items())
        say(f"{split}: {len(read[split]):,} examples{shown}")
    if values.do_train and values.eval_every_steps and "dev" not in splits:
        if len(read["train"]) < 2:
            raise InputError(
                "--eval_every_steps holds out training examples where a task has no dev split: "
                "there must be two at least. Received: 1"
            )
        order = np.random.default_rng(0).permutation(len(read["train"]))
        count = max(1, int(HELD_OUT_SHARE * len(order)))
        read["held_out"] = [read["train"][i] for i in sorted(order[:count])]
        read["train"] = [read["train"][i] for i in sorted(order[count:])]
        say(f"held_out: {count:,} of the training examples choose the best checkpoint")
    return read
