"""Sentences and pairs of them, to be told apart or given a number.

Legend: N examples, B of a batch, T pieces, C classes.
"""

import dataclasses
import os

import numpy as np
import tensorflow as tf

from bert_common.atomic_write import atomic_write
from bert_tf.summaries.markdown import as_markdown_table, escape_markdown
from bert_tf.summaries.reporter import Illustrations
from finetuning.classification.head import DROPOUT, SequenceClassifier
from finetuning.datasets import DATASETS
from finetuning.examples import Examples
from finetuning.inputs import encode_pairs, pad_rows
from finetuning.metrics import score
from finetuning.plots import MOST_DRAWN, draw_confusion

# Examples that TensorBoard shows of those that the model is most wrong about.
SHOWN_MISTAKES = 10

# Characters of an example that are shown there.
SHOWN_CHARACTERS = 200


@dataclasses.dataclass(frozen=True)
class Classification:
    """What run_classifier teaches a model, and how it is judged.

    Attributes:
        dataset: a `finetuning.datasets.Dataset`.
        tokenizer: the model's.
        max_length: the most pieces of an example.
        dropout, freeze_encoder, feature_layers: as `SequenceClassifier` has them.
    """

    dataset: object
    tokenizer: object
    max_length: int
    dropout: float = DROPOUT
    freeze_encoder: bool = False
    feature_layers: tuple = ()

    @property
    def best_by(self):
        """The result that the best checkpoint is chosen by, and that more of it is better."""
        return f"eval_{self.dataset.metrics[0]}", True

    def make_model(self, encoder):
        """An encoder with a new head."""
        return SequenceClassifier(
            encoder,
            max(1, len(self.dataset.labels)),
            self.dropout,
            multi_label=self.dataset.multi_label,
            freeze_encoder=self.freeze_encoder,
            feature_layers=self.feature_layers,
        )

    def encode(self, read, training):
        """Makes an `Examples` of `finetuning.readers.Example`s, the same for training or not."""
        pairs = [(example.text, example.second) for example in read]
        rows = encode_pairs(self.tokenizer, pairs, self.max_length)
        labels, known = self.labels(read), np.array([e.label is not None for e in read])

        def make_batch(numbers, length):
            batch = pad_rows([rows[i] for i in numbers], length, self.tokenizer.pad_id or 0)
            batch["label_ids"] = labels[numbers]
            batch["label_weights"] = known[numbers].astype(np.float32)
            return batch

        lengths = np.array([len(row.ids) for row in rows])
        return Examples(lengths, make_batch, [example.id for example in read], read)

    def labels(self, read):
        """[N] int32 classes or float32 scores, or [N, C] int32; zeros where there is no label."""
        blank = (0,) * len(self.dataset.labels) if self.dataset.multi_label else 0
        values = [blank if example.label is None else example.label for example in read]
        return np.array(values, np.int32 if self.dataset.labels else np.float32)

    def predictions(self, outputs):
        """What the logits mean: classes [N], yes or no for each class [N, C], or scores [N]."""
        logits = np.stack(outputs["logits"])  # [N, C]
        if self.dataset.multi_label:
            return (logits > 0).astype(np.int32)
        return logits.argmax(axis=1) if self.dataset.labels else logits[:, 0]

    def probabilities(self, outputs):
        """[N, C]: of each class; of several labels each between 0 and 1 by itself."""
        logits = np.stack(outputs["logits"]).astype(np.float64)
        if self.dataset.multi_label:
            return 1 / (1 + np.exp(-logits))
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def measure(self, model, examples, outputs):
        """The task's metrics with "loss", by name."""
        labels = self.labels(examples.read)
        results = score(self.dataset.metrics, labels, self.predictions(outputs))
        return {**results, "loss": float(np.mean(self._losses(model, labels, outputs)))}

    def baseline(self, examples):
        """The task's metrics of what can be said without looking: the most frequent class, the
        mean score, every label that most examples have."""
        labels = self.labels(examples.read)
        if self.dataset.multi_label:
            guess = (labels.mean(axis=0) > 0.5).astype(np.int32)
        elif self.dataset.labels:
            guess = np.bincount(labels).argmax()
        else:
            guess = labels.mean()
        return score(self.dataset.metrics, labels, np.broadcast_to(guess, labels.shape))

    @property
    def settings(self):
        """What the model's folder remembers beside the flags."""
        own = self.dataset.labels and self.dataset not in DATASETS.values()
        return {"labels": ",".join(self.dataset.labels)} if own else {}

    def _losses(self, model, labels, outputs):
        """[N]"""
        logits = tf.constant(np.stack(outputs["logits"]))
        return np.asarray(model.losses({"logits": logits}, {"label_ids": labels}))

    def illustrations(self, model, examples, outputs):
        """The confusion matrix as a picture; what the model is most wrong about as text."""
        read = examples.read
        found, true = self.predictions(outputs), self.labels(read)
        losses = self._losses(model, true, outputs)
        lines = ["| text | true | predicted | loss |", "|---|---|---|---|"]
        for i in np.argsort(-losses, kind="stable")[:SHOWN_MISTAKES]:
            text = " ||| ".join(filter(None, (read[i].text, read[i].second)))[:SHOWN_CHARACTERS]
            cells = (text, self.name(true[i]), self.name(found[i]), f"{losses[i]:.3f}")
            lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        texts = {"most_wrong": "\n".join(lines)}
        if self.dataset.multi_label or not 0 < len(self.dataset.labels) <= MOST_DRAWN:
            return Illustrations(texts, {})
        numbered = {str(i): label for i, label in enumerate(self.dataset.labels)}
        texts["classes"] = as_markdown_table(numbered, ("number in the picture", "class"))
        matrix = np.zeros((len(self.dataset.labels),) * 2, np.int64)
        np.add.at(matrix, (true, found), 1)
        return Illustrations(texts, {"confusion": draw_confusion(matrix, self.dataset.labels)})

    def name(self, prediction):
        """A class's label; the labels of several classes with commas between; a score."""
        if not self.dataset.labels:
            return f"{prediction:.4f}"
        if self.dataset.multi_label:
            return ",".join(
                n for n, yes in zip(self.dataset.labels, prediction, strict=True) if yes
            )
        return self.dataset.labels[prediction]

    def write_predictions(self, directory, split, examples, outputs):
        """Writes predictions_SPLIT.tsv, and test_results.tsv as google-research/bert does.

        The columns of the first: id, text, perhaps second and label, the prediction, and of
        classes the probability of each.

        Returns:
            The paths.
        """
        read = examples.read
        second = any(example.second is not None for example in read)
        labelled = all(example.label is not None for example in read)
        header = ["id", "text", *["second"] * second, *["label"] * labelled, "prediction"]
        classes = bool(self.dataset.labels)
        shares = self.probabilities(outputs) if classes else np.stack(outputs["logits"])  # [N, C]
        paths = [os.path.join(directory, f"predictions_{split}.tsv")]
        with atomic_write(paths[0]) as file:
            columns = [*header, *self.dataset.labels]
            file.write(_line(columns))
            predictions, labels = self.predictions(outputs), self.labels(read)
            for i, example in enumerate(read):
                cells = [example.id, example.text, *[example.second or ""] * second]
                cells += [self.name(labels[i])] * labelled + [self.name(predictions[i])]
                file.write(_line(cells + [f"{share:.6f}" for share in shares[i] if classes]))
        if split == "test":
            paths.append(os.path.join(directory, "test_results.tsv"))
            with atomic_write(paths[1]) as file:
                for row in shares:
                    file.write(_line([str(share) for share in row]))
        return paths


def _line(cells):
    """A line of a .tsv; what would end a cell or a line becomes a space."""
    return ("\t".join(" ".join(str(cell).split()) for cell in cells) + "\n").encode("utf-8")
