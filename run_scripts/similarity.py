"""The run_similarity program, which trains text vectors whose cosines measure similarity."""

import dataclasses
import functools
import math
import operator
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from bert_common.text_encoding import NAMES
from finetuning.question_answering.data import read_questions
from finetuning.similarity.data import (
    INFERENCES,
    OBJECTIVES,
    SCORED,
    Columns,
    SimilarityDataset,
    SimilarityExample,
    folder_dataset,
    is_of_questions,
    known_dataset,
    pairs_of_questions,
    read_examples,
    with_files,
)
from finetuning.tables import FILE_TYPES, OWN_FILES, composed, read_text
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.finetune import (
    TRAIN_PART,
    FinetuneFlags,
    evaluated_splits,
    split_to_predict,
)
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, split_list

if TYPE_CHECKING:
    from finetuning.similarity.task import Similarity

SETTINGS = TASKS["similarity"].settings

shared = functools.partial(redeclare, FinetuneFlags)


@dataclasses.dataclass(frozen=True)
class SimilarityFlags(FinetuneFlags):
    """Trains a model that turns texts into vectors, for search and comparison.

    The cosine of two vectors says how similar their texts are. Training starts from any pre-trained
    BERT, ALBERT or ELECTRA.

    To evaluate or predict after training, give --do_eval or --do_predict, the examples and the
    --output_dir of the training run."""

    EXAMPLE = (
        "--task_name=klue-nli --data_dir=data/klue-nli-v1.1 --output_dir=output/vectors "
        "--bert_config_file=output/model/bert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval"
    )

    data_dir: str = shared(
        "data_dir",
        help="The folder with the task's files. Not needed if flags such as --train_file name all "
        "the files.",
        required=False,
    )
    train_file: str = groups.FILES.optional(
        "Your own training file: .csv, .tsv, .jsonl, .json or .parquet with single texts, pairs, "
        "scored pairs, or triples (the third text differs in meaning from the first). A .json "
        "file in SQuAD's format gives pairs of question and text. Separate several files with "
        "commas; each batch comes from one file. To train on --task_name's data set too, add its "
        "name to the list.",
        is_input=True,
        is_path=True,
    )
    train_shares: str = groups.FILES.optional(
        "How often each file in --train_file supplies a batch, as a ratio such as 3,1. Default: "
        "proportional to its number of examples.",
        recorded=True,
        kept=True,
    )
    dev_file: str = groups.FILES.input_file(
        "Your own dev file: pairs, in any format that --train_file accepts."
    )
    test_file: str = groups.FILES.input_file(
        "Your own test file: pairs, in any format that --train_file accepts."
    )
    task_name: str = groups.TASK.optional(
        f"The data set. {', '.join(INFERENCES)}: triples of a sentence, an entailed sentence and "
        f"a contradicting sentence. {', '.join(SCORED)}: pairs with scores. csv, tsv, jsonl: your "
        "own train, dev and test files in --data_dir. Not needed if a flag such as --train_file "
        "names your files. mismnli is MNLI with its mismatched dev and test sets.",
        convert=str.lower,
    )
    text_column: str = groups.COLUMNS.optional(
        "The column with the first text of each example in your own data files. Default: the "
        "column named text, sentence1, query, question or the like.",
        convert=composed,
    )
    second_column: str = groups.COLUMNS.optional(
        "The column with the second text of each pair in your own data files. Default: the column "
        "named second, sentence2, positive, passage or the like, if any.",
        convert=composed,
    )
    third_column: str = groups.COLUMNS.optional(
        "The column with the third text of each triple in your own data files. Default: the column "
        "named third, negative or the like, if any.",
        convert=composed,
    )
    label_column: str = groups.COLUMNS.optional(
        "The column with each pair's score in your own data files. Default: the column named "
        "score, label or the like, if any.",
        convert=composed,
    )
    encoding: str = groups.COLUMNS.optional(
        "The encoding of your own data files. Default: detected.", choices=tuple(NAMES)
    )
    objective: str = groups.OPTIMIZER.optional(
        "The training objective. cosine: the cosine of a pair's vectors should equal the "
        "pair's score, scaled to at most 1. ranking: a text should be closer to its partner "
        "than to other texts in the batch. simcse: a text is its own partner, under different"
        " dropout. both: cosine for files with scores, ranking for others. Default: cosine "
        "for pairs with scores; ranking for pairs without scores and for triples; simcse for "
        'single texts; "both" if only some files have scores.',
        choices=OBJECTIVES,
        recorded=True,
        kept=True,
    )
    temperature: float = groups.OPTIMIZER.flag(
        0.05,
        "The softmax temperature by which similarities are divided, for every --objective except "
        "cosine. Lower values put more weight on hard negatives.",
        above=0,
        recorded=True,
        kept=True,
    )
    pooling: str = groups.HEAD.setting(
        SETTINGS["pooling"],
        "How to combine a text's token vectors into one. mean: their mean. max: their "
        "element-wise maximum. cls: the vector of [CLS].",
    )
    normalize: bool = groups.HEAD.setting(
        SETTINGS["normalize"],
        "Scale vectors to length 1. If off, the ranking and simcse objectives use dot products "
        "instead of cosines.",
    )
    embedding_sizes: str = groups.HEAD.optional(
        "Train vectors that can also be truncated to these numbers of dimensions, such as "
        "256,128,64 (Matryoshka embeddings). Each adds a loss term. Default: only the full size.",
        recorded=True,
    )
    freeze_embeddings: bool = groups.LAYERS.flag(
        False,
        "Do not train the token, position and segment embeddings. This makes the output of "
        "export_model.py --format=difference much smaller.",
        recorded=True,
        kept=True,
    )
    classifier_dropout: float = shared(
        "classifier_dropout",
        default=None,
        help="Accepted but has no effect: there is no task head.",
        no_effect=True,
        group=groups.COMPATIBILITY,
    )


def learn_vectors(values: SimilarityFlags) -> None:
    """Checks run_similarity's own flags and runs the program."""
    known = {}
    if not (values.task_name or values.data_dir) and (values.train_file or _own_files(values)):
        known = {"task_name": OWN_FILES}
    names = train_names(values)
    for path in names:
        is_task = len(names) > 1 and path == known.get("task_name", values.task_name)
        if path and not is_task and (kind := kind_of_path(path)) != FILE:
            raise InputError(f"--train_file must be {FILE}. Received: {path}, {kind}")
    finetune(values, PROGRAM, **known)


def train_names(values: SimilarityFlags) -> list[str]:
    """Returns the files of --train_file; a list of several may include the name of --task_name."""
    path = values.train_file
    return [path] if not path or os.path.exists(path) else split_list(path) or [path]


def _own_files(values: SimilarityFlags) -> dict[str, str]:
    """Returns a dict of split -> path for the flags that name a single file."""
    names = train_names(values)
    train = None if len(names) > 1 else names[0]
    files = {"train": train, "dev": values.dev_file, "test": values.test_file}
    return {split: path for split, path in files.items() if path}


def read_data(values: SimilarityFlags) -> SimilarityDataset:
    """Returns the data set that the flags name, which must suit --objective."""
    columns = Columns(
        values.text_column, values.second_column, values.third_column, values.label_column
    )
    files, name = _own_files(values), values.task_name
    known = (*INFERENCES, *SCORED, *FILE_TYPES)
    if name not in (*known, OWN_FILES):
        names = ", ".join(known)
        raise InputError(f"--task_name must be one of {names}. Received: {name or 'none'}")
    if not (values.data_dir or files or values.train_file):
        raise InputError(
            "--data_dir must be given, or --train_file, --dev_file or --test_file with your own "
            "file. Received: none"
        )
    dataset = SimilarityDataset(OWN_FILES, {})
    if values.data_dir and name in FILE_TYPES:
        dataset = folder_dataset(name, values.data_dir, columns, values.encoding)
    elif values.data_dir and name != OWN_FILES:
        dataset = known_dataset(name)
    dataset = with_files(dataset, files, columns, values.encoding)
    if len(train_names(values)) > 1:
        dataset = with_parts(dataset, values, columns)
    elif values.train_shares:
        raise InputError(
            "--train_shares needs several files in --train_file, separated by commas. Received: "
            f"{values.train_file or 'none'}"
        )
    if values.do_train and "train" in dataset.splits:
        check_objective(values, dataset)
        check_measured(values, dataset)
    if values.do_eval and not evaluated_splits(values, dataset):
        found = [f"{split} with {dataset.form(split)}" for split in dataset.splits]
        raise InputError(
            f"--do_eval needs dev or test with pairs (--do_train --eval_on={TRAIN_PART} measures "
            f"on a tenth of train). Received: {', '.join(found)}"
        )
    if values.do_predict:
        check_predicted(values, dataset)
    return dataset


def with_parts(
    dataset: SimilarityDataset, values: SimilarityFlags, columns: Columns
) -> SimilarityDataset:
    """Returns the data set with the several files of --train_file as its training examples.

    Raises:
        InputError: a file cannot be trained on, or --train_shares does not fit the files.
    """
    names, parts = train_names(values), []
    if len({*map(os.path.realpath, names)}) < len(names):
        raise InputError(
            "--train_file must name each file once; --train_shares gives it more batches. "
            f"Received: {values.train_file}"
        )
    for name in names:
        if name == dataset.name and "train" in dataset.sources:
            sources = {"train": dataset.sources["train"]}
            parts.append(dataclasses.replace(dataset, sources=sources))
        elif name == values.task_name:
            raise InputError(
                f"--data_dir must hold the training split of {name}, which --train_file lists. "
                f"Received: {values.data_dir or 'none'}"
            )
        else:
            empty = SimilarityDataset(name, {})
            parts.append(with_files(empty, {"train": name}, columns, values.encoding))
    shares = read_shares(values.train_shares, names)
    sources = {"train": parts[0].sources["train"], **dataset.sources}
    return dataclasses.replace(dataset, sources=sources, parts=tuple(parts), shares=shares)


def read_shares(text: str | None, names: Sequence[str]) -> tuple[float, ...]:
    """Returns the shares of --train_shares, scaled to add up to 1; none without the flag."""
    if text is None:
        return ()
    numbers = read_numbers(
        "train_shares",
        text,
        f"a number above 0 for each of the {len(names)} files of --train_file, separated by commas",
        lambda shares: len(shares) == len(names) and all(0 < share < math.inf for share in shares),
        float,
    )
    return tuple(number / sum(numbers) for number in numbers)


def check_objective(values: SimilarityFlags, dataset: SimilarityDataset) -> None:
    """Raises an `InputError` if the training examples do not suit --objective."""
    found = {form.objective for form in dataset.forms}
    chosen = values.objective or dataset.objective
    needed = None
    if chosen == "both" and not ("cosine" in found and len(found) > 1):
        needed = "training files with scores and others without"
    if chosen == "cosine" and found != {"cosine"}:
        needed = "pairs with scores to train on"
    if chosen == "ranking" and ("cosine" in found or found == {"simcse"}):
        needed = "pairs or triples without scores to train on"
    if needed:
        kinds = ", ".join(dict.fromkeys(map(str, dataset.forms)))
        raise InputError(f"--objective={chosen} needs {needed}. Received: {kinds}")


def check_measured(values: SimilarityFlags, dataset: SimilarityDataset) -> None:
    """Raises an `InputError` if evaluation needs a part of several files or of single texts."""
    splits = dataset.splits
    holds_out = values.eval_every_steps and not splits.get("dev")
    on_part = values.eval_on == TRAIN_PART or holds_out
    if on_part and (dataset.parts or not splits["train"]):
        what = "several files" if dataset.parts else "single texts"
        raise InputError(
            f"{what} in --train_file need --dev_file to evaluate on, with pairs, as no part of "
            f"them can be. Received: --eval_on={values.eval_on}{', no dev' if holds_out else ''}"
        )


def check_predicted(values: SimilarityFlags, dataset: SimilarityDataset) -> None:
    """Raises an `InputError` if single texts, which have no cosine, are to be predicted."""
    split = split_to_predict(values, dataset.splits)
    if split in dataset.splits and not dataset.splits[split]:
        raise InputError(
            "--do_predict needs pairs, whose cosines it writes (--predict_split chooses a split). "
            f"Received: {split}, single texts"
        )


def read_split(
    dataset: SimilarityDataset, split: str, data_dir: str
) -> tuple[list[SimilarityExample], dict[str, int]]:
    """Reads a split's examples; counts the rows left out, or each file's examples if several."""
    if split == "train" and dataset.parts:
        return read_parts(dataset, data_dir)
    source = dataset.sources[split]
    if split in dataset.own and is_of_questions(source):
        path = source.files[0]
        text = read_text(path, source.encoding)
        questions, _ = read_questions(path, with_answers=False, text=text)
        return pairs_of_questions(questions, path), {}
    return read_examples(dataset, split, data_dir)


def read_parts(
    dataset: SimilarityDataset, data_dir: str
) -> tuple[list[SimilarityExample], dict[str, int]]:
    """Reads the training examples of several files and counts how many each file has."""
    examples, shown = [], {}
    for number, (part, name) in enumerate(zip(dataset.parts, dataset.part_names, strict=True)):
        found, left_out = read_split(part, "train", data_dir)
        examples += [example._replace(source=number) for example in found]
        shown[f"of {name}"] = len(found)
        shown |= {f"{what} of {name}": n for what, n in left_out.items()}
    return examples, shown


def check_dropout(job: DownstreamJob[SimilarityFlags, SimilarityDataset], objective: str) -> None:
    """Raises an `InputError` if texts are their own partners without dropout, as equal vectors."""
    config, dropout = job.config, job.flags.encoder_dropout
    rates = [config.hidden_dropout_prob, config.attention_probs_dropout_prob]
    rates = rates if dropout is None else [dropout]
    if objective == "simcse":
        needs = "--objective=simcse needs"
    elif job.dataset.parts and any(form.texts == 1 for form in job.dataset.forms):
        needs = "single texts in --train_file need"
    else:
        return
    if not any(rates):
        raise InputError(
            f"{needs} dropout: --encoder_dropout above 0, or without that flag "
            "hidden_dropout_prob or attention_probs_dropout_prob in the model's configuration. "
            f"Received: {' and '.join(f'{rate:g}' for rate in rates)}"
        )


def make_task(job: DownstreamJob[SimilarityFlags, SimilarityDataset]) -> "Similarity":
    """Returns the `Similarity` of a `DownstreamJob`."""
    from finetuning.similarity.task import Similarity

    flags, config, objective = job.flags, job.config, job.flags.objective
    if objective is None:
        objective = job.dataset.objective if "train" in job.dataset.sources else "ranking"
    if flags.do_train:
        check_dropout(job, objective)
    return Similarity(
        job.dataset,
        job.tokenizer,
        flags.max_seq_length,
        pooling=flags.pooling,
        normalize=flags.normalize,
        sizes=read_sizes(flags.embedding_sizes, config.hidden_size),
        objective=objective,
        temperature=flags.temperature,
        freeze_embeddings=flags.freeze_embeddings,
        on_train_part=flags.eval_on == TRAIN_PART,
    )


def read_sizes(text: str | None, hidden_size: int) -> tuple[int, ...]:
    """Returns the sizes of --embedding_sizes, at most `hidden_size`; none without the flag."""
    if not text:
        return ()
    return read_numbers(
        "embedding_sizes",
        text,
        f"numbers from 1 to {hidden_size}, the model's hidden_size, separated by commas",
        lambda sizes: all(1 <= size <= hidden_size for size in sizes),
    )


PROGRAM = Program(
    TASKS["similarity"], read_data, read_split, make_task, texts=operator.attrgetter("texts")
)


main = functools.partial(run_program, learn_vectors, SimilarityFlags)

if __name__ == "__main__":
    sys.exit(main())
