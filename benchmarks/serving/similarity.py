"""Measures how well the cosines of texts' vectors agree with the similarity that people see.

    python -m benchmarks.serving.similarity --data_dir=data/KorSTS --model_dir=reference_model

Nothing is trained: each text of a pair is a vector, of `korean_bert.load_model(...).embed`, and the
cosine of two vectors is compared with the pair's label, by Pearson's and Spearman's correlation.
Beside it stand the cosines of TF-IDF weights of n-grams of 1 to 3 characters, learned from the same
texts without labels. Needs the extra "finetune".
"""

import sys

import numpy as np

from benchmarks.common import argument_parser, one_of, print_table, whole_numbers
from bert_common.errors import InputError
from finetuning.datasets import DATASETS
from finetuning.metrics import imported, score
from finetuning.readers import read_split
from korean_bert import load_model
from korean_bert.model import POOLINGS
from run_scripts.flags.finetune import measured_splits

TASKS = tuple(name for name, row in DATASETS.items() if "pearson" in row.metrics and not row.labels)
METRICS = ("pearson", "spearman")


def main():
    """Prints a line for each way to make vectors and each split that has labels."""
    parser = argument_parser(__doc__)
    parser.add_argument("--task_name", choices=TASKS, default="korsts")
    parser.add_argument("--data_dir", required=True, help="the task's folder, as it is published")
    parser.add_argument("--model_dir", default="reference_model")
    parser.add_argument("--poolings", type=one_of(*POOLINGS), default=["mean"])
    parser.add_argument("--layers", type=whole_numbers, default=[-1], help="0: the embeddings")
    arguments = parser.parse_args()
    dataset = DATASETS[arguments.task_name]
    try:
        examples = {
            split: read_split(dataset, split, arguments.data_dir)[0]
            for split in measured_splits(dataset)
        }
        model = load_model(arguments.model_dir)
        print_table(["split", "vectors", *METRICS], rows(examples, model, arguments))
    except InputError as error:
        sys.exit(f"error: {error}")


def rows(examples, model, arguments):
    """Yields the rows of the table.

    Args:
        examples: a dict: the name of a split -> its labelled pairs.
        model: embeds texts.
        arguments: the command line.
    """
    for split, pairs in examples.items():
        labels = np.array([pair.label for pair in pairs])  # [N]
        texts = [pair.text for pair in pairs], [pair.second for pair in pairs]
        for name, vectors in vectors_of(model, texts, arguments):
            values = score(METRICS, labels, cosines(*vectors))
            yield split, name, *(f"{values[metric]:.3f}" for metric in METRICS)


def vectors_of(model, texts, arguments):
    """Yields a name and two arrays of vectors, [N, H] each, for every way to make vectors."""
    for pooling in arguments.poolings:
        for layer in arguments.layers:
            pair = [model.embed(side, pooling, layer) for side in texts]
            yield f"embed, {pooling}, layer {layer}", pair
    text_features = imported("sklearn.feature_extraction.text")
    vectorizer = text_features.TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    vectorizer.fit(texts[0] + texts[1])
    yield "TF-IDF of characters", [vectorizer.transform(side).toarray() for side in texts]


def cosines(first, second):
    """The cosines of vectors [N, H] with their partners, [N]; 0 for vectors without length."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.sum(first * second, axis=1)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


if __name__ == "__main__":
    main()
