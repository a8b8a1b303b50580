"""Turns the questions into pieces, those that are needed first."""

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

from choices import results
from choices.pieces import Piece, Use, baseline_batch, equal_passes, equal_time
from choices.questions import LENGTH, MODEL, PRETRAINING, RECORDS, VOCABULARIES, Variant
from choices.tasks import LINEAR_FEATURES, LINEAR_TASKS, RECIPE, TASKS
from run_scripts.reference.held_out import ALL_BATCHES
from run_scripts.reference.scores import read_text, read_vocabulary

BASELINE = Variant()
CONFIG_FLAGS = {"bert": "bert_config_file", "albert": "albert_config_file"}

# Updates of the trial that measures how long one takes; the first ones compile.
TRIAL_UPDATES = 60


class Inputs(NamedTuple):
    """The user's texts and tasks, and how much is computed."""

    wiki: str
    held_out: str
    reviews: str
    tasks_dir: str
    work_dir: str
    passes: float  # over the text, in pre-training
    updates: int  # of pre-training
    seeds: tuple  # of fine-tuning
    scale: float  # of the epochs of fine-tuning
    precision: str  # of the products of models that are trained from now on


class Plan:
    """All pieces of some questions, those that are needed first.

    Args:
        questions: name -> `Question`.
        inputs: `Inputs`.
        linear: whether linear models on the tasks are among them.
    """

    def __init__(self, questions, inputs, linear=True):
        self.inputs, self.pieces, self.configs = inputs, {}, {}
        self.text = self._add(
            "choices/text",
            "text",
            ("-m", "run_scripts.reference.text"),
            {
                "corpus": inputs.wiki,
                "held_out": inputs.held_out,
                "reviews": inputs.reviews,
                "tasks_dir": inputs.tasks_dir,  # whose dev and test parts are left out
            },
            read=read_text,
        )
        self.tasks = self._add(
            "choices/tasks",
            "text",
            ("benchmarks/choices/cut_tasks.py",),
            {"tasks_dir": inputs.tasks_dir},
        )
        for question_name, question in questions.items():
            for variant_name, variant in question.variants.items():
                self._add_variant(f"{question_name}/{variant_name}", variant, question)
            if question.compares_objectives:
                self._add_objectives(question_name, question)
            for group in question.bits:
                self._add_bits(question_name, question, group)
        if linear:
            self._add_linear()

    def _add(
        self,
        name,
        kind,
        program,
        flags,
        needs=(),
        *,
        output=("output_dir", ""),
        recipe=None,
        **more,
    ):
        """Adds a piece, or finds the one that does the same.

        Args:
            name: in the ledger, if the piece is new.
            kind, program, needs: as in `Piece`.
            flags: those that are known, without the one for the output.
            output: the flag for the output, and a file in the piece's folder; "" for the folder.
            recipe: what determines the computed flags.
            more: the fields of `Piece` that have defaults.
        """
        parts = [*program, flags, recipe, [need.folder for need in needs]]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        readable = re.sub(r"^choices/", "", name).replace("/", "-")
        same = next((p for p in self.pieces if p.endswith(f"-{digest}")), None)
        if same:
            return self.pieces[same]
        folder = str(Path(self.inputs.work_dir) / f"{readable}-{digest}")
        output_flag, file = output
        flags = {**flags, output_flag: str(Path(folder) / file)}
        if "precision" in flags:  # not in the digest: the machine decides which one is fast
            flags["precision"] = self.inputs.precision
        piece = Piece(name, kind, folder, program, flags, tuple(needs), **more)
        self.pieces[folder] = piece
        return piece

    def _use(self, piece, where, task):
        question, variant = where.split("/")
        piece.uses.append(Use(question, variant, task))
        return piece

    def _add_variant(self, where, variant, question):
        name = f"choices/{where}"
        vocabulary = self._use(self._vocabulary(name, variant), where, "vocabulary")
        trained = None
        if variant.is_pretrained:
            self._use(self._records(name, variant), where, "records")
            trained = self._use(self._pretraining(name, variant), where, "pretraining")
        for task in question.tasks:
            for seed in self.inputs.seeds:
                piece = self._fine_tuning(name, variant, task, seed, vocabulary, trained)
                self._use(piece, where, task)

    def _vocabulary(self, name, variant):
        learner, size = variant.vocabulary.split("-")
        return self._add(
            f"{name}/vocabulary",
            f"vocabulary {learner}",
            VOCABULARIES[learner],
            {"input_file": f"{self.text.folder}/train.txt", "vocab_size": size},
            (self.text,),
            read=read_vocabulary,
        )

    def _records(self, name, variant, held_out=False):
        """The records of the text, or those of the held-out text by one pass over it."""
        vocabulary = self._vocabulary(name, variant)
        flags = {
            "input_file": f"{self.text.folder}/{'heldout' if held_out else 'train'}.txt",
            "tokenizer_dir": vocabulary.folder,
            **RECORDS,
            **variant.records,
        }
        if held_out:
            flags["dupe_factor"] = 1
        return self._add(
            f"{name}/{'held_out_records' if held_out else 'records'}",
            "held-out records" if held_out else "records",
            ("create_pretraining_data.py",),
            flags,
            (vocabulary,),
            output=("output_file", "records.tfrecord"),
            read=results.read_records,
            size=1 if held_out else flags.get("dupe_factor", 1),
        )

    def config_flag(self, variant):
        """The flag of the model's configuration; notes the file, which `write_configs` writes."""
        sizes = {"vocab_size": int(variant.vocabulary.split("-")[1]), **MODEL, **variant.model}
        digest = hashlib.sha256(json.dumps(sizes, sort_keys=True).encode()).hexdigest()[:10]
        path = f"{self.inputs.work_dir}/configs/{variant.model_type}-{digest}.json"
        self.configs[path] = sizes
        return {CONFIG_FLAGS[variant.model_type]: path}

    def _pretraining(self, name, variant):
        """The pre-training of a variant, equal to the baseline in passes, rows or time."""
        passes, updates = self.inputs.passes, self.inputs.updates
        records, held_out = self._records(name, variant), self._records(name, variant, True)
        flags = self._pretraining_flags(variant, records)
        needs, computed = (records, held_out), functools.partial(
            equal_passes, records.name, records.flags.get("dupe_factor", 1), passes, updates
        )  # fmt: skip
        if variant.equal == "rows":
            first = self._records(name, BASELINE)
            needs += (first,)
            computed = functools.partial(equal_passes, first.name, 1, passes, updates)
        if variant.equal == "time":
            first = self._records(name, BASELINE)
            trials = [self._trial(name, v, r) for v, r in ((BASELINE, first), (variant, records))]
            needs += (first, *trials)
            names = [piece.name for piece in (first, *trials)]
            computed = functools.partial(equal_time, *names, passes, updates)
        return self._add(
            f"{name}/pretraining",
            f"pretraining {self._size_name(variant)}",
            ("run_pretraining.py",),
            {
                **flags,
                "do_eval": "true",
                "eval_input_file": held_out.flags["output_file"],
                "eval_batch_size": 64,
                "max_eval_steps": ALL_BATCHES,
                "save_checkpoints_steps": 250,
                "save_summary_steps": 20,
                "random_seed": variant.seed,
            },
            needs,
            recipe=[variant.equal, passes, updates],
            computed=computed,
            read=results.read_pretraining,
            size=passes,
            seed=variant.seed,
        )

    def _pretraining_flags(self, variant, records):
        return {
            **self.config_flag(variant),
            "input_file": records.flags["output_file"],
            "do_train": "true",
            "max_seq_length": LENGTH,
            **PRETRAINING,
            **variant.pretraining,
            "keep_checkpoint_max": 1,
        }

    def _size_name(self, variant):
        """What decides how long an update of a variant takes."""
        if variant.equal == "time":
            return "as long as the baseline"
        layers = {**MODEL, **variant.model}["num_hidden_layers"]
        return f"{variant.model_type}, {layers} layers, {variant.vocabulary.split('-')[1]} pieces"

    def _trial(self, name, variant, records):
        """A short training that measures how long an update takes."""
        first = self._records(name, BASELINE)
        batch = functools.partial(
            baseline_batch, first.name, self.inputs.passes, self.inputs.updates
        )
        return self._add(
            f"{name}/trial" if variant != BASELINE else f"{name}/trial-baseline",
            "trial",
            ("run_pretraining.py",),
            {
                **self._pretraining_flags(variant, records),
                "num_train_steps": TRIAL_UPDATES,
                "num_warmup_steps": 1,
                "save_summary_steps": 5,
            },
            (records, first),
            # With the name, as the baseline's is made again beside each trial of another variant:
            # the speed of a machine drifts.
            recipe=[self.inputs.passes, self.inputs.updates, name],
            computed=batch,
            read=functools.partial(results.read_trial, updates=TRIAL_UPDATES),
            seed=1,
            leaves=("model.ckpt-*",),
        )

    def _fine_tuning(self, name, variant, task, seed, vocabulary, trained):
        row = TASKS[task]
        folder = f"{self.tasks.folder if row.is_made else self.inputs.tasks_dir}/{row.folder}"
        flags = {**RECIPE, **row.flags}
        flags["num_train_epochs"] *= self.inputs.scale
        start = {"init_checkpoint": trained.folder} if trained else {}
        return self._add(
            f"{name}/{task}/seed{seed}",
            f"task {task}",
            (row.program,),
            {
                **self.config_flag(variant),
                "tokenizer_dir": vocabulary.folder,
                **start,
                "data_dir": folder,
                **flags,
                "random_seed": seed,
            },
            (self.tasks, vocabulary, *([trained] if trained else [])),
            seed=seed,
            size=self.inputs.scale,
            leaves=("model.ckpt-*", "*_features.npz"),
        )

    def _add_objectives(self, question_name, question):
        """Measures each model on the records of the other ones.

        That of no sentence objective can only be measured on its own.
        """
        for name, variant in question.variants.items():
            for other_name, other in question.variants.items():
                if other_name == name or variant.records["objective"] == "none":
                    continue
                where = f"{question_name}/{name}"
                trained = self._pretraining(f"choices/{where}", variant)
                records = self._records(f"choices/{question_name}/{other_name}", other, True)
                piece = self._add(
                    f"choices/{where}/on-{other_name}",
                    "objectives",
                    ("run_pretraining.py",),
                    {
                        **self.config_flag(variant),
                        "input_file": records.flags["output_file"],
                        "init_checkpoint": trained.folder,
                        "do_eval": "true",
                        "max_seq_length": LENGTH,
                        "eval_batch_size": 64,
                        "max_eval_steps": ALL_BATCHES,
                    },
                    (trained, records),
                    read=results.read_pretraining,
                )
                self._use(piece, where, f"on-{other_name}")

    def _add_bits(self, question_name, question, group):
        """Measures bits per character of a group of variants on the same masked spans."""
        models, needs = [], [self.text]
        for name in group:
            variant, where = question.variants[name], f"choices/{question_name}/{name}"
            vocabulary = self._vocabulary(where, variant)
            trained = self._pretraining(where, variant)
            (config,) = self.config_flag(variant).values()
            models.append(f"{name}:{config}:{trained.folder}:{vocabulary.folder}")
            needs += [vocabulary, trained]
        piece = self._add(
            f"choices/{question_name}/bits/{'+'.join(group)}",
            "bits",
            ("benchmarks/choices/bits.py",),
            {"models": ",".join(models), "held_out": f"{self.text.folder}/heldout.txt"},
            needs,
        )
        for name in group:
            self._use(piece, f"{question_name}/{name}", "bits")

    def _add_linear(self):
        for task, row in LINEAR_TASKS.items():
            for features in LINEAR_FEATURES:
                flags = {
                    "task_name": task,
                    "data_dir": f"{self.inputs.tasks_dir}/{row.folder}",
                    "features": features,
                }
                if row.other:
                    name, folder = row.other
                    flags["other_task"] = name
                    flags["other_data_dir"] = f"{self.inputs.tasks_dir}/{folder}"
                program = ("benchmarks/choices/linear.py",)
                piece = self._add(f"linear/{task}/{features}", f"linear {task}", program, flags)
                self._use(piece, f"linear/{features}", task)
