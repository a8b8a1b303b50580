"""Implements the classification task, with classes or scores for sentences and sentence pairs.

Shapes: N examples, C classes.
"""

import csv
import dataclasses
import io
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
import tensorflow as tf

from bert_common.atomic_write import atomic_write
from finetuning.class_report import (
    ClassReport,
    Mistakes,
    make_class_report,
    write_columns,
    write_rows,
)
from finetuning.classes import balanced_label_weights, balanced_weights
from finetuning.classification.head import SequenceClassifier
from finetuning.datasets import DATASETS, Dataset, SplitSource
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.heads import DROPOUT
from finetuning.inputs import encode_around, encode_pairs, pad_rows
from finetuning.metrics import score, softmax
from finetuning.readers import Example, check_members, check_strings, name_of_file
from finetuning.results import Classified
from finetuning.tables import read_table
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


@dataclasses.dataclass(frozen=True)
class Classification(DownstreamTask):
    """The task of run_classifier."""

    dataset: Dataset
    tokenizer: TokenizerInterface  # the model's
    max_length: int  # the maximum number of tokens in an example
    # As for `SequenceClassifier`:
    dropout: float = DROPOUT
    freeze_encoder: bool = False
    feature_layers: tuple[int, ...] = ()
    # Whether examples of rarer classes weigh more in the training loss.
    balanced: bool = False

    @property
    def best_by(self) -> tuple[str, bool]:
        return f"eval_{self.dataset.metrics[0]}", True

    @classmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""
        dataset = Dataset("", {}, loaded.labels, multi_label=loaded.model.multi_label)
        return cls(dataset, tokenizer, max_length)

    def make_model(self, encoder: keras.Model) -> SequenceClassifier:
        """Puts a new `SequenceClassifier` head on an encoder."""
        return SequenceClassifier(
            encoder,
            max(1, len(self.dataset.labels)),
            self.dropout,
            multi_label=self.dataset.multi_label,
            freeze_encoder=self.freeze_encoder,
            feature_layers=self.feature_layers,
        )

    def read_input(self, name: str, value: Any) -> Example:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""
        first, second = (value, None) if isinstance(value, str) else check_members(value)
        check_strings(first, "" if second is None else second)
        return Example(name, first, second, None)

    def encode(self, raw: Sequence[Example], training: bool) -> Examples:
        """Encodes `finetuning.readers.Example`s; class weights apply only to training."""
        pairs = [(example.text, example.second) for example in raw]
        rows = encode_pairs(self.tokenizer, pairs, self.max_length)
        for number, example in enumerate(raw):
            if example.kept and len(rows[number].ids) == self.max_length:  # perhaps cut
                rows[number] = encode_around(self.tokenizer, example, self.max_length)
        labels, dtype = self.labels(raw), np.int32 if self.dataset.labels else np.float32
        weights = np.array([e.label is not None for e in raw], np.float32)  # [N]
        if training and self.balanced:
            weights = self.class_weights(labels)

        def make_batch(indices, length):
            batch = pad_rows([rows[i] for i in indices], length, self.tokenizer.pad_id or 0)
            batch["label_ids"] = labels[indices].astype(dtype)
            batch["label_weights"] = weights[indices]
            return batch

        lengths = np.array([len(row.ids) for row in rows])
        return Examples(lengths, make_batch, [example.id for example in raw], raw)

    def labels(self, raw: Sequence[Example]) -> np.ndarray:
        """Returns [N] int32 classes or float64 scores, or [N, C] int32; unknown labels are 0."""
        blank = (0,) * len(self.dataset.labels) if self.dataset.multi_label else 0
        values = [blank if example.label is None else example.label for example in raw]
        return np.array(values, np.int32 if self.dataset.labels else np.float64)

    def class_weights(self, labels: np.ndarray) -> np.ndarray:
        """Returns the weight of each training example [N] or, if multi-label, each label [N, C]."""
        if self.dataset.multi_label:
            return balanced_label_weights(labels)
        return balanced_weights(labels, len(self.dataset.labels))[labels]

    def predictions(self, outputs: Outputs) -> np.ndarray:
        """Returns classes [N], scores [N] or, if multi-label, 0 or 1 for each class [N, C]."""
        logits = np.stack(outputs["logits"])  # [N, C]
        if self.dataset.multi_label:
            return (logits > 0).astype(np.int32)
        return logits.argmax(axis=1) if self.dataset.labels else logits[:, 0]

    def probabilities(self, outputs: Outputs) -> np.ndarray:
        """Returns the probability of each class, [N, C]; independent if multi-label."""
        logits = np.stack(outputs["logits"]).astype(np.float64)  # [N, C]
        return 1 / (1 + np.exp(-logits)) if self.dataset.multi_label else softmax(logits)

    def read_outputs(self, examples: Examples, outputs: Outputs) -> list[Classified]:
        """Returns the class or score of each text."""
        labels = self.dataset.labels
        if not labels:
            return [Classified(float(score), {}) for score in self.predictions(outputs)]
        found_of_all = []
        for predicted, shares in zip(
            self.predictions(outputs), self.probabilities(outputs), strict=True
        ):
            chosen: str | tuple[str, ...]
            if self.dataset.multi_label:
                pairs = zip(labels, predicted, strict=True)
                chosen = tuple(label for label, is_one in pairs if is_one)
            else:
                chosen = labels[predicted]
            probabilities = dict(zip(labels, map(float, shares), strict=True))
            found_of_all.append(Classified(chosen, probabilities))
        return found_of_all

    def measure(
        self, model: SequenceClassifier, examples: Examples, outputs: Outputs
    ) -> dict[str, float]:
        """Computes the data set's metrics and "loss"."""
        labels = self.labels(examples.raw)
        probabilities = self.probabilities(outputs) if self.dataset.labels else None
        results = score(self.dataset.metrics, labels, self.predictions(outputs), probabilities)
        return {**results, "loss": float(np.mean(self._losses(model, labels, outputs)))}

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes the metrics of a constant prediction, without metrics of probabilities.

        It is the most frequent class, mean score or, if multi-label, each label most examples have.
        """
        labels = self.labels(examples.raw)
        if self.dataset.multi_label:
            guess = (labels.mean(axis=0) > 0.5).astype(np.int32)
        elif self.dataset.labels:
            guess = np.bincount(labels).argmax()
        else:
            guess = labels.mean()
        return score(self.dataset.metrics, labels, np.broadcast_to(guess, labels.shape))

    @property
    def settings(self) -> dict[str, Any]:
        """The labels of a custom data set, which may have been collected from its training file."""
        custom = self.dataset.labels and self.dataset not in DATASETS.values()
        return {"labels": ",".join(self.dataset.labels)} if custom else {}

    def _losses(self, model, labels, outputs):
        """Returns the loss of each example, [N]."""
        logits = tf.constant(np.stack(outputs["logits"]))
        return np.asarray(model.example_losses({"logits": logits}, {"label_ids": labels}))

    def report(self, examples: Examples, outputs: Outputs) -> ClassReport | None:
        """Computes the metrics of each class; None for scores."""
        if not self.dataset.labels:
            return None
        labels, predictions = self.labels(examples.raw), self.predictions(outputs)
        return make_class_report(self.dataset.labels, labels, predictions)

    def mistakes(self, model: SequenceClassifier, examples: Examples, outputs: Outputs) -> Mistakes:
        """Lists the wrong predictions, the highest loss first."""
        raw, rows = examples.raw, []
        predicted, true = self.predictions(outputs), self.labels(raw)
        losses = self._losses(model, true, outputs)
        for i in np.argsort(-losses, kind="stable"):
            labels = self.format(true[i]), self.format(predicted[i])
            if labels[0] != labels[1]:
                where = raw[i].where or raw[i].id
                text = " ||| ".join(filter(None, (raw[i].text, raw[i].second)))
                rows.append((where, *labels, f"{losses[i]:.4f}", text))
        return Mistakes(("where", "true", "predicted", "loss", "text"), rows)

    def format(self, prediction: Any) -> str:
        """Formats a label or a prediction: a class, comma-separated classes, or a score."""
        if not self.dataset.labels:
            return f"{prediction:.4f}"
        if self.dataset.multi_label:
            pairs = zip(self.dataset.labels, prediction, strict=True)
            return ",".join(label for label, predicted in pairs if predicted)
        return self.dataset.labels[prediction]

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes predictions_SPLIT.tsv, and for test google-research/bert's test_results.tsv too.

        Columns of the first: id, text, second and label if any, prediction, class probabilities.
        """
        raw, classes = examples.raw, self.dataset.labels
        shares = self.probabilities(outputs) if classes else np.stack(outputs["logits"])  # [N, C]
        columns: list[tuple[str, Iterable[object]]] = [
            ("id", [e.id for e in raw]),
            ("text", [e.text for e in raw]),
        ]
        if any(e.second is not None for e in raw):
            columns.append(("second", [e.second or "" for e in raw]))
        if all(e.label is not None for e in raw):
            columns.append(("label", [self.format(label) for label in self.labels(raw)]))
        columns.append(("prediction", [self.format(each) for each in self.predictions(outputs)]))
        for number, name in enumerate(classes):
            columns.append((name, map("{:.6f}".format, shares[:, number])))
        paths = [os.path.join(directory, f"predictions_{split}.tsv")]
        write_columns(paths[0], columns)
        source = self.dataset.sources.get(split)
        if source is not None and source.own and source.label is None:
            paths.append(self.write_table(directory, source, outputs))
        if split == "test":
            paths.append(os.path.join(directory, "test_results.tsv"))
            write_rows(paths[-1], shares)
        return paths

    def write_table(self, directory: str, source: SplitSource, outputs: Outputs) -> str:
        """Writes NAME_predictions.csv: all columns of a user's file, and the predictions.

        It is in UTF-8 with a byte order mark, by which spreadsheet programs know the encoding.
        """
        path = source.files[0]
        written = os.path.join(directory, f"{name_of_file(path, '.csv')}_predictions.csv")
        header, rows = read_table(path, not isinstance(source.text, int), source.encoding)
        predicted = self.predictions(outputs)
        columns, shares = ["label"], None
        if self.dataset.labels and not self.dataset.multi_label:
            columns += ["probability", "second_label", "second_probability"]
            shares = self.probabilities(outputs)
        taken = {name.strip() for name in header}  # as reading the file again strips names
        for number in range(len(columns)):
            while columns[number] in taken:
                columns[number] = f"predicted_{columns[number]}"
        with atomic_write(written) as file:
            text = io.StringIO(newline="")
            table = csv.writer(text)
            table.writerow([*header, *columns])
            for i, row in enumerate(rows):
                cells = [self.format(predicted[i])]
                if shares is not None:
                    best, second = np.argsort(-shares[i], kind="stable")[:2]
                    cells += [f"{shares[i][best]:.4f}", self.dataset.labels[second]]
                    cells += [f"{shares[i][second]:.4f}"]
                table.writerow([*row, *cells])
            file.write(text.getvalue().encode("utf-8-sig"))
        print(f"{written}: the rows of {path} with what is predicted")
        return written


TASK = Classification
