"""Trains a pre-trained encoder on a downstream task, measures it, predicts with it.

A task is, for example, a `finetuning.classification.task.Classification`, which
encodes examples, makes the model, judges outputs, writes predictions.
"""

import dataclasses
import functools
import json
import os

import keras
import numpy as np
import tensorflow as tf

from albert_tf import AlbertModel
from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_tf import BertModel, WarmupPolynomialDecay
from bert_tf.checkpoint import load_google_checkpoint
from bert_tf.checkpoint_files import BEST_FOLDER, latest_checkpoint, step_of
from bert_tf.memory import memory_line
from bert_tf.optimization import OPTIMIZERS
from bert_tf.summaries.markdown import as_markdown_table
from bert_tf.summaries.reporter import write_evaluation
from bert_tf.training.distribution import (
    barrier,
    check_agreement,
    describe_devices,
    explain_lost_worker,
    is_chief,
    make_strategy,
    raise_together,
)
from bert_tf.training.evaluation import as_shown, write_results
from bert_tf.training.loop import TrainingConfig, compiling_line, train
from bert_tf.training.mixed_precision import POLICIES, LossScale, choose_precision
from bert_tf.training.out_of_memory import MEMORY_REMEDIES, explain_exhaustion
from bert_tf.training.state import TrainingState, restore
from bert_tf.training.xla import choose_compilation, compile_between_products
from finetuning.evaluation import Evaluator
from finetuning.prediction import Predictor
from finetuning.saved_models import export_classifier
from run_scripts.flags.compilation import lengths_of_batches, without_xla_if_short
from run_scripts.flags.finetune import (
    find_fine_tuned,
    measured_splits,
    output_dirs,
    split_to_predict,
    training_steps,
)
from run_scripts.flags.training import library_seed, read_profile_steps
from run_scripts.model_folder import (
    SETTINGS_FILE,
    add_trained_positions,
    describe,
    warn_of_untrained_positions,
)


def run(values, model_type, config, tokenizer, task, read, boundaries, settings, folders, refusal):
    """Everything that computes: one training, or several with different seeds.

    Args:
        values: `FinetuneFlags`, checked.
        model_type: "bert" or "albert".
        config: the model's configuration.
        tokenizer: the model's.
        task: what the model learns.
        read: split -> its examples, as they were read.
        boundaries: the lengths that batches may have; None to choose them.
        settings: what the model's folder remembers of the flags.
        folders, refusal: what `training_folders` yielded.
    """
    precision = choose_precision(values.precision)
    values = without_xla_if_short(values, config, task, read)
    compiled = choose_compilation(values.xla, precision)
    if compiled.between_products:
        compile_between_products()
    strategy = make_strategy(values.distribution_strategy, values.num_gpus)
    with explain_lost_worker(strategy), explain_exhaustion(MEMORY_REMEDIES, {}):
        raise_together(strategy, refusal)
        examples = {s: task.encode(each, s == "train") for s, each in read.items()}
        for split, each in examples.items():
            if not len(each.lengths):
                raise InputError(
                    f"{split} must hold an example that the tokenizer makes pieces of. Received: "
                    f"{len(read[split])} without any"
                )
        longest = int(max((each.lengths.max() for each in examples.values()), default=0))
        if values.do_train:
            source = latest_checkpoint(values.output_dir) or values.init_checkpoint
        else:
            source = find_fine_tuned(values)
        if source and is_chief(strategy):
            warn_of_untrained_positions(source, longest, "the longest example")
        # Of each split its own: its figures do not depend on which splits were read beside it.
        counts = {split: each.count for split, each in examples.items()}
        boundaries = {
            split: boundaries or lengths_of_batches(values, config, task, split, each, counts)
            for split, each in examples.items()
        }
        one = Run(
            model_type, config, tokenizer, task, examples, boundaries, settings, strategy,
            precision, compiled, folders, source and add_trained_positions(source, longest),
        )  # fmt: skip
        if values.num_seeds == 1:
            one.run(values)
        else:
            results = []
            for each in with_seeds(values):
                results.append(one.run(each))
                if results[-1] is None:  # a signal: the same command goes on from there
                    break
            else:
                if is_chief(strategy):
                    show_seeds(values, results)
        barrier(strategy)


def with_seeds(values):
    """The flags of each of several trainings."""
    for number, folder in enumerate(output_dirs(values)):
        os.makedirs(folder, exist_ok=True)
        seed = values.random_seed + number
        yield dataclasses.replace(values, random_seed=seed, output_dir=folder)


def show_seeds(values, results):
    """Writes and prints mean and standard deviation of every result over the seeds."""
    path = os.path.join(values.output_dir, "seeds.tsv")
    names = [name for name in results[0] if name not in ("global_step", "examples")]
    with atomic_write(path) as file:
        seeds = [str(values.random_seed + i) for i in range(len(results))]
        file.write("\t".join(["name", "mean", "standard deviation", *seeds]).encode() + b"\n")
        for name in names:
            numbers = np.array([result[name] for result in results])
            cells = [numbers.mean(), numbers.std(ddof=1), *numbers]
            file.write("\t".join([name, *(f"{cell:.6f}" for cell in cells)]).encode() + b"\n")
            print(f"  {name} = {cells[0]:.4f} (standard deviation {cells[1]:.4f})")
    print(f"{len(results)} seeds: written to {path}")


@dataclasses.dataclass(frozen=True)
class Run:
    """What trainings with different seeds have in common.

    Attributes:
        model_type: "bert" or "albert".
        config: the model's configuration.
        tokenizer: the model's.
        task: what the model learns.
        examples: split -> its `Examples`.
        boundaries: split -> the lengths that its batches may have.
        settings: what the folder remembers.
        strategy, precision, compiled: how it is computed.
        folders: those that are trained in: path -> its `TrainingFolder`; empty in workers that
            write nothing.
        positions: how many positions are trained, for the folder to remember; None if that is not
            known.
    """

    model_type: str
    config: object
    tokenizer: object
    task: object
    examples: dict
    boundaries: dict
    settings: dict
    strategy: object
    precision: str
    compiled: object
    folders: dict
    positions: int | None

    def run(self, values):
        """Trains, measures, predicts; returns the results, or None if a signal ended it."""
        chief = is_chief(self.strategy)
        say = functools.partial(print, flush=True) if chief else lambda *_: None
        flags = {f"--{name}": value for name, value in dataclasses.asdict(values).items()}
        counts = {f"examples of {s}": len(each.lengths) for s, each in self.examples.items()}
        check_agreement(self.strategy, {**flags, **counts})
        keras.utils.set_random_seed(library_seed(values))
        steps = warmup = None
        if values.do_train:
            steps, warmup = training_steps(values, self.examples["train"].count)
        with self.strategy.scope():
            state = self.build(values, steps, warmup)
        say(f"model: {self.config}")
        predictor = Predictor(state.model, self.strategy, xla=values.xla)
        if values.do_train:
            line = restore(
                state,
                self.strategy,
                values.output_dir,
                values.init_checkpoint,
                into=state.model.encoder,
            )
            check_agreement(self.strategy, {"the step to go on from": state.step})
            say(line)
            if chief:
                self.describe(values.output_dir)
            if self.train(values, state, steps, predictor, say):
                return None
        say(self.load(values, state))
        results = outputs = {}
        if values.do_eval:
            results, outputs = self.evaluate(values, state, predictor, say)
        if values.do_predict:
            self.predict(values, predictor, outputs, chief, say)
        if chief and getattr(values, "export_dir", None):  # which only some programs have
            path = export_classifier(
                state.model,
                values.max_seq_length,
                values.export_dir,
                values.threshold_to_export,
                self.describe,
            )
            say(f"exported to {path}")
        return results

    def build(self, values, steps, warmup):
        """The model, with an optimizer where it is trained; called in the strategy's scope."""
        encoder = BertModel if self.model_type == "bert" else AlbertModel
        model = self.task.make_model(encoder(self.config, dtype=POLICIES[self.precision]))
        if steps is None:
            return TrainingState(model, None)
        schedule = WarmupPolynomialDecay(values.learning_rate, steps, warmup)
        optimizer = OPTIMIZERS[values.optimizer](schedule)
        optimizer.build(model.trainable_variables)
        return TrainingState(model, optimizer, LossScale() if self.precision == "float16" else None)

    def train(self, values, state, steps, predictor, say):
        """Trains; returns what ended it early, or None."""
        if state.step >= steps and not (values.eval_every_steps and state.evaluated < state.step):
            say(f"already at step {state.step} of {steps}: nothing to train")
            return None
        replicas = self.strategy.num_replicas_in_sync
        parts = values.gradient_accumulation_steps
        if values.train_batch_size % (replicas * parts):
            raise InputError(
                "--train_batch_size must be a multiple of the number of devices times "
                f"--gradient_accumulation_steps. Received: {values.train_batch_size}, {replicas} "
                f"devices, {parts}"
            )
        names = {field.name for field in dataclasses.fields(TrainingConfig)}
        flags = {k: v for k, v in dataclasses.asdict(values).items() if k in names}
        boundaries = self.boundaries["train"]
        loop = 10 if tf.config.list_physical_devices("GPU") else 1
        config = TrainingConfig(
            **{
                **flags,
                "steps_per_loop": values.steps_per_loop or loop,
                "profile_steps": read_profile_steps(values),
                "bucket_boundaries": boundaries,
            },
            num_train_steps=steps,
            seed=values.random_seed,
        )
        count = len(self.examples["train"].lengths)
        say(
            f"training on {describe_devices(self.strategy)} in {self.precision}, XLA "
            f"{self.compiled}, {values.train_batch_size} examples an update, steps "
            f"{state.step + 1} to {steps}, {steps * values.train_batch_size / count:.1f} passes "
            f"over {count:,} examples, padded to {', '.join(map(str, boundaries))}"
        )
        part = values.train_batch_size // replicas // parts * getattr(self.task, "rows", 1)
        say(memory_line(self.config, part, boundaries[-1], 1, self.precision, values.recompute))
        if line := compiling_line(self.compiled, boundaries):
            say(line)
        evaluator = None
        if values.eval_every_steps:
            split = "dev" if "dev" in self.examples else "held_out"
            evaluator = self.evaluator(values, predictor, split)
        tables = {
            "configuration": as_markdown_table(dataclasses.asdict(self.config)),
            "flags": as_markdown_table(
                {k: v for k, v in dataclasses.asdict(values).items() if v is not None}
            ),
        }
        stopped = train(
            state,
            self.strategy,
            self.examples["train"].in_order(state, config),
            config,
            evaluator,
            tables,
            self.folders.get(values.output_dir),
            self.describe,
        )
        if stopped:
            say(
                f"stopped by {stopped} after step {state.step} of {steps}, saved in "
                f"{values.output_dir}: the same command goes on from there"
            )
        return stopped

    def load(self, values, state):
        """Sets the weights that are measured and predicted with; says which file they are of."""
        folder = values.output_dir
        best = latest_checkpoint(os.path.join(folder, BEST_FOLDER))
        if values.do_train and not (best and values.eval_every_steps):
            return f"using the weights of step {state.step}, {latest_checkpoint(folder)}"
        source = best if values.do_train else find_fine_tuned(values)
        report = load_google_checkpoint(state.model, source)
        state.step = step_of(source)
        return f"using the weights of {report}"

    def evaluator(self, values, predictor, split):
        """Measures the model on a split."""
        return Evaluator(
            self.task,
            predictor,
            self.examples[split],
            values.eval_batch_size,
            self.boundaries[split],
        )

    def evaluate(self, values, state, predictor, say):
        """Measures the model on every split with labels; the first one's results lead.

        Returns:
            The results, and the model's outputs: split -> them.
        """
        results, outputs = {}, {}
        splits = measured_splits(self.task.dataset)
        for split in splits:
            evaluator = self.evaluator(values, predictor, split)
            found = evaluator.run()
            outputs[split] = evaluator.outputs
            baseline = self.task.baseline(self.examples[split])
            if split == splits[0]:
                shown = evaluator.illustrations()
                results = {**found, "global_step": state.step}
                results |= {f"baseline_{name}": value for name, value in baseline.items()}
            else:
                results |= {
                    name.replace("eval_", f"{split}_", 1): value
                    for name, value in found.items()
                    if name.startswith("eval_")
                }
        say("***** Eval results *****")
        for name in sorted(results):
            say(f"  {name} = {as_shown(results[name])}")
        say(f"  (eval: on {splits[0]}; baseline: what can be said without looking)")
        if self.chief():
            write_evaluation(values.output_dir, results, state.step, shown)
            say(f"written to {write_results(values.output_dir, results)}")
        return results, outputs

    def predict(self, values, predictor, outputs, chief, say):
        """Writes the predictions of a split; its evaluation's outputs are used if there was one."""
        split = split_to_predict(values, self.task.dataset.splits)
        found = outputs.get(split) or predictor(
            self.examples[split], values.predict_batch_size, self.boundaries[split]
        )
        if chief:
            paths = self.task.write_predictions(
                values.output_dir, split, self.examples[split], found
            )
            say(f"predictions written to {', '.join(paths)}")

    def chief(self):
        """Whether this process writes files."""
        return is_chief(self.strategy)

    def describe(self, folder):
        """Puts configuration, tokenizer and task beside the checkpoints."""
        describe(folder, self.model_type, self.config, self.tokenizer, self.positions)
        with atomic_write(os.path.join(folder, SETTINGS_FILE)) as file:
            text = json.dumps(self.settings | self.task.settings, ensure_ascii=False, indent=2)
            file.write(text.encode("utf-8") + b"\n")
