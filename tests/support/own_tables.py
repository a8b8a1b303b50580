"""A user's own files of examples for run_classifier."""

from finetuning.classification.columns import Columns
from finetuning.classification.custom_data import own_dataset
from finetuning.readers import files_in, read_split


def dataset_of(folder, kind="csv", task_type="single_label", columns=None, **options):
    """The data set of the files train, dev and test in a folder."""
    files = files_in(str(folder), [kind])
    return own_dataset(files, task_type, columns or Columns(), **options)


def examples_of(dataset, split="train"):
    """The examples of a split: (text, second text, label), each label as the file spells it."""
    examples, left_out = read_split(dataset, split, "")
    assert left_out == {}
    return [(e.text, e.second, _spelled(dataset, e.label)) for e in examples]


def _spelled(dataset, label):
    if isinstance(label, tuple):
        return [name for name, given in zip(dataset.labels, label, strict=True) if given]
    return dataset.labels[label] if dataset.labels and label is not None else label


def read(folder, kind="csv", content=None, split="train", columns=None, **options):
    """The texts and labels of a split, whose file is written first if there is a content."""
    if content is not None:
        (folder / f"{split}.{kind}").write_text(content, encoding="utf-8", newline="")
    dataset = dataset_of(folder, kind, columns=columns, **options)
    return [(text, label) for text, _, label in examples_of(dataset, split)]
