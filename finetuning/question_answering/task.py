"""Defines the task of extractive question answering, where the answer is a span of a text.

Shapes: T tokens of a window.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np

from finetuning.class_report import Mistakes
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.question_answering.answers import (
    NO_ANSWER_SCORE,
    PredictedAnswers,
    answer_by_beams,
    answer_by_spans,
    candidate_probabilities,
    with_threshold,
    write_answers,
)
from finetuning.question_answering.beam_head import DROPOUT, BeamSpanModel
from finetuning.question_answering.data import Question, QuestionDataset
from finetuning.question_answering.google_answers import answer_as_google
from finetuning.question_answering.scores import (
    BENCHMARKS,
    score_answers,
    score_answers_or_none,
    score_each,
)
from finetuning.question_answering.span_head import SpanModel
from finetuning.question_answering.windows import (
    SPECIALS,
    encode_questions,
    make_windows,
    pad_windows,
)
from finetuning.readers import check_members, check_strings
from finetuning.results import Answered, FoundAnswer
from tokenization import FullTokenizer
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

# For the baseline, sentences end at white space after one of these characters or at line breaks.
_SENTENCE_ENDS = re.compile(r"(?<=[.?!…。])\s+|\n+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnswering(DownstreamTask):
    """The task of run_squad."""

    dataset: QuestionDataset
    tokenizer: TokenizerInterface  # the model's
    max_length: int  # maximum tokens in a window
    doc_stride: int  # tokens between the starts of consecutive windows
    max_query_length: int  # maximum tokens in a question; more are cut off
    n_best_size: int  # maximum candidates per question, in addition to "no answer"
    max_answer_length: int  # maximum tokens in an answer
    threshold: float  # the answer is "" if null_odds are above it
    # The number of starts, and of ends per start, that a beam keeps; None for a `SpanModel`.
    beams: tuple[int, int] | None
    dropout: float = DROPOUT  # in the head of a `BeamSpanModel`
    google_answers: bool = False  # whether answers are chosen and extracted by `google_answers`
    # The last outputs that were turned into answers, and these answers.
    _answered: list[Any] = dataclasses.field(default_factory=list, init=False, repr=False)

    @property
    def overlap_name(self) -> str:
        """The benchmark's name of the score for overlap: "f1" or "rouge_w"."""
        return BENCHMARKS[self.dataset.benchmark].overlap_name

    @property
    def best_by(self) -> tuple[str, bool]:
        best = "best_" if self.dataset.version_2_with_negative else ""
        return f"eval_{best}{self.overlap_name}", True

    @classmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""
        settings, beams = loaded.settings, None
        if isinstance(loaded.model, BeamSpanModel):
            beams = loaded.model.start_n_top, loaded.model.end_n_top
        return cls(
            dataset=QuestionDataset("squad", settings["version_2_with_negative"], {}),
            tokenizer=tokenizer,
            max_length=max_length,
            doc_stride=settings["doc_stride"],
            max_query_length=min(settings["max_query_length"], max_length - SPECIALS - 1),
            n_best_size=settings["n_best_size"],
            max_answer_length=settings["max_answer_length"],
            threshold=settings["null_score_diff_threshold"],
            beams=beams,
        )

    def make_model(self, encoder: keras.Model) -> SpanModel | BeamSpanModel:
        """Puts a new head on an encoder."""
        if self.beams is None:
            return SpanModel(encoder)
        return BeamSpanModel(encoder, *self.beams, dropout=self.dropout)

    def read_input(self, name: str, value: Any) -> Question:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""
        question, context = check_strings(*check_members(value))
        return Question(name, question, context, (), False)

    def encode(self, raw: Sequence[Question], training: bool) -> Examples:
        """Encodes the windows of `finetuning.question_answering.data.Question`s.

        For training, batches have the positions of the answers, and questions whose answer has no
        token are left out.
        """
        encoded = encode_questions(self.tokenizer, raw, self.max_query_length)
        windows, left_out = make_windows(
            raw, encoded, self.tokenizer, self.max_length, self.doc_stride, training
        )
        if left_out:
            print(f"{left_out:,} questions left out: no token in the answer", flush=True)

        def make_batch(indices, length):
            chosen = [windows[i] for i in indices]
            batch = pad_windows(chosen, length, self.tokenizer.pad_id or 0)
            if not training:  # given start_positions, the model would not search for answers
                for name in ("start_positions", "end_positions", "is_impossible"):
                    del batch[name]
                return batch
            return {**batch, "span_weights": np.ones(len(chosen), np.float32)}

        lengths = np.array([len(window.ids) for window in windows])
        ids = [raw[window.question].id for window in windows]
        questions = len(raw) - left_out
        return Examples(lengths, make_batch, ids, raw, windowing=windows, epoch_size=questions)

    def answers(self, examples: Examples, outputs: Outputs) -> PredictedAnswers:
        """Returns the `finetuning.question_answering.answers.PredictedAnswers` of the outputs."""
        if not self._answered or self._answered[0] is not outputs:
            self._answered[:] = outputs, self._answer(examples, outputs)
        return self._answered[1]

    def _answer(self, examples, outputs):
        windows = examples.windowing
        sizes = self.n_best_size, self.max_answer_length
        if self.beams is None:
            pairs = zip(outputs["start_logits"], outputs["end_logits"], strict=True)
            given = examples.raw, windows, pairs, *sizes
            negative = self.dataset.version_2_with_negative
            if self.google_answers:
                assert isinstance(self.tokenizer, FullTokenizer)  # as run_squad requires
                return answer_as_google(
                    *given, version_2_with_negative=negative, tokenizer=self.tokenizer
                )
            return answer_by_spans(*given, version_2_with_negative=negative)
        beams = [
            dict(zip(outputs, values, strict=True))
            for values in zip(*outputs.values(), strict=True)
        ]
        return answer_by_beams(examples.raw, windows, beams, *sizes)

    def read_outputs(self, examples: Examples, outputs: Outputs) -> list[Answered]:
        """Returns the answer to each question, with the other candidates."""
        # Not `answers`, which keeps what it found: threads may share this task.
        found = self._answer(examples, outputs)
        found_of_all = []
        for key, chosen in self.texts(found).items():
            # If no span is valid, the list holds a placeholder.
            nbest = [each for each in found.nbest[key] if each.start_score != NO_ANSWER_SCORE]
            shares = candidate_probabilities(nbest).tolist() if nbest else []
            candidates = tuple(
                FoundAnswer(each.text, start, end, share)
                for each, share in zip(nbest, shares, strict=True)
                for start, end in [each.span or (None, None)]
            )
            # A beam head's score of "no answer" is not comparable to the scores of answers.
            nothing = FoundAnswer("", None, None, 0.0)
            best = next((each for each in candidates if each.text == chosen), nothing)
            found_of_all.append(Answered(best, candidates))
        return found_of_all

    def texts(self, answered: PredictedAnswers) -> dict[str, str]:
        """Returns the answers, id -> text, with "" where null_odds are above the threshold."""
        threshold = self.threshold if self.dataset.version_2_with_negative else None
        return with_threshold(answered, threshold)

    def score(
        self,
        questions: Sequence[Question],
        texts: Mapping[str, str],
        null_odds: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """Computes the benchmark's scores, with the names of SQuAD 2.0's program."""
        if self.dataset.version_2_with_negative:
            return score_answers_or_none(questions, texts, null_odds, self.dataset.benchmark)
        return score_answers(questions, texts, self.dataset.benchmark)

    def measure(
        self, model: SpanModel | BeamSpanModel, examples: Examples, outputs: Outputs
    ) -> dict[str, float]:
        """Computes the scores, "best_..." at the best thresholds, and "loss".

        A `BeamSpanModel` has no "loss".
        """
        answered = self.answers(examples, outputs)
        results = self.score(examples.raw, self.texts(answered))
        if self.dataset.version_2_with_negative:
            best = self.score(examples.raw, answered.texts, answered.null_odds)
            results |= {name: best[name] for name in best if name.startswith("best_")}
        if self.beams is None:
            results["loss"] = span_loss(examples, outputs)
        return results

    def baseline(self, examples: Examples) -> dict[str, float]:
        """Scores the sentence most similar to the question as the answer; in SQuAD 2.0, ""."""
        empty = self.dataset.version_2_with_negative
        texts = {
            entry.id: "" if empty else nearest_sentence(entry.question, entry.context)
            for entry in examples.raw
        }
        scores = self.score(examples.raw, texts)
        if empty:  # no threshold gives it another answer
            names = "exact", self.overlap_name
            scores |= {f"best_{name}": scores[name] for name in names}
        return scores

    def mistakes(
        self, model: SpanModel | BeamSpanModel, examples: Examples, outputs: Outputs
    ) -> Mistakes:
        """Lists the answers that are not quite right; equally bad ones are sorted by confidence."""
        answered = self.answers(examples, outputs)
        texts, dataset = self.texts(answered), self.dataset
        _, overlap = score_each(
            examples.raw, texts, dataset.benchmark, dataset.version_2_with_negative
        )
        wrong = [entry for entry in examples.raw if overlap[entry.id] < 1]
        wrong.sort(key=lambda entry: (overlap[entry.id], -answered.nbest[entry.id][0].score))
        rows = []
        for entry in wrong:
            true = " / ".join(dict.fromkeys(answer.text for answer in entry.answers))
            score, text = f"{overlap[entry.id]:.2f}", surroundings(entry)
            rows.append((entry.question, true, texts[entry.id], score, text))
        return Mistakes(("question", "true", "predicted", self.overlap_name, "text"), rows)

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes predictions.json, nbest_predictions.json and, for SQuAD 2.0, null_odds.json."""
        answered = self.answers(examples, outputs)
        threshold = self.threshold if self.dataset.version_2_with_negative else None
        return write_answers(
            directory, answered, threshold, "logit" if self.beams is None else "log_prob"
        )


def span_loss(examples: Examples, outputs: Outputs) -> float:
    """Returns the mean of the training loss over all windows."""
    windows, total = examples.windowing, 0.0
    for window, start, end in zip(
        windows, outputs["start_logits"], outputs["end_logits"], strict=True
    ):
        for logits, position in ((start, window.start_position), (end, window.end_position)):  # [T]
            logits = logits.astype(np.float64)
            total += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[position]
    return float(total / 2 / len(windows))


def nearest_sentence(question: str, context: str) -> str:
    """Returns the first sentence with the most character pairs in common with the question."""
    of_question = character_pairs(question)
    sentences = [part for part in _SENTENCE_ENDS.split(context) if part.strip()]

    def shared(sentence):
        return len(of_question & character_pairs(sentence))

    return max(sentences, key=shared, default="").strip()


def character_pairs(text: str) -> set[str]:
    """Returns the set of pairs of neighbouring characters in the words of a text."""
    return {word[i : i + 2] for word in text.split() for i in range(len(word) - 1)}


def surroundings(question: Question) -> str:
    """Returns the text around the first answer, or the beginning of the context."""
    start = question.answers[0].start if question.answers else 0
    return question.context[max(0, start - 60) : start + 100]


TASK = QuestionAnswering
