"""The training loop: batches in, checkpoints and curves out."""

import contextlib
import dataclasses
import functools
import os
import tempfile
import time
import warnings

import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint_files import BEST_FOLDER
from bert_tf.summaries.profile import Profile
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Reporter
from bert_tf.training.distribution import is_chief, worker_count
from bert_tf.training.nonfinite_steps import SkippedSteps
from bert_tf.training.out_of_memory import explain_exhaustion
from bert_tf.training.signals import StopRequest
from bert_tf.training.state import BestCheckpoint, save
from bert_tf.training.step import TrainingStep
from bert_tf.training.xla import Compiled

# A signal waits for the steps that are under way: no more of them than take so long.
LOOP_SECONDS = 10.0


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


def train(state, strategy, data, config, evaluator=None, texts=None, folder=None, describe=None):
    """Trains to `config.num_train_steps`, writing checkpoints and curves on the way.

    Args:
        state: a `TrainingState`; it moves on.
        strategy: a `tf.distribute.Strategy`.
        data: a `TrainingRecords`, or another with `batches`, `names` and `explain_failure`.
        config: a `TrainingConfig`.
        evaluator: an `Evaluator` for held-out records, or another with `run`, `illustrations`
            and `best_by`; or None.
        texts: a dict name -> Markdown for TensorBoard.
        folder: the `TrainingFolder` of `config.output_dir`, entered; None in workers that write
            nothing.
        describe: a function of a folder that writes what lies beside the checkpoints; it is
            called where that has been removed.

    Returns:
        The name of the signal that ended training early, or None.

    Raises:
        InputError: a damaged record, losses that are not finite, or more memory needed than
            there is; checkpoints written before stay. Or the folder was removed, and is
            another training's now.
        OSError: a file that cannot be written whole; likewise.
    """
    chief = is_chief(strategy)
    with (
        StopRequest() as stop,
        explain_exhaustion(*memory_advice(config), config.output_dir),
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
        stop.nothing_to_save, evaluation_compiled = True, False
        reporter.texts(texts or {}, state.step)
        watch = SkippedSteps(state, data, config, chief)
        best = None
        if evaluator:
            best_folder = os.path.join(config.output_dir, BEST_FOLDER)
            best = BestCheckpoint(best_folder, *evaluator.best_by, state.step, chief)

        def look_after_folder():
            if folder is not None and reporter.is_lost():
                make_again(folder, describe, state, config)
                reporter.begin_again()
                reporter.texts(texts or {}, state.step)

        def keep():
            reporter.flush(state.step)
            if chief:
                save(state, config)
            reporter.restart_clock()

        def evaluate():
            nonlocal evaluation_compiled
            if not evaluation_compiled and not stop.nothing_to_save:
                keep()  # so that no signal has to wait until XLA has compiled the evaluation
                stop.nothing_to_save = True
            results = evaluator.run()
            shown = evaluator.illustrations() if chief else NO_ILLUSTRATIONS
            reporter.evaluation(state.step, results, shown)
            best.offer(state, results)
            state.evaluated = state.step
            reporter.restart_clock()
            evaluation_compiled, stop.nothing_to_save = True, False

        def evaluation_is_due():
            at_end = state.step == config.num_train_steps
            return evaluator and (at_end or _is_multiple(state.step, config.eval_every_steps))

        def given_up():
            waited = state.step - best.step if best and best.step else 0
            return bool(config.patience) and waited >= config.patience * config.eval_every_steps

        if state.step > state.evaluated and evaluation_is_due():  # a signal came before it
            evaluate()
            keep()
        stop.nothing_to_save = True  # until XLA has compiled the step, which takes minutes
        saves = (config.save_checkpoints_steps, config.keep_checkpoint_every_steps)
        run_steps, alone = _make_steps(state, strategy, data, config), worker_count(strategy) == 1
        own_seconds = seconds = 0.0  # of a step: at this worker, and at all of them
        while state.step < config.num_train_steps and not given_up():
            count = steps_until_stop(state.step, config, seconds)
            profile.before(state.step + 1)
            start = time.perf_counter()
            metrics = run_steps(count, stop.requested, own_seconds)
            state.step += count
            stop.nothing_to_save = False
            look_after_folder()
            reporter.steps(state.step, metrics)
            profile.after(state.step)
            watch.look(metrics)  # waits for the device
            own_seconds = (time.perf_counter() - start) / count
            # Not this worker's wish alone: all of them must stop after the same step.
            stopping = stop.requested if alone else float(metrics["stop"][-1]) > 0
            seconds = float(metrics["step_seconds"][-1])
            if evaluation_is_due() and not stopping:  # there may be little time
                evaluate()
                stopping = alone and stop.requested
            # After the evaluation: a run that is killed goes on after its checkpoint.
            over = state.step == config.num_train_steps or given_up()
            if stopping or over or _is_multiple(state.step, *saves):
                keep()
            if stopping:
                return stop.signal_name or "a signal to another worker"
    return None


def make_again(folder, describe, state, config):
    """Writes again what was in the output directory when it was removed or renamed.

    Args:
        folder, describe, state, config: as for `train`.

    Raises:
        InputError: another training has begun there, or the folder cannot be made; the weights
            are saved elsewhere.
    """
    try:
        folder.make_again()
        describe(config.output_dir)
    except (InputError, OSError) as error:
        reason = error
        if isinstance(error, OSError):
            reason = f"{config.output_dir} cannot be made again ({error.strerror})"
        aside = _save_aside(describe, state, config)
        raise InputError(
            f"{reason}; this training's files there were removed or renamed, so it ends at step "
            f"{state.step}, saved in {aside}: --output_dir={aside} goes on from there"
        ) from None
    warnings.warn(
        f"{config.output_dir} was removed or renamed while training: after step {state.step} it "
        "is made again, with the configuration and new curves, and the next checkpoint goes there",
        stacklevel=2,
    )


def _save_aside(describe, state, config):
    """Saves beside the output directory, or where that fails too for temporary files."""
    parent, name = os.path.split(os.path.abspath(config.output_dir))
    for place in (parent, tempfile.gettempdir()):
        aside = os.path.join(place, f"{name}-step-{state.step}")
        try:
            save(state, dataclasses.replace(config, output_dir=aside))
            describe(aside)
            return aside
        except (InputError, OSError) as error:
            failure = error
    raise failure


def steps_until_stop(step, config, seconds):
    """How many updates may follow `step` before something else is to be done.

    Args:
        step: updates made before.
        config: a `TrainingConfig`.
        seconds: how long one takes; 0 as long as that is not known.
    """
    format_duration = max(1, int(LOOP_SECONDS / seconds)) if seconds else 1
    limits = [config.steps_per_loop, format_duration, config.num_train_steps - step]
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


def _make_steps(state, strategy, data, config):
    """What runs the next steps, without XLA where XLA cannot compile them, if that is left to us.

    The first step runs in the same loop as all others: TensorFlow optimizes a step by itself
    otherwise than one in a loop, so that a resumed run would differ in its last bits.

    A step that fails to compile has updated nothing, but has taken its batch: each attempt has
    its own iterator.
    """

    def make(compilation):
        step = TrainingStep(
            state.model,
            state.optimizer,
            strategy,
            config.seed,
            xla=compilation.whole,
            xla_update=compilation.update,
            accumulation_steps=config.gradient_accumulation_steps,
            recompute=config.recompute,
            loss_scale=state.loss_scale,
            boundaries=config.bucket_boundaries,
        )
        batches = iter(data.batches(strategy, config, state.step))
        return functools.partial(step.loop, batches)

    return Compiled(make, config.xla, state.model.compute_dtype, "the step")


def weight_norm_function(model):
    """A function that returns the global norm of all weights."""
    variables = [v.value for v in model.trainable_variables]
    return tf.function(lambda: tf.linalg.global_norm([tf.convert_to_tensor(v) for v in variables]))


def memory_advice(config):
    """What `explain_exhaustion` says of a step: what may mend it, which flags there were."""
    remedies = ["--gradient_accumulation_steps=2 or more", "a lower --train_batch_size"]
    if config.recompute == "none":
        remedies.insert(0, "--recompute=block")
    names = ("train_batch_size", "gradient_accumulation_steps")
    return remedies, {f"--{name}": getattr(config, name) for name in names}


def compiling_line(compiled, lengths):
    """What happens before the first step, as a line; None where XLA compiles nothing.

    Args:
        compiled: what `choose_compilation` returned.
        lengths: those that batches are cut to; may be empty.
    """
    if not compiled.update:
        return None
    line = "compiling the training step with XLA, which may take minutes"
    if len(lengths) > 1:
        line += f" (again for the first batch of each length: {', '.join(map(str, lengths))})"
    return line


@contextlib.contextmanager
def explain_records(data):
    """Turns the error of a damaged record into one that names its file."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise data.explain_failure() or error from None
