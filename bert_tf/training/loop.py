"""Runs the training loop, which trains on batches and writes checkpoints and curves."""

import contextlib
import dataclasses
import functools
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_common.background import Background
from bert_tf.checkpoint_files import BEST_FOLDER, chosen_checkpoint
from bert_tf.distillation import Teacher
from bert_tf.summaries.histograms import layer_groups
from bert_tf.summaries.profile import Profile
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Reporter
from bert_tf.training.distribution import is_chief, number_of_chief, worker_count
from bert_tf.training.interfaces import HeldOutEvaluator, TrainingData
from bert_tf.training.interruptions.nonfinite_steps import SkippedSteps
from bert_tf.training.interruptions.out_of_memory import explain_out_of_memory
from bert_tf.training.interruptions.signals import StopRequest
from bert_tf.training.state import BestCheckpoint, TrainingState, start_saving
from bert_tf.training.step import StepConfig, TrainingStep
from bert_tf.training.xla import compiled_by_all

# The maximum duration of a loop, as a signal has to wait until the current loop ends.
LOOP_SECONDS = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(StepConfig):
    """The settings of a training run; the fields have the names of their flags."""

    output_dir: str  # the folder for checkpoints and event files
    train_batch_size: int  # examples per update, over all devices
    num_train_steps: int  # total updates, including those before a resume
    steps_per_loop: int = 1  # the maximum number of updates without returning to Python
    save_checkpoints_steps: int = 1000  # updates between two checkpoints
    keep_checkpoint_max: int = 5  # how many of the newest checkpoints are kept; 0 for all
    keep_checkpoint_every_steps: int = 0  # multiples of this step are saved and kept; 0 for none
    save_summary_steps: int = 100  # updates between two points on TensorBoard
    eval_every_steps: int = 0  # updates between two evaluations; 0 for one at the end
    patience: int = 0  # consecutive evaluations without a new best that end training; 0: never
    max_bad_steps: int = 10  # allowed consecutive steps with a non-finite loss or gradient
    # The first and the last update to trace; (0, 0) for none.
    profile_steps: tuple[int, int] = (0, 0)
    xla: str = "auto"  # or "on" or "off"


def train(
    state: TrainingState,
    strategy: tf.distribute.Strategy,
    data: TrainingData,
    config: TrainingConfig,
    evaluator: HeldOutEvaluator | None = None,
    *,
    texts: Mapping[str, str] | None = None,
    teacher: Teacher | None = None,
) -> str | None:
    """Trains to `config.num_train_steps`, or until the state's `TimeBudget` is over.

    Writes checkpoints and curves along the way. Earlier checkpoints are kept whatever is raised.

    Args:
        state: the state to train, which is updated.
        data: the training examples, `in_order`.
        evaluator: evaluates on held-out examples every `config.eval_every_steps`; or None.
        texts: name -> Markdown for TensorBoard.
        teacher: a `Teacher` from which the model also learns, or None.

    Returns:
        The name of the signal that ended training early, or None.

    Raises:
        InputError: a record is damaged, losses are not finite, or memory ran out.
        OSError: a file cannot be written completely.
    """
    chief, alone = is_chief(strategy), worker_count(strategy) == 1
    with (
        StopRequest() as stop,
        explain_out_of_memory(*memory_advice(config), config.output_dir),
        explain_damaged_record(data),
        Background() as background,
        Profile(config.output_dir, *(config.profile_steps if chief else (0, 0))) as profile,
        Reporter(
            config.output_dir,
            teacher.objective(state.model.objective) if teacher else state.model.objective,
            state.step,
            num_train_steps=config.num_train_steps,
            batch_size=config.train_batch_size,
            summary_steps=config.save_summary_steps,
            writes=chief,
            skipped_before=int(state.optimizer.skipped.numpy()),
            weight_norm=weight_norm_function(state.model),
            time_budget=state.time_budget,
        ) as reporter,
    ):
        stop.nothing_to_save = True
        reporter.texts(texts or {}, state.step)
        best, best_folder = None, os.path.join(config.output_dir, BEST_FOLDER)
        if evaluator:
            best = BestCheckpoint(best_folder, evaluator.score, state.step, chief)
        elif chief and (kept := chosen_checkpoint(config.output_dir)):
            warnings.warn(
                f"{kept} stays what programs take from {config.output_dir} (--init_checkpoint "
                "chooses another one): it is named as the best, and this training, which makes no "
                "evaluation, cannot replace it",
                stacklevel=2,
            )
        training = _Training(
            state=state,
            strategy=strategy,
            config=config,
            evaluator=evaluator,
            reporter=reporter,
            stop=stop,
            chief=chief,
            skipped_steps=SkippedSteps(state, data, config, chief),
            best=best,
            background=background,
        )
        training.make_up_evaluation()
        stopped = None
        if not training.is_over():  # else no step is left to compile
            stop.nothing_to_save = True  # until XLA has compiled the step, which takes minutes
            run_steps = _make_steps(state, strategy, data, config, teacher)
            stopped = training.run(run_steps, profile, alone)
    # A signal may have come while the last checkpoint was written. Other workers do not know of it.
    return stopped or (stop.signal_name if alone else None)


@dataclasses.dataclass
class _Training:
    """Runs the steps of a training, and saves and evaluates between them; fields as in `train`."""

    state: TrainingState
    strategy: tf.distribute.Strategy
    config: TrainingConfig
    evaluator: HeldOutEvaluator | None
    reporter: Reporter
    stop: StopRequest
    chief: bool  # whether this worker writes checkpoints
    skipped_steps: SkippedSteps
    best: BestCheckpoint | None
    background: Background  # writes checkpoints
    evaluation_compiled: bool = False  # whether the first evaluation is finished

    def run(self, run_steps, profile, alone):
        """Trains and returns the result of `train`; `alone`: whether this is the only worker."""
        state, config = self.state, self.config
        saves = (config.save_checkpoints_steps, config.keep_checkpoint_every_steps)
        budget = state.time_budget
        local_seconds = seconds = 0.0  # per step, in this worker and as the mean over all workers
        while not self.is_over():
            if self.background.failed:  # a full disk ends training now, not at the next checkpoint
                self.background.wait()
            count = steps_until_stop(state.step, config, seconds)
            profile.before(state.step + 1)
            start = time.perf_counter()
            spent = budget.spent / budget.seconds if budget else 0.0
            metrics = run_steps(count, self.stop.requested, local_seconds, spent)
            state.step += count
            self.stop.nothing_to_save = False
            histograms = metrics.pop("histograms", None)
            self.reporter.steps(state.step, metrics)
            if histograms is not None and _is_multiple(state.step, config.histogram_steps):
                names = layer_groups(state.model.trainable_variables)
                self.reporter.histograms(names, histograms[-1], state.step)
                self.reporter.restart_clock()
            profile.after(state.step)
            self.skipped_steps.check(metrics)  # waits for the device
            local_seconds = (time.perf_counter() - start) / count
            # All workers must stop after the same step.
            stopping = self.stop.requested if alone else float(metrics["stop"][-1]) > 0
            seconds = float(metrics["step_seconds"][-1])
            if budget is not None:
                budget.set_share(float(metrics["spent_share"][-1]))
            if self.evaluation_is_due() and not stopping:  # a signal may leave little time
                self.evaluate()
                stopping = alone and self.stop.requested
            # After the evaluation, as a killed run resumes after its checkpoint without evaluating.
            if stopping or self.is_over() or _is_multiple(state.step, *saves):
                self.save()
            if stopping:
                return self.stop.signal_name or "a signal to another worker"
        return None

    def is_over(self):
        """Returns True if all steps are done, the time is over, or `config.patience` is used up."""
        config, best = self.config, self.best.step if self.best else 0
        finished = self.state.is_finished(config.num_train_steps)
        return finished or is_out_of_patience(config, self.state.step, best)

    def evaluation_is_due(self):
        """Returns True if an evaluation follows this step."""
        config, step = self.config, self.state.step
        at_end = self.state.is_finished(config.num_train_steps)
        return self.evaluator and (at_end or _is_multiple(step, config.eval_every_steps))

    def make_up_evaluation(self):
        """Makes up for the evaluation that a signal prevented in an earlier start."""
        if self.state.step > self.state.evaluated and self.evaluation_is_due():
            self.evaluate()
            self.save()
            self.background.wait()  # from here on a signal ends the process at once

    def evaluate(self):
        """Evaluates; saves before the first time, so that signals need not wait for XLA."""
        if not self.evaluation_compiled and not self.stop.nothing_to_save:
            self.save()
            self.background.wait()
            self.stop.nothing_to_save = True
        assert self.evaluator is not None and self.best is not None  # or no evaluation is due
        results = self.evaluator.run()
        illustrations = self.evaluator.illustrations() if self.chief else NO_ILLUSTRATIONS
        self.reporter.evaluation(self.state.step, results, illustrations)
        # Workers that compute the results on their own may round them differently.
        agreed = functools.partial(number_of_chief, self.strategy)
        self.best.save_if_better(self.state, results, agreed)
        self.state.evaluated = self.state.step
        if budget := self.state.time_budget:  # the time may be over, or the rate much lower
            budget.set_share(agreed(budget.spent / budget.seconds))
        self.reporter.restart_clock()
        self.evaluation_compiled, self.stop.nothing_to_save = True, False

    def save(self):
        """Writes the curves' next point and a checkpoint."""
        self.reporter.flush(self.state.step)
        if self.chief:  # training continues while a copy is written
            self.background.start(start_saving(self.state, self.config))
        self.reporter.restart_clock()


def is_out_of_patience(config: TrainingConfig, step: int, best: int) -> bool:
    """Returns True if `config.patience` ends training; `best` is the step of the best, 0: none."""
    waited = step - best if best else 0
    return bool(config.patience) and waited >= config.patience * config.eval_every_steps


def steps_until_stop(step: int, config: TrainingConfig, seconds: float) -> int:
    """Counts the updates, of `seconds` each (0: unknown), until something else is due."""
    in_time = max(1, int(LOOP_SECONDS / seconds)) if seconds else 1
    limits = [config.steps_per_loop, in_time, config.num_train_steps - step]
    first, last = config.profile_steps
    limits += [mark - step for mark in (first - 1, last) if mark > step]
    saves = (config.save_checkpoints_steps, config.keep_checkpoint_every_steps)
    intervals = (*saves, config.save_summary_steps, config.histogram_steps, config.eval_every_steps)
    return min(limits + [every - step % every for every in intervals if every])


def _is_multiple(step, *numbers):
    """Returns True if the step is a multiple of one of the numbers; 0 has no multiples."""
    return any(number and step % number == 0 for number in numbers)


def _make_steps(state, strategy, data, config, teacher):
    """Returns a function that runs the next steps, without XLA if it fails under --xla=auto.

    The first step runs in the same loop as all others. TensorFlow would optimize a single step
    differently, so a resumed run would differ in its last bits.
    """

    def make(compilation):
        return TrainingStep(
            state.model,
            state.optimizer,
            strategy,
            config,
            compilation,
            state.loss_scale,
            token_dropping=state.token_dropping,
            teacher=teacher,
        )

    batches = data.batches(strategy, config, state.step)
    rows = config.train_batch_size // strategy.num_replicas_in_sync
    step = compiled_by_all(
        make,
        lambda step: step.compile(batches.element_spec, rows),
        config.xla,
        state.model.compute_dtype,
        strategy,
        "the step",
    )
    return functools.partial(step.loop, iter(batches))


def weight_norm_function(model: keras.Model) -> Callable[[], tf.Tensor]:
    """Returns a compiled function that computes the global norm of all trainable weights."""
    variables = [v.value for v in model.trainable_variables]
    return tf.function(lambda: tf.linalg.global_norm([tf.convert_to_tensor(v) for v in variables]))


def memory_advice(config: TrainingConfig) -> tuple[list[str], dict[str, Any]]:
    """Returns the remedies and the relevant flags for `explain_out_of_memory`."""
    remedies = ["--gradient_accumulation_steps=2 or more", "a lower --train_batch_size"]
    if config.recompute == "none":
        remedies.insert(0, "--recompute=block")
    names = ("train_batch_size", "gradient_accumulation_steps")
    return remedies, {f"--{name}": getattr(config, name) for name in names}


@contextlib.contextmanager
def explain_damaged_record(data: TrainingData) -> Iterator[None]:
    """Turns TensorFlow's error for a damaged record into an error that names its file."""
    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        raise data.explain_failure() or error from None
