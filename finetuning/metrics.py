"""Computes the metrics of classification, regression and named-entity recognition.

Most come from scikit-learn and scipy (`pip install -e '.[finetune]'`), which are imported when a
metric is computed; entities are counted here.

Shapes: N examples, C classes.
"""

import collections
import importlib
import importlib.util
import math
import warnings
from collections.abc import Callable, Collection, Sequence
from types import ModuleType

import numpy as np

from bert_common.errors import InputError

# The libraries of the extra "finetune".
LIBRARIES = ("sklearn", "scipy", "matplotlib")
_NEEDS = f"needs {', '.join(LIBRARIES)}: pip install -e '.[finetune]'"

# In KLUE, sentence pairs with at least this score (from 0 to 5) count as paraphrases.
PARAPHRASE_SCORE = 3.0

# A function of labels and predictions, or of labels and probabilities.
Metric = Callable[[np.ndarray, np.ndarray], float]


def _scikit(name, **options):
    """Returns a metric of sklearn.metrics as a function of labels and predictions [N]."""

    def metric(labels, predictions):
        return getattr(imported("sklearn.metrics"), name)(labels, predictions, **options)

    return metric


def _correlation(name):
    """Returns a correlation of scipy.stats as a function of labels and predictions [N]."""

    def metric(labels, predictions):
        if len(labels) < 2:  # a correlation needs two examples
            return math.nan
        return getattr(imported("scipy.stats"), name)(labels, predictions)[0]

    return metric


def _paraphrase_f1(labels, predictions):
    """Computes the F1 of scores [N] >= `PARAPHRASE_SCORE`, KLUE-STS's second metric."""
    at_least = [np.asarray(scores) >= PARAPHRASE_SCORE for scores in (labels, predictions)]
    return _scikit("f1_score", zero_division=0.0)(*at_least)


def _relation_micro_f1(labels, predictions):
    """Computes micro F1 over all classes except 0, "no_relation": KLUE-RE's first metric."""
    classes = sorted({*np.unique(labels), *np.unique(predictions)} - {0})
    if not classes:
        return 0.0
    micro_f1 = _scikit("f1_score", average="micro", labels=classes, zero_division=0.0)
    return micro_f1(labels, predictions)


def _auprc(labels, probabilities):
    """Computes the mean area under the classes' precision-recall curves: KLUE-RE's second metric.

    As in KLUE's program, the points of a curve are joined by straight lines. Classes without an
    example have no recall and do not count; KLUE's data has no such class.
    """
    metrics = imported("sklearn.metrics")
    areas = []
    for number in np.unique(labels):
        curve = metrics.precision_recall_curve(labels == number, probabilities[:, number])
        precision, recall, _ = curve
        areas.append(metrics.auc(recall, precision))
    return np.mean(areas)


# name -> a function of labels [N] and predictions [N], which are class indices or scores; for
# multi-label examples both are [N, C] of 0 and 1.
METRICS: dict[str, Metric] = {
    "accuracy": _scikit("accuracy_score"),
    "f1": _scikit("f1_score", zero_division=0.0),  # of class 1
    "macro_f1": _scikit("f1_score", average="macro", zero_division=0.0),
    "micro_f1": _scikit("f1_score", average="micro", zero_division=0.0),
    "matthews": _scikit("matthews_corrcoef"),
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "paraphrase_f1": _paraphrase_f1,
    "relation_micro_f1": _relation_micro_f1,
}

# name -> a function of labels [N] and the probabilities of the classes [N, C].
PROBABILITY_METRICS: dict[str, Metric] = {"auprc": _auprc}


def score(
    names: Collection[str],
    labels: np.ndarray,
    predictions: np.ndarray,
    probabilities: np.ndarray | None = None,
) -> dict[str, float]:
    """Computes the metrics `names`, keys of `METRICS` or `PROBABILITY_METRICS`; arguments as there.

    If `probabilities` is None, `PROBABILITY_METRICS` are left out. An undefined metric has the
    value 0, such as the correlation of one example or of equal scores.
    """
    with warnings.catch_warnings(action="ignore"):  # the libraries warn of undefined metrics
        results = {
            name: float(METRICS[name](labels, predictions)) for name in names if name in METRICS
        }
        if probabilities is not None:
            chosen = [name for name in names if name in PROBABILITY_METRICS]
            results |= {n: float(PROBABILITY_METRICS[n](labels, probabilities)) for n in chosen}
    return {name: value if math.isfinite(value) else 0.0 for name, value in results.items()}


def score_tags(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]], tags: Sequence[str]
) -> dict[str, float]:
    """Scores named entities and the tags of single characters.

    Args:
        labels: the true tags of each sentence's characters, such as ["B-PS", "I-PS", "O"].
        predictions: the predicted tags, one for each true tag.
        tags: all tags.

    Returns:
        The results of `score_entities`, and "character_macro_f1", the mean F1 over `tags`.
        The macro scores are KLUE's. As in KLUE's program, "O" is one of the tags, each sentence has
        two more "O", for [CLS] and [SEP], which count as correct here, and a tag in neither labels
        nor predictions has an F1 of 1.
    """
    true, predicted = (
        [tag for sentence in sentences for tag in ("O", *sentence, "O")]
        for sentences in (labels, predictions)
    )
    character_f1 = _scikit("f1_score", average="macro", labels=list(tags), zero_division=1.0)
    return {
        **score_entities(labels, predictions),
        "character_macro_f1": float(character_f1(true, predicted)),
    }


def entities(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Returns (first unit, last unit, kind) of each entity; ignores an I- that continues none."""
    spans = []
    for unit, tag in enumerate(tags):
        if tag[0] == "B":
            spans.append((unit, unit, tag[2:]))
        elif tag[0] == "I" and spans and spans[-1][1:] == (unit - 1, tag[2:]):
            spans[-1] = (spans[-1][0], unit, tag[2:])
    return spans


def count_entities(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> list[collections.Counter[str]]:
    """Counts each kind's correct (in kind and both ends), predicted and true entities."""
    counters: list[collections.Counter[str]] = [collections.Counter() for _ in range(3)]
    for true_tags, predicted_tags in zip(labels, predictions, strict=True):
        true, predicted = set(entities(true_tags)), set(entities(predicted_tags))
        for counter, found in zip(counters, (true & predicted, predicted, true), strict=True):
            counter.update(kind for _, _, kind in found)
    return counters


def score_entities(
    labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Computes precision, recall and F1 of named entities, as seqeval does with strict IOB2.

    "entity_precision", "entity_recall" and "entity_f1" are over all entities; "entity_macro_f1" is
    the mean over the kinds that occur in labels or predictions, 0 if none does. For the arguments
    see `score_tags`.
    """
    correct, predicted, true = count_entities(labels, predictions)
    kinds = sorted({*predicted, *true})
    macro = sum(2 * correct[kind] / (predicted[kind] + true[kind]) for kind in kinds)
    return {
        "entity_precision": _ratio(correct.total(), predicted.total()),
        "entity_recall": _ratio(correct.total(), true.total()),
        "entity_f1": _ratio(2 * correct.total(), predicted.total() + true.total()),
        "entity_macro_f1": _ratio(macro, len(kinds)),
    }


def _ratio(part, whole):
    return part / whole if whole else 0.0


def softmax(logits: np.ndarray) -> np.ndarray:
    """Computes softmax probabilities [..., C] of logits [..., C], in the precision of `logits`."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Returns the indices of the `count` largest values [N], largest first, ties by index."""
    if count < len(values):
        least = np.partition(values, -count)[-count]
        found = np.flatnonzero(values >= least)
    else:
        found = np.arange(len(values))
    return found[np.argsort(-values[found], kind="stable")][:count]


def check_installed(what: str = "evaluation") -> None:
    """Raises an `InputError` if one of `LIBRARIES` is missing; call it before long work."""
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"{what} {_NEEDS}. Received: no {', '.join(missing)}")


def imported(name: str, what: str = "evaluation") -> ModuleType:
    """Imports a module of the extra "finetune"; an `InputError` says how to install the extra.

    `what` names the part that needs the module, for the message.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{what} {_NEEDS}. Received: {error}") from None
