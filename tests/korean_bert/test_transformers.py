"""What the methods of a model return, beside what transformers computes with the same folder."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from korean_bert import load_model
from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder
from model_formats.model_folder import REFERENCE_MODEL
from tests.support.models.model_folders import write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.paths import printed_by

ABSENT = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"needs {', '.join(ABSENT)} (extra bench)"),
]

PROGRAM = Path(__file__).with_name("transformers_answers.py")
TEXT, SECOND = "나는 어제 친구와 영화를 보고 ㅋㅋ 웃었다!", "정말 재미있었다."
MASKED = TEXT.replace("영화를", "[MASK]")
TINY, ABOUT, QUESTION = "나는 학교에 갔다.", "the book is red", "is the book red ?"
OPTIONS = ["red", "book", "학교", "나는"]
LABELS = "O,B-LC,I-LC"

# Case -> what transformers_answers.py computes; the task of the model, None for the project's own;
# what is asked.
CASES = {
    "text": ("inside", None, {"text": TEXT, "second": None}),
    "pair": ("inside", None, {"text": TEXT, "second": SECOND}),
    "albert": ("inside", "pretraining", {"text": TINY, "second": ABOUT}),
    "guesses": ("guesses", None, {"text": MASKED, "top": 5}),
    "nearest": ("nearest", None, {"word": "학교", "top": 10}),
    "nearest of two pieces": ("nearest", None, {"word": "친구와", "top": 10}),
    "classes": ("classes", "classification", {"pair": [TINY, ABOUT]}),
    "tags": ("tags", "ner", {"text": f"{TINY} {ABOUT}", "starts": [0, 3, 7, 11, 15, 20, 23]}),
    "span": ("spans", "question_answering", {"pair": [QUESTION, f"{ABOUT} 나는"], "longest": 6}),
    "options": (
        "options", "multiple_choice", {"text": TINY, "question": "the book ?", "options": OPTIONS},
    ),
}  # fmt: skip


def make_folder(task, folder):
    """A model of this project, and the folder that transformers reads it from."""
    if task is None:
        return REFERENCE_MODEL, REFERENCE_MODEL
    if task == "pretraining":
        write_folder(folder / "ours", "albert", sizes={"initializer_range": 0.4})
    else:
        write_strong_folder(folder / "ours", task)
    (folder / "theirs").mkdir()
    export(load_folder(str(folder / "ours")), str(folder / "theirs"))
    return str(folder / "ours"), str(folder / "theirs")


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """Case -> the model, what is asked, what transformers computes."""
    top, made, jobs = tmp_path_factory.mktemp("cases"), {}, []
    reference = load_model()
    for case, (what, task, asked) in CASES.items():
        ours, theirs = make_folder(task, top / case)
        model = reference if task is None else load_model(ours)
        output = str(top / f"{case}.npz")
        jobs.append({"what": what, "folder": theirs, "output": output, **asked})
        made[case] = model, asked, output
    path = top / "jobs.json"
    path.write_text(json.dumps(jobs), encoding="utf-8")
    printed_by(PROGRAM, path, HF_HOME=str(top), HF_HUB_OFFLINE="1")
    found = {}
    for case, (model, asked, output) in made.items():
        with np.load(output) as file:
            found[case] = model, asked, dict(file)
    return found


@pytest.mark.parametrize("case", ("text", "pair", "albert"))
def test_every_layer(computed, case):
    model, asked, expected = computed[case]
    text, second = asked["text"], asked["second"]
    states, attention = model.hidden_states(text, second), model.attention(text, second)
    assert list(states.pieces) == list(attention.pieces) == expected["pieces"].tolist()
    options = {"atol": 1e-5, "rtol": 0}
    np.testing.assert_allclose(states.vectors, expected["hidden_states"], **options)
    np.testing.assert_allclose(attention.probabilities, expected["attentions"], **options)
    assert expected["hidden_states"].std() > 0.1 and expected["attentions"].std() > 0.01
    mean = expected["hidden_states"][-1].mean(axis=0)
    np.testing.assert_allclose(model.embed([(text, second)])[0], mean, **options)


def test_guesses(computed):
    model, asked, expected = computed["guesses"]
    (found,) = model.fill_mask(asked["text"], asked["top"], max_pieces=1)
    assert [guess.pieces[0] for guess in found] == expected["pieces"].tolist()
    np.testing.assert_allclose([g.probability for g in found], expected["shares"], atol=1e-5)
    assert expected["shares"][0] > 0.01


@pytest.mark.parametrize("case", ("nearest", "nearest of two pieces"))
def test_nearest(computed, case):
    model, asked, expected = computed[case]
    found = model.nearest(asked["word"], asked["top"])
    assert [each.piece for each in found] == expected["pieces"].tolist()
    np.testing.assert_allclose([e.similarity for e in found], expected["cosines"], atol=1e-5)


def test_classes(computed):
    model, asked, expected = computed["classes"]
    found = model.predict(tuple(asked["pair"]))
    assert list(found.probabilities) == expected["labels"].tolist()
    np.testing.assert_allclose([*found.probabilities.values()], expected["shares"], atol=1e-5)
    assert found.label == expected["labels"][expected["shares"].argmax()]


def test_tags(computed):
    model, asked, expected = computed["tags"]
    found = model.predict(asked["text"])
    assert [start for start, _ in found.units] == asked["starts"]
    assert list(found.tags) == expected["tags"].tolist()
    np.testing.assert_allclose(found.probabilities, expected["shares"], atol=1e-5)


def test_span(computed):
    model, asked, expected = computed["span"]
    found = model.predict(tuple(asked["pair"])).answer
    assert [found.start, found.end] == expected["span"].tolist()


def test_options(computed):
    model, asked, expected = computed["options"]
    found = model.predict((asked["question"], asked["text"], tuple(asked["options"])))
    np.testing.assert_allclose(found.probabilities, expected["shares"], atol=1e-5)
    assert found.index == expected["shares"].argmax()
