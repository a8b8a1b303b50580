"""Requests of blank texts alone, and of none: every signature answers as `predict` does."""

import numpy as np
import pytest
import tensorflow as tf

from finetuning.classification import serving as classification
from finetuning.classification.head import SequenceClassifier
from finetuning.multiple_choice import serving as multiple_choice
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner import served_entities
from finetuning.ner import serving as ner
from finetuning.ner.head import TokenClassifier
from finetuning.ner.labels import Alignment
from finetuning.ner.served_entities import Tags, Units, find_entities
from finetuning.ner.task import entity_probability
from finetuning.question_answering import serving as question_answering
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from korean_bert.model import Model
from model_formats.saved_model import pretraining
from tests.support.models.served_models import call_signature, loaded_model, strong_head

LENGTH = 16
BLANKS = ([""], [" \n"], ["\u200b"], ["", " ", "\u200b\ufeff"], [])
MIXED = (
    ["", "서울에서 체포됐다"],
    ["\u200b", "연주했다 언제", " "],
    ["서\u200b울에서 \u200b 체\ufeff포됐다", "\u200b서울\u200b"],
)
TAGS = "O,B-PS,I-PS,B-LC,I-LC"
QUESTIONS = {
    "max_seq_length": LENGTH, "doc_stride": 4, "max_query_length": 5, "n_best_size": 4,
    "max_answer_length": 6, "null_score_diff_threshold": 0.0,
}  # fmt: skip


def make(head, task, tokenizer, **settings):
    settings = {"max_seq_length": LENGTH, **settings}
    return loaded_model(lambda encoder: strong_head(head(encoder), 2.0), task, tokenizer, settings)


@pytest.mark.parametrize("task", ("klue-ner", pytest.param("conll", marks=pytest.mark.slow)))
def test_entities(tokenizer, task):
    head = lambda encoder: TokenClassifier(encoder, 5)  # noqa: E731
    loaded = make(head, "ner", tokenizer, labels=TAGS, task_name=task)
    made, model = ner.signatures(loaded), Model(loaded)
    for texts in (*BLANKS, *MIXED):
        found = call_signature(made, text=np.array(texts, object))
        for i, tagged in enumerate(model.predict(texts)):
            kept = found["starts"][i] >= 0
            assert list(found["entities"][i][kept]) == [each.text for each in tagged.entities]
            shares = [each.probability for each in tagged.entities]
            np.testing.assert_allclose(found["probabilities"][i][kept], shares, atol=1e-5)
        assert len(found["starts"]) == len(texts)


def test_units_without_a_piece_do_not_count():
    alignment = Alignment(np.array([5, 6]), [0, -1, 1], [0, 2], [True, True])
    assert entity_probability(alignment, [0.5, 1.0, 0.7], 0, 2) == pytest.approx(0.6)
    assert entity_probability(alignment, [0.5, 1.0, 0.7], 0, 1) == pytest.approx(0.5)


def test_units_without_a_piece_do_not_count_where_they_are_served():
    """Three units, of which the second has no piece; two pieces."""
    shares = np.array([[0.5, 0.25, 0.25], [0.15, 0.7, 0.15]])
    places = tf.range(3, dtype=tf.int64)
    units = Units(places, places + 1, tf.constant([0, 3], tf.int64), places * 0)
    owners, firsts = tf.constant([0, -1, 1], tf.int64), tf.constant([0, 2], tf.int64)
    found = find_entities(
        tf.constant(np.log(shares), tf.float32),
        tf.constant([0, 2], tf.int64),
        units,
        served_entities.Alignment(owners, firsts, tf.constant([True, True])),
        Tags(("B-PS", "I-PS", "O")),
    )
    assert (found.starts.numpy().tolist(), found.ends.numpy().tolist()) == ([0], [3])
    np.testing.assert_allclose(found.probabilities, [0.6], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("negative", (True, False))
@pytest.mark.parametrize("head", (SpanModel, BeamSpanModel))
def test_answers(tokenizer, head, negative):
    settings = {**QUESTIONS, "version_2_with_negative": negative}
    loaded = make(head, "question_answering", tokenizer, **settings)
    made, model = question_answering.signatures(loaded), Model(loaded)
    for contexts in (*BLANKS, *MIXED):
        asked = ["누구가?", "", "\u200b"][: len(contexts)]
        given = {"question": np.array(asked, object), "context": np.array(contexts, object)}
        found = call_signature(made, **given)
        answers = model.predict(list(zip(asked, contexts, strict=True)))
        assert len(answers) == len(found["answer"]) == len(contexts)
        for i, answered in enumerate(answers):
            assert found["answer"][i] == answered.answer.text
            shares = [each.probability for each in answered.candidates if each.text]
            candidates = found["candidate_probabilities"][i, : len(shares)]
            np.testing.assert_allclose(candidates, shares, atol=1e-5)
            best = shares[0] if shares else 0.0
            if not shares and negative and head is SpanModel:
                best = 1.0  # of "no answer"
            np.testing.assert_allclose(found["probability"][i], best, atol=1e-5)
            if not shares:
                assert answered.answer.probability == best


def test_classes(tokenizer):
    head = lambda encoder: SequenceClassifier(encoder, 3)  # noqa: E731
    loaded = make(head, "classification", tokenizer, labels="가,나,다", task_name="tsv")
    made, model = classification.signatures(loaded), Model(loaded)
    for texts in (*BLANKS, *MIXED):
        given = np.array(texts, object)
        found = call_signature(made, text=given)
        paired = call_signature(made, "pairs", text=given, second=given)
        assert list(found["label"]) == [each.label for each in model.predict(texts)]
        pairs = list(zip(texts, texts, strict=True))
        assert list(paired["label"]) == [each.label for each in model.predict(pairs)]
        assert found["probabilities"].shape == (len(texts), 3)


@pytest.mark.slow
def test_choices(tokenizer):
    loaded = make(MultipleChoiceModel, "multiple_choice", tokenizer, max_qa_length=8)
    made, model = multiple_choice.signatures(loaded), Model(loaded)
    for texts in (*BLANKS, *MIXED):
        given, count = np.array(texts, object), len(texts)
        options = np.array([["", "서울"]] * count, object).reshape(count, 2)
        found = call_signature(made, context=given, question=given, options=options)
        asked = [(text, text, ["", "서울"]) for text in texts]
        chosen = model.predict(asked)
        assert list(found["choice"]) == [each.index for each in chosen]
        wanted = np.array([each.probabilities for each in chosen]).reshape(count, 2)
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)


@pytest.mark.slow
def test_vectors(tokenizer):
    from bert_tf import PretrainingModel

    loaded = loaded_model(PretrainingModel, "pretraining", tokenizer, {}, positions=LENGTH)
    made, model = pretraining.signatures(loaded), Model(loaded)
    for texts in (*BLANKS, *MIXED):
        found = call_signature(made, text=np.array(texts, object))
        np.testing.assert_allclose(found["mean"], model.embed(texts), atol=1e-5)
