"""Fits a linear model to a classification task, without any pre-training.

    python -m benchmarks.quality.linear --task_name=nsmc --data_dir=nsmc --features=characters \\
        --output_dir=work/linear

Features are TF-IDF weights of n-grams of characters or of words (runs of letters and digits, or of
punctuation). Classes are predicted by logistic regression, scores by ridge regression. The features
of a sentence pair are the weights of both sentences, the smaller of the two weights of every n-gram
(what both have), and the cosine of the two sentences. The longest n-gram, then the regularization,
is chosen on a tenth of the training examples; examples that share their first sentence, such as the
three of each premise in KLUE-NLI, stay together. The model is then fitted to all training examples.
Writes eval_results.txt: the metrics of each split with labels, what was chosen, and its result on
the tenth. Needs the extra "finetune".
"""

import operator

import numpy as np

from benchmarks.common import flag, launch, write_results
from bert_common.errors import InputError
from finetuning.datasets import DATASETS
from finetuning.metrics import METRICS, imported, score
from finetuning.readers import read_split
from run_scripts.downstream.program import take_part

# Kind of features -> the longest n-grams to try; shorter ones are always included.
LONGEST = {"characters": (2, 3, 4, 5), "words": (1, 2, 3)}
ANALYSERS = {
    "characters": {"analyzer": "char"},
    "words": {"analyzer": "word", "token_pattern": r"\w+|[^\w\s]+"},
}

# C of the logistic regression, 1 / alpha of the ridge regression. The first value is used to choose
# the longest n-gram.
STRENGTHS = (1.0, 0.3, 3.0, 10.0, 30.0)

KNOWN = [
    name
    for name, dataset in DATASETS.items()
    if not dataset.multi_label and set(dataset.metrics) <= set(METRICS)
]
FLAGS = {
    "task_name": flag(str, choices=KNOWN),
    "data_dir": str,
    "features": flag("characters", choices=LONGEST),
    "other_task": flag(None, "to be scored by the same model", choices=KNOWN),
    "other_data_dir": flag(None),
    "output_dir": str,
}


class LinearModel:
    """A linear model of TF-IDF features.

    Args:
        dataset: a row of `DATASETS`.
        features: a key of `LONGEST`.
        longest: the longest n-gram.
    """

    def __init__(self, dataset, features, longest):
        self.dataset = dataset
        self.vectorizer = imported("sklearn.feature_extraction.text").TfidfVectorizer(
            **ANALYSERS[features],
            ngram_range=(1, longest),
            lowercase=False,
            min_df=2,  # an n-gram of a single example is of no use for others
            sublinear_tf=True,
            dtype=np.float32,
        )

    def learn_features(self, examples):
        """Learns n-grams and their weights; returns the examples' features, sparse [N, F]."""
        self.vectorizer.fit([text for example in examples for text in texts_of(example)])
        return self.features(examples)

    def features(self, examples):
        """Returns the examples' features, sparse [N, F]."""
        first = self.vectorizer.transform([example.text for example in examples])
        if examples[0].second is None:
            return first
        second = self.vectorizer.transform([example.second for example in examples])
        return pair_features(first, second)

    def fit(self, features, labels, strength):
        """Fits the linear model to features [N, F] and labels [N]."""
        linear = imported("sklearn.linear_model")
        if self.dataset.labels:
            # Not the default solver, which stops when no gradient exceeds a fixed number, as the
            # gradients of rare n-grams are small from the beginning. One classifier per class.
            one = linear.LogisticRegression(C=strength, solver="liblinear")
            several = len(self.dataset.labels) > 2
            classifier = imported("sklearn.multiclass").OneVsRestClassifier
            self.model = classifier(one) if several else one
        else:
            self.model = linear.Ridge(alpha=1 / strength)
        self.model.fit(features, labels)

    def score(self, dataset, features, labels):
        """Returns the metrics of a data set with the same labels, a dict."""
        return score(dataset.metrics, labels, self.model.predict(features))


def texts_of(example):
    """Returns the one or two texts of an example."""
    return [text for text in (example.text, example.second) if text is not None]


def pair_features(first, second):
    """Joins the weights of two sentences, sparse [N, F] each, rows of length 1: [N, 3 F + 1]."""
    cosine = first.multiply(second).sum(axis=1)  # [N, 1]
    parts = [first, second, first.minimum(second), cosine]
    return imported("scipy.sparse").hstack(parts, format="csr")


def choose(dataset, features, examples):
    """Chooses the longest n-gram and the regularization on held-out training examples.

    Returns:
        A dict of "longest_ngram", "strength", "held_out_examples" and "held_out_METRIC".
    """
    kept, held_out = take_part(examples, operator.attrgetter("text"))
    metric, best = dataset.metrics[0], {}

    def attempt(model, arrays, longest, strength):
        model.fit(arrays[0], labels_of(kept), strength)
        value = model.score(dataset, arrays[1], labels_of(held_out))[metric]
        print(f"n-grams up to {longest}, strength {strength:g}: {metric} {value:.4f}", flush=True)
        if value > best.get("value", -np.inf):
            best.update(value=value, longest=longest, strength=strength, fitted=(model, arrays))

    for longest in LONGEST[features]:
        model = LinearModel(dataset, features, longest)
        arrays = model.learn_features(kept), model.features(held_out)
        attempt(model, arrays, longest, STRENGTHS[0])
    for strength in STRENGTHS[1:]:
        attempt(*best["fitted"], best["longest"], strength)
    return {
        "longest_ngram": best["longest"],
        "strength": best["strength"],
        "held_out_examples": len(held_out),
        f"held_out_{metric}": best["value"],
    }


def labels_of(examples):
    """Returns the labels of examples, [N]."""
    return np.array([example.label for example in examples])


def evaluate(arguments):
    """Chooses, fits and measures a model; returns a dict of results."""
    dataset = DATASETS[arguments.task_name]
    examples, _ = read_split(dataset, "train", arguments.data_dir)
    results = choose(dataset, arguments.features, examples)
    model = LinearModel(dataset, arguments.features, results["longest_ngram"])
    model.fit(model.learn_features(examples), labels_of(examples), results["strength"])
    measured = [("", dataset, arguments.data_dir)]
    if other := arguments.other_task:
        measured.append((f"{other}_", DATASETS[other], arguments.other_data_dir))
    for prefix, other, folder in measured:
        for split, labelled in other.splits.items():
            if labelled and split != "train":
                asked, _ = read_split(other, split, folder)
                values = model.score(other, model.features(asked), labels_of(asked))
                results |= {f"{prefix}{split}_{name}": value for name, value in values.items()}
    return results


def main(arguments):
    """Measures, and writes eval_results.txt."""
    if bool(arguments.other_task) != bool(arguments.other_data_dir):
        raise InputError(
            "--other_task and --other_data_dir must be given together. Received: "
            f"--other_task={arguments.other_task}, --other_data_dir={arguments.other_data_dir}"
        )
    write_results(arguments.output_dir, evaluate(arguments))


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
