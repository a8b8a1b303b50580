"""Makes data sets of a user's own files, which are found in a folder or named one by one."""

import os
import re
from collections.abc import Mapping, Sequence

from bert_common.errors import InputError
from finetuning.classification.columns import (
    Columns,
    custom_columns,
    fit_columns,
    guess_test_label,
    refuse_header,
)
from finetuning.datasets import Dataset, SplitSource
from finetuning.labels import is_empty, label_text, label_texts
from finetuning.readers import MissingColumn, find_file, read_rows
from finetuning.tables import ENDINGS, FILE_TYPES, TABLE_ENDINGS, check_ending

TASK_TYPES = ("single_label", "multi_label", "regression")

# The metrics of each type; the first chooses the best checkpoint.
DEFAULT_METRICS = {
    "single_label": ("accuracy", "macro_f1"),
    "multi_label": ("micro_f1", "macro_f1"),
    "regression": ("pearson", "spearman"),
}

# The metrics that suit each type; f1 is computed for the second of two labels.
FITTING_METRICS = {
    "single_label": ("accuracy", "f1", "macro_f1", "micro_f1", "matthews"),
    "multi_label": ("micro_f1", "macro_f1", "accuracy"),
    "regression": ("pearson", "spearman", "paraphrase_f1"),
}

# A column with more labels than this probably holds numbers or texts.
MAX_LABELS = 10_000


def custom_dataset(
    file_type: str,
    data_dir: str,
    task_type: str,
    columns: Columns,
    labels: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    encoding: str | None = None,
) -> Dataset:
    """Makes a data set of the files train, dev and test in a folder; some may be missing.

    Args:
        file_type: the extension of the files' names.
        task_type: one of `TASK_TYPES`.
        labels: all labels, in the order of the classes; None: the labels in the training file.
        metrics: names of `FITTING_METRICS`; None for `DEFAULT_METRICS`.
        encoding: of the files, a key of `bert_common.text_encoding.NAMES`; None: it is recognized.

    Raises:
        InputError: there is no file, a metric does not suit the type, or labels cannot be found.
    """
    columns = custom_columns(columns, f".{file_type}" in TABLE_ENDINGS)
    present = _files_of_type(file_type, data_dir)
    if not present:
        find_file(f"train.{file_type}", data_dir, "")  # raises an error that says what is there
    sources = {split: _own_files((name,), columns, encoding) for split, name in present.items()}
    return describe_custom_dataset(sources, data_dir, task_type, labels, metrics)


def _files_of_type(file_type, data_dir):
    """Finds the files of a type in a folder: split -> name."""
    files = {split: f"{split}.{file_type}" for split in ("train", "dev", "test")}
    return {s: f for s, f in files.items() if os.path.isfile(os.path.join(data_dir, f))}


def find_file_type(data_dir: str, likely: str) -> str:
    """Returns the extension of the files in a folder, preferably `likely`; "csv" if none exist."""
    types = [likely, *(ending[1:] for ending in ENDINGS)]
    return next((kind for kind in types if _files_of_type(kind, data_dir)), FILE_TYPES[0])


def own_dataset(
    files: Mapping[str, str],
    task_type: str,
    columns: Columns,
    labels: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Makes a data set of `files`, split -> path; other arguments as for `custom_dataset`.

    A single file "data" is train and dev: a tenth of it is held out. In a dev or test file, columns
    may have other, unambiguous names.
    """
    sources: dict[str, SplitSource] = {}
    for split, path in files.items():
        fitting = columns
        if split in ("dev", "test"):
            fitting = fit_columns(path, columns, split == "dev", encoding)
        found = own_source(path, fitting, encoding)
        if split == "data":
            sources |= {part: found._replace(part=part) for part in ("train", "dev")}
        else:
            sources[split] = found
    dataset = describe_custom_dataset(sources, "", task_type, labels, metrics)
    test = dataset.sources.get("test")
    if test and test.label is None:
        dataset.sources["test"] = guess_test_label(dataset, test)
    return dataset


def own_source(path: str, columns: Columns, encoding: str | None = None) -> SplitSource:
    """Returns the source of one file; raises an `InputError` if its ending is unknown."""
    check_ending(path)
    columns = custom_columns(columns, path.lower().endswith(TABLE_ENDINGS))
    return _own_files((os.path.abspath(path),), columns, encoding)


def _own_files(files, columns, encoding):
    text, second, label, name = columns
    return SplitSource(files, text, second, label, name, own=True, encoding=encoding)


def describe_custom_dataset(
    sources: dict[str, SplitSource],
    data_dir: str,
    task_type: str,
    labels: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
) -> Dataset:
    """Makes the `Dataset` of `sources`; other arguments as for `custom_dataset`."""
    fitting, multi_label = FITTING_METRICS[task_type], task_type == "multi_label"
    unknown = [name for name in metrics or () if name not in fitting]
    if unknown:
        raise InputError(
            f"--metrics of --task_type={task_type} must be of {', '.join(fitting)}. "
            f"Received: {', '.join(unknown)}"
        )
    for source in sources.values():
        refuse_header(os.path.join(data_dir, source.files[0]), source)
    if "test" in sources and not _has_label(data_dir, sources["test"]):
        sources["test"] = sources["test"]._replace(label=None)
    labels = None if labels is None else [label_text(label) for label in labels]
    if task_type == "regression":
        labels = ()
    elif labels is None:
        labels = _find_labels(data_dir, sources.get("train"), multi_label)
    elif len(set(labels)) < max(2, len(labels)) or "" in labels:
        raise InputError(
            f"--labels must be at least two different labels. Received: {','.join(labels)}"
        )
    if "f1" in (metrics or ()) and len(labels) != 2:
        raise InputError(
            "--metrics=f1 is for two labels; for more there are macro_f1 and micro_f1. "
            f"Received: {len(labels)} labels"
        )
    metrics = tuple(metrics or DEFAULT_METRICS[task_type])
    return Dataset("", sources, tuple(labels), metrics, multi_label=multi_label)


def _has_label(data_dir, source):
    """Returns True if any row of a test file has a label; labels are optional there."""
    path = find_file(source.files[0], data_dir, "")

    def has_label(field):
        try:
            return not is_empty(field(source.label))
        except MissingColumn:
            return False

    try:
        return any(has_label(field) for _, field in read_rows(path, source))
    except InputError:  # the header lacks a column: the label or another one
        next(read_rows(path, source._replace(label=None)), None)  # raises if it is another one
        return False


def _find_labels(data_dir, source, multi_label):
    """Finds the labels of the training file, sorted as numbers if all are, else as texts."""
    if source is None:
        raise InputError(
            "--labels must be given where neither training file nor model has them. Received: none"
        )
    path, labels = find_file(source.files[0], data_dir, ""), set()
    for where, field in read_rows(path, source):
        value = field(source.label)
        of_row = label_texts(value, multi_label, where)
        if "" in of_row:
            raise InputError(f"{where}: the label must not be empty. Received: {value!r}")
        commas = [label for label in of_row if "," in label]
        if commas:
            raise InputError(f"{where}: a label must not hold a comma. Received: {commas[0]!r}")
        labels.update(of_row)
        if len(labels) > MAX_LABELS:
            raise InputError(
                f"{path} must have at most {MAX_LABELS} different labels (for numbers there is "
                f"--task_type=regression). Received: more, up to {where}"
            )
    if len(labels) < 2:
        raise InputError(
            f"{path} must have at least two different labels (--label_column names their column). "
            "Received: " + (", ".join(labels) or "none")
        )
    if all(re.fullmatch(r"\d{1,18}", label) for label in labels):
        return sorted(labels, key=lambda label: (int(label), label))  # "1" and "01" are two labels
    return sorted(labels)
