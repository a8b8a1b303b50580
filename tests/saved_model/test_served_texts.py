"""The signatures for texts against the models' own outputs for rows that Python made."""

import numpy as np
import pytest

from bert_tf import PretrainingModel
from finetuning.classification import serving as classification
from finetuning.classification.head import SequenceClassifier
from finetuning.inputs import encode_pair, encode_pairs, pad_rows
from finetuning.metrics import softmax
from finetuning.multiple_choice import serving as multiple_choice
from finetuning.multiple_choice.data import ChoiceQuestion, encode_choices, make_rows
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.serving import served_model
from model_formats.saved_model import pretraining
from tests.support.models.released_models import SPM_MODEL
from tests.support.models.served_models import (
    call_signature,
    loaded_model,
    row_outputs,
    strong_head,
)
from tests.support.task_data import CONTEXTS
from tests.support.tiny_models import tensors
from tokenization import SentencePieceTokenizer

LENGTH = 24
KINDS = ["bert", pytest.param("albert", marks=pytest.mark.slow)]
WORDS = (CONTEXTS[0] + CONTEXTS[1]).split()


def texts(count):
    """Texts of many lengths, one of them empty, one of more than 5,000 characters."""
    rng = np.random.default_rng(count)
    made = [" ".join(rng.choice(WORDS, rng.integers(1, 12))) for _ in range(count)]
    if count > 1:
        made[1], made[-1] = "", " ".join(rng.choice(WORDS, 1000))
        assert len(made[-1]) > 5000
    return made


def classifier(tokenizer, labels="good,bad,odd", classes=3, kind="bert", **options):
    settings = {"task_name": "tsv", "labels": labels, "max_seq_length": LENGTH}

    def make_head(encoder):
        return strong_head(SequenceClassifier(encoder, classes, **options))

    return loaded_model(make_head, "classification", tokenizer, settings, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_classes(tokenizer, kind, monkeypatch):
    monkeypatch.setattr(served_model, "CHUNK_PIECES", 100)  # several chunks
    loaded = classifier(tokenizer, kind=kind)
    made = classification.signatures(loaded)
    for count in (1, 7, 64):
        of_texts = call_signature(made, text=texts(count))
        rows = encode_pairs(tokenizer, [(text, None) for text in texts(count)], LENGTH)
        expected = softmax(row_outputs(loaded, rows)["logits"])
        assert np.ptp(expected[:, 0]) > 0.05 or count == 1
        np.testing.assert_allclose(of_texts["probabilities"], expected, atol=1e-5)
        of_ids = call_signature(made, "ids", **tensors(pad_rows(rows, LENGTH, tokenizer.pad_id)))
        np.testing.assert_allclose(of_texts["probabilities"], of_ids["probabilities"], atol=1e-5)
        assert of_texts["labels"].tolist() == [["good", "bad", "odd"]] * count
        best = np.array(["good", "bad", "odd"])[expected.argmax(axis=1)]
        assert of_texts["label"].tolist() == best.tolist() == of_ids["label"].tolist()
    assert call_signature(made, text=np.array([], object))["probabilities"].shape == (0, 3)


@pytest.mark.slow
def test_pairs(tokenizer):
    loaded = classifier(tokenizer)
    made = classification.signatures(loaded)
    first, second = texts(40), texts(40)[::-1]
    second[5] = ""
    found = call_signature(made, "pairs", text=first, second=second)
    rows = [encode_pair(tokenizer, *pair, LENGTH) for pair in zip(first, second, strict=True)]
    assert {len(row.ids) for row in rows} == {6, LENGTH}
    expected = softmax(row_outputs(loaded, rows)["logits"])
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)


@pytest.mark.slow
def test_scores_and_independent_labels(tokenizer):
    rows = encode_pairs(tokenizer, [(text, None) for text in texts(7)], LENGTH)
    score = classifier(tokenizer, None, 1)
    found = call_signature(classification.signatures(score), text=texts(7))
    np.testing.assert_allclose(found["score"], row_outputs(score, rows)["logits"][:, 0], atol=1e-5)
    labels = classifier(tokenizer, "a,b,c", multi_label=True)
    found = call_signature(classification.signatures(labels), text=texts(7))
    logits = row_outputs(labels, rows)["logits"]
    np.testing.assert_allclose(found["probabilities"], 1 / (1 + np.exp(-logits)), atol=1e-5)
    assert (found["predicted"] == (logits > 0)).all() and 0 < found["predicted"].sum() < 21


@pytest.mark.slow
def test_large_weights_are_variables(tokenizer, monkeypatch):
    loaded = classifier(tokenizer)
    expected = call_signature(classification.signatures(loaded), text=texts(7))
    monkeypatch.setattr(served_model, "MOST_CONSTANT_BYTES", 100)
    made = classification.signatures(loaded)
    assert len(made.served.weights) == len(loaded.model.variables)
    found = call_signature(made, text=texts(7))
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=1e-6)
    loaded.model.head.output_bias.assign([100.0, 0.0, 0.0])
    changed = call_signature(made, text=texts(7))["probabilities"]
    assert (changed[:, 0] > 0.99).all() and not (found["probabilities"][:, 0] > 0.99).all()


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_masked_words(tokenizer, kind):
    loaded = loaded_model(PretrainingModel, "pretraining", tokenizer, {}, kind, positions=20)
    made = pretraining.signatures(loaded)
    found = call_signature(made, text=texts(7))
    rows = encode_pairs(tokenizer, [(text, None) for text in texts(7)], 20)
    for i, row in enumerate(rows):
        batch = tensors(pad_rows([row], len(row.ids), 0))
        vectors = loaded.model.encoder(batch)["sequence_output"][0].numpy()  # [T, H]
        np.testing.assert_allclose(found["cls"][i], vectors[0], atol=1e-5)
        np.testing.assert_allclose(found["mean"][i], vectors.mean(axis=0), atol=1e-5)
    batch = tensors(pad_rows(rows, 20, 0))
    of_ids = call_signature(made, "ids", **batch)
    np.testing.assert_allclose(of_ids["mean"], found["mean"], atol=1e-5)
    assert of_ids["tokens"].shape == (7, 20, 32)
    batch["masked_lm_positions"] = np.array([[1, 2]] * 7, np.int32)
    expected = loaded.model(batch)["masked_lm_logits"].numpy()
    found = call_signature(made, "masked_words", **batch)["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected) > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("korean", "sentencepiece"))
def test_options(tokenizer, kind):
    tokenizer = tokenizer if kind == "korean" else SentencePieceTokenizer(SPM_MODEL)
    settings = {"max_seq_length": LENGTH, "max_qa_length": 8}
    make_head = lambda encoder: strong_head(MultipleChoiceModel(encoder))  # noqa: E731
    loaded = loaded_model(make_head, "multiple_choice", tokenizer, settings)
    made = multiple_choice.signatures(loaded)
    questions = ["누구가 _ 는 _ 다?", "언제", "", "_", "어디에서 누구가 언제 연주했다 체포됐다 ?"]
    questions += ["In (_), 누구"]
    options = [[word, " 서울에서\u00a0", "\u3000\x1c"] for word in WORDS[: len(questions)]]
    contexts = [*CONTEXTS, "", *CONTEXTS, "a"]
    found = call_signature(made, context=contexts, question=questions, options=options)
    for i, (context, question) in enumerate(zip(contexts, questions, strict=True)):
        asked = [ChoiceQuestion("a", context, question, tuple(options[i]), None)]
        (encoded,) = encode_choices(tokenizer, asked, 8)
        rows = make_rows(tokenizer, encoded, LENGTH)
        batch = {name: values[None] for name, values in pad_rows(rows, LENGTH, 0).items()}
        logits = loaded.model(batch)["logits"].numpy()  # [1, C]
        np.testing.assert_allclose(found["probabilities"][i], softmax(logits)[0], atol=1e-5)
        assert found["choice"][i] == logits.argmax()
        of_ids = call_signature(made, "ids", **batch)
        np.testing.assert_allclose(of_ids["probabilities"], softmax(logits), atol=1e-5)
