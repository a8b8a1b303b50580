"""The training loop: batches in, checkpoints and curves out."""

import contextlib
import dataclasses
import json
import math
import os
import warnings
from typing import NamedTuple

import tensorflow as tf

from bert_tf.checkpoint import (
    DamagedCheckpoint,
    load_google_checkpoint,
    load_training_state,
    save_google_checkpoint,
    save_training_state,
)
from bert_tf.checkpoint_files import (
    checkpoint_path,
    keep_newest,
    list_checkpoints,
    note_checkpoints,
    remove_checkpoint,
    remove_unfinished,
)
from bert_tf.distribution import barrier, explain_lost_worker, is_chief, worker_count
from bert_tf.evaluation import first_records, read_results, write_results
from bert_tf.input_pipeline import distribute_training, explain_failure, step_records
from bert_tf.loss_scale import MINIMUM_SCALE
from bert_tf.masked_words import guesses_as_markdown
from bert_tf.reporting import Profile, Reporter
from bert_tf.step import TrainingStep
from bert_tf.stopping import StopRequest
from tokenization.errors import InputError

# Where the checkpoint with the lowest held-out loss lies, and the log of steps that were left
# out, both in the run's directory.
BEST_FOLDER = "best"
SKIPPED_FILE = "skipped_steps.jsonl"

# Held-out sentences whose masked words are shown on TensorBoard.
SHOWN_SENTENCES = 4

# Records of a skipped step that its warning names; the file names all.
NAMED_RECORDS = 3


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How long to train and what to keep; the names are those of the flags.

    Attributes:
        output_dir: where checkpoints and event files go.
        train_batch_size: examples of an update, over all devices.
        num_train_steps: updates in all, those before a resume included.
        gradient_accumulation_steps: parts that a device computes its share of a batch in.
        steps_per_loop: updates at most without coming back to Python.
        recompute: "none" or "block".
        save_checkpoints_steps: updates between two checkpoints.
        keep_checkpoint_max: how many of the newest checkpoints stay; 0 for all.
        keep_checkpoint_every_steps: multiples of it are saved and stay; 0 for none.
        save_summary_steps: updates between two points on TensorBoard.
        eval_every_steps: updates between two evaluations; 0 for one at the end.
        max_bad_steps: how many steps in a row may be no number before the run stops.
        profile_steps: the first and the last update that are traced; (0, 0) for none.
        seed: decides the order of examples, what dropout drops, new weights.
        xla: "auto", "on" or "off".
        sentence_name: what the sentence objective is called on TensorBoard.
    """

    output_dir: str
    train_batch_size: int
    num_train_steps: int
    gradient_accumulation_steps: int = 1
    steps_per_loop: int = 1
    recompute: str = "none"
    save_checkpoints_steps: int = 1000
    keep_checkpoint_max: int = 5
    keep_checkpoint_every_steps: int = 0
    save_summary_steps: int = 100
    eval_every_steps: int = 0
    max_bad_steps: int = 10
    profile_steps: tuple = (0, 0)
    seed: int = 12345
    xla: str = "auto"
    sentence_name: str = "next_sentence"


class TrainingData(NamedTuple):
    """Records to train on, as `check_records` found them."""

    files: list
    record_format: object
    examples: int


@dataclasses.dataclass
class TrainingState:
    """What changes while training: all of it is in a checkpoint.

    Learning rate, dropout and the order of examples are functions of the step.

    Attributes:
        model: a `PretrainingModel`, made in the strategy's scope.
        optimizer: built for the model, in the same scope.
        loss_scale: a `LossScale` for float16, or None.
        step: updates made, those that were skipped included.
        skipped: how many were skipped, because loss or gradient was no number.
    """

    model: object
    optimizer: object
    loss_scale: object = None
    step: int = 0
    skipped: int = 0

    def counters(self):
        """What a checkpoint holds beside weights and moments."""
        counters = {"skipped_steps": self.skipped}
        if self.loss_scale is not None:
            counters["loss_scale"] = self.loss_scale.scale.numpy()
            counters["loss_scale_good_steps"] = self.loss_scale.good_steps.numpy()
        return counters

    def set(self, step, counters):
        """Takes over what a checkpoint holds."""
        self.step = step
        self.skipped = int(counters.get("skipped_steps", 0))
        self.optimizer.iterations.assign(step)
        if self.loss_scale is not None and "loss_scale" in counters:
            self.loss_scale.scale.assign(counters["loss_scale"])
            self.loss_scale.good_steps.assign(counters["loss_scale_good_steps"])


def restore(state, strategy, output_dir, init_checkpoint=None, allow_missing=()):
    """Sets weights, moments and step from the first of these that there is.

    1. The newest checkpoint in `output_dir`: the run goes on where it was. One that cannot be
       read is left out with a warning, for the one before.
    2. `init_checkpoint`, of Google's or of this project: weights alone, from step 0.
    3. Neither: the model's initial weights.

    Args:
        state: a `TrainingState`.
        strategy: a `tf.distribute.Strategy`.
        output_dir: the run's directory; of several workers all must see the same files there.
        init_checkpoint: a checkpoint's name, or None.
        allow_missing: as `load_google_checkpoint` has it, for `init_checkpoint`.

    Returns:
        A line that says which file was used and why.

    Raises:
        InputError: a checkpoint that does not fit the model, or none of several can be read.
    """
    if is_chief(strategy):
        remove_unfinished(output_dir)
    barrier(strategy)
    steps = list_checkpoints(output_dir)
    for number, step in enumerate(reversed(steps), start=1):
        path = checkpoint_path(output_dir, step)
        try:
            state.set(*load_training_state(path, state.model, state.optimizer))
        except DamagedCheckpoint as error:
            if number == len(steps):
                raise
            warnings.warn(f"{error}; going back to the checkpoint before", stacklevel=2)
            continue
        line = f"resuming from {path}, the newest checkpoint in the output directory"
        if number > 1:
            line += " that can be read"
        if init_checkpoint:
            line += f" (--init_checkpoint={init_checkpoint} was for its first step)"
        return line
    if init_checkpoint:
        report = load_google_checkpoint(state.model, init_checkpoint, allow_missing)
        return f"starting from --init_checkpoint: {report}"
    return f"starting from new weights: no checkpoint in {output_dir}, no --init_checkpoint"


def train(state, strategy, data, config, evaluator=None, tokenizer=None, texts=None):
    """Trains to `config.num_train_steps`, writing checkpoints and curves on the way.

    Args:
        state: a `TrainingState`; it moves on.
        strategy: a `tf.distribute.Strategy`.
        data: a `TrainingData`.
        config: a `TrainingConfig`.
        evaluator: an `Evaluator` for held-out records, or None.
        tokenizer: for the sentences that TensorBoard shows at an evaluation, or None.
        texts: a dict name -> Markdown for TensorBoard.

    Returns:
        The name of the signal that ended training early, or None.

    Raises:
        InputError: a damaged record, losses that are not finite, more memory needed than
            there is, or another worker that is gone; checkpoints written before stay.
    """
    chief = is_chief(strategy)
    dataset = distribute_training(
        strategy,
        data.files,
        data.record_format,
        state.model.config,
        data.examples,
        config.train_batch_size,
        config.seed,
        state.step,
    )
    batches = iter(dataset)
    tokens = config.train_batch_size * data.record_format.max_seq_length
    with (
        StopRequest() as stop,
        explain_lost_worker(strategy),
        explain_memory(config),
        explain_records(data, state.model.config),
        Profile(config.output_dir, *(config.profile_steps if chief else (0, 0))) as profile,
        Reporter(
            config.output_dir,
            state.step,
            config.num_train_steps,
            config.train_batch_size,
            tokens,
            config.save_summary_steps,
            config.sentence_name,
            writes=chief,
            skipped_before=state.skipped,
            weight_norm=weight_norm_function(state.model),
        ) as reporter,
    ):
        for name, text in (texts or {}).items():
            reporter.text(name, text, state.step)
        watch = SkippedSteps(state, data, config, chief)
        best = BestCheckpoint(os.path.join(config.output_dir, BEST_FOLDER), chief)
        run, alone = None, worker_count(strategy) == 1
        while state.step < config.num_train_steps:
            count = 1 if run is None else steps_until_stop(state.step, config)
            profile.before(state.step + 1)
            if run is None:
                run, metrics = _first_step(state, strategy, config, next(batches), stop.requested)
            else:
                metrics = run.loop(batches, count, stop.requested)
            state.step += count
            reporter.steps(state.step, metrics)
            profile.after(state.step)
            watch.look(metrics)
            # Not this worker's wish alone: all of them must stop after the same step.
            stopping = stop.requested if alone else float(metrics["stop"][-1]) > 0
            at_end = stopping or state.step == config.num_train_steps
            if at_end or _is_due(state.step, config.save_checkpoints_steps, config):
                reporter.flush(state.step)
                save(state, config, chief)
                reporter.restart_clock()
            at_end = state.step == config.num_train_steps
            if evaluator and (at_end or _is_multiple(state.step, config.eval_every_steps)):
                results = evaluator.run()
                guesses = _guesses(state, evaluator, tokenizer) if chief else None
                reporter.evaluation(state.step, results, guesses)
                best.offer(state, results)
                reporter.restart_clock()
            if stopping:
                break
        # A worker that ended sooner would look like one that is lost.
        barrier(strategy)
    if state.step == config.num_train_steps:
        return None
    return stop.signal_name or "a signal to another worker"


def steps_until_stop(step, config):
    """How many updates may follow `step` before something else is to be done."""
    limits = [config.steps_per_loop, config.num_train_steps - step]
    first, last = config.profile_steps
    limits += [mark - step for mark in (first - 1, last) if mark > step]
    for every in (
        config.save_checkpoints_steps,
        config.keep_checkpoint_every_steps,
        config.save_summary_steps,
        config.eval_every_steps,
    ):
        if every:
            limits.append(every - step % every)
    return min(limits)


def _is_multiple(step, every):
    return bool(every) and step % every == 0


def _is_due(step, every, config):
    return _is_multiple(step, every) or _is_multiple(step, config.keep_checkpoint_every_steps)


def _first_step(state, strategy, config, batch, stop):
    """Runs the first step, which compiles it; without XLA where XLA cannot, if left to us.

    A step that fails to compile has updated nothing, so its batch is used again.

    Returns:
        The `TrainingStep`, and what its `loop` would have returned.
    """

    def attempt(xla, xla_update):
        step = TrainingStep(
            state.model,
            state.optimizer,
            strategy,
            config.seed,
            xla=xla,
            xla_update=xla_update,
            accumulation_steps=config.gradient_accumulation_steps,
            recompute=config.recompute,
            loss_scale=state.loss_scale,
        )
        metrics = {**step(batch, stop), "input_seconds": tf.zeros([])}
        return step, {name: tf.reshape(value, [1]) for name, value in metrics.items()}

    try:
        return attempt(*compiled_parts(config.xla, state.model))
    except (tf.errors.ResourceExhaustedError, tf.errors.UnavailableError, tf.errors.AbortedError):
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
    return attempt(False, False)


def compiled_parts(xla, model):
    """Whether XLA compiles the forward and backward pass, and whether it compiles the update.

    With "auto" it does, but for one case: on a CPU its bfloat16 products take twice the time of
    TensorFlow's own.
    """
    if xla == "off":
        return False, False
    cpu = not tf.config.list_logical_devices("GPU")
    slow = cpu and model.compute_dtype != model.variable_dtype
    return (xla == "on" or not slow), True


def weight_norm_function(model):
    """A function that returns the global norm of all weights."""
    variables = [v.value for v in model.trainable_variables]
    return tf.function(lambda: tf.linalg.global_norm([tf.convert_to_tensor(v) for v in variables]))


class SkippedSteps:
    """Takes note of steps that were skipped, and stops a run that only skips.

    Args:
        state: the `TrainingState`.
        data: the `TrainingData`.
        config: the `TrainingConfig`.
        writes: whether this worker writes the log.
    """

    def __init__(self, state, data, config, writes):
        self.state = state
        self.data = data
        self.config = config
        self.writes = writes
        self.bad_in_a_row = 0

    def look(self, metrics):
        """Reads the metrics of a loop that ended at `state.step`.

        Raises:
            InputError: more bad steps in a row than allowed, or a loss scale of nothing left.
        """
        skipped = metrics["skipped"].numpy()
        if not skipped.any():
            self.bad_in_a_row = 0
            return
        names = ("loss", "gradient_norm", "learning_rate", "loss_scale")
        columns = {name: metrics[name].numpy() for name in names if name in metrics}
        for i, bad in enumerate(skipped):
            if not bad:
                self.bad_in_a_row = 0
                continue
            self.state.skipped += 1
            row = {name: float(column[i]) for name, column in columns.items()}
            step = self.state.step - len(skipped) + 1 + i
            self._note(step, row)
            if "loss_scale" in row and math.isfinite(row["loss"]):
                self._check_scale(step, row)  # too long for float16, as now and then it is
            else:
                self._check_count(step, row)

    def _note(self, step, row):
        """Writes step, numbers and records to the log; says it in one line."""
        records = [
            f"{file}:{number}"
            for file, number in step_records(
                self.data.files,
                self.data.examples,
                self.config.train_batch_size,
                self.config.seed,
                step - 1,
            )
        ]
        if not self.writes:
            return
        path = os.path.join(self.config.output_dir, SKIPPED_FILE)
        with open(path, "a", encoding="utf-8") as file:
            line = {"step": step, **{k: repr(v) for k, v in row.items()}, "records": records}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        warnings.warn(
            f"step {step} changed no weight: loss {row['loss']}, gradient norm "
            f"{row['gradient_norm']}; its records ({', '.join(records[:NAMED_RECORDS])}, ...) are "
            f"listed in {path}",
            stacklevel=2,
        )

    def _check_scale(self, step, row):
        if row["loss_scale"] <= MINIMUM_SCALE:
            raise InputError(
                "float16 needs gradients that fit it at a loss scale above "
                f"{MINIMUM_SCALE:g} (--precision=bfloat16 needs none; a lower --learning_rate may "
                f"help). Received: gradient norm {row['gradient_norm']} at loss scale "
                f"{row['loss_scale']:g}, step {step}"
            )

    def _check_count(self, step, row):
        self.bad_in_a_row += 1
        if self.bad_in_a_row > self.config.max_bad_steps:
            raise InputError(
                "loss and gradient must be finite in one of --max_bad_steps="
                f"{self.config.max_bad_steps} steps (a lower --learning_rate or a longer "
                "--num_warmup_steps may help; the checkpoints before are kept). Received: loss "
                f"{row['loss']}, gradient norm {row['gradient_norm']} at step {step}, learning "
                f"rate {row['learning_rate']:.3g}"
            )


class BestCheckpoint:
    """Keeps the weights with the lowest held-out masked-word loss, in a folder of their own.

    Args:
        folder: the folder; what an earlier part of the run left there counts.
        writes: whether this worker writes.
    """

    def __init__(self, folder, writes):
        self.folder = folder
        self.writes = writes
        self.loss = read_results(folder).get("masked_lm_loss", math.inf)

    def offer(self, state, results):
        """Saves the weights if they are better than the best ones so far."""
        if not self.writes or not results["masked_lm_loss"] < self.loss:
            return
        self.loss = results["masked_lm_loss"]
        os.makedirs(self.folder, exist_ok=True)
        save_google_checkpoint(state.model, checkpoint_path(self.folder, state.step))
        write_results(self.folder, {**results, "global_step": state.step})
        for step in list_checkpoints(self.folder):
            if step != state.step:  # the newest of a run that was begun anew may be a later one
                remove_checkpoint(checkpoint_path(self.folder, step))
        note_checkpoints(self.folder)


def _guesses(state, evaluator, tokenizer):
    """Markdown with the best guesses for some held-out masked words; None without a tokenizer."""
    if tokenizer is None:
        return None
    records = first_records(evaluator.files, evaluator.record_format, SHOWN_SENTENCES)
    return guesses_as_markdown(state.model, tokenizer, records)


def save(state, config, writes=True):
    """Writes a checkpoint, then removes those beyond `keep_checkpoint_max`.

    Args:
        state: a `TrainingState`.
        config: a `TrainingConfig`.
        writes: off on all workers but the first.
    """
    if not writes:
        return
    os.makedirs(config.output_dir, exist_ok=True)
    path = checkpoint_path(config.output_dir, state.step)
    save_training_state(path, state.model, state.optimizer, state.step, state.counters())
    keep_newest(
        config.output_dir, config.keep_checkpoint_max, every=config.keep_checkpoint_every_steps
    )


@contextlib.contextmanager
def explain_memory(config):
    """Turns the error of memory that ran out into one line that says what to change."""
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        ways = ["--gradient_accumulation_steps=2 or more", "a lower --train_batch_size"]
        if config.recompute == "none":
            ways.insert(0, "--recompute=block")
        raise InputError(
            f"memory ran out, which {', '.join(ways)} may mend. Received: "
            f"--train_batch_size={config.train_batch_size}, "
            f"--gradient_accumulation_steps={config.gradient_accumulation_steps}, "
            f"{error.message.splitlines()[0]}"
        ) from None


@contextlib.contextmanager
def explain_records(data, model_config):
    """Turns the error of a damaged record into one that names its file."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        explained = explain_failure(data.files, data.record_format, model_config)
        raise explained or error from None
