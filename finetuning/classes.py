"""Counts, weights and samples examples by their classes.

Shapes: N examples, C classes.
"""

import collections
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_common.errors import InputError

# The maximum number of classes named in the line about a split.
SHOWN_CLASSES = 20

# The maximum number of classes named in a warning.
WARNED_CLASSES = 5


def count_classes(names: Sequence[str], examples: Sequence[Any]) -> dict[str, int]:
    """Counts the examples of each class, in the order of `names`.

    Returns {} if there are no names, as for regression, or if the split has no labels.
    """
    labels = [example.label for example in examples if example.label is not None]
    if not names or not labels:
        return {}
    counts: collections.Counter[int] = collections.Counter()
    for label in labels:
        counts.update(np.flatnonzero(label).tolist() if isinstance(label, tuple) else [label])
    return {name: counts[number] for number, name in enumerate(names)}


def describe_classes(counts: Mapping[str, int]) -> str:
    """Formats the classes of a split with their counts; names only the most frequent of many.

    Example:
        describe_classes({"bad": 1200, "good": 7}) -> "bad (1,200), good (7)"
    """
    if len(counts) <= SHOWN_CLASSES:
        return ", ".join(f"{name} ({count:,})" for name, count in counts.items())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} ({count:,})" for name, count in ordered[:SHOWN_CLASSES])
    rest = [count for _, count in ordered[SHOWN_CLASSES:]]
    return f"{shown}, and {len(rest):,} others with {min(rest):,} to {max(rest):,}"


def warn_of_thin_classes(splits: Mapping[str, Mapping[str, int]]) -> None:
    """Warns of classes with one training example or none, and of classes that a split lacks.

    `splits` are "train" and the splits to evaluate.
    """
    train = splits.get("train")
    if train:
        _warn(
            [name for name, count in train.items() if count == 1],
            "train has a single example of {}: a model hardly learns it (a header or a mistyped "
            "label is often read as such a class)",
        )
        _warn(
            [name for name, count in train.items() if not count],
            "train has no example of {}, which the model cannot predict",
        )
    for split, counts in splits.items():
        if split != "train" and counts:
            missing = [
                name for name, count in counts.items() if not count and (train or {}).get(name, 1)
            ]
            _warn(missing, f"{split} has no example of {{}}, of which its scores say nothing")


def _warn(names, message):
    if names:
        shown = ", ".join(repr(name) for name in names[:WARNED_CLASSES])
        more = len(names) - WARNED_CLASSES
        shown += f" and {more:,} more" if more > 0 else ""
        what = "class" if len(names) == 1 else f"{len(names):,} classes:"
        warnings.warn(message.format(f"{what} {shown}"), stacklevel=3)


def balanced_weights(labels: Sequence[int] | np.ndarray, classes: int) -> np.ndarray:
    """Returns class weights inversely proportional to the classes' frequencies, [C] float32.

    A weight is N / (classes that occur * count), as with scikit-learn's `class_weight="balanced"`,
    or 0 for a class without examples. `labels` are class indices, [N].
    """
    counts = np.bincount(np.asarray(labels, np.int64), minlength=classes)  # [C]
    present = np.count_nonzero(counts)
    weights = counts.sum() / (present * np.maximum(counts, 1))
    return np.where(counts, weights, 0.0).astype(np.float32)  # [C]


def balanced_label_weights(labels: np.ndarray) -> np.ndarray:
    """Applies `balanced_weights` to the 0s and 1s of each multi-label class: [N, C] float32."""
    columns = [balanced_weights(column, 2)[column] for column in labels.T]
    return np.stack(columns, axis=1)  # [N, C]


def draw_examples(examples: list[Any], count: int, seed: int) -> list[Any]:
    """Draws `count` examples, of each class about its share and, if there is room, at least one.

    Examples without a `label` form one class. The order is kept; `seed` decides which are drawn.
    """
    if len(examples) <= count:
        return examples
    strata = collections.defaultdict(list)
    for index in np.random.default_rng([seed, 7]).permutation(len(examples)).tolist():
        label = getattr(examples[index], "label", None)
        strata[label if isinstance(label, int | tuple) else None].append(index)
    keys: dict[int, float] = {}
    for members in strata.values():
        # The fraction of its class that is drawn before it: any threshold selects about the same
        # fraction of every class.
        keys |= {index: (rank + 0.5) / len(members) for rank, index in enumerate(members)}
        if len(strata) <= count // 2:
            keys[members[0]] = -1.0
    chosen = sorted(keys, key=keys.__getitem__)[:count]
    return [examples[index] for index in sorted(chosen)]


def check_weights(class_weights: str, labels: Sequence[str]) -> None:
    """Raises an `InputError` if --class_weights is set for regression, which has no classes."""
    if class_weights != "none" and not labels:
        raise InputError(
            "--class_weights must be none where labels are scores: there are no classes to weight. "
            f"Received: --class_weights={class_weights}"
        )
