"""Every signature for texts answers as the methods of `korean_bert.Model` do."""

import numpy as np
import pytest

from bert_tf import PretrainingModel
from finetuning.classification.head import SequenceClassifier
from finetuning.inputs import encode_pairs, pad_rows
from finetuning.metrics import softmax
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from finetuning.serving import served_model
from korean_bert.model import Model
from korean_bert.predictions import TaskPredictor
from model_formats.saved_model.export import make_signatures
from tests.support.crosses import slow
from tests.support.models.served_models import call_signature, loaded_model, strong_head
from tests.support.task_data import CONTEXTS
from tests.support.tiny_models import tensors
from tests.support.tokenizer_cases import TEXTS

LENGTH = 24
WORDS = " ".join(CONTEXTS).split(" ")
BLANKS = ([""], [" \n"], ["\u200b"], ["", " ", "\u200b\ufeff"], [])
MIXED = (
    ["", "서울에서 체포됐다"],
    ["\u200b", "연주했다 언제", " "],
    ["서\u200b울에서 \u200b 체\ufeff포됐다", "\u200b서울\u200b"],
)
ASKED = ["누구가?", "언제 어디에서 누구가 연주했다?", "", "어디 _ ?"]
OPTIONS = ["임종석", "서울", " 연주했다\u00a0", "\u3000\x1c"]
CLASSES = {"task_name": "tsv", "labels": "good,bad,odd"}
TAGS = {"task_name": "klue-ner", "labels": "B-PS,I-PS,O,B-LC,I-LC"}
QUESTIONS = {
    "doc_stride": 6, "max_query_length": 5, "n_best_size": 4, "max_answer_length": 5,
    "version_2_with_negative": False, "null_score_diff_threshold": 0.0,
}  # fmt: skip
# About half of the answers are "" at these thresholds.
OR_NONE = {**QUESTIONS, "version_2_with_negative": True, "null_score_diff_threshold": -30.0}
BEAMS_OR_NONE = {**OR_NONE, "null_score_diff_threshold": 0.0}


def classifier(classes, **options):
    return lambda encoder: SequenceClassifier(encoder, classes, **options)


# Name -> its task, what puts its head on an encoder, its settings.
HEADS = {
    "classes": ("classification", classifier(3), CLASSES),
    "sets": ("classification", classifier(3, multi_label=True), CLASSES),
    "scores": ("classification", classifier(1), {"task_name": "tsv", "labels": None}),
    "tags": ("ner", lambda encoder: TokenClassifier(encoder, 5), TAGS),
    "tags of words": (
        "ner", lambda encoder: TokenClassifier(encoder, 5), {**TAGS, "task_name": "conll"},
    ),
    "spans": ("question_answering", SpanModel, QUESTIONS),
    "spans or none": ("question_answering", SpanModel, OR_NONE),
    "beams": ("question_answering", BeamSpanModel, QUESTIONS),
    "beams or none": ("question_answering", BeamSpanModel, BEAMS_OR_NONE),
    "options": ("multiple_choice", MultipleChoiceModel, {"max_qa_length": 8}),
    "vectors": ("pretraining", PretrainingModel, {}),
}  # fmt: skip


def make(name, tokenizer, kind="bert"):
    """A model with random weights that tell texts apart, and its signatures."""
    task, head, settings = HEADS[name]
    if task == "pretraining":
        loaded = loaded_model(head, task, tokenizer, settings, kind, positions=20)
    else:
        settings = {"max_seq_length": LENGTH, **settings}
        strong = lambda encoder: strong_head(head(encoder), 2.0)  # noqa: E731
        loaded = loaded_model(strong, task, tokenizer, settings, kind)
    return loaded, make_signatures(loaded)


def usual(task="pretraining"):
    """Texts of many lengths and characters, one of more than 5,000 characters.

    Without odd ones for questions: where many spans have one text, a graph finds fewer candidates.
    """
    rng = np.random.default_rng(4)
    sizes = (1, 2, 3, 5, 8, 12, 20, 40, 1000)
    made = [*CONTEXTS, *(" ".join(rng.choice(WORDS, size)) for size in sizes)]
    if task == "question_answering":
        return made
    return [*made, *(text for text in TEXTS if not any("\ud800" <= c <= "\udfff" for c in text))]


def strings(values):
    return np.array(values, object)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-5)


def same_classes(made, model, texts):
    expected = [*model.predict(texts), *model.predict(list(zip(texts, texts[::-1], strict=True)))]
    of_texts = call_signature(made, text=strings(texts))
    of_pairs = call_signature(made, "pairs", text=strings(texts), second=strings(texts[::-1]))
    found = {name: np.concatenate([of_texts[name], of_pairs[name]]) for name in of_texts}
    if not model.loaded.labels:
        assert_close(found["score"], [each.label for each in expected])
        return [each.label for each in expected]
    names = list(model.loaded.labels)
    assert found["labels"].tolist() == [names] * len(expected)
    shares = [[*each.probabilities.values()] for each in expected]
    assert_close(found["probabilities"], np.reshape(shares, (len(expected), len(names))))
    if "predicted" in found:
        sets = [[name in each.label for name in names] for each in expected]
        assert found["predicted"].astype(bool).tolist() == sets
    else:
        assert found["label"].tolist() == [each.label for each in expected]
    return [each.label for each in expected]


def same_entities(made, model, texts):
    found, expected = call_signature(made, text=strings(texts)), model.predict(texts)
    assert len(found["starts"]) == len(texts)
    for i, tagged in enumerate(expected):
        count = len(tagged.entities)
        columns = list(zip(*tagged.entities, strict=True)) or [()] * 5
        for name, column in zip(("entities", "kinds", "starts", "ends"), columns, strict=False):
            assert found[name][i, :count].tolist() == list(column), texts[i]
        assert_close(found["probabilities"][i, :count], columns[-1])
        for name, padding in (("kinds", ""), ("starts", -1), ("ends", -1), ("probabilities", 0)):
            assert (found[name][i, count:] == padding).all()
    return [tagged.entities for tagged in expected]


def same_answers(made, model, texts):
    asked = [(question, text) for text in texts for question in ASKED]
    questions, contexts = strings(asked).reshape(-1, 2).T
    found = call_signature(made, question=questions, context=contexts)
    assert len(found["answer"]) == len(asked)
    expected = model.predict(asked)
    for i, (answer, every) in enumerate(expected):
        assert found["answer"][i] == answer.text, asked[i]
        place = (answer.start, answer.end) if answer.text else (-1, -1)
        assert (found["start"][i], found["end"][i]) == place
        candidates = [each for each in every if each.text]
        count = len(candidates)
        assert found["candidates"][i, :count].tolist() == [each.text for each in candidates]
        assert (found["candidates"][i, count:] == "").all()
        for name in ("start", "end"):
            places = [getattr(each, name) for each in candidates]
            assert found[f"candidate_{name}s"][i, :count].tolist() == places
        shares = [each.probability for each in candidates]
        assert_close(found["candidate_probabilities"][i, :count], shares)
        assert_close(found["probability"][i], shares[0] if shares else answer.probability)
    return [answer.text for answer, _ in expected]


def same_choices(made, model, texts):
    asked = [(ASKED[i % 4], text, OPTIONS) for i, text in enumerate(texts)]
    questions = strings([question for question, _, _ in asked])
    options = strings([OPTIONS] * len(texts)).reshape(len(texts), len(OPTIONS))
    found = call_signature(made, context=strings(texts), question=questions, options=options)
    expected = model.predict(asked)
    assert found["choice"].tolist() == [each.index for each in expected]
    shares = [each.probabilities for each in expected]
    assert_close(found["probabilities"], np.reshape(shares, options.shape))
    return [each.index for each in expected]


def same_vectors(made, model, texts):
    found = call_signature(made, text=strings(texts))
    for pooling in ("mean", "cls"):
        assert_close(found[pooling], model.embed(texts, pooling))
    return found["mean"][:, 0].tolist()


SAME = {
    "classification": same_classes, "ner": same_entities, "question_answering": same_answers,
    "multiple_choice": same_choices, "pretraining": same_vectors,
}  # fmt: skip


def case(head, vocabulary="plain", kind="bert", slow=True):
    """Every case is traced anew, which takes seconds."""
    marks = [pytest.mark.slow] * slow
    return pytest.param(head, vocabulary, kind, id=f"{head}, {vocabulary}, {kind}", marks=marks)


@pytest.mark.parametrize(
    "head, vocabulary, kind",
    (
        case("classes", slow=False),
        case("classes", kind="albert"),
        case("sets"),
        case("scores"),
        case("tags", slow=False),
        case("tags", "odd"),
        case("tags of words", "odd"),
        case("spans or none", "spaced", slow=False),
        case("spans"),
        case("beams", "spaced", "albert"),
        case("beams or none"),
        case("options"),
        case("options", "sentencepiece"),
        case("vectors", slow=False),
        case("vectors", kind="albert"),
    ),
)
def test_signatures_answer_as_python_does(tokenizers, head, vocabulary, kind, monkeypatch):
    monkeypatch.setattr(served_model, "CHUNK_PIECES", 100)  # several chunks
    loaded, made = make(head, tokenizers[vocabulary], kind)
    model, same = Model(loaded), SAME[loaded.task]
    answers = same(made, model, usual(loaded.task))
    assert len(set(answers)) > (1 if loaded.labels or head == "options" else len(answers) / 8)
    for texts in (*BLANKS, *MIXED):
        same(made, model, texts)


@pytest.mark.slow
@pytest.mark.parametrize("head", ("spans or none", "beams or none"))
def test_differences_to_no_answer(tokenizers, head):
    """`predict` does not return them, run_squad writes them."""
    loaded, made = make(head, tokenizers["spaced"])
    asked = [(question, text) for text in usual("question_answering") for question in ASKED]
    questions, contexts = strings(asked).T
    found = call_signature(made, question=questions, context=contexts)["null_score_difference"]
    predictor = TaskPredictor(loaded, loaded.tokenizer, LENGTH)
    raw = [predictor.task.read_input(str(i), pair) for i, pair in enumerate(asked)]
    examples = predictor.task.encode(raw, training=False)
    answered = predictor.task.answers(examples, predictor.compute(examples, 32))
    expected = [*answered.null_odds.values()]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-4)
    above = np.array(expected) > loaded.settings["null_score_diff_threshold"]
    assert 0.2 < above.mean() < 0.8


def rows_of(tokenizer, length):
    rows = encode_pairs(tokenizer, [(text, None) for text in usual()], length)
    return pad_rows(rows[:8], length, 0)


@pytest.mark.parametrize("head, answer", [
    ("classes", "label"),
    slow("tags", "tags"),
    slow("options", "choice"),
])  # fmt: skip
def test_ids(tokenizers, head, answer):
    loaded, made = make(head, tokenizers["plain"])
    batch = rows_of(loaded.tokenizer, LENGTH)
    if head == "options":
        batch = {name: values.reshape(-1, 2, LENGTH) for name, values in batch.items()}
    found = call_signature(made, "ids", **batch)
    logits = loaded.model(tensors(batch))["logits"].numpy()
    assert_close(found["probabilities"], softmax(logits))
    best = logits.argmax(axis=-1)
    expected = np.array(loaded.labels)[best] if loaded.labels else best
    assert found[answer].tolist() == expected.tolist()


def test_vectors_and_masked_words_of_ids(tokenizers):
    loaded, made = make("vectors", tokenizers["plain"])
    batch = rows_of(loaded.tokenizer, 20)
    of_ids = call_signature(made, "ids", **batch)
    assert_close(of_ids["mean"], Model(loaded).embed(usual()[:8]))
    assert of_ids["tokens"].shape == (8, 20, 32)
    batch["masked_lm_positions"] = np.array([[1, 2]] * 8, np.int32)
    expected = loaded.model(tensors(batch))["masked_lm_logits"].numpy()
    found = call_signature(made, "masked_words", **batch)["logits"]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected) > 1


@pytest.mark.slow
def test_large_weights_are_variables(tokenizers, monkeypatch):
    given = {"text": strings(usual()[:7])}
    expected = call_signature(make("classes", tokenizers["plain"])[1], **given)
    monkeypatch.setattr(served_model, "MOST_CONSTANT_BYTES", 100)
    loaded, made = make("classes", tokenizers["plain"])
    assert len(made.served.weights) == len(loaded.model.variables)
    found = call_signature(made, **given)["probabilities"]
    np.testing.assert_allclose(found, expected["probabilities"], atol=1e-6)
    loaded.model.head.output_bias.assign([100.0, 0.0, 0.0])
    changed = call_signature(made, **given)["probabilities"]
    assert (changed[:, 0] > 0.99).all() and not (found[:, 0] > 0.99).all()
