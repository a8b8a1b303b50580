"""Runs the program of a downstream task up to the import of TensorFlow."""

import functools
import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_tf.training.cluster import shorten_lost_worker_errors
from finetuning.classes import describe_classes, draw_examples, warn_of_thin_classes
from finetuning.tasks import Task
from run_scripts.downstream.job import Data, DownstreamJob, make_job
from run_scripts.flags.begun import Begun
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.finetune import (
    TRAIN_PART,
    Flags,
    evaluated_splits,
    output_dirs,
    split_to_predict,
)
from run_scripts.flags.training import compilation_cache
from tokenization.loading import Tokenizer
from tokenization.unknown_share import MOST_TEXTS, flatten, warn_of_unknown

if TYPE_CHECKING:
    from finetuning.downstream_task import DownstreamTask
    from model_formats.encoders import Encoder

# The share of the training examples that is held out to choose the best checkpoint if a task has
# no dev split.
HELD_OUT_SHARE = 0.05

# --eval_on=train_part evaluates on one in this many training examples.
TRAIN_PART_DIVISOR = 10


class Program(NamedTuple, Generic[Flags, Data]):
    """The parts of a program for one kind of task."""

    task: Task  # its settings are flags of the program, which the model's folder records
    read_data: Callable[[Flags], Data]
    # (dataset, split, data_dir) -> a list of examples, and a dict of how many rows were changed or
    # dropped: for example "left out (short)" -> 3. Needs no TensorFlow.
    read_split: Callable[[Data, str, str], tuple[list[Any], dict[str, int]]]
    make_task: Callable[[DownstreamJob[Flags, Data]], "DownstreamTask"]
    uses_libraries: bool = True  # whether its metrics come from optional libraries
    scores_predictions: bool = False  # whether --do_predict also evaluates if there are labels
    # (example) -> a text: examples with equal texts stay together under --eval_on=train_part.
    shared_text: Callable[[Any], str] = operator.attrgetter("text")
    # (example) -> a text, or a tuple of several.
    texts: Callable[[Any], Any] = operator.attrgetter("text")
    # (dataset, examples) -> a dict of class name -> number of examples.
    count_classes: Callable[[Data, Sequence[Any]], dict[str, int]] | None = None
    # (flags, encoder) -> the settings whose defaults the encoder decides.
    head_settings: Callable[[Flags, "Encoder"], dict[str, Any]] = lambda flags, encoder: {}


def finetune(given: Flags, program: Program[Flags, Data], **known: Any) -> None:
    """Runs a `Program` with parsed `FinetuneFlags` and the `known` values of flags not given."""
    job = make_job(given, program, **known)
    flags = job.flags
    make_writable(flags.output_dir, "--output_dir must be a directory that can be written")
    trained = output_dirs(flags) if flags.do_train else []
    for folder in trained:
        own = folder == flags.output_dir  # otherwise it is the folder of one of several seeds
        begun = job.begun if own else Begun.of(folder, job.model.model_type)
        begun.check_encoder()
        begun.check_kept(flags)
        begun.check_model(job.config, job.tokenizer)
    splits = read_splits(job, program)
    warn_of_unknown_pieces(job.tokenizer, splits, program.texts)
    shorten_lost_worker_errors(job.cluster)
    start_tensorflow(flags, functools.partial(compilation_cache, flags))
    from run_scripts.downstream.training import run

    run(job, program.make_task(job), splits)


def read_splits(
    job: DownstreamJob[Flags, Data], program: Program[Flags, Data]
) -> dict[str, list[Any]]:
    """Reads every split that a `DownstreamJob` needs, as a dict of split -> list of examples."""
    flags, dataset, splits = job.flags, job.dataset, job.dataset.splits
    measured = evaluated_splits(flags, dataset)
    on_train_part = flags.eval_on == TRAIN_PART  # which is taken from train
    chooses_best = flags.do_train and flags.eval_every_steps

    needed = ["train"] if flags.do_train else []
    if job.evaluates:
        if not measured:
            raise InputError(
                "--do_eval needs a split with labels, dev or test. Received: none "
                f"(--do_train --eval_on={TRAIN_PART} measures on a tenth of train)"
            )
        needed += measured
    elif chooses_best:
        needed += [name for name in measured if name in ("dev", TRAIN_PART)]
    if flags.do_predict:
        needed.append(split_to_predict(flags, splits))
    examples = {}
    for split in dict.fromkeys(needed):
        if split == TRAIN_PART and on_train_part:
            continue
        if split not in splits:
            raise InputError(f"the task must have {split}. Received: {', '.join(splits)}")
        examples[split], left_out = program.read_split(dataset, split, flags.data_dir or "")
        shown = "".join(f", {count:,} {what}" for what, count in left_out.items())
        print(f"{split}: {len(examples[split]):,} examples{shown}")
    if on_train_part:
        examples["train"], examples[TRAIN_PART] = take_part(examples["train"], program.shared_text)
        count = f"{len(examples[TRAIN_PART]):,} of the training examples"
        print(f"{TRAIN_PART}: {count} are not trained on, but evaluated on")
    elif chooses_best and "dev" not in measured:
        examples["train"], examples["held_out"] = hold_out(examples["train"], program.texts)
        count = f"{len(examples['held_out']):,} of the training examples"
        print(f"held_out: {count} choose the best checkpoint")
    if flags.do_train and flags.max_train_examples:
        every, most = examples["train"], flags.max_train_examples
        examples["train"] = draw_examples(every, most, flags.random_seed)
        print(f"train: {len(examples['train']):,} of {len(every):,} examples are trained on")
    if flags.do_train and program.count_classes:
        show_classes(program.count_classes, dataset, examples)
    return examples


def warn_of_unknown_pieces(
    tokenizer: Tokenizer, examples: Mapping[str, Sequence[Any]], texts_of: Callable[[Any], Any]
) -> None:
    """Warns of the first split whose texts are largely [UNK]."""
    for split, members in examples.items():
        # Several questions may be about the same text.
        texts = dict.fromkeys(
            text for member in members[:MOST_TEXTS] for text in flatten(texts_of(member))
        )
        if warn_of_unknown(tokenizer, texts, f"{split}: "):
            return


def show_classes(
    count: Callable[[Any, Any], Mapping[str, int]],
    dataset: Any,
    examples: Mapping[str, Sequence[Any]],
) -> None:
    """Prints the classes of every split that has labels and warns of small or missing ones."""
    counts = {split: count(dataset, members) for split, members in examples.items()}
    for split, classes in counts.items():
        if classes:
            print(f"classes of {split}: {describe_classes(classes)}")
    warn_of_thin_classes(counts)


def take_part(
    examples: Iterable[Any], shared_text: Callable[[Any], str]
) -> tuple[list[Any], list[Any]]:
    """Splits examples into a list to train on and a list of about a tenth to evaluate on.

    A text's hash decides the side of all its examples, whatever the seed, the order and the other
    examples.
    """
    parts: tuple[list[Any], list[Any]] = [], []
    for example in examples:
        digest = hashlib.sha256(shared_text(example).encode("utf-8", "surrogatepass")).digest()
        taken = int.from_bytes(digest[:8], "big") % TRAIN_PART_DIVISOR == 0
        parts[taken].append(example)
    if not all(parts):
        raise InputError(
            f"--eval_on={TRAIN_PART} takes one in {TRAIN_PART_DIVISOR} of the training texts: "
            f"there must be examples on both sides. Received: {len(parts[0])} to train on, "
            f"{len(parts[1])} to evaluate on"
        )
    return parts


def hold_out(
    examples: Sequence[Any], texts_of: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Splits examples into a list to train on and a held-out list of `HELD_OUT_SHARE` of them.

    Examples with equal texts are in the same list: copies of training examples measure nothing.
    """
    groups: dict[Any, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(texts_of(example), []).append(number)
    if len(groups) < 2:
        raise InputError(
            "--eval_every_steps holds out training examples where a task has no dev split: "
            f"there must be two at least. Received: {len(examples)}"
            f"{', all with the same text' if len(examples) > 1 else ''}"
        )
    members = list(groups.values())
    count = max(1, int(HELD_OUT_SHARE * len(examples)))
    taken: set[int] = set()
    for place in np.random.default_rng(0).permutation(len(members)).tolist():
        if len(taken) + len(members[place]) <= count:
            taken.update(members[place])
    taken = taken or {*min(members, key=len)}
    parts: tuple[list[Any], list[Any]] = [], []
    for number, example in enumerate(examples):
        parts[number in taken].append(example)
    return parts
