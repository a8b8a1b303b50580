"""Makes a data set of anybody's own files: train, dev and test, as .tsv or .jsonl."""

import os
import re

from bert_common.errors import InputError
from finetuning.datasets import Dataset, Source
from finetuning.readers import ShortRow, find_file, label_texts, read_rows

KINDS = ("tsv", "jsonl")
TASK_TYPES = ("single_label", "multi_label", "regression")

# What each type is judged by; the first decides which checkpoint is best.
DEFAULT_METRICS = {
    "single_label": ("accuracy", "macro_f1"),
    "multi_label": ("micro_f1", "macro_f1"),
    "regression": ("pearson", "spearman"),
}

# What each type can be judged by; f1 is that of the second of two labels.
FITTING_METRICS = {
    "single_label": ("accuracy", "f1", "macro_f1", "micro_f1", "matthews"),
    "multi_label": ("micro_f1", "macro_f1", "accuracy"),
    "regression": ("pearson", "spearman", "paraphrase_f1"),
}

# Python does not read numbers of any length.
_WHOLE_NUMBER = r"\d{1,18}"

# More different labels than that are numbers or texts by mistake.
MOST_LABELS = 10_000


def own_dataset(kind, data_dir, task_type, text, second, label, id, labels, metrics):
    """Makes a `finetuning.datasets.Dataset`.

    Args:
        kind: "tsv" or "jsonl": what the files' names end in.
        data_dir: holds train, dev and test of them; not all need be there.
        task_type: one of `TASK_TYPES`.
        text, second, label, id: the columns: names of the header line or of the objects' keys;
            numbers from 0, as digits, in a .tsv without a header. `second` and `id` may be None.
        labels: all labels, in the order of the classes; None to find them in the training file.
        metrics: of `FITTING_METRICS`; None for the usual ones.

    Returns:
        A `Task`, whose splits are the files that there are.

    Raises:
        InputError: no such file, a metric that does not fit, labels that cannot be found.
    """
    fitting = FITTING_METRICS[task_type]
    unknown = [name for name in metrics or () if name not in fitting]
    if unknown:
        raise InputError(
            f"--metrics of --task_type={task_type} must be of {', '.join(fitting)}. "
            f"Received: {', '.join(unknown)}"
        )
    columns = [_column(name, kind) for name in (text, second, label, id)]
    if len({isinstance(column, int) for column in columns if column is not None}) > 1:
        raise InputError(
            "columns must all be names, or all be numbers (files without a header). Received: "
            + ", ".join(str(column) for column in columns if column is not None)
        )
    files = {split: f"{split}.{kind}" for split in ("train", "dev", "test")}
    present = {s: f for s, f in files.items() if os.path.isfile(os.path.join(data_dir, f))}
    if not present:
        find_file(files["train"], data_dir, "")
    sources = {split: Source((name,), *columns) for split, name in present.items()}
    if "test" in sources and not _has_label(data_dir, sources["test"]):
        sources["test"] = sources["test"]._replace(label=None)
    if task_type == "regression":
        labels = ()
    elif labels is None:
        labels = _find_labels(data_dir, sources.get("train"), task_type == "multi_label")
    elif len(set(labels)) < max(2, len(labels)) or "" in labels:
        raise InputError(
            f"--labels must be at least two different labels. Received: {','.join(labels)}"
        )
    if "f1" in (metrics or ()) and len(labels) != 2:
        raise InputError(
            "--metrics=f1 is for two labels; of more there are macro_f1 and micro_f1. "
            f"Received: {len(labels)} labels"
        )
    return Dataset(
        "",
        sources,
        tuple(labels),
        tuple(metrics or DEFAULT_METRICS[task_type]),
        multi_label=task_type == "multi_label",
    )


def _column(name, kind):
    """A name, or a number of a .tsv's column."""
    is_number = kind == "tsv" and name is not None and re.fullmatch(_WHOLE_NUMBER, name)
    return int(name) if is_number else name


def _has_label(data_dir, source):
    """Whether the first row of a file has a label; that of a test need not."""
    path = find_file(source.files[0], data_dir, "")
    try:
        for _, field in read_rows(path, source):
            field(source.label)
            return True
    except ShortRow:
        return False
    except InputError:  # a header that lacks a column: perhaps this one, perhaps another
        for _ in read_rows(path, source._replace(label=None)):
            return False
    return False


def _find_labels(data_dir, source, several):
    """All labels of the training file: numbers in their order, texts in theirs."""
    if source is None:
        raise InputError(
            "--labels must be given where there is no training file to find them in. Received: none"
        )
    path, found = find_file(source.files[0], data_dir, ""), set()
    for where, field in read_rows(path, source):
        try:
            value = field(source.label)
        except ShortRow as error:
            raise InputError(f"{where} must have {error}") from None
        found.update(label_texts(value, several, where))
        if "" in found:
            raise InputError(f"{where}: the label must not be empty. Received: {value!r}")
        commas = [label for label in found if "," in label]
        if commas:
            raise InputError(f"{where}: a label must not hold a comma. Received: {commas[0]!r}")
        if len(found) > MOST_LABELS:
            raise InputError(
                f"{path} must have at most {MOST_LABELS} different labels (--task_type=regression "
                f"is for numbers). Received: more, {where} the last of them"
            )
    if len(found) < 2:
        raise InputError(
            f"{path} must have at least two different labels. Received: "
            + (", ".join(found) or "none")
        )
    if all(re.fullmatch(_WHOLE_NUMBER, label) for label in found):
        return sorted(found, key=int)
    return sorted(found)
