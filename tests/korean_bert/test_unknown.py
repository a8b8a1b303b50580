"""A model warns once, of the first texts that its vocabulary cannot spell, whatever is asked."""

import warnings

import pytest

from korean_bert import load_model
from tests.support.models.model_folders import write_folder
from tests.support.models.served_models import write_strong_folder

LACKING = "버스는 산으로 간다"  # no word of the tiny vocabulary
KNOWN = "나는 학교에 갔다."

QUESTIONS = (
    lambda model, text: model.embed([text, (text, text)]),
    lambda model, text: model.embed(text),
    lambda model, text: model.hidden_states(text),
    lambda model, text: model.attention("나는", text),
    lambda model, text: model.fill_mask(text + " [MASK] 갔다", max_pieces=1),
    lambda model, text: model.nearest(text),
)


def asked(model, ask, text):
    """The warnings about [UNK] of one question."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask(model, text)
    return [each for each in found if "are [UNK]" in str(each.message)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_folder(folder)
    return folder


@pytest.mark.parametrize("ask", QUESTIONS)
def test_every_question_warns_once(folder, ask):
    model = load_model(folder)
    assert asked(model, ask, KNOWN) == []
    model = load_model(folder)
    text = " ".join([LACKING] * 7)
    (warning,) = asked(model, ask, text)
    assert "'버스는', '산으로', '간다'" in str(warning.message) and warning.filename == __file__
    for other in QUESTIONS:
        assert asked(model, other, text) == []


@pytest.mark.parametrize(
    ("task", "text"),
    (
        ("classification", [(LACKING, LACKING), LACKING]),
        ("question_answering", (LACKING, LACKING)),
        ("multiple_choice", (LACKING, LACKING, [LACKING, LACKING])),
    ),
)
def test_predictions(tmp_path, task, text):
    write_strong_folder(tmp_path, task)
    model = load_model(tmp_path)
    (warning,) = asked(model, lambda model, text: model.predict(text), text)
    assert "Likely cause: " in str(warning.message)


def test_texts_of_several_calls_add_up(folder):
    model = load_model(folder)
    for text in ("나는 학교에", "갔다 학교에 버스", "나는 학교에 갔다"):
        assert asked(model, QUESTIONS[2], text) == []
    assert len(asked(model, QUESTIONS[2], "나는 산 학교에 갔다 나는 학교에")) == 1
