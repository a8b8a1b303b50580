"""The task of named-entity recognition: tags of pieces become entities.

Legend: U units of a sentence, P pieces of it, T pieces of a window, C classes.
"""

import dataclasses
import os

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.progress import with_progress
from bert_tf.summaries.markdown import escape_markdown
from bert_tf.summaries.reporter import Illustrations
from finetuning.classification.head import DROPOUT
from finetuning.examples import Examples
from finetuning.inputs import pad_rows
from finetuning.metrics import entities, score_tags
from finetuning.ner.head import TokenClassifier
from finetuning.ner.labels import (
    align,
    decode_pieces,
    make_windows,
    pad_labels,
    piece_scores,
    predict_tags,
    unit_tags,
)
from finetuning.plots import draw_confusion_matrix
from finetuning.prediction import softmax

# How many of the sentences with the most wrong tags TensorBoard shows.
SHOWN_MISTAKES = 10


@dataclasses.dataclass(frozen=True)
class NamedEntityRecognition:
    """The `finetuning.downstream_task.DownstreamTask` of run_ner.

    Attributes:
        dataset: a `data.NerDataset`.
        tokenizer: the model's.
        max_length: the most pieces of a window; longer sentences are cut into several.
        dropout, freeze_encoder, feature_layers: as for `TokenClassifier`.
    """

    dataset: object
    tokenizer: object
    max_length: int
    dropout: float = DROPOUT
    freeze_encoder: bool = False
    feature_layers: tuple = ()

    best_by = ("eval_entity_f1", True)
    rows = 1

    @property
    def settings(self):
        """The tags, which were perhaps found in the training file."""
        return {"labels": ",".join(self.dataset.tags)}

    def make_model(self, encoder):
        """Puts a new `TokenClassifier` head on an encoder."""
        return TokenClassifier(
            encoder,
            len(self.dataset.tags),
            self.dropout,
            freeze_encoder=self.freeze_encoder,
            feature_layers=self.feature_layers,
        )

    def encode(self, raw, training):
        """Encodes `finetuning.ner.data.Sentence`s.

        Longer sentences are cut into windows: adjacent ones for training, else overlapping ones.
        """
        sentences = with_progress(raw, "encoding", "sentences")
        alignments = [align(self.tokenizer, sentence) for sentence in sentences]
        windows = make_windows(
            self.tokenizer, alignments, raw, self.dataset.tags, self.max_length, not training
        )

        def make_batch(indices, length):
            chosen = [windows[i] for i in indices]
            rows = [window.row for window in chosen]
            return {
                **pad_rows(rows, length, self.tokenizer.pad_id or 0),
                **pad_labels(chosen, length),
            }

        lengths = np.array([len(window.row.ids) for window in windows])
        ids = [raw[window.sentence].id for window in windows]
        return Examples(lengths, make_batch, ids, raw, windowing=(alignments, windows))

    def predictions(self, examples, outputs):
        """For each sentence U tags, and the probability of each."""
        alignments, windows = examples.windowing
        sentences = piece_scores(alignments, windows, outputs["logits"], len(self.dataset.tags))
        predictions = []
        for alignment, scores in zip(alignments, sentences, strict=True):  # scores: [P, C]
            chosen = decode_pieces(alignment, scores, self.dataset.tags)  # [P]
            tags = unit_tags(alignment, [self.dataset.tags[i] for i in chosen])
            shares = softmax(scores)  # [P, C]
            probabilities = [
                # All units of a piece have the probability of the piece's tag.
                shares[piece, chosen[piece]] if piece >= 0 else 1.0
                for piece in alignment.owners
            ]
            predictions.append((tags, probabilities))
        return predictions

    def measure(self, model, examples, outputs):
        """Computes the scores of entities and of single units, and "loss"."""
        predicted = predict_tags(*examples.windowing, outputs["logits"], self.dataset.tags)
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

    def baseline(self, examples):
        """The scores of tagging every unit as "O"."""
        true = [list(sentence.tags) for sentence in examples.raw]
        return score_tags(true, [["O"] * len(tags) for tags in true], self.dataset.tags)

    def illustrations(self, model, examples, outputs):
        """A plot of the tags' confusion matrix, and a table of the sentences with most errors."""
        tags = {tag: number for number, tag in enumerate(self.dataset.tags)}
        matrix, rows = np.zeros((len(tags),) * 2, np.int64), []
        predictions = predict_tags(*examples.windowing, outputs["logits"], self.dataset.tags)
        for sentence, predicted in zip(examples.raw, predictions, strict=True):
            pairs = list(zip(sentence.tags, predicted, strict=True))
            for true_tag, predicted_tag in pairs:
                matrix[tags[true_tag], tags[predicted_tag]] += 1
            errors = sum(true_tag != predicted_tag for true_tag, predicted_tag in pairs)
            rows.append((errors, sentence, predicted))
        rows.sort(key=lambda row: -row[0])
        lines = ["| sentence | true | predicted |", "|---|---|---|"]
        for errors, sentence, predicted in rows[:SHOWN_MISTAKES]:
            if errors:
                tagged = (list_entities(sentence, each) for each in (sentence.tags, predicted))
                cells = (sentence.text, *tagged)
                lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        plot = draw_confusion_matrix(matrix, self.dataset.tags)
        return Illustrations({"most_wrong": "\n".join(lines)}, {"confusion": plot})

    def write_predictions(self, directory, split, examples, outputs):
        """Writes predictions_SPLIT.tsv, a line per entity, and tags_SPLIT.tsv, a line per unit.

        The columns of the first: id, start and end in the text (characters from 0), kind, text of
        the entity, mean probability of its tags. Those of the second: unit, true tag, predicted
        tag, its probability; a line "## id" precedes each sentence.

        Returns:
            The paths.
        """
        paths = [os.path.join(directory, f"{name}_{split}.tsv") for name in ("predictions", "tags")]
        predictions = self.predictions(examples, outputs)
        with atomic_write(paths[0]) as file:
            file.write(b"id\tstart\tend\tkind\tentity\tprobability\n")
            for sentence, (tags, probabilities) in zip(examples.raw, predictions, strict=True):
                for first, last, kind in entities(tags):
                    start, end = sentence.units[first][0], sentence.units[last][1]
                    probability = np.mean(probabilities[first : last + 1])
                    text = " ".join(sentence.text[start:end].split())
                    line = f"{sentence.id}\t{start}\t{end}\t{kind}\t{text}\t{probability:.6f}\n"
                    file.write(line.encode("utf-8"))
        with atomic_write(paths[1]) as file:
            for sentence, (tags, probabilities) in zip(examples.raw, predictions, strict=True):
                file.write(f"## {sentence.id}\n".encode())
                for (start, end), *cells, probability in zip(
                    sentence.units, sentence.tags, tags, probabilities, strict=True
                ):
                    line = "\t".join([sentence.text[start:end], *cells, f"{probability:.6f}"])
                    file.write(line.encode("utf-8") + b"\n")
                file.write(b"\n")
        return paths


def list_entities(sentence, tags):
    """The entities of a sentence as text: "서울 LC, 김철수 PS"."""
    return ", ".join(
        f"{sentence.text[sentence.units[first][0] : sentence.units[last][1]]} {kind}"
        for first, last, kind in entities(tags)
    )
