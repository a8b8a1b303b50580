"""Named entities, found through the tags of pieces.

Legend: N windows of sentences, U units of a sentence, P pieces of it, T pieces of a window,
C classes.
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
from finetuning.plots import draw_confusion

# Sentences that TensorBoard shows of those with the most units that are wrong.
SHOWN_MISTAKES = 10


@dataclasses.dataclass(frozen=True)
class EntityTagging:
    """What run_ner teaches a model, and how it is judged.

    Attributes:
        dataset: a `data.TaggingDataset`.
        tokenizer: the model's.
        max_length: the most pieces of a window; longer sentences become several.
        dropout, freeze_encoder, feature_layers: as `TokenClassifier` has them.
    """

    dataset: object
    tokenizer: object
    max_length: int
    dropout: float = DROPOUT
    freeze_encoder: bool = False
    feature_layers: tuple = ()

    # The result that the best checkpoint is chosen by, and that more of it is better.
    best_by = ("eval_entity_f1", True)

    @property
    def settings(self):
        """What the model's folder remembers beside the flags."""
        return {"labels": ",".join(self.dataset.tags)}

    def make_model(self, encoder):
        """An encoder with a new head."""
        return TokenClassifier(
            encoder,
            len(self.dataset.tags),
            self.dropout,
            freeze_encoder=self.freeze_encoder,
            feature_layers=self.feature_layers,
        )

    def encode(self, read, training):
        """Makes an `Examples` of `finetuning.ner.data.Sentence`s.

        Sentences longer than a window are cut: for training into windows that follow each other,
        else into some that overlap.
        """
        sentences = with_progress(read, "encoding", "sentences")
        alignments = [align(self.tokenizer, sentence) for sentence in sentences]
        windows = make_windows(
            self.tokenizer, alignments, read, self.dataset.tags, self.max_length, not training
        )

        def make_batch(numbers, length):
            chosen = [windows[i] for i in numbers]
            rows = [window.row for window in chosen]
            return {
                **pad_rows(rows, length, self.tokenizer.pad_id or 0),
                **pad_labels(chosen, length),
            }

        lengths = np.array([len(window.row.ids) for window in windows])
        ids = [read[window.sentence].id for window in windows]
        return Examples(lengths, make_batch, ids, read, (alignments, windows))

    def predictions(self, examples, outputs):
        """For each sentence its U tags, and the probability of each."""
        alignments, windows = examples.cut
        scores = piece_scores(alignments, windows, outputs["logits"], len(self.dataset.tags))
        found = []
        for alignment, each in zip(alignments, scores, strict=True):  # each: [P, C]
            chosen = decode_pieces(alignment, each, self.dataset.tags)
            tags = unit_tags(alignment, [self.dataset.tags[number] for number in chosen])
            exponentials = np.exp(each - each.max(axis=1, keepdims=True, initial=-np.inf))
            shares = exponentials / exponentials.sum(axis=1, keepdims=True)
            sure = [
                # After its first unit a piece goes on with what it began.
                shares[piece, chosen[piece]] if piece >= 0 else 1.0
                for piece in alignment.owners
            ]
            found.append((tags, sure))
        return found

    def measure(self, model, examples, outputs):
        """F1 of entities and of single units with "loss", by name."""
        found = predict_tags(*examples.cut, outputs["logits"], self.dataset.tags)
        results = score_tags([list(s.tags) for s in examples.read], found, self.dataset.tags)
        loss = weight = 0.0
        for window, logits in zip(examples.cut[1], outputs["logits"], strict=True):
            logits = logits[: len(window.label_ids)].astype(np.float64)  # [T, C]
            highest = logits.max(axis=1, keepdims=True)
            sums = np.log(np.exp(logits - highest).sum(axis=1)) + highest[:, 0]  # [T]
            losses = sums - logits[np.arange(len(logits)), window.label_ids]
            loss += float(losses @ window.label_weights)
            weight += float(window.label_weights.sum())
        return {**results, "loss": loss / max(weight, 1.0)}

    def baseline(self, examples):
        """The same of tagging nothing."""
        true = [list(sentence.tags) for sentence in examples.read]
        return score_tags(true, [["O"] * len(tags) for tags in true], self.dataset.tags)

    def illustrations(self, model, examples, outputs):
        """Which tag is taken for which as a picture; the most wrong sentences as text."""
        tags = {tag: number for number, tag in enumerate(self.dataset.tags)}
        matrix, rows = np.zeros((len(tags),) * 2, np.int64), []
        predictions = predict_tags(*examples.cut, outputs["logits"], self.dataset.tags)
        for sentence, found in zip(examples.read, predictions, strict=True):
            for true, one in zip(sentence.tags, found, strict=True):
                matrix[tags[true], tags[one]] += 1
            wrong = sum(true != one for true, one in zip(sentence.tags, found, strict=True))
            rows.append((wrong, sentence, found))
        rows.sort(key=lambda row: -row[0])
        lines = ["| sentence | true | predicted |", "|---|---|---|"]
        for wrong, sentence, found in rows[:SHOWN_MISTAKES]:
            if wrong:
                cells = (sentence.text, show(sentence, sentence.tags), show(sentence, found))
                lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        picture = draw_confusion(matrix, self.dataset.tags)
        return Illustrations({"most_wrong": "\n".join(lines)}, {"confusion": picture})

    def write_predictions(self, directory, split, examples, outputs):
        """Writes predictions_SPLIT.tsv, a line for each entity, and tags_SPLIT.tsv, for each unit.

        The columns of the first: id, start and end in the text (characters from 0), kind, text of
        the entity, the mean probability of its tags; of the second: the unit, its tag in the
        data, the predicted tag, its probability, with a line "## id" before each sentence.

        Returns:
            The paths.
        """
        paths = [os.path.join(directory, f"{name}_{split}.tsv") for name in ("predictions", "tags")]
        found = self.predictions(examples, outputs)
        with atomic_write(paths[0]) as file:
            file.write(b"id\tstart\tend\tkind\tentity\tprobability\n")
            for sentence, (tags, sure) in zip(examples.read, found, strict=True):
                for first, last, kind in entities(tags):
                    start, end = sentence.units[first][0], sentence.units[last][1]
                    share = np.mean(sure[first : last + 1])
                    text = " ".join(sentence.text[start:end].split())
                    line = f"{sentence.id}\t{start}\t{end}\t{kind}\t{text}\t{share:.6f}\n"
                    file.write(line.encode("utf-8"))
        with atomic_write(paths[1]) as file:
            for sentence, (tags, sure) in zip(examples.read, found, strict=True):
                file.write(f"## {sentence.id}\n".encode())
                for (start, end), *cells, share in zip(
                    sentence.units, sentence.tags, tags, sure, strict=True
                ):
                    line = "\t".join([sentence.text[start:end], *cells, f"{share:.6f}"])
                    file.write(line.encode("utf-8") + b"\n")
                file.write(b"\n")
        return paths


def show(sentence, tags):
    """The entities of a sentence for people: "서울 LC, 김철수 PS"."""
    return ", ".join(
        f"{sentence.text[sentence.units[first][0] : sentence.units[last][1]]} {kind}"
        for first, last, kind in entities(tags)
    )
