"""Questions with options to choose from.

Legend: N questions, C options, T pieces of a row.
"""

import dataclasses
import itertools
import os

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_tf.summaries.markdown import escape_markdown
from bert_tf.summaries.reporter import Illustrations
from finetuning.classification.head import DROPOUT
from finetuning.examples import Examples
from finetuning.multiple_choice.data import encode_choices, make_rows, pad_choices
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.question_answering.windows import count_workers

# Questions that TensorBoard shows of those that the model is most wrong about.
SHOWN_MISTAKES = 10


@dataclasses.dataclass(frozen=True)
class Choosing:
    """What run_race teaches a model, and how it is judged.

    Attributes:
        dataset: a `data.ChoiceDataset`.
        tokenizer: the model's.
        max_length: the most pieces of a row.
        max_qa_length: the most pieces of question and option.
        dropout: the rate of dropout before the head.
    """

    dataset: object
    tokenizer: object
    max_length: int
    max_qa_length: int
    dropout: float = DROPOUT

    # The result that the best checkpoint is chosen by, and that more of it is better.
    best_by = ("eval_accuracy", True)
    settings = {}

    @property
    def rows(self):
        """How many rows an example has."""
        return max(len(read[0].options) for read in self.dataset.read.values())

    def make_model(self, encoder):
        """An encoder with a new head."""
        return MultipleChoiceModel(encoder, dropout=self.dropout)

    def encode(self, read, training):
        """Makes an `Examples` of `data.Choice`s, the same for training or not."""
        contexts = sum(1 for _ in itertools.groupby(read, lambda choice: choice.context))
        workers = count_workers(contexts)
        encoded = encode_choices(self.tokenizer, read, self.max_qa_length, workers)
        known = np.array([choice.label is not None for choice in read], np.float32)
        labels = labels_of(read)

        def make_batch(numbers, length):
            rows = [make_rows(self.tokenizer, encoded[i], self.max_length) for i in numbers]
            batch = pad_choices(rows, length, self.tokenizer.pad_id or 0)
            return {**batch, "label_ids": labels[numbers], "label_weights": known[numbers]}

        lengths = [
            max(len(row.ids) for row in make_rows(self.tokenizer, each, self.max_length))
            for each in encoded
        ]
        return Examples(np.array(lengths), make_batch, [choice.id for choice in read], read)

    def measure(self, model, examples, outputs):
        """Accuracy with "loss"."""
        labels, shares = labels_of(examples.read), probabilities(outputs)
        losses = -np.log(shares[np.arange(len(labels)), labels])
        return {"accuracy": accuracy(labels, shares.argmax(axis=1)), "loss": float(losses.mean())}

    def baseline(self, examples):
        """The accuracy of always choosing the option that is right most often."""
        labels = labels_of(examples.read)
        return {"accuracy": accuracy(labels, np.bincount(labels).argmax())}

    def illustrations(self, model, examples, outputs):
        """What the model is most wrong about as text."""
        labels, shares = labels_of(examples.read), probabilities(outputs)
        of_right = shares[np.arange(len(labels)), labels]
        lines = ["| question | true | predicted | its probability |", "|---|---|---|---|"]
        for i in np.argsort(of_right, kind="stable")[:SHOWN_MISTAKES]:
            choice, found = examples.read[i], shares[i].argmax()
            if found != labels[i]:
                cells = (choice.question, choice.options[labels[i]], choice.options[found],
                         f"{shares[i][found]:.3f}")  # fmt: skip
                lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        return Illustrations({"most_wrong": "\n".join(lines)}, {})

    def write_predictions(self, directory, split, examples, outputs):
        """Writes predictions_SPLIT.tsv: id, perhaps label, prediction, each option's probability.

        Options are letters from A.

        Returns:
            The paths.
        """
        path = os.path.join(directory, f"predictions_{split}.tsv")
        labelled, shares = self.dataset.splits[split], probabilities(outputs)
        letters = [letter(number) for number in range(shares.shape[1])]
        with atomic_write(path) as file:
            header = ["id", *["label"] * labelled, "prediction", *letters]
            file.write("\t".join(header).encode() + b"\n")
            for choice, each in zip(examples.read, shares, strict=True):
                cells = [" ".join(choice.id.split())]
                cells += [letter(choice.label)] if labelled else []
                cells += [letter(each.argmax()), *(f"{share:.6f}" for share in each)]
                file.write("\t".join(cells).encode("utf-8") + b"\n")
        return [path]


def labels_of(choices):
    """[N] int32, 0 where there is none."""
    return np.array([choice.label or 0 for choice in choices], np.int32)


def probabilities(outputs):
    """[N, C]"""
    logits = np.stack(outputs["logits"]).astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def accuracy(labels, found):
    """The share that is right."""
    return float(np.mean(labels == found))


def letter(number):
    """0 -> A"""
    return chr(ord("A") + number)
