"""Fine-tunes a pre-trained encoder on a downstream task.

It imports TensorFlow, so `program` imports it only after checking flags and files.
"""

import dataclasses
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from bert_common.errors import InputError
from bert_tf import WarmupPolynomialDecay
from bert_tf.checkpoint import (
    HEAD_NAMES,
    TASK_HEAD_NAMES,
    CheckpointArrays,
    google_variables,
    load_arrays,
    trained_step,
    weight_names,
)
from bert_tf.checkpoint_files import BEST_FOLDER, best_checkpoint, latest_checkpoint
from bert_tf.summaries.markdown import as_markdown_table
from bert_tf.training.state import TrainingState
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples
from finetuning.prediction import Predictor, TaskEvaluator
from finetuning.saved_models import export_classifier
from model_formats.folder_weights import trained_checkpoint
from model_formats.model_folder import (
    ModelFolder,
    add_trained_positions,
    warn_of_untrained_positions,
)
from model_formats.weights import open_weights
from run_scripts.announcement import Workload
from run_scripts.downstream.compilation import choose_split_boundaries, skip_costly_compilation
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.results import show_seeds, warn_of_baseline
from run_scripts.flags.distillation import lasting_values
from run_scripts.flags.finetune import (
    TRAIN_PART,
    FinetuneFlags,
    evaluated_splits,
    output_dirs,
    split_to_predict,
)
from run_scripts.session import Session, open_session


def run(
    job: DownstreamJob[Any, Any],
    task: DownstreamTask,
    splits: Mapping[str, Sequence[Any]],
) -> None:
    """Trains with one seed or several, or only evaluates and predicts.

    `splits` are what `read_splits` returned.
    """
    flags = job.flags
    counts = {split: len(examples) for split, examples in splits.items()}
    xla = skip_costly_compilation(job, task, counts)
    trained = output_dirs(flags) if flags.do_train else []
    with open_session(flags, xla, job.cluster, trained) as session:
        examples = encode(task, splits, flags.do_train)
        longest = int(max((e.lengths.max() for e in examples.values()), default=0))
        if job.source and session.chief:
            warn_of_untrained_positions(job.source, longest, "the longest example")
        fine_tuning = FineTuning(
            job,
            session,
            task,
            examples,
            boundaries=boundaries_of_splits(job, task, examples),
            positions=add_trained_positions(job.source, longest) if job.source else None,
        )
        if flags.num_seeds == 1:
            fine_tuning.run()
        else:
            run_seeds(fine_tuning)


def encode(
    task: DownstreamTask, splits: Mapping[str, Sequence[Any]], do_train: bool
) -> dict[str, Examples]:
    """Encodes each split as `Examples`; "train" is encoded for training only if `do_train`.

    Training and prediction cut long sentences into different windows.
    """
    examples = {}
    for split, raw in splits.items():
        encoded = task.encode(raw, do_train and split == "train")
        if not len(encoded.lengths):
            raise InputError(
                f"{split} must hold an example that gives tokens. Received: {len(raw)} without any"
            )
        if encoded.windowing is not None and len(encoded.lengths) != len(raw):
            print(f"{split}: {len(encoded.lengths):,} windows of {len(raw):,} examples")
        examples[split] = encoded
    return examples


def boundaries_of_splits(
    job: DownstreamJob[Any, Any], task: DownstreamTask, examples: Mapping[str, Examples]
) -> dict[str, tuple[int, ...]]:
    """Returns the lengths that each split's batches are cut to, whichever other splits are read."""
    counts = {split: e.count for split, e in examples.items()}
    return {
        split: job.boundaries or choose_split_boundaries(job, task, split, e.lengths, counts)
        for split, e in examples.items()
    }


def training_steps(values: FinetuneFlags, examples: int) -> tuple[int, int]:
    """Returns how many updates a number of training examples gives, and how many are warm-up.

    Warns of more warm-up than updates, as run_race's default is for few examples.
    """
    steps = values.train_step
    if steps is None:
        steps = int(examples / values.train_batch_size * values.num_train_epochs)
    if steps < 1 and examples * values.num_train_epochs < 1:
        raise InputError(
            "--num_train_epochs must be larger: the examples times it must be at least 1, for one "
            f"update. Received: {examples} examples, --num_train_epochs={values.num_train_epochs}"
        )
    if steps < 1:
        size = 2 ** int(math.log2(max(1, examples * values.num_train_epochs / 8)))
        raise InputError(
            "--train_batch_size must be at most the examples times --num_train_epochs, for one "
            f"update: --train_batch_size={size} makes a few. Received: {examples} examples, "
            f"--num_train_epochs={values.num_train_epochs}, "
            f"--train_batch_size={values.train_batch_size}"
        )
    if values.warmup_step is not None:
        if values.warmup_step > steps:
            warnings.warn(
                f"--warmup_step={values.warmup_step} is more than the {steps} updates: the "
                "learning rate never reaches --learning_rate (--warmup_proportion=0.1 fits any "
                "number)",
                stacklevel=2,
            )
        return steps, values.warmup_step
    return steps, int(steps * values.warmup_proportion)


def run_seeds(fine_tuning: "FineTuning") -> None:
    """Trains with several seeds, each in its own folder; writes means and standard deviations."""
    job, results = fine_tuning.job, []
    for number, folder in enumerate(output_dirs(job.flags)):
        os.makedirs(folder, exist_ok=True)
        seed = job.flags.random_seed + number
        flags = dataclasses.replace(job.flags, random_seed=seed, output_dir=folder)
        one_seed = dataclasses.replace(job, flags=flags)
        found = dataclasses.replace(fine_tuning, job=one_seed).run()
        if found is None:  # after a signal
            return
        results.append(found)
    if fine_tuning.session.chief:
        show_seeds(job.flags, results)


@dataclasses.dataclass(frozen=True)
class FineTuning:
    """A model's training on a task with one seed, or the use of a trained model."""

    job: DownstreamJob[Any, Any]  # its flags name the seed and the folder
    session: Session
    task: DownstreamTask
    examples: Mapping[str, Examples]  # split -> its examples
    boundaries: Mapping[str, tuple[int, ...]]  # split -> the lengths that its batches are cut to
    positions: int | None  # how many positions are trained; None if unknown

    def run(self) -> dict[str, Any] | None:
        """Trains, evaluates, predicts and exports; returns the results, or None after a signal."""
        flags, session = self.job.flags, self.session
        session.check_flags(self.job)
        # Other data of as many examples seldom have as many tokens.
        session.check_agreement(
            {
                f"examples of {split}": f"{len(e.lengths)} of {e.lengths.sum()} tokens"
                for split, e in self.examples.items()
            }
        )
        schedule = None
        if flags.do_train:
            steps, warmup = training_steps(flags, self.examples["train"].count)
            schedule = WarmupPolynomialDecay(flags.learning_rate, steps, warmup)
        state = session.build(self.job, self.task.make_model, schedule)
        predictor = Predictor(state.model, session.strategy, xla=session.xla)
        if flags.do_train:
            session.restore(state, self.job, into=state.model.encoder)
            if session.chief:
                self.write_model_files(flags.output_dir)
            if self.train(state, steps, predictor):
                return None
        session.print(f"using the weights of {self.load(state)}")
        results: dict[str, Any] = {}
        outputs: dict[str, Any] = {}
        if self.job.evaluates:
            results, outputs = self.evaluate(state, predictor)
        if flags.do_predict:
            self.predict(predictor, outputs)
        if session.chief and getattr(flags, "export_dir", None):  # a flag of some programs only
            self.export(state)
        return results

    def train(self, state: TrainingState, steps: int, predictor: Predictor) -> bool:
        """Trains to the last step; returns True if a signal ended the training."""
        flags, config, evaluator = self.job.flags, self.job.config, None
        examples, boundaries = self.examples["train"], self.boundaries["train"]
        if flags.eval_every_steps:
            # A dev without labels may be there to be predicted.
            choosing = (TRAIN_PART, "held_out", "dev")
            split = next(name for name in choosing if name in self.examples)
            evaluator = self.evaluator(predictor, split)
        given = {name: value for name, value in vars(flags).items() if value is not None}
        training_config = self.session.training_config(
            flags, num_train_steps=steps, bucket_boundaries=boundaries
        )
        return self.session.train(
            self.job,
            state,
            examples,
            training_config,
            Workload(len(examples.lengths), boundaries[-1], rows=self.task.rows),
            evaluator,
            texts={
                "configuration": as_markdown_table(dataclasses.asdict(config).items()),
                "flags": as_markdown_table(given.items()),
            },
        )

    def load(self, state: TrainingState) -> str:
        """Loads the weights to evaluate and predict with; returns a description of them."""
        flags = self.job.flags
        best = best_checkpoint(os.path.join(flags.output_dir, BEST_FOLDER))
        if flags.do_train and not (best and flags.eval_every_steps):
            return f"step {state.step}, {latest_checkpoint(flags.output_dir)}"
        source = best if flags.do_train else self.job.source
        assert source, "there is a trained checkpoint"
        weights = open_weights(source)
        if not flags.do_train:
            self.check_head(state.model, weights)
        report = load_arrays(state.model, weights)
        state.step = trained_step(source)
        return str(report)

    def check_head(self, model: Any, weights: CheckpointArrays) -> None:
        """Raises an `InputError` if weights to evaluate are an encoder without the task's head."""
        flags, encoder = self.job.flags, google_variables(model.encoder)
        head = [name for name in google_variables(model) if name not in encoder]
        names = (HEAD_NAMES, TASK_HEAD_NAMES, *(f"^{name}" for name in weights.heads))
        found = [name for name in weight_names(weights) if not re.search("|".join(names), name)]
        has_head = not head or any(name in weights.shapes for name in head)
        if has_head or not found or any(name not in encoder for name in found):
            return  # what does not fit is described when the weights are loaded
        trained = flags.named_weights and trained_checkpoint(flags.output_dir)
        hint = f" (without --init_checkpoint, {trained} is used)" if trained else ""
        raise InputError(
            f"without --do_train the weights must be fine-tuned, with the task's head{hint}. "
            f"Received: {weights.source} without {head[0]}"
        )

    def evaluator(self, predictor: Predictor, split: str) -> TaskEvaluator:
        """Returns the evaluator of the model on a split."""
        examples, batch_size = self.examples[split], self.job.flags.eval_batch_size
        return TaskEvaluator(self.task, predictor, examples, batch_size, self.boundaries[split])

    def evaluate(
        self, state: TrainingState, predictor: Predictor
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluates the model on the splits of --eval_on, the main one first.

        Returns:
            The results by name, and a dict of split -> the model's outputs. Results of the main
            split are named "eval_...", of other splits and of train_part "SPLIT_...".
        """
        flags, session = self.job.flags, self.session
        splits = evaluated_splits(flags, self.task.dataset)
        main, written = splits[0], []
        outputs: dict[str, Any] = {}
        results: dict[str, Any] = {"global_step": state.step}
        for split in splits:
            evaluator = self.evaluator(predictor, split)
            measured = evaluator.run()
            outputs[split] = evaluator.outputs
            if session.chief:
                details = flags.output_dir, split, predictor.model, self.examples[split]
                written += self.task.write_details(*details, outputs[split])
            prefix = "eval_" if split == main and main != TRAIN_PART else f"{split}_"
            measured = {re.sub("^eval_", prefix, name): n for name, n in measured.items()}
            if split == main:
                results |= measured
                illustrations = evaluator.illustrations()
            else:
                results |= {name: n for name, n in measured.items() if name.startswith(prefix)}
        baseline = self.task.baseline(self.examples[main])
        results |= {f"baseline_{name}": value for name, value in baseline.items()}
        notes = [] if main == TRAIN_PART else [f"eval: on {main}"]
        notes += ["baseline: without a model"] if baseline else []
        session.report(flags.output_dir, results, "; ".join(notes), illustrations=illustrations)
        if session.chief:
            if written:
                print(f"details: {', '.join(written)}")
            weighted = getattr(flags, "class_weights", None)  # a flag of some programs only
            advised = weighted == "none" and bool(self.job.dataset.labels)
            warn_of_baseline(self.task.best_by, results, advised)
        return results, outputs

    def predict(self, predictor: Predictor, outputs: Mapping[str, Any]) -> None:
        """Writes the predictions for a split, reusing the outputs of its evaluation."""
        flags, session = self.job.flags, self.session
        split = split_to_predict(flags, self.task.dataset.splits)
        examples, boundaries = self.examples[split], self.boundaries[split]
        predicted = outputs.get(split) or predictor(examples, flags.predict_batch_size, boundaries)
        if session.chief:
            paths = self.task.write_predictions(flags.output_dir, split, examples, predicted)
            session.print(f"predictions written to {', '.join(paths)}")

    def export(self, state: TrainingState) -> None:
        """Writes a text classifier's SavedModel into run_classifier's --export_dir."""
        flags = self.job.flags
        sizes = flags.max_seq_length, flags.export_dir, flags.threshold_to_export
        self.session.print(
            f"exported to {export_classifier(state.model, *sizes, self.write_model_files)}"
        )

    def write_model_files(self, folder: str) -> None:
        """Writes the configuration, tokenizer and task beside the checkpoints."""
        job, stages = self.job, self.job.stages
        if job.flags.do_train:
            settings = lasting_values(job.flags)
            if job.flags.eval_on == TRAIN_PART:  # `Begun.check_kept` reads it
                settings["eval_on"] = TRAIN_PART
            stages = [*job.earlier_stages, {"program": "fine-tuning", "settings": settings}]
        ModelFolder.write(
            folder,
            job.model.model_type,
            job.config,
            tokenizer=job.tokenizer,
            positions=self.positions,
            task=job.task,
            settings=job.settings | self.task.settings,
            stages=stages,
        )
