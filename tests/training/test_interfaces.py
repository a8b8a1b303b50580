"""Pre-training and fine-tuning satisfy the Protocols of the training loop."""

import inspect

import pytest

from bert_tf.input.training_records import TrainingRecords
from bert_tf.training import evaluation, interfaces
from finetuning import prediction
from finetuning.examples import Examples

EVALUATORS = [
    value
    for module in (evaluation, prediction)
    for name, value in vars(module).items()
    if inspect.isclass(value) and name.endswith("Evaluator") and value.__module__ == module.__name__
]
PAIRS = [
    *((interfaces.TrainingData, kind) for kind in (TrainingRecords, Examples)),
    *((interfaces.HeldOutEvaluator, kind) for kind in EVALUATORS),
]


def test_there_is_an_evaluator_of_each_kind():
    assert len(EVALUATORS) == 2


@pytest.mark.parametrize("protocol, kind", PAIRS)
def test_implementations_have_the_same_members(protocol, kind):
    methods = {name: value for name, value in vars(protocol).items() if inspect.isfunction(value)}
    wanted = {name: value for name, value in methods.items() if not name.startswith("_")}
    assert wanted
    for name, method in wanted.items():
        actual = inspect.signature(getattr(kind, name)).parameters
        assert list(actual) == list(inspect.signature(method).parameters), name
    for name in vars(protocol).get("__annotations__", {}):
        assert hasattr(kind, name)
