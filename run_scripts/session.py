"""Sets up devices, model and training for the programs that train.

It imports TensorFlow, so programs import it only after checking their flags and files.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.blockwise_attention import ATTENTION_FUNCTIONS
from bert_tf.checkpoint import CheckpointArrays
from bert_tf.checkpoint_files import BEST_FOLDER
from bert_tf.distillation import OutputTeacher, RelationTeacher, Teacher
from bert_tf.encoder import EncoderModel
from bert_tf.optimization import OPTIMIZERS
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Illustrations, write_evaluation
from bert_tf.training.cluster import Cluster
from bert_tf.training.distribution import (
    barrier,
    check_agreement,
    explain_lost_worker,
    is_chief,
    make_strategy,
    raise_together,
)
from bert_tf.training.evaluation import as_shown, write_results
from bert_tf.training.interfaces import HeldOutEvaluator, TrainingData
from bert_tf.training.interruptions.out_of_memory import MEMORY_REMEDIES, explain_out_of_memory
from bert_tf.training.interruptions.output_folder import lock_folder
from bert_tf.training.loop import TrainingConfig, is_out_of_patience, train
from bert_tf.training.mixed_precision import POLICIES, LossScale, choose_precision, suggestion
from bert_tf.training.state import BestCheckpoint, TrainingState, restore
from bert_tf.training.time_budget import TimeBudget
from bert_tf.training.xla import Compilation, choose_compilation, enable_auto_clustering
from model_formats.load_folder import load
from model_formats.weights import open_weights
from run_scripts.announcement import Workload, announce, model_line
from run_scripts.flags.declaration import INT32_MAX
from run_scripts.flags.finetune import FinetuneFlags
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import read_profile_steps
from run_scripts.job import Job

JobFlags = FinetuneFlags | PretrainFlags


@contextlib.contextmanager
def open_session(
    flags: JobFlags, xla: str, cluster: Cluster | None, trained: Iterable[str] = ()
) -> Iterator["Session"]:
    """Opens the devices that the flags name, for the part of a program that uses TensorFlow.

    Args:
        xla: "auto", "on" or "off".
        trained: the folders that a training writes to, which the chief locks.

    Raises:
        InputError: memory ran out, a worker was lost, or another training writes to a folder.
    """
    precision = choose_precision(flags.precision)
    compilation = choose_compilation(xla, precision)
    if compilation.auto_clustering:
        enable_auto_clustering()
    if cluster and len(cluster.workers) > 1:
        print(f"waiting for all of {len(cluster.workers)} workers", flush=True)
    strategy = make_strategy(flags.distribution_strategy, flags.num_gpus, flags.all_reduce)
    with (
        explain_lost_worker(strategy),
        explain_out_of_memory(MEMORY_REMEDIES, {}),
        contextlib.ExitStack() as locks,
    ):
        # The workers wait for each other, so one that is refused must tell the others.
        raise_together(strategy, _lock_all(trained, locks) if is_chief(strategy) else None)
        session = Session(strategy, precision, xla, compilation)
        if flags.do_train and (line := suggestion(flags.precision)):
            session.print(line)
        yield session
        # A worker that ended earlier would look lost to the others.
        barrier(strategy)


def _lock_all(folders, locks):
    """Locks folders until the ExitStack `locks` closes; returns the reason if one is refused."""
    try:
        for folder in folders:
            locks.enter_context(lock_folder(folder))
    except InputError as error:
        return str(error)
    return None


@dataclasses.dataclass(frozen=True)
class Session:
    """The devices that a program runs on, and how they compute."""

    strategy: tf.distribute.Strategy
    precision: str  # a key of `POLICIES`
    xla: str  # "auto", "on" or "off"
    compilation: Compilation  # what `xla` means on these devices

    @property
    def chief(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return is_chief(self.strategy)

    def print(self, line: str) -> None:
        """Prints a line in the chief alone; before the session, every worker prints."""
        if self.chief:
            print(line, flush=True)

    def report(
        self,
        directory: str,
        results: Mapping[str, Any],
        note: str,
        *,
        illustrations: Illustrations = NO_ILLUSTRATIONS,
        draw: bool = True,
    ) -> None:
        """Prints results with a note, and writes eval_results.txt and, if `draw`, event files.

        Only the chief does this. `results` are name -> number, with "global_step".
        """
        if not self.chief:
            return
        self.print("***** Eval results *****")
        for name in sorted(results):
            self.print(f"  {name} = {as_shown(name, results[name])}")
        if note:
            self.print(f"  ({note})")
        if draw:
            write_evaluation(directory, results, results["global_step"], illustrations)
        self.print(f"written to {write_results(directory, results)}")

    def check_agreement(self, settings: Mapping[str, Any]) -> None:
        """Raises an `InputError` if workers differ in `settings`, name -> number or text."""
        check_agreement(self.strategy, settings)

    def check_flags(self, job: Job[Any]) -> None:
        """Raises an `InputError` if workers' flags differ or devices cannot divide a batch."""
        flags, sizes = job.flags, vars(job.config)
        settings = {f"--{name}": value for name, value in vars(flags).items()}
        settings |= {f"{name} of the configuration": size for name, size in sizes.items()}
        # Workers may see different files, in --model_dir or in --output_dir.
        settings |= {"the checkpoint to start from": job.source}
        # Checked first because a worker that alone raises an error looks lost to the others.
        self.check_agreement({**settings, "precision": self.precision})
        replicas = self.strategy.num_replicas_in_sync
        microbatches = flags.gradient_accumulation_steps
        if flags.do_train and flags.train_batch_size % (replicas * microbatches):
            raise InputError(
                "--train_batch_size must be a multiple of the number of devices times "
                "--gradient_accumulation_steps. Received: "
                f"--train_batch_size={flags.train_batch_size}, {replicas} devices, "
                f"--gradient_accumulation_steps={microbatches}"
            )

    def build(
        self,
        job: Job[Any],
        add_head: Callable[[Any], EncoderModel],
        schedule: Any = None,
        time_budget: TimeBudget | None = None,
    ) -> TrainingState:
        """Builds a model and its optimizer as a `TrainingState` at step 0.

        Args:
            add_head: a function that makes the model from a new encoder.
            schedule: the learning rate; None for a model that is not trained.
            time_budget: the `TimeBudget` that the schedule reads, or None.
        """
        # Not a multiple of 2^31 - 1, which TensorFlow reduces to 0; with seed 0, the shuffles of
        # tf.data do not take a seed from the graph.
        keras.utils.set_random_seed(job.flags.random_seed % INT32_MAX or INT32_MAX - 1)
        with self.strategy.scope():
            config, rate = job.config, job.flags.encoder_dropout
            if rate is not None:
                config = dataclasses.replace(
                    config, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate
                )
            attention, policy = ATTENTION_FUNCTIONS[job.flags.attention], POLICIES[self.precision]
            options = {"attention_function": attention, "dtype": policy}
            model = add_head(job.model.encoder.make_model(config, **options))
            self.print(model_line(job.model.encoder.title, config))
            if schedule is None:
                return TrainingState(model, None)  # type: ignore[arg-type]  # it is not trained
            correction = {"bias_correction": True} if job.flags.bias_correction else {}
            optimizer = OPTIMIZERS[job.flags.optimizer](schedule, **correction)
            optimizer.build(model.trainable_variables)
            loss_scale = LossScale() if self.precision == "float16" else None
            return TrainingState(model, optimizer, loss_scale, time_budget)

    def restore(
        self,
        state: TrainingState,
        job: Job[Any],
        reader: Callable[[str], CheckpointArrays] = open_weights,
        **options: Any,
    ) -> None:
        """Restores a new state from the run's newest checkpoint, else the job's; prints which.

        `reader` opens the job's checkpoint. The options are passed to
        `bert_tf.training.state.restore`.
        """
        output_dir, checkpoint = job.flags.output_dir, job.model.checkpoint
        line = restore(state, output_dir, checkpoint, open_weights=reader, **options)
        # A worker that does not see the others' checkpoints would start from new weights.
        self.check_agreement({"the step to resume from": state.step})
        self.print(line)

    def load_teacher(self, job: Job[Any]) -> Teacher | None:
        """Loads the job's teacher, which is not part of the state; prints how it teaches."""
        given = job.teacher
        if given is None:
            return None
        attention, policy = ATTENTION_FUNCTIONS[job.flags.attention], POLICIES[self.precision]
        with self.strategy.scope():
            loaded = load(given.folder, attention_function=attention, dtype=policy)
        self.print(f"teacher: {loaded.source}, {given.describe()}")
        if given.layer is not None:
            last = job.config.num_block_calls
            relations = given.heads, given.layer, last, given.relations
            return RelationTeacher(loaded.model, given.weight, *relations)
        if loaded.task == "pretraining" and not loaded.fills_masks:
            raise InputError(
                "--distillation=logits needs a teacher that predicts masked words. "
                f"Received: {given.folder.path} without that head"
            )
        return OutputTeacher(loaded.model, given.weight, given.temperature)

    def training_config(self, flags: JobFlags, **others: Any) -> TrainingConfig:
        """Returns the `TrainingConfig` of the flags that are named like its fields and `others`."""
        # On a CPU, steps are so slow that a signal should not have to wait for ten of them.
        loop = 10 if tf.config.list_physical_devices("GPU") else 1
        names = {field.name for field in dataclasses.fields(TrainingConfig)}
        given = {name: value for name, value in vars(flags).items() if name in names}
        given |= {
            "steps_per_loop": flags.steps_per_loop or loop,
            "profile_steps": read_profile_steps(flags),
            "seed": flags.random_seed,
            "xla": self.xla,
        }
        return TrainingConfig(**(given | others))

    def train(
        self,
        job: Job[Any],
        state: TrainingState,
        data: TrainingData,
        config: TrainingConfig,
        workload: Workload,
        evaluator: HeldOutEvaluator | None = None,
        **options: Any,
    ) -> bool:
        """Prints a summary and trains with the loop's `options`; True if a signal ended it."""
        teacher, budget = self.load_teacher(job), state.time_budget
        of_all = "" if budget else f" of {config.num_train_steps}"
        if state.has_nothing_left(config.num_train_steps, evaluator is not None):
            more = "more time" if budget else "more steps"
            self.print(
                f"already at step {state.step}{of_all}: nothing to train ({more} would continue "
                "from here)"
            )
            return False
        if evaluator and state.evaluated == state.step:
            best_folder = os.path.join(config.output_dir, BEST_FOLDER)
            best = BestCheckpoint(best_folder, evaluator.score, state.step, writes=False)
            if is_out_of_patience(config, state.step, best.step):
                self.print(
                    f"already stopped at step {state.step}{of_all} by --patience: nothing to train "
                    "(more of it would continue from here)"
                )
                return False
        if not state.is_finished(config.num_train_steps):  # else only a last evaluation is left
            announce(self, job, state, config, workload)
        data = data.in_order(state, config)
        stopped = train(state, self.strategy, data, config, evaluator, teacher=teacher, **options)
        barrier(self.strategy)  # until then the chief may be replacing the best checkpoint
        if stopped:
            self.print(
                f"stopped by {stopped} after step {state.step}{of_all}, saved in "
                f"{config.output_dir}: the same command continues from there"
            )
        elif budget and budget.is_over:
            self.print(f"the time is over after step {state.step}")
        return bool(stopped)
