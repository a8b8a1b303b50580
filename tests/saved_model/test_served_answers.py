"""Answers of the graph against those that run_squad writes."""

import json

import numpy as np
import pytest

from finetuning.inputs import ROW_INPUTS
from finetuning.question_answering import serving as question_answering
from finetuning.question_answering.answers import answer_by_beams, answer_by_spans, write_answers
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.data import Question
from finetuning.question_answering.span_head import SpanModel
from finetuning.question_answering.windows import encode_questions, make_windows, pad_windows
from tests.support.models.served_models import call_signature, loaded_model, strong_head
from tests.support.task_data import CONTEXTS, write_tokenizer
from tests.support.tiny_models import tensors

SETTINGS = {
    "max_seq_length": 24, "doc_stride": 6, "max_query_length": 5, "n_best_size": 4,
    "max_answer_length": 5, "version_2_with_negative": False, "null_score_diff_threshold": 0.0,
}  # fmt: skip
ASKED = ["누구가?", "언제 어디에서 누구가 연주했다?", "어디?", ""]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One with markers, whose pieces may be of white space alone, and a plain one."""
    plain = write_tokenizer(tmp_path_factory.mktemp("plain"))
    folder = tmp_path_factory.mktemp("marked")
    marked = {"word_end_marker": "▁", "word_end_marker_at": "eojeol", "unknown": "character"}
    (folder / "vocab.txt").write_bytes(plain.vocabulary_bytes + "▁\n##▁\n##다▁\n".encode())
    return plain, type(plain)(folder / "vocab.txt", **marked)


def questions():
    rng = np.random.default_rng(4)
    words = " ".join(CONTEXTS).split(" ")
    contexts = [*CONTEXTS, "", " \n ", "  서울  ", " ".join(rng.choice(words, 900))]
    contexts += [" ".join(rng.choice(words, size)) for size in (3, 10, 20, 40)]
    return [
        Question(f"{i}-{asked}", asked, context, (), False)
        for i, context in enumerate(contexts)
        for asked in ASKED
    ]


def run_squads_answers(loaded, asked, folder):
    """What run_squad writes: answers, candidates, null score differences."""
    settings, tokenizer = loaded.settings, loaded.tokenizer
    encoded = encode_questions(tokenizer, asked, settings["max_query_length"])
    windows, _ = make_windows(
        asked, encoded, tokenizer, settings["max_seq_length"], settings["doc_stride"]
    )
    assert len(windows) > 2 * len(asked)
    batch = pad_windows(windows, settings["max_seq_length"], 0)
    outputs = loaded.model(tensors({name: batch[name] for name in (*ROW_INPUTS, "p_mask")}))
    outputs = {name: values.numpy() for name, values in outputs.items()}
    sizes = settings["n_best_size"], settings["max_answer_length"]
    negative = settings["version_2_with_negative"]
    if isinstance(loaded.model, BeamSpanModel):
        beams = [{n: v[i] for n, v in outputs.items()} for i in range(len(windows))]
        answered = answer_by_beams(asked, windows, beams, *sizes)
    else:
        pairs = zip(outputs["start_logits"], outputs["end_logits"], strict=True)
        options = {"version_2_with_negative": negative}
        answered = answer_by_spans(asked, windows, pairs, *sizes, **options)
    threshold = settings["null_score_diff_threshold"] if negative else None
    paths = write_answers(folder, answered, threshold)
    return [json.loads(open(path, encoding="utf-8").read()) for path in paths]


def case(head, marked, negative, slow=True):
    """Every case is traced anew, which takes seconds."""
    name = f"{head.__name__}{', marked' * marked}{', or none' * negative}"
    marks = [pytest.mark.slow] * slow
    return pytest.param(head, marked, negative, id=name, marks=marks)


@pytest.mark.parametrize(
    "head, marked, negative",
    [
        case(SpanModel, marked=True, negative=True, slow=False),
        case(BeamSpanModel, marked=False, negative=True),
        case(SpanModel, marked=False, negative=False),
        case(SpanModel, marked=True, negative=False),
        case(BeamSpanModel, marked=True, negative=False),
    ],
)
def test_answers_of_run_squad(tokenizers, head, marked, negative, tmp_path):
    settings = {**SETTINGS, "version_2_with_negative": negative, "null_score_diff_threshold": 0.1}
    options = (tokenizers[marked], settings, "albert" if marked else "bert")
    make_head = lambda encoder: strong_head(head(encoder))  # noqa: E731
    loaded, asked = loaded_model(make_head, "question_answering", *options), questions()
    answers, nbest, *odds = run_squads_answers(loaded, asked, tmp_path)
    made = question_answering.signatures(loaded)
    given = {"question": [q.question for q in asked], "context": [q.context for q in asked]}
    found = call_signature(made, **given)
    assert found["answer"].tolist() == list(answers.values())
    assert len(set(answers.values())) > len(asked) / 4
    if negative:
        assert 0.1 < np.mean([not text for text in answers.values()]) < 0.9
    for i, question in enumerate(asked):
        candidates = [candidate for candidate in nbest[question.id] if candidate["text"]]
        count, shares = len(candidates), [candidate["probability"] for candidate in candidates]
        assert found["candidates"][i, :count].tolist() == [c["text"] for c in candidates]
        assert (found["candidates"][i, count:] == "").all()
        served = found["candidate_probabilities"][i, :count]
        np.testing.assert_allclose(served, shares, atol=1e-5)
        for j in range(count):
            start, end = found["candidate_starts"][i, j], found["candidate_ends"][i, j]
            assert question.context[start:end] == candidates[j]["text"]
        start, end = found["start"][i], found["end"][i]
        assert question.context[start:end] == found["answer"][i] or start == end == -1
        assert (start == -1) == (found["answer"][i] == "")
    if odds:
        np.testing.assert_allclose(
            found["null_score_difference"], list(odds[0].values()), rtol=1e-5, atol=2e-4
        )
