"""Several threads may ask one model at the same time."""

import concurrent.futures
import threading
import time

import numpy as np
import pytest

from korean_bert import load_model, vector_graphs
from korean_bert import model as model_module
from tests.support.models.model_folders import write_folder
from tests.support.models.served_models import write_strong_folder

TEXT = "나는 학교에 갔다"


def load(folder, task="pretraining"):
    if task == "pretraining":
        write_folder(folder, sizes={"initializer_range": 0.4})
    else:
        write_strong_folder(folder, task)
    return load_model(folder)


def at_once(calls):
    """The results of functions that begin at the same moment, each in a thread."""
    barrier = threading.Barrier(len(calls))

    def call(function):
        barrier.wait(60)
        return function()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call, each) for each in calls]]


def test_what_all_need_is_made_once(tmp_path, monkeypatch):
    model, made = load(tmp_path), []

    def counted(plain):
        def make(*arguments, **options):
            made.append(plain)
            time.sleep(0.05)  # while other threads come as far as this, unless they may not
            return plain(*arguments, **options)

        return make

    for module, name in (vector_graphs, "ServedModel"), (model_module, "MaskGuesser"):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    at_once([lambda: model.embed(TEXT)] * 6)
    at_once([lambda: model.fill_mask("나는 [MASK] 갔다", max_pieces=1)] * 6)
    assert len(made) == 2


def test_every_method_at_once(tmp_path):
    """The first calls of a model are made together, and again one by one."""
    calls = {
        "embed": lambda model: model.embed([TEXT, "the"]),
        "embed by [CLS]": lambda model: model.embed([TEXT, "the"], "cls"),
        "states": lambda model: model.hidden_states(TEXT).vectors,
        "attention": lambda model: model.attention(TEXT).probabilities,
        "guesses": lambda model: model.fill_mask("나는 [MASK] 갔다", max_pieces=2),
        "nearest": lambda model: model.nearest("학교", 3),
    }
    model = load(tmp_path)
    found = at_once([lambda call=call: call(model) for call in [*calls.values()] * 3])
    for name, values in zip([*calls] * 3, found, strict=True):
        alone = calls[name](model)
        if isinstance(alone, np.ndarray):
            np.testing.assert_allclose(values, alone, atol=1e-6, err_msg=name)
        else:
            assert values == alone, name


@pytest.mark.parametrize("task", ("classification", "ner"))
def test_predictions_at_once(tmp_path, task, monkeypatch):
    made = []

    class Counted(model_module.TaskPredictor):
        def __init__(self, *arguments):
            made.append(arguments)
            threading.Event().wait(0.05)
            super().__init__(*arguments)

    monkeypatch.setattr(model_module, "TaskPredictor", Counted)
    model = load(tmp_path, task)
    texts = [TEXT, "학교", "나는 갔다"]
    found = at_once([lambda text=text: model.predict(text) for text in texts * 2])
    assert found == [model.predict(text) for text in texts * 2]
    assert len(made) == 1


@pytest.mark.parametrize(
    "task, asked", (("ner", TEXT), ("question_answering", ("the book ?", TEXT)))
)
def test_a_prediction_is_not_kept_for_other_threads(tmp_path, task, asked):
    """Evaluations keep the last one; threads would take each other's."""
    model = load(tmp_path, task)
    model.predict(asked)
    kept = vars(model._made_predictor.task).values()
    assert not any(value for value in kept if isinstance(value, list))
