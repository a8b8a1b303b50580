"""The training loop: batches in, checkpoints and curves out."""

import dataclasses
import os
import warnings

import tensorflow as tf

from bert_tf.checkpoint import load_google_checkpoint, load_training_state, save_training_state
from bert_tf.checkpoint_files import (
    checkpoint_path,
    keep_newest,
    latest_checkpoint,
    remove_unfinished,
)
from bert_tf.input_pipeline import explain_failure, training_dataset
from bert_tf.reporting import Reporter
from bert_tf.step import TrainingStep
from tokenization.errors import InputError


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How long to train and what to keep; the names are those of the flags.

    Attributes:
        output_dir: where checkpoints and event files go.
        train_batch_size: examples of an update, over all devices.
        num_train_steps: updates in all, those before a resume included.
        save_checkpoints_steps: updates between two checkpoints.
        keep_checkpoint_max: how many of the newest checkpoints stay; 0 for all.
        save_summary_steps: updates between two points on TensorBoard.
        seed: decides the order of examples, what dropout drops, new weights.
        xla: "auto", "on" or "off".
        sentence_name: what the sentence objective is called on TensorBoard.
    """

    output_dir: str
    train_batch_size: int
    num_train_steps: int
    save_checkpoints_steps: int = 1000
    keep_checkpoint_max: int = 5
    save_summary_steps: int = 100
    seed: int = 12345
    xla: str = "auto"
    sentence_name: str = "next_sentence"


def choose_strategy():
    """All visible GPUs, each with a copy of the model; the one device that there is otherwise."""
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def describe_devices(replicas):
    """For example "2 GPUs" or "the CPU"."""
    if tf.config.list_logical_devices("GPU"):
        return f"{replicas} GPU{'s' if replicas > 1 else ''}"
    return "the CPU" if replicas == 1 else f"{replicas} logical CPUs"


def restore(model, optimizer, output_dir, init_checkpoint=None, allow_missing=()):
    """Sets weights, moments and step from the first of these that there is.

    1. The newest checkpoint in `output_dir`: the run goes on where it was.
    2. `init_checkpoint`, of Google's or of this project: weights alone, from step 0.
    3. Neither: the model's initial weights.

    Args:
        model: a `PretrainingModel`.
        optimizer: an optimizer of `bert_tf.optimization`, built.
        output_dir: the run's directory.
        init_checkpoint: a checkpoint's name, or None.
        allow_missing: as `load_google_checkpoint` has it, for `init_checkpoint`.

    Returns:
        The step, and a line that says which file was used and why.

    Raises:
        InputError: a checkpoint that does not fit the model.
    """
    remove_unfinished(output_dir)
    newest = latest_checkpoint(output_dir)
    if newest is not None:
        step = load_training_state(newest, model, optimizer)
        optimizer.iterations.assign(step)
        line = f"resuming from {newest}, the newest checkpoint in the output directory"
        if init_checkpoint:
            line += f" (--init_checkpoint={init_checkpoint} was for its first step)"
        return step, line
    if init_checkpoint:
        report = load_google_checkpoint(model, init_checkpoint, allow_missing)
        return 0, f"starting from --init_checkpoint: {report}"
    return 0, f"starting from new weights: no checkpoint in {output_dir}, no --init_checkpoint"


def train(model, optimizer, strategy, files, record_format, examples, config, start_step):
    """Trains to `config.num_train_steps`, writing checkpoints and curves on the way.

    Args:
        model: a `PretrainingModel`, made in the strategy's scope.
        optimizer: built for the model, in the same scope.
        strategy: a `tf.distribute.Strategy`.
        files: TFRecord files.
        record_format: their `RecordFormat`.
        examples: how many records they hold.
        config: a `TrainingConfig`.
        start_step: updates made before, which the checkpoint told.

    Returns:
        The step reached.

    Raises:
        InputError: a damaged record, a loss that is not finite, or more memory needed than
            there is; checkpoints written before stay.
    """
    dataset = training_dataset(
        files,
        record_format,
        model.config,
        examples,
        config.train_batch_size,
        config.seed,
        start_step,
    )
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    step = start_step
    run = None
    with Reporter(
        config.output_dir,
        start_step,
        config.num_train_steps,
        config.train_batch_size,
        config.save_summary_steps,
        config.sentence_name,
    ) as reporter:
        while step < config.num_train_steps:
            batch = _next_batch(batches, files, record_format, model.config)
            try:
                if run is None:
                    run, metrics = _first_step(model, optimizer, strategy, config, batch)
                else:
                    metrics = run(batch)
            except tf.errors.ResourceExhaustedError as error:
                raise InputError(
                    "memory ran out: lower --train_batch_size. Received: "
                    f"--train_batch_size={config.train_batch_size}, "
                    f"{error.message.splitlines()[0]}"
                ) from None
            step += 1
            reporter.step(step, metrics)
            if step % config.save_checkpoints_steps == 0 or step == config.num_train_steps:
                reporter.flush(step)
                save(model, optimizer, step, config)
                reporter.restart_clock()
    return step


def _next_batch(batches, files, record_format, model_config):
    """The next batch; a damaged record becomes an error that names its file."""
    try:
        return next(batches)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        explained = explain_failure(files, record_format, model_config)
        raise explained or error from None


def _first_step(model, optimizer, strategy, config, batch):
    """Runs the first step, which compiles it; without XLA where XLA cannot, if left to us.

    A step that fails to compile has updated nothing, so its batch is used again.
    """
    step = TrainingStep(model, optimizer, strategy, config.seed, xla=config.xla != "off")
    try:
        return step, step(batch)
    except tf.errors.ResourceExhaustedError:
        raise
    except tf.errors.OpError as error:
        lines = error.message.splitlines()
        reason = next((line for line in lines if "XLA" in line), lines[0])[:200]
        if config.xla == "on":
            raise InputError(
                f"--xla=on needs a step that XLA can compile (--xla=auto goes on without). "
                f"Received: {reason}"
            ) from None
        if config.xla == "off":
            raise
        warnings.warn(
            f"XLA cannot compile the step here, so it runs without: {reason}", stacklevel=2
        )
    step = TrainingStep(model, optimizer, strategy, config.seed, xla=False)
    return step, step(batch)


def save(model, optimizer, step, config):
    """Writes a checkpoint, then removes those beyond `keep_checkpoint_max`."""
    os.makedirs(config.output_dir, exist_ok=True)
    save_training_state(checkpoint_path(config.output_dir, step), model, optimizer, step)
    keep_newest(config.output_dir, config.keep_checkpoint_max)
