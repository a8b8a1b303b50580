"""Several threads may ask one model at the same time; each pause here is where one overtook."""

import concurrent.futures
import dataclasses
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


@pytest.fixture
def paused():
    """Every step of a model's methods, smaller than a line, waits for other threads."""

    def of_step(frame, event, argument):
        if event == "opcode":
            time.sleep(1e-3)
        return of_step

    def of_call(frame, event, argument):
        if frame.f_code.co_filename not in (model_module.__file__, vector_graphs.__file__):
            return None
        frame.f_trace_opcodes = True
        return of_step

    before = threading.gettrace()
    threading.settrace(of_call)  # of the threads that are made now
    yield
    threading.settrace(before)


@pytest.mark.slow
def test_two_poolings_at_once(tmp_path, paused, monkeypatch):
    choices = [(pooling, layer) for pooling in ("mean", "cls") for layer in (1, 2)]
    made, plain = [], vector_graphs.ServedModel

    def make(*arguments, **options):
        """Lets the other threads come as far as this, unless they may not."""
        graph, end = plain(*arguments, **options), time.monotonic() + 0.3
        made.append(graph)
        while len(made) < 3 and time.monotonic() < end:
            time.sleep(1e-3)
        return graph

    model = load(tmp_path)
    wanted = {choice: model.embed(TEXT, *choice) for choice in choices}
    monkeypatch.setattr(vector_graphs, "ServedModel", make)
    for _ in range(2):
        model._vectors._graphs.clear()
        made.clear()
        found = at_once([lambda choice=choice: model.embed(TEXT, *choice) for choice in choices])
        for choice, vector in zip(choices, found, strict=True):
            np.testing.assert_array_equal(vector, wanted[choice], err_msg=str(choice))


def test_what_all_need_is_made_once(tmp_path, paused, monkeypatch):
    model, made = load(tmp_path), []

    def counted(slow):
        def make(*arguments, **options):
            made.append(slow)
            return slow(*arguments, **options)

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


def test_one_warning(tmp_path, paused, monkeypatch):
    model = load(tmp_path)
    model.loaded = dataclasses.replace(model.loaded, trained_positions=3)
    warned = []
    monkeypatch.setattr(model_module, "warn_of_untrained_positions", lambda *a: warned.append(a))
    at_once([lambda: model.hidden_states(TEXT)] * 6)
    assert len(warned) == 1


def test_one_warning_of_what_cannot_be_spelled(tmp_path, paused):
    model = load(tmp_path)
    with pytest.warns(UserWarning) as caught:
        at_once([lambda: model.hidden_states("버스는 산으로 간다")] * 6)
    assert sum("are [UNK]" in str(each.message) for each in caught) == 1
