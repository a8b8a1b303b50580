"""The training loop: batches in, checkpoints and curves out."""

import contextlib
import dataclasses
import os
import warnings

import tensorflow as tf

from bert_tf.checkpoint_files import BEST_FOLDER
from bert_tf.compilation import choose_compilation
from bert_tf.distribution import is_chief, worker_count
from bert_tf.profile import Profile
from bert_tf.reporting import NO_ILLUSTRATIONS, Reporter
from bert_tf.skipped_steps import SkippedSteps
from bert_tf.step import TrainingStep
from bert_tf.stopping import StopRequest
from bert_tf.training_state import BestCheckpoint, save
from tokenization.errors import InputError


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
        patience: after how many evaluations in a row that were no better than the best one
            training ends; 0 for never.
        max_bad_steps: how many steps in a row may be no number before the run stops.
        profile_steps: the first and the last update that are traced; (0, 0) for none.
        bucket_boundaries: lengths that batches are cut to, ascending, the last one that of the
            records; none for batches as they come.
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
    patience: int = 0
    max_bad_steps: int = 10
    profile_steps: tuple = (0, 0)
    bucket_boundaries: tuple = ()
    seed: int = 12345
    xla: str = "auto"
    sentence_name: str = "next_sentence"


def train(state, strategy, data, config, evaluator=None, texts=None):
    """Trains to `config.num_train_steps`, writing checkpoints and curves on the way.

    Args:
        state: a `TrainingState`; it moves on.
        strategy: a `tf.distribute.Strategy`.
        data: a `TrainingRecords`, or another with `batches`, `names` and `explain_failure`.
        config: a `TrainingConfig`.
        evaluator: an `Evaluator` for held-out records, or another with `run`, `illustrations`
            and `best_by`; or None.
        texts: a dict name -> Markdown for TensorBoard.

    Returns:
        The name of the signal that ended training early, or None.

    Raises:
        InputError: a damaged record, losses that are not finite, or more memory needed than
            there is; checkpoints written before stay.
    """
    chief = is_chief(strategy)
    batches = iter(data.batches(strategy, config, state.step))
    with (
        StopRequest() as stop,
        explain_memory(config),
        explain_records(data),
        Profile(config.output_dir, *(config.profile_steps if chief else (0, 0))) as profile,
        Reporter(
            config.output_dir,
            state.step,
            config.num_train_steps,
            config.train_batch_size,
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
        best = None
        if evaluator:
            folder = os.path.join(config.output_dir, BEST_FOLDER)
            best = BestCheckpoint(folder, *evaluator.best_by, chief)

        def keep():
            reporter.flush(state.step)
            if chief:
                save(state, config)
            reporter.restart_clock()

        def evaluate():
            results = evaluator.run()
            shown = evaluator.illustrations() if chief else NO_ILLUSTRATIONS
            reporter.evaluation(state.step, results, shown)
            best.offer(state, results)
            reporter.restart_clock()

        def given_up():
            waited = state.step - best.step if best and best.step else 0
            return bool(config.patience) and waited >= config.patience * config.eval_every_steps

        saves = (config.save_checkpoints_steps, config.keep_checkpoint_every_steps)
        run, alone = None, worker_count(strategy) == 1
        while state.step < config.num_train_steps and not given_up():
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
            at_end = state.step == config.num_train_steps
            if stopping:  # there may be little time
                keep()
            if evaluator and (at_end or _is_multiple(state.step, config.eval_every_steps)):
                evaluate()
            # After the evaluation: a run that is killed goes on behind its checkpoint.
            if not stopping and (at_end or given_up() or _is_multiple(state.step, *saves)):
                keep()
            if stopping:
                return None if at_end else stop.signal_name or "a signal to another worker"
    return None


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


def _is_multiple(step, *numbers):
    """Whether the step is a multiple of one of the numbers; 0 has none."""
    return any(number and step % number == 0 for number in numbers)


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
            boundaries=config.bucket_boundaries,
        )
        metrics = {**step(batch, stop), "input_seconds": tf.zeros([])}
        return step, {name: tf.reshape(value, [1]) for name, value in metrics.items()}

    compiled = choose_compilation(config.xla, state.model.compute_dtype)
    try:
        return attempt(compiled.whole, compiled.update)
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


def weight_norm_function(model):
    """A function that returns the global norm of all weights."""
    variables = [v.value for v in model.trainable_variables]
    return tf.function(lambda: tf.linalg.global_norm([tf.convert_to_tensor(v) for v in variables]))


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
def explain_records(data):
    """Turns the error of a damaged record into one that names its file."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise data.explain_failure() or error from None
