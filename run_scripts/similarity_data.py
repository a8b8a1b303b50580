"""Reads the data set that run_similarity's flags name, in one training file or several."""

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from finetuning.question_answering.data import read_questions
from finetuning.similarity.data import (
    INFERENCES,
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
from finetuning.tables import FILE_TYPES, OWN_FILES, read_text
from run_scripts.flags.finetune import TRAIN_PART, evaluated_splits, split_to_predict
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.paths import split_list

if TYPE_CHECKING:
    from run_scripts.similarity import SimilarityFlags


def train_names(values: "SimilarityFlags") -> list[str]:
    """Returns the files of --train_file; a list of several may include the name of --task_name."""
    path = values.train_file
    return [path] if not path or os.path.exists(path) else split_list(path) or [path]


def own_files(values: "SimilarityFlags") -> dict[str, str]:
    """Returns a dict of split -> path for the flags that name a single file."""
    names = train_names(values)
    train = None if len(names) > 1 else names[0]
    files = {"train": train, "dev": values.dev_file, "test": values.test_file}
    return {split: path for split, path in files.items() if path}


def read_data(values: "SimilarityFlags") -> SimilarityDataset:
    """Returns the data set that the flags name, which must suit --objective."""
    columns = Columns(
        values.text_column, values.second_column, values.third_column, values.label_column
    )
    files, name = own_files(values), values.task_name
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
    dataset: SimilarityDataset, values: "SimilarityFlags", columns: Columns
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


def check_objective(values: "SimilarityFlags", dataset: SimilarityDataset) -> None:
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


def check_measured(values: "SimilarityFlags", dataset: SimilarityDataset) -> None:
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


def check_predicted(values: "SimilarityFlags", dataset: SimilarityDataset) -> None:
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
