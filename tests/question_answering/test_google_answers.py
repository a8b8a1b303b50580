"""Answers against those that google-research/bert run_squad.py itself wrote."""

import json

import numpy as np
import pytest

from finetuning.question_answering.answers import with_threshold, write_answers
from finetuning.question_answering.data import read_questions
from finetuning.question_answering.google_answers import answer_as_google
from finetuning.question_answering.windows import encode_questions, make_windows
from tests.support.paths import TEST_DATA
from tests.support.vocabularies import write_lines
from tokenization import FullTokenizer

GOLDEN = json.loads((TEST_DATA / "questions" / "google_answers.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The questions, and the vocabulary's file."""
    folder = tmp_path_factory.mktemp("questions")
    write_lines(folder / "vocab.txt", GOLDEN["vocabulary"])
    (folder / "questions.json").write_text(json.dumps(GOLDEN["questions"]))
    questions, _ = read_questions(folder / "questions.json", with_answers=False)
    return questions, folder / "vocab.txt"


def cut(read, case):
    """The questions that a case has answers to, their windows, the logits, the tokenizer."""
    questions, vocabulary = read
    tokenizer = FullTokenizer(vocabulary, case["do_lower_case"])
    questions = [entry for entry in questions if entry.id in case["predictions"]]
    encoded = encode_questions(tokenizer, questions, GOLDEN["max_query_length"])
    windows, _ = make_windows(
        questions, encoded, tokenizer, GOLDEN["max_seq_length"], GOLDEN["doc_stride"], False
    )
    logits = iter(np.array(case["eighths"], np.float32) / 8)
    # A context without a piece has no window in Google's program.
    outputs = [next(logits) if len(w.spans) else np.zeros((2, 24), np.float32) for w in windows]
    return questions, windows, outputs, tokenizer


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=range(len(GOLDEN["cases"])))
def test_answers_are_google_s(read, case, tmp_path):
    questions, windows, outputs, tokenizer = cut(read, case)
    sizes = case["n_best_size"], case["max_answer_length"]
    null = case["version_2_with_negative"]
    options = {"version_2_with_negative": null, "tokenizer": tokenizer}
    answered = answer_as_google(questions, windows, outputs, *sizes, **options)
    assert with_threshold(answered, 0.0 if null else None) == case["predictions"]
    assert answered.null_odds == case["null_odds"]
    write_answers(tmp_path, answered, 0.0 if null else None)
    written = json.loads((tmp_path / "nbest_predictions.json").read_text("utf-8"))
    for key, expected in case["nbest_predictions"].items():
        for ours, theirs in zip(written[key], expected, strict=True):
            assert ours.pop("probability") == pytest.approx(theirs["probability"], rel=1e-9)
            assert ours == {k: v for k, v in theirs.items() if k != "probability"}
