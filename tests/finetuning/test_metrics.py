"""Metrics: equal to scikit-learn's and seqeval's on random labels, and to counts by hand."""

import itertools
import math
import sys

import numpy as np
import pytest

from bert_common.errors import InputError
from finetuning.metrics import METRICS, score, score_entities, score_tags

sklearn_metrics = pytest.importorskip("sklearn.metrics")
scipy_stats = pytest.importorskip("scipy.stats")

CLASSES = 4


def counted(labels, predictions, value):
    """True positives, false positives, false negatives of one class."""
    hit = (labels == value) & (predictions == value)
    return hit.sum(), (predictions == value).sum() - hit.sum(), (labels == value).sum() - hit.sum()


def f1(positive, false_positive, false_negative):
    return 2 * positive / (2 * positive + false_positive + false_negative)


@pytest.fixture(params=range(3))
def random_classes(request):
    rng = np.random.default_rng(request.param)
    labels = rng.integers(0, CLASSES, 200)
    return labels, np.where(rng.random(200) < 0.4, labels, rng.integers(0, CLASSES, 200))


def test_metrics_of_classes(random_classes):
    labels, predictions = random_classes
    found = score(("accuracy", "macro_f1", "matthews"), labels, predictions)
    each = [f1(*counted(labels, predictions, value)) for value in range(CLASSES)]
    expected = {
        "accuracy": (labels == predictions).mean(),
        "macro_f1": np.mean(each),
        "matthews": sklearn_metrics.matthews_corrcoef(labels, predictions),
    }
    assert found == pytest.approx(expected, rel=1e-12)


def test_metrics_of_two_classes(random_classes):
    labels, predictions = (values % 2 for values in random_classes)
    found = score(("f1", "matthews"), labels, predictions)
    tp, fp, fn = counted(labels, predictions, 1)
    tn = len(labels) - tp - fp - fn
    matthews = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert found == pytest.approx({"f1": f1(tp, fp, fn), "matthews": matthews})


def test_metrics_of_several_labels_an_example(random_classes):
    labels, predictions = (np.eye(CLASSES, dtype=int)[values] for values in random_classes)
    predictions[::3, 0] = 1
    found = score(("micro_f1", "macro_f1"), labels, predictions)
    assert found["micro_f1"] == pytest.approx(f1(*counted(labels.ravel(), predictions.ravel(), 1)))
    each = [f1(*counted(labels[:, c], predictions[:, c], 1)) for c in range(CLASSES)]
    assert found["macro_f1"] == pytest.approx(np.mean(each))


@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_scores(seed):
    rng = np.random.default_rng(seed)
    labels = np.round(5 * rng.random(100), 1)
    predictions = labels + rng.normal(size=100)
    found = score(("pearson", "spearman", "paraphrase_f1"), labels, predictions)
    expected = {
        "pearson": scipy_stats.pearsonr(labels, predictions)[0],
        "spearman": scipy_stats.spearmanr(labels, predictions)[0],
        "paraphrase_f1": f1(*counted(labels >= 3, predictions >= 3, True)),
    }
    assert found == pytest.approx(expected, rel=1e-12)
    assert abs(found["pearson"] - found["spearman"]) > 1e-4


@pytest.mark.parametrize("count", (1, 3))
@pytest.mark.parametrize("guess", (0, 1))
@pytest.mark.filterwarnings("error")
def test_every_metric_is_a_number_of_few_examples_of_one_class(count, guess):
    """What is not defined is zero."""
    labels, predictions = np.zeros(count, int), np.full(count, guess)
    found = score(METRICS, labels, predictions)
    right = {"accuracy", "macro_f1", "micro_f1"} if guess == 0 else set()
    assert found == {name: float(name in right) for name in METRICS}
    several = score(("accuracy", "macro_f1", "micro_f1"), *np.eye(2, dtype=int)[[[0], [guess]]])
    assert set(several.values()) == {0.0 if guess else 0.5, 0.0 if guess else 1.0}


@pytest.mark.filterwarnings("error")
def test_scores_of_a_model_that_diverged():
    """Or that predicts the same for everything, as at the start of training."""
    labels, names = np.array([0.0, 1.0, 2.0, 4.0]), ("pearson", "spearman", "paraphrase_f1")
    for predictions in ([1, np.nan, 2, 2], [1, np.inf, 2, 2], [1e8, 1e8 + 1e-8, 1e8, 1e8]):
        found = score(names, labels, np.array(predictions, float))
        assert all(map(math.isfinite, found.values()))
    assert score(names, labels, np.ones(4)) == dict.fromkeys(names, 0.0)
    assert score(("f1", "matthews"), labels > 0, np.zeros(4, int)) == {"f1": 0, "matthews": 0}


TAGS = ("B-PS", "I-PS", "B-LC", "I-LC", "O")
ENTITY_SCORES = ("entity_precision", "entity_recall", "entity_f1", "entity_macro_f1")

# What seqeval 1.2.2 (mode "strict", scheme IOB2) counts of all sentences of four tags, valid or
# not, and of what becomes of them when every so many tags are replaced.
BY_SEQEVAL = {
    2: (0.425531914893617, 0.4, 0.4123711340206186, 0.4082123116009201),
    5: (0.7679425837320574, 0.642, 0.6993464052287581, 0.6817771367275327),
    11: (0.8839390386869871, 0.754, 0.813815434430653, 0.8055199078644292),
}


@pytest.mark.parametrize("every", BY_SEQEVAL)
def test_entities_as_seqeval_counted_them(every):
    labels = [list(tags) for tags in itertools.product(TAGS, repeat=4)]
    predictions = []
    for number, tags in enumerate(labels):
        found = [t if (number + i) % every else TAGS[number % 4] for i, t in enumerate(tags)]
        predictions.append(["O" if t.endswith("LC") and number % 3 == 0 else t for t in found])
    expected = dict(zip(ENTITY_SCORES, BY_SEQEVAL[every], strict=True))
    assert score_entities(labels, predictions) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_tags_without_an_entity():
    for labels in ([["O", "O"], ["O"]], [["O"], []]):
        assert score_tags(labels, labels, TAGS) == {
            **dict.fromkeys(ENTITY_SCORES, 0.0), "character_macro_f1": 1.0,
        }  # fmt: skip
    wrong = score_tags([["O", "O"]], [["O", "B-PS"]], TAGS)
    assert {wrong[name] for name in ENTITY_SCORES} == {0.0}


@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_tags(seed):
    rng = np.random.default_rng(seed)
    labels = [list(rng.choice(TAGS, length)) for length in rng.integers(1, 20, 50)]
    predictions = [[t if rng.random() < 0.8 else "O" for t in sentence] for sentence in labels]
    seqeval = pytest.importorskip("seqeval.metrics")
    scheme = pytest.importorskip("seqeval.scheme").IOB2
    found = score_tags(labels, predictions, TAGS)
    # As KLUE's program: all sentences in a row, each with an O for [CLS] and for [SEP].
    flat = [sum((["O", *s, "O"] for s in each), []) for each in (labels, predictions)]
    metrics = seqeval.precision_score, seqeval.recall_score, seqeval.f1_score, seqeval.f1_score
    averages = "micro", "micro", "micro", "macro"
    expected = {
        name: metric(*([each] for each in flat), mode="strict", scheme=scheme, average=average)
        for name, metric, average in zip(ENTITY_SCORES, metrics, averages, strict=True)
    }
    expected["character_macro_f1"] = sklearn_metrics.f1_score(*flat, average="macro", labels=TAGS)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_particle_inside_an_eojeol():
    """이순신은 부산에서: the particles 은 and 에서 are no part of the names."""
    truth = ["B-PS", "I-PS", "I-PS", "O", "O", "B-LC", "I-LC", "O", "O"]
    with_particle = ["B-PS", "I-PS", "I-PS", "I-PS", "O", "B-LC", "I-LC", "O", "O"]
    assert set(score_tags([truth], [truth], TAGS).values()) == {1.0}
    found = score_tags([truth], [with_particle], TAGS)
    # Of two names one is right, of two found ones too; its kind is wholly right, the other not.
    assert found["entity_f1"] == 0.5 and found["entity_macro_f1"] == 0.5
    # I-PS: 2 right of 3 found and of 2; O: 3 of 3 found and of 4, and two around the sentence; the
    # others are right.
    assert found["character_macro_f1"] == pytest.approx((1 + 4 / 5 + 1 + 1 + 10 / 11) / 5)
    # A tag that occurs nowhere counts as right, as in KLUE's program.
    more = score_tags([truth], [with_particle], (*TAGS, "B-OG"))
    assert more["character_macro_f1"] == pytest.approx((2 + 4 / 5 + 1 + 1 + 10 / 11) / 6)


def test_a_name_of_another_sentence_is_another_name():
    labels = [["O", "B-PS"], ["I-PS", "O"]]  # the second sentence begins no name
    found = score_tags(labels, [["O", "B-PS"], ["O", "O"]], TAGS)
    assert found["entity_f1"] == 1.0


def test_without_the_libraries(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    with pytest.raises(InputError, match=r"pip install -e '.\[finetune\]'.*sklearn.metrics"):
        METRICS["accuracy"]([0], [0])
