"""Makes data sets of a user's own files."""

import re
from collections.abc import Mapping, Sequence

from bert_common.errors import InputError
from finetuning.classification.columns import Columns, custom_columns, find_columns
from finetuning.datasets import Dataset, SplitSource
from finetuning.labels import is_empty, label_text, label_texts
from finetuning.readers import MissingColumn, read_rows
from finetuning.tables import TABLE_ENDINGS, check_ending

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


def own_dataset(
    files: Mapping[str, str],
    task_type: str,
    columns: Columns,
    labels: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    encoding: str | None = None,
) -> Dataset:
    """Makes a data set of a user's own files.

    Args:
        files: split -> path. A single file "data" is train and dev: a tenth of it is held out.
        task_type: one of `TASK_TYPES`.
        columns: in a dev or test file, they may have other, unambiguous names.
        labels: all labels, in the order of the classes; None: the labels in the training file.
        metrics: names of `FITTING_METRICS`; None for `DEFAULT_METRICS`.
        encoding: of the files, a key of `bert_common.text_encoding.NAMES`; None: it is recognized.

    Raises:
        InputError: a metric does not suit the type, or columns or labels cannot be found.
    """
    fitting = FITTING_METRICS[task_type]
    unknown = [name for name in metrics or () if name not in fitting]
    if unknown:
        raise InputError(
            f"--metrics of --task_type={task_type} must be of {', '.join(fitting)}. "
            f"Received: {', '.join(unknown)}"
        )
    sources: dict[str, SplitSource] = {}
    for split, path in files.items():
        of_file = columns
        if split in ("dev", "test"):
            of_file = find_columns(path, columns, split == "dev", encoding)
        found = own_source(path, of_file, encoding)
        if split == "data":
            sources |= {part: found._replace(part=part) for part in ("train", "dev")}
        elif split == "test" and not _has_label(found):
            sources[split] = found._replace(label=None)
        else:
            sources[split] = found
    multi_label = task_type == "multi_label"
    if task_type == "regression":
        labels = ()
    elif labels is None:
        labels = _find_labels(sources.get("train"), multi_label)
    else:
        labels = _check_labels([label_text(label) for label in labels])
    if "f1" in (metrics or ()) and len(labels) != 2:
        raise InputError(
            "--metrics=f1 is for two labels; for more there are macro_f1 and micro_f1. "
            f"Received: {len(labels)} labels"
        )
    metrics = tuple(metrics or DEFAULT_METRICS[task_type])
    return Dataset("", sources, tuple(labels), metrics, multi_label=multi_label)


def own_source(path: str, columns: Columns, encoding: str | None = None) -> SplitSource:
    """Returns the source of one file; raises an `InputError` if its ending is unknown."""
    check_ending(path)
    is_table = path.lower().endswith(TABLE_ENDINGS)
    text, second, label, name = custom_columns(columns, is_table)
    assert text is not None  # given, found in the file, or "text"
    return SplitSource((path,), text, second, label, name, own=True, encoding=encoding)


def _has_label(source):
    """Returns True if any row of a test file has a label; labels are optional there."""
    path = source.files[0]

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


def _check_labels(labels):
    """Returns the labels of --labels, which must be different."""
    if len(set(labels)) < max(2, len(labels)) or "" in labels:
        raise InputError(
            f"--labels must be at least two different labels. Received: {','.join(labels)}"
        )
    return labels


def _find_labels(source, multi_label):
    """Finds the labels of the training file, sorted as numbers if all are, else as texts."""
    if source is None:
        raise InputError(
            "--labels must be given where neither training file nor model has them. Received: none"
        )
    path, labels = source.files[0], set()
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
