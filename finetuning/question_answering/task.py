"""Questions that a piece of a text answers.

Legend: N windows, T pieces of a window.
"""

import dataclasses
import re

import numpy as np

from bert_tf.summaries.markdown import escape_markdown
from bert_tf.summaries.reporter import Illustrations
from finetuning.examples import Examples
from finetuning.question_answering.answers import (
    answer_by_beams,
    answer_by_spans,
    with_threshold,
    write_answers,
)
from finetuning.question_answering.cache import load_or_encode
from finetuning.question_answering.google_answers import answer_as_google
from finetuning.question_answering.heads import DROPOUT, BeamSpanModel, SpanModel
from finetuning.question_answering.scores import (
    BENCHMARKS,
    score_answers,
    score_answers_or_none,
    score_each,
)
from finetuning.question_answering.upper_bound import best_scores
from finetuning.question_answering.windows import answer_pieces, make_windows, pad_windows

# Questions that TensorBoard shows of those that are answered most wrongly.
SHOWN_MISTAKES = 10

# Where a sentence ends, for answers without a model: after such a character, before a space.
_SENTENCE_ENDS = re.compile(r"(?<=[.?!…。])\s+|\n+")


@dataclasses.dataclass(frozen=True)
class QuestionAnswering:
    """What run_squad teaches a model, and how it is judged.

    Attributes:
        dataset: a `data.QuestionDataset`.
        tokenizer: the model's.
        max_length: the most pieces of a window.
        doc_stride, max_query_length: as `finetuning.question_answering.windows` has them.
        n_best_size, max_answer_length: as `finetuning.question_answering.answers` has them.
        threshold: of the odds of no answer, above which it is given.
        beams: how many starts and ends of each `BeamSpanModel` follows; None: `SpanModel`.
        dropout: the rate of dropout in the head of the first.
        train_cache, predict_cache: files for the pieces of the questions.
        google_answers: whether `google_answers` chooses and cuts the answers.
    """

    dataset: object
    tokenizer: object
    max_length: int
    doc_stride: int
    max_query_length: int
    n_best_size: int
    max_answer_length: int
    threshold: float
    beams: tuple | None
    train_cache: str
    predict_cache: str
    dropout: float = DROPOUT
    google_answers: bool = False
    # The outputs that were last turned into answers, and these.
    _answered: list = dataclasses.field(default_factory=list, init=False, repr=False)
    # The examples whose best scores were last looked for, and these.
    _reachable: list = dataclasses.field(default_factory=list, init=False, repr=False)

    @property
    def overlap_name(self):
        """How the benchmark calls what two texts have in common."""
        return BENCHMARKS[self.dataset.benchmark].overlap_name

    @property
    def best_by(self):
        """The result that the best checkpoint is chosen by, and that more of it is better."""
        best = "best_" if self.dataset.version_2_with_negative else ""
        return f"eval_{best}{self.overlap_name}", True

    @property
    def settings(self):
        """What the model's folder remembers beside the flags."""
        starts, ends = self.beams or (None, None)
        return {"start_n_top": starts, "end_n_top": ends}

    def make_model(self, encoder):
        """An encoder with a new head."""
        if self.beams is None:
            return SpanModel(encoder)
        return BeamSpanModel(encoder, *self.beams, dropout=self.dropout)

    def encode(self, read, training):
        """Makes an `Examples` of the windows of `finetuning.question_answering.data.Question`s.

        For training they hold where the answer is; a question whose answer has no piece is left
        out.
        """
        path = self.train_cache if training else self.predict_cache
        encoded, kept = load_or_encode(path, self.tokenizer, read, self.max_query_length)
        windows, left_out = make_windows(
            read, encoded, self.tokenizer, self.max_length, self.doc_stride, training
        )
        print(
            f"{len(read):,} questions, {len(windows):,} windows, pieces "
            + (f"from {path}" if kept else f"kept in {path}")
            + (f"; {left_out:,} questions left out: no piece in the answer" if left_out else ""),
            flush=True,
        )

        def make_batch(numbers, length):
            chosen = [windows[i] for i in numbers]
            batch = pad_windows(chosen, length, self.tokenizer.pad_id or 0)
            if not training:  # with an answer's place the model would not search for one
                for name in ("start_positions", "end_positions", "is_impossible"):
                    del batch[name]
                return batch
            return {**batch, "span_weights": np.ones(len(chosen), np.float32)}

        lengths = np.array([len(window.ids) for window in windows])
        ids = [read[window.question].id for window in windows]
        return Examples(lengths, make_batch, ids, read, (encoded, windows), len(read) - left_out)

    def answers(self, examples, outputs):
        """The `finetuning.question_answering.answers.Answered` of a model's outputs."""
        if not self._answered or self._answered[0] is not outputs:
            self._answered[:] = outputs, self._answer(examples, outputs)
        return self._answered[1]

    def _answer(self, examples, outputs):
        windows = examples.cut[1]
        sizes = self.n_best_size, self.max_answer_length
        if self.beams is None:
            pairs = zip(outputs["start_logits"], outputs["end_logits"], strict=True)
            null = self.dataset.version_2_with_negative
            if self.google_answers:
                return answer_as_google(examples.read, windows, pairs, *sizes, null, self.tokenizer)
            return answer_by_spans(examples.read, windows, pairs, *sizes, null)
        beams = [
            dict(zip(outputs, values, strict=True))
            for values in zip(*outputs.values(), strict=True)
        ]
        return answer_by_beams(examples.read, windows, beams, *sizes)

    def texts(self, answered):
        """The answers by id, "" where the odds of none are above the threshold."""
        chosen = self.threshold if self.dataset.version_2_with_negative else None
        return with_threshold(answered, chosen)

    def score(self, questions, texts, null_odds=None):
        """The benchmark's scores, under the names of SQuAD 2.0's program."""
        if self.dataset.version_2_with_negative:
            return score_answers_or_none(questions, texts, null_odds, self.dataset.benchmark)
        scores = score_answers(questions, texts, self.dataset.benchmark)
        return {"exact": scores.pop("exact_match"), **scores}

    def measure(self, model, examples, outputs):
        """The scores; with "best_..." those of the best thresholds, and "reachable_...".

        The latter are the most that any model reaches: what is missing to 100 is what cannot be
        cut out with this vocabulary, these windows and this length of answers.
        """
        answered = self.answers(examples, outputs)
        results = self.score(examples.read, self.texts(answered))
        if self.dataset.version_2_with_negative:
            best = self.score(examples.read, answered.texts, answered.null_odds)
            results |= {name: best[name] for name in best if name.startswith("best_")}
        results |= self.reachable(examples)
        if self.beams is None:
            results["loss"] = span_loss(examples, outputs)
        return results

    def reachable(self, examples):
        """The best scores that answers can have, by name, in per cent."""
        if not self._reachable or self._reachable[0] is not examples:
            dataset, windows = self.dataset, examples.cut[1]
            rules = dataset.benchmark, dataset.version_2_with_negative
            found = best_scores(examples.read, windows, self.max_answer_length, *rules)
            names = "reachable_exact", f"reachable_{self.overlap_name}"
            scores = {n: 100.0 * sum(s) / len(s) for n, s in zip(names, found, strict=True)}
            self._reachable[:] = examples, scores
        return self._reachable[1]

    def baseline(self, examples):
        """The same of the sentence that shares most with the question; with SQuAD 2.0 of ""."""
        empty = self.dataset.version_2_with_negative
        texts = {
            entry.id: "" if empty else nearest_sentence(entry.question, entry.context)
            for entry in examples.read
        }
        return self.score(examples.read, texts)

    def illustrations(self, model, examples, outputs):
        """The questions that are answered most wrongly, those first that it is surest of."""
        answered = self.answers(examples, outputs)
        texts, dataset = self.texts(answered), self.dataset
        _, overlap = score_each(
            examples.read, texts, dataset.benchmark, dataset.version_2_with_negative
        )
        wrong = [entry for entry in examples.read if overlap[entry.id] < 1]
        wrong.sort(key=lambda entry: (overlap[entry.id], -answered.nbest[entry.id][0].score))
        lines = [
            f"| question | true | predicted | {self.overlap_name} | text |",
            "|---|---|---|---|---|",
        ]
        for entry in wrong[:SHOWN_MISTAKES]:
            true = " / ".join(dict.fromkeys(answer.text for answer in entry.answers))
            cells = (entry.question, true, texts[entry.id], f"{overlap[entry.id]:.2f}",
                     surroundings(entry))  # fmt: skip
            lines.append(f"| {' | '.join(map(escape_markdown, cells))} |")
        return Illustrations({"most_wrong": "\n".join(lines)}, {})

    def write_predictions(self, directory, split, examples, outputs):
        """Writes predictions.json, nbest_predictions.json and, with SQuAD 2.0, null_odds.json.

        Returns:
            The paths.
        """
        answered = self.answers(examples, outputs)
        threshold = self.threshold if self.dataset.version_2_with_negative else None
        return write_answers(
            directory, answered, threshold, "logit" if self.beams is None else "log_prob"
        )


def span_loss(examples, outputs):
    """The mean over all windows of the loss that training makes smaller."""
    encoded, windows = examples.cut
    total = 0.0
    for window, start, end in zip(
        windows, outputs["start_logits"], outputs["end_logits"], strict=True
    ):
        question, pieces = examples.read[window.question], encoded[window.question]
        places = place_of_answer(window, pieces, question)
        for logits, place in zip((start, end), places, strict=True):  # [T]
            logits = logits.astype(np.float64)
            total += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[place]
    return float(total / 2 / len(windows))


def place_of_answer(window, pieces, question):
    """The first and the last piece of the first answer in a window's row; 0, 0 if not in it."""
    if not question.answers:
        return 0, 0
    whole = answer_pieces(pieces.spans, question.answers[0])
    here = answer_pieces(window.spans, question.answers[0])
    if here is None or here[1] - here[0] != whole[1] - whole[0]:
        return 0, 0
    return window.first + here[0], window.first + here[1]


def nearest_sentence(question, context):
    """The sentence that shares most pairs of characters with the question, the first of them."""
    asked = character_pairs(question)
    sentences = [part for part in _SENTENCE_ENDS.split(context) if part.strip()]

    def shared(sentence):
        return len(asked & character_pairs(sentence))

    return max(sentences, key=shared, default="").strip()


def character_pairs(text):
    """The pairs of neighbouring characters of its words."""
    return {word[i : i + 2] for word in text.split() for i in range(len(word) - 1)}


def surroundings(question):
    """What stands around the first answer, or at the beginning, for people."""
    start = question.answers[0].start if question.answers else 0
    return question.context[max(0, start - 60) : start + 100]
