"""What fine-tuned models predict for texts, by the code behind the fine-tuning programs."""

import functools

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from bert_common.progress import progress
from finetuning.classification.task import Classification
from finetuning.datasets import Dataset
from finetuning.examples import LENGTH_STEP
from finetuning.metrics import entities
from finetuning.multiple_choice.data import ChoiceDataset, ChoiceQuestion
from finetuning.multiple_choice.task import MultipleChoice
from finetuning.multiple_choice.task import probabilities as choice_probabilities
from finetuning.ner.data import FORMATS, NerDataset, untagged_sentence
from finetuning.ner.labels import check_tags
from finetuning.ner.task import NamedEntityRecognition, entity_probability
from finetuning.question_answering.answers import NO_ANSWER_SCORE, candidate_probabilities
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.data import Question, QuestionDataset
from finetuning.question_answering.task import QuestionAnswering
from finetuning.question_answering.windows import SPECIALS, encode_questions
from finetuning.readers import Example
from korean_bert.results import (
    Answered,
    Chosen,
    Classified,
    FoundAnswer,
    FoundEntity,
    Tagged,
)

# What the texts of each task are, for messages.
INPUTS = {
    "classification": "texts, or pairs (text, second text)",
    "ner": "texts",
    "question_answering": "pairs (question, text)",
    "multiple_choice": "triples (question, text, options), with as many options each",
}


class TaskPredictor:
    """Predicts with a fine-tuned model.

    Args:
        loaded: a `LoadedModel` whose task is not "pretraining".
        tokenizer: its tokenizer.
        max_length: the most pieces of a row.

    Raises:
        InputError: the model is not fine-tuned, or its labels are no tags.
    """

    def __init__(self, loaded, tokenizer, max_length):
        if loaded.task not in MAKERS:
            raise InputError(
                "predict needs a fine-tuned model, such as run_classifier.py trains. "
                f"Received: {loaded.source} ({loaded.task})"
            )
        self.name = loaded.task
        self.inputs = INPUTS[loaded.task]  # what it takes, for messages
        make, self.as_raw, self.read = MAKERS[loaded.task]
        self.task = make(loaded, tokenizer, max_length)
        self.max_length = max_length
        # A beam keeps as many places, so a row must have them.
        widest = (getattr(loaded.model, name, 1) for name in ("start_n_top", "end_n_top"))
        self.least_length = max(widest)
        # One graph for batches of all sizes: a text of another length must not wait for its own.
        self.run = tf.function(
            functools.partial(loaded.model, training=False), reduce_retracing=True, autograph=False
        )

    def __call__(self, texts, batch_size):
        """The results for texts, in order.

        Raises:
            InputError: a text is not of the form that the task needs.
        """
        raw = []
        for number, text in enumerate(texts):
            try:
                raw.append(self.as_raw(self.task, str(number), text))
            except (TypeError, ValueError):
                raise InputError(
                    f"this model takes {INPUTS[self.name]}. Received: {text!r}"
                ) from None
        if not raw:
            return []
        if len({len(getattr(each, "options", ())) for each in raw}) > 1:
            raise InputError(f"this model takes {INPUTS[self.name]}. Received: other numbers")
        if isinstance(self.task, QuestionAnswering):
            encoded = encode_questions(self.task.tokenizer, raw, self.task.max_query_length, 1)
            examples = self.task.make_examples(raw, encoded, False)
        else:
            examples = self.task.encode(raw, False)
        # Of texts without any piece there is no row.
        outputs = {"logits": []}
        if len(examples.lengths):
            outputs = self.compute(examples, batch_size)
        return self.read(self.task, examples, outputs)

    def compute(self, examples, batch_size):
        """The model's outputs for `Examples`: name -> a list with an array for each, in order."""
        order = np.argsort(-examples.lengths, kind="stable")
        found = [None] * len(order)
        with progress("predicting", len(order), "examples") as bar:
            for start in range(0, len(order), batch_size):
                indices = order[start : start + batch_size]
                longest = max(int(examples.lengths[indices[0]]), self.least_length)
                length = min(-(-longest // LENGTH_STEP) * LENGTH_STEP, self.max_length)
                batch = examples.make_batch(indices, length)
                outputs = self.run({name: tf.constant(value) for name, value in batch.items()})
                outputs = {name: value.numpy() for name, value in outputs.items()}
                for place, index in enumerate(indices):
                    found[index] = {name: value[place] for name, value in outputs.items()}
                bar.update(len(indices))
        return {name: [outputs[name] for outputs in found] for name in found[0]}


def _strings(*values):
    """Refuses what is no text."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(value)
    return values


def _classification(loaded, tokenizer, max_length):
    dataset = Dataset("", {}, loaded.labels, multi_label=loaded.model.multi_label)
    return Classification(dataset, tokenizer, max_length)


def _example(task, name, text):
    first, second = (text, None) if isinstance(text, str) else text
    _strings(first, *[second] * (second is not None))
    return Example(name, first, second, None)


def _classified(task, examples, outputs):
    labels = task.dataset.labels
    if not labels:
        return [Classified(float(score), {}) for score in task.predictions(outputs)]
    results = []
    for predicted, shares in zip(
        task.predictions(outputs), task.probabilities(outputs), strict=True
    ):
        chosen = labels[predicted] if not task.dataset.multi_label else None
        if task.dataset.multi_label:
            pairs = zip(labels, predicted, strict=True)
            chosen = tuple(label for label, is_one in pairs if is_one)
        results.append(Classified(chosen, dict(zip(labels, map(float, shares), strict=True))))
    return results


def _ner(loaded, tokenizer, max_length):
    check_tags(loaded.labels, loaded.source)
    dataset = NerDataset(FORMATS[loaded.settings["task_name"]], loaded.labels, {})
    return NamedEntityRecognition(dataset, tokenizer, max_length)


def _sentence(task, name, text):
    return untagged_sentence(name, *_strings(text), task.dataset.file_format)


def _tagged(task, examples, outputs):
    results = []
    predictions = task.predictions(examples, outputs)
    alignments, _ = examples.windowing
    for sentence, alignment, (tags, shares) in zip(
        examples.raw, alignments, predictions, strict=True
    ):
        found = []
        for first, last, kind in entities(tags):
            start, end = sentence.units[first][0], sentence.units[last][1]
            share = entity_probability(alignment, shares, first, last)
            found.append(FoundEntity(sentence.text[start:end], kind, start, end, share))
        shares = tuple(map(float, shares))
        results.append(Tagged(tuple(found), sentence.units, tuple(tags), shares))
    return results


def _question_answering(loaded, tokenizer, max_length):
    settings, beams = loaded.settings, None
    if isinstance(loaded.model, BeamSpanModel):
        beams = loaded.model.start_n_top, loaded.model.end_n_top
    negative = settings["version_2_with_negative"]
    return QuestionAnswering(
        dataset=QuestionDataset("squad", negative, {}),
        tokenizer=tokenizer,
        max_length=max_length,
        doc_stride=settings["doc_stride"],
        max_query_length=min(settings["max_query_length"], max_length - SPECIALS - 1),
        n_best_size=settings["n_best_size"],
        max_answer_length=settings["max_answer_length"],
        threshold=settings["null_score_diff_threshold"],
        beams=beams,
        train_cache=None,
        predict_cache=None,
    )


def _question(task, name, text):
    question, context = _strings(*text)
    return Question(name, question, context, (), False)


def _answered(task, examples, outputs):
    found = task.answers(examples, outputs)
    results = []
    for key, chosen in task.texts(found).items():
        # Where nothing may be an answer, a placeholder stands in the list.
        nbest = [each for each in found.nbest[key] if each.start_score != NO_ANSWER_SCORE]
        shares = candidate_probabilities(nbest) if nbest else []
        candidates = tuple(
            FoundAnswer(candidate.text, *(candidate.span or (None, None)), float(share))
            for candidate, share in zip(nbest, shares, strict=True)
        )
        # A head with beams scores "no answer" by other numbers than answers.
        nothing = FoundAnswer("", None, None, 0.0)
        best = next((each for each in candidates if each.text == chosen), nothing)
        results.append(Answered(best, candidates))
    return results


def _multiple_choice(loaded, tokenizer, max_length):
    longest = loaded.settings["max_qa_length"]
    return MultipleChoice(ChoiceDataset({}), tokenizer, max_length, longest)


def _choice(task, name, text):
    question, context, options = text
    options = _strings(*options)
    if len(options) < 2:
        raise ValueError(options)
    return ChoiceQuestion(name, *_strings(context, question), options, None)


def _chosen(task, examples, outputs):
    results = []
    for question, shares in zip(examples.raw, choice_probabilities(outputs), strict=True):
        best = int(shares.argmax())
        results.append(Chosen(question.options[best], best, tuple(map(float, shares))))
    return results


# Task -> functions: (loaded, tokenizer, max_length) -> the `DownstreamTask`; (task, name, text) ->
# the raw example; (task, examples, outputs) -> the results.
MAKERS = {
    "classification": (_classification, _example, _classified),
    "ner": (_ner, _sentence, _tagged),
    "question_answering": (_question_answering, _question, _answered),
    "multiple_choice": (_multiple_choice, _choice, _chosen),
}
