"""Defines the task of named-entity recognition, which turns tags of tokens into entities.

Shapes: U units of a sentence, P tokens of a sentence, T tokens of a window, C classes, K kinds.
"""

import dataclasses
import operator
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.progress import with_progress
from bert_tf.summaries.reporter import Illustrations
from finetuning.class_report import (
    ClassReport,
    Mistakes,
    report_of_counts,
    report_of_matrix,
)
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.heads import DROPOUT
from finetuning.inputs import pad_rows
from finetuning.metrics import count_entities, entities, score_tags, softmax
from finetuning.ner.data import NerDataset, Sentence, format_of, untagged_sentence
from finetuning.ner.head import TokenClassifier
from finetuning.ner.labels import (
    Alignment,
    SentenceWindow,
    align,
    check_tags,
    decode,
    make_windows,
    pad_labels,
    unit_tags,
)
from finetuning.plots import MAX_DRAWN_CLASSES, draw_confusion_matrix
from finetuning.readers import check_strings
from finetuning.results import FoundEntity, Tagged
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

# The tags of a sentence's units, and the probability of each.
PredictedTags = tuple[list[str], list[float]]


@dataclasses.dataclass(frozen=True)
class NamedEntityRecognition(DownstreamTask):
    """The task of run_ner."""

    dataset: NerDataset
    tokenizer: TokenizerInterface  # the model's
    max_length: int  # maximum tokens in a window; longer sentences are cut into windows
    # As for `TokenClassifier`:
    dropout: float = DROPOUT
    freeze_encoder: bool = False
    feature_layers: tuple[int, ...] = ()
    # The last outputs that were turned into tags, and these tags.
    _predicted: list[Any] = dataclasses.field(default_factory=list, init=False, repr=False)

    best_by = ("eval_entity_f1", True)

    @property
    def settings(self) -> dict[str, Any]:
        """The tags, which may have been collected from the training file."""
        return {"labels": ",".join(self.dataset.tags)}

    @classmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""
        check_tags(loaded.labels, loaded.source)
        file_format = format_of(loaded.settings["task_name"], loaded.source)
        return cls(NerDataset(file_format, loaded.labels, {}), tokenizer, max_length)

    def make_model(self, encoder: keras.Model) -> TokenClassifier:
        """Puts a new `TokenClassifier` head on an encoder."""
        return TokenClassifier(
            encoder,
            len(self.dataset.tags),
            self.dropout,
            freeze_encoder=self.freeze_encoder,
            feature_layers=self.feature_layers,
        )

    def read_input(self, name: str, value: Any) -> Sentence:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""
        (text,) = check_strings(value)
        return untagged_sentence(name, text, self.dataset.file_format)

    def encode(self, raw: Sequence[Sentence], training: bool) -> Examples:
        """Encodes `finetuning.ner.data.Sentence`s.

        Long sentences are cut into windows, which are adjacent for training and otherwise overlap.
        """
        sentences = with_progress(raw, "encoding", "sentences")
        alignments = [align(self.tokenizer, sentence) for sentence in sentences]
        windows = make_windows(
            self.tokenizer, alignments, raw, self.dataset.tags, self.max_length, not training
        )

        def make_batch(indices, length):
            chosen = [windows[i] for i in indices]
            rows = [window.row for window in chosen]
            batch = pad_rows(rows, length, self.tokenizer.pad_id or 0)
            return {**batch, **pad_labels(chosen, length)}

        lengths = np.array([len(window.row.ids) for window in windows])
        ids = [raw[window.sentence].id for window in windows]
        return Examples(lengths, make_batch, ids, raw, windowing=(alignments, windows))

    def predictions(self, examples: Examples, outputs: Outputs) -> list[PredictedTags]:
        """Predicts U tags for each sentence, with their probabilities."""
        if not self._predicted or self._predicted[0] is not outputs:
            self._predicted[:] = outputs, self._predict(examples, outputs)
        return self._predicted[1]

    def _predict(self, examples, outputs):
        alignments, windows = examples.windowing
        return predict_tags(alignments, windows, outputs["logits"], self.dataset.tags)

    def read_outputs(self, examples: Examples, outputs: Outputs) -> list[Tagged]:
        """Returns the entities and tags of each text."""
        found_of_all = []
        # Not `predictions`, which keeps what it found: threads may share this task.
        predictions = self._predict(examples, outputs)
        alignments, _ = examples.windowing
        for sentence, alignment, (tags, shares) in zip(
            examples.raw, alignments, predictions, strict=True
        ):
            found = tuple(find_entities(sentence, alignment, tags, shares))
            floats = tuple(map(float, shares))
            found_of_all.append(Tagged(found, sentence.units, tuple(tags), floats))
        return found_of_all

    def measure(
        self, model: TokenClassifier, examples: Examples, outputs: Outputs
    ) -> dict[str, float]:
        """Computes the scores of entities and of single units, and "loss"."""
        predicted = [tags for tags, _ in self.predictions(examples, outputs)]
        results = score_tags([list(s.tags) for s in examples.raw], predicted, self.dataset.tags)
        loss = weight = 0.0
        for window, logits in zip(examples.windowing[1], outputs["logits"], strict=True):
            logits = logits[: len(window.label_ids)].astype(np.float64)  # [T, C]
            highest = logits.max(axis=1, keepdims=True)
            sums = np.log(np.exp(logits - highest).sum(axis=1)) + highest[:, 0]  # [T]
            losses = sums - logits[np.arange(len(logits)), window.label_ids]
            loss += float(losses @ window.label_weights)
            weight += float(window.label_weights.sum())
        return {**results, "loss": loss / max(weight, 1.0)}

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Computes the scores of tagging every unit as "O"."""
        true = [list(sentence.tags) for sentence in examples.raw]
        return score_tags(true, [["O"] * len(tags) for tags in true], self.dataset.tags)

    def mistakes(self, model: TokenClassifier, examples: Examples, outputs: Outputs) -> Mistakes:
        """Lists the sentences with wrong tags, the one with the most first."""
        wrong = []
        predictions = self.predictions(examples, outputs)
        for sentence, (predicted, _) in zip(examples.raw, predictions, strict=True):
            errors = sum(map(operator.ne, sentence.tags, predicted))
            if errors:
                wrong.append((errors, sentence, predicted))
        wrong.sort(key=lambda mistake: -mistake[0])
        rows = [
            (sentence.text, list_entities(sentence, sentence.tags), list_entities(sentence, tags))
            for _, sentence, tags in wrong
        ]
        return Mistakes(("sentence", "true", "predicted"), rows)

    def report(self, examples: Examples, outputs: Outputs) -> ClassReport:
        """Computes the metrics of each kind of entity."""
        true = [sentence.tags for sentence in examples.raw]
        predicted = [tags for tags, _ in self.predictions(examples, outputs)]
        return kind_report(self.dataset.tags, true, predicted)

    def illustrations(
        self, model: TokenClassifier, examples: Examples, outputs: Outputs
    ) -> Illustrations:
        """Makes a table of the mistakes and, for few tags, a plot of their confusions."""
        shown = super().illustrations(model, examples, outputs)
        if len(self.dataset.tags) > MAX_DRAWN_CLASSES:
            return shown
        numbers = {tag: number for number, tag in enumerate(self.dataset.tags)}
        matrix = np.zeros((len(numbers),) * 2, np.int64)  # [C, C]
        predictions = self.predictions(examples, outputs)
        for sentence, (predicted, _) in zip(examples.raw, predictions, strict=True):
            for true_tag, predicted_tag in zip(sentence.tags, predicted, strict=True):
                matrix[numbers[true_tag], numbers[predicted_tag]] += 1
        plot = draw_confusion_matrix(report_of_matrix(self.dataset.tags, matrix))
        return shown._replace(images={"confusion": plot})

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes predictions_SPLIT.tsv, a line per entity, and tags_SPLIT.tsv, a line per unit.

        The columns of the first are id, start and end in the text (characters from 0), kind, text
        of the entity, mean probability of its tags. The columns of the second are unit, true tag,
        predicted tag, its probability; a line "## id" precedes each sentence. Untagged sentences
        have no column of true tags.
        """
        paths = [os.path.join(directory, f"{name}_{split}.tsv") for name in ("predictions", "tags")]
        predictions = self.predictions(examples, outputs)
        with atomic_write(paths[0]) as file:
            file.write(b"id\tstart\tend\tkind\tentity\tprobability\n")
            for sentence, alignment, (tags, probabilities) in zip(
                examples.raw, examples.windowing[0], predictions, strict=True
            ):
                for found in find_entities(sentence, alignment, tags, probabilities):
                    text, kind, start, end, probability = found
                    text = " ".join(text.split())
                    line = f"{sentence.id}\t{start}\t{end}\t{kind}\t{text}\t{probability:.6f}\n"
                    file.write(line.encode("utf-8"))
        with atomic_write(paths[1]) as file:
            for sentence, (tags, probabilities) in zip(examples.raw, predictions, strict=True):
                file.write(f"## {sentence.id}\n".encode())
                columns = (sentence.tags, tags) if sentence.tagged else (tags,)
                for (start, end), *cells, probability in zip(
                    sentence.units, *columns, probabilities, strict=True
                ):
                    # A white space character may be a unit, but must not end the cell or line.
                    unit = sentence.text[start:end]
                    unit = " " if unit.isspace() else unit
                    line = "\t".join([unit, *cells, f"{probability:.6f}"])
                    file.write(line.encode("utf-8") + b"\n")
                file.write(b"\n")
        return paths


def kind_report(
    tags: Sequence[str], true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> ClassReport:
    """Makes the report of entity kinds; `true` and `predicted` are the tags of each sentence."""
    kinds = tuple(dict.fromkeys(tag[2:] for tag in tags if tag != "O"))
    counters = count_entities(true, predicted)
    counts = [np.array([each[kind] for kind in kinds], np.int64) for each in counters]  # [K] each
    return report_of_counts(kinds, None, *counts)


def list_entities(sentence: Sentence, tags: Sequence[str]) -> str:
    """Lists the entities of a sentence as text: "서울 LC, 김철수 PS"."""
    return ", ".join(
        f"{sentence.text[sentence.units[first][0] : sentence.units[last][1]]} {kind}"
        for first, last, kind in entities(tags)
    )


def find_entities(
    sentence: Sentence, alignment: Alignment, tags: Sequence[str], probabilities: Sequence[float]
) -> list[FoundEntity]:
    """Returns the entities of a sentence, given its units' tags and their probabilities."""
    found = []
    for first, last, kind in entities(tags):
        start, end = sentence.units[first][0], sentence.units[last][1]
        probability = entity_probability(alignment, probabilities, first, last)
        found.append(FoundEntity(sentence.text[start:end], kind, start, end, probability))
    return found


def entity_probability(
    alignment: Alignment, probabilities: Sequence[float], first: int, last: int
) -> float:
    """Returns the mean probability of the tags of an entity's units that have a token."""
    owners = alignment.owners[first : last + 1]
    shares = [
        share
        for owner, share in zip(owners, probabilities[first : last + 1], strict=True)
        if owner >= 0
    ]
    return float(np.mean(shares))


def predict_tags(
    alignments: Sequence[Alignment],
    windows: Sequence[SentenceWindow],
    logits: Sequence[np.ndarray],
    tags: Sequence[str],
) -> list[PredictedTags]:
    """Predicts valid IOB2 tags for the units of each sentence, with their probabilities.

    The logits are [T or more, C] for each window. All units of a token have the probability of the
    token's tag; units without a token have 1.
    """
    parts = [[np.zeros((0, len(tags)))] for _ in alignments]
    for window, scores in zip(windows, logits, strict=True):
        parts[window.sentence].append(scores[window.kept])
    predictions = []
    for alignment, scores in zip(alignments, map(np.concatenate, parts), strict=True):
        begins = np.array(alignment.begins, bool)  # [P]
        # Tokens to which no unit belongs are ignored.
        classes = np.full(len(begins), tags.index("O"), np.int32)  # [P]
        classes[begins] = decode(scores[begins], tags)
        shares = softmax(scores)  # [P, C]
        probabilities = [
            shares[piece, classes[piece]] if piece >= 0 else 1.0 for piece in alignment.owners
        ]
        predictions.append(
            (unit_tags(alignment, [tags[i] for i in classes.tolist()]), probabilities)
        )
    return predictions


TASK = NamedEntityRecognition
