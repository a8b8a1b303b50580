"""What benchmarks judge predictions by, from scikit-learn and scipy; entities are counted here.

They come with `pip install -e '.[finetune]'`, and are imported when a metric is computed.

Shapes: N examples, C classes.
"""

import collections
import importlib
import importlib.util
import math
import warnings

import numpy as np

from bert_common.errors import InputError

# What comes with the extra "finetune".
LIBRARIES = ("sklearn", "scipy", "matplotlib")

# KLUE's sentence pairs count as paraphrases from this score on, of 0 to 5.
PARAPHRASE_SCORE = 3.0


def _scikit(name, **options):
    """A metric of sklearn.metrics as a function of labels and predictions [N]."""

    def metric(labels, predictions):
        return getattr(_imported("sklearn.metrics"), name)(labels, predictions, **options)

    return metric


def _correlation(name):
    """A correlation of scipy.stats between labels and predictions [N]."""

    def metric(labels, predictions):
        if len(labels) < 2:  # one example correlates with nothing
            return math.nan
        return getattr(_imported("scipy.stats"), name)(labels, predictions)[0]

    return metric


def _paraphrase_f1(labels, predictions):
    """F1 of the scores from 3 on [N], as KLUE judges its sentence pairs beside Pearson's r."""
    at_least = [np.asarray(scores) >= PARAPHRASE_SCORE for scores in (labels, predictions)]
    return _scikit("f1_score", zero_division=0.0)(*at_least)


# name -> a function of labels [N] and predictions [N]: numbers of classes, or scores; of
# several labels an example both are [N, C] of 0 and 1.
METRICS = {
    "accuracy": _scikit("accuracy_score"),
    "f1": _scikit("f1_score", zero_division=0.0),  # of class 1
    "macro_f1": _scikit("f1_score", average="macro", zero_division=0.0),
    "micro_f1": _scikit("f1_score", average="micro", zero_division=0.0),
    "matthews": _scikit("matthews_corrcoef"),
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "paraphrase_f1": _paraphrase_f1,
}


def score(names, labels, predictions):
    """Computes metrics.

    Args:
        names: keys of `METRICS`.
        labels: the truth, [N] (several labels an example: [N, C]).
        predictions: likewise.

    Returns:
        A dict: name -> float, 0 where a metric is not defined: a correlation of one example, or
        of a model that gives every example the same number.

    Raises:
        InputError: a metric's library is not installed.
    """
    with warnings.catch_warnings(action="ignore"):  # the libraries warn of what is not defined
        found = {name: float(METRICS[name](labels, predictions)) for name in names}
    return {name: _defined(value) for name, value in found.items()}


def _defined(value):
    return value if math.isfinite(value) else 0.0


def score_tags(labels, predictions, tags):
    """Scores of named entities and of the tags of single characters.

    Args:
        labels: for each sentence the true tags of its characters, such as ["B-PS", "I-PS", "O"].
        predictions: likewise, of the same lengths.
        tags: all tags that there are, "O" among them.

    Returns:
        A dict: what `score_entities` returns, and "character_macro_f1", the mean over `tags`. The
        macro scores are KLUE's; as in its program "O" is one of the tags, there is one for [CLS]
        and one for [SEP] of each sentence, which count as right here, and a tag that is in neither
        has an F1 of 1.

    Raises:
        InputError: scikit-learn is not installed.
    """
    true, found = (
        [tag for sentence in each for tag in ("O", *sentence, "O")]
        for each in (labels, predictions)
    )
    character_f1 = _scikit("f1_score", average="macro", labels=list(tags), zero_division=1.0)
    return {
        **score_entities(labels, predictions),
        "character_macro_f1": float(character_f1(true, found)),
    }


def entities(tags):
    """(first unit, last unit, kind) of each entity of IOB2 tags; I- alone is none."""
    found = []
    for unit, tag in enumerate(tags):
        if tag[0] == "B":
            found.append((unit, unit, tag[2:]))
        elif tag[0] == "I" and found and found[-1][1:] == (unit - 1, tag[2:]):
            found[-1] = (found[-1][0], unit, tag[2:])
    return found


def score_entities(labels, predictions):
    """Precision, recall and F1 of named entities, as seqeval counts them with strict IOB2.

    An entity is right where its kind and both its ends are.

    Args:
        labels, predictions: as `score_tags` has them.

    Returns:
        A dict: "entity_precision", "entity_recall" and "entity_f1" over all entities,
        "entity_macro_f1", the mean over the kinds that are in either; 0 where there is none.
    """
    right, found, true = collections.Counter(), collections.Counter(), collections.Counter()
    for true_tags, found_tags in zip(labels, predictions, strict=True):
        of_labels, of_predictions = set(entities(true_tags)), set(entities(found_tags))
        for counter, chosen in (
            (right, of_labels & of_predictions),
            (found, of_predictions),
            (true, of_labels),
        ):
            counter.update(kind for _, _, kind in chosen)
    kinds = sorted({*found, *true})
    macro = sum(2 * right[kind] / (found[kind] + true[kind]) for kind in kinds)
    return {
        "entity_precision": _share(right.total(), found.total()),
        "entity_recall": _share(right.total(), true.total()),
        "entity_f1": _share(2 * right.total(), found.total() + true.total()),
        "entity_macro_f1": _share(macro, len(kinds)),
    }


def _share(part, whole):
    return part / whole if whole else 0.0


def check_installed():
    """Refuses to begin what could not be judged in the end.

    Raises:
        InputError: a library that evaluation needs is not installed.
    """
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"evaluation needs {', '.join(LIBRARIES)}: pip install -e '.[finetune]'. Received: "
            f"no {', '.join(missing)}"
        )


def _imported(name):
    """A module of the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"metrics need scikit-learn and scipy: pip install -e '.[finetune]'. Received: {error}"
        ) from None
