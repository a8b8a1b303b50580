"""The downstream tasks on which variants are compared, with one recipe for each."""

from typing import NamedTuple


class Task(NamedTuple):
    """A task: the program that trains a model on it, and how."""

    program: str  # trains, then writes eval_results.txt
    folder: str  # of its files: in --tasks_dir, or if `is_made` among those of cut_tasks.py
    is_made: bool
    flags: dict  # changes to `RECIPE`
    score: str  # of eval_results.txt, for the tables
    also: tuple = ()  # further tasks that the same model is measured on: (name, score)


# As benchmarks/vocabulary.py, whose models are as small, but for the warm-up. The last checkpoint
# is measured, so that no part with known results chooses one. Products as in pre-training.
RECIPE = {
    "do_train": "true",
    "do_eval": "true",
    "train_batch_size": 64,
    "eval_batch_size": 64,
    "learning_rate": 5e-4,
    "num_train_epochs": 3,
    # Half of all updates: Adam without bias correction begins with updates of six times the rate,
    # and small tasks have few. With a tenth, the usual one, models with kiwi-16000 and usual-16000
    # lost what they had learned: no entity of KLUE-NER was found, inference was guessed (33.3 %).
    # Tried with kiwi-16000 on the dev parts, then taken for all; usual-16000 gained as much.
    "warmup_proportion": 0.5,
    "max_seq_length": 128,
    "save_checkpoints_steps": 1000,
    "keep_checkpoint_max": 1,
    "precision": "bfloat16",
}

_NSMC = {"task_name": "nsmc", "num_train_epochs": 2}
_STS = {
    "task_name": "tsv", "task_type": "regression", "text_column": "sentence1",
    "second_column": "sentence2", "label_column": "score", "num_train_epochs": 6,
}  # fmt: skip
# Windows as long as the rows of pre-training: later positions have no trained embedding. The public
# file's first four fifths of articles to train on, its last fifth to measure on.
_KORQUAD = {
    "task_name": "korquad", "train_file": "KorQuAD_v1.0_dev.json", "train_articles": "0:112",
    "predict_file": "KorQuAD_v1.0_dev.json", "predict_articles": "112:140", "doc_stride": 48,
    "max_query_length": 40, "num_train_epochs": 6,
}  # fmt: skip

TASKS = {
    # One pass over five times as many reviews.
    "nsmc": Task(
        "run_classifier.py", "nsmc", False, {**_NSMC, "num_train_epochs": 1}, "eval_accuracy"
    ),
    "nsmc-30k": Task("run_classifier.py", "nsmc-30k", True, _NSMC, "eval_accuracy"),
    "3i4k": Task("run_classifier.py", "3i4k", False, {"task_name": "3i4k"}, "eval_accuracy"),
    "klue-nli": Task(
        "run_classifier.py", "klue-nli-v1.1", False, {"task_name": "klue-nli"}, "eval_accuracy"
    ),
    # KorSTS's training part; its test part is this task's dev, KLUE-STS's dev its test.
    "korsts": Task(
        "run_classifier.py", "sts", True, _STS, "eval_pearson", (("klue-sts", "test_pearson"),)
    ),
    "klue-ner": Task(
        "run_ner.py",
        "klue-ner-v1.1",
        False,
        {"task_name": "klue-ner", "num_train_epochs": 6},
        "eval_entity_f1",
    ),
    "korquad": Task("run_squad.py", "korquad", False, _KORQUAD, "eval_f1"),
}

VOCABULARY_TASKS = ("nsmc", "3i4k", "klue-nli", "korsts", "klue-ner", "korquad")
SHORT_TASKS = ("nsmc-30k", "3i4k", "klue-ner")


class LinearTask(NamedTuple):
    """A task for linear.py: folders are in --tasks_dir."""

    folder: str
    score: str
    other: tuple = ()  # another task for the same model: its name and folder
    also: tuple = ()


LINEAR_TASKS = {
    "nsmc": LinearTask("nsmc", "test_accuracy"),
    "3i4k": LinearTask("3i4k", "test_accuracy"),
    "klue-nli": LinearTask("klue-nli-v1.1", "dev_accuracy"),
    "korsts": LinearTask(
        "KorSTS",
        "test_pearson",
        ("klue-sts", "klue-sts-v1.1"),
        (("klue-sts", "klue-sts_dev_pearson"),),
    ),
}
LINEAR_FEATURES = ("characters", "words")
