"""Every task satisfies the Protocol that the fine-tuning programs rely on."""

import dataclasses
import inspect

import pytest

from finetuning.classification.task import Classification
from finetuning.datasets import DATASETS
from finetuning.downstream_task import DownstreamTask
from finetuning.multiple_choice.data import ChoiceDataset, ChoiceQuestion
from finetuning.multiple_choice.task import MultipleChoice
from finetuning.ner.data import FORMATS, NerDataset
from finetuning.ner.task import NamedEntityRecognition
from finetuning.question_answering.data import QuestionDataset
from finetuning.question_answering.task import QuestionAnswering

QUESTION = ChoiceQuestion("0", "text", "question", ("a", "b", "c"), 0)
NER_FORMAT = FORMATS["klue-ner"]
TASKS = (
    Classification(DATASETS["klue-tc"], None, 8),
    Classification(DATASETS["klue-sts"], None, 8),
    NamedEntityRecognition(NerDataset(NER_FORMAT, NER_FORMAT.tags, {"dev": True}), None, 8),
    MultipleChoice(ChoiceDataset({"dev": [QUESTION]}), None, 8, 4),
    QuestionAnswering(
        dataset=QuestionDataset("squad", True, {"dev": ([], 0)}), tokenizer=None, max_length=8,
        doc_stride=4, max_query_length=2, n_best_size=3, max_answer_length=2, threshold=0.0,
        beams=(2, 3),
    ),
)  # fmt: skip
MEMBERS = sorted(
    {name for name in vars(DownstreamTask) if not name.startswith("_")}
    | set(DownstreamTask.__annotations__)
)


def parameters(function):
    """The names, kinds and defaults that a caller relies on."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def shortcomings(task):
    """What the Protocol declares and the task lacks or declares differently."""
    problems = [name for name in MEMBERS if not hasattr(task, name)]
    for name in MEMBERS:
        declared = getattr(DownstreamTask, name, None)
        if inspect.isfunction(declared) and name not in problems:
            method = getattr(type(task), name)
            if not inspect.isfunction(method) or parameters(method) != parameters(declared):
                problems.append(f"{name}{inspect.signature(declared)}")
    return problems


def test_the_members_are_these():
    assert MEMBERS == [
        "baseline", "best_by", "dataset", "encode", "illustrations", "make_model", "measure",
        "rows", "settings", "write_details", "write_predictions",
    ]  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_tasks_satisfy_the_protocol(task):
    assert isinstance(task, DownstreamTask) and shortcomings(task) == []
    name, higher_is_better = task.best_by
    assert name.startswith("eval_") and higher_is_better is True
    assert isinstance(task.rows, int) and task.rows >= 1
    assert all(isinstance(labelled, bool) for labelled in task.dataset.splits.values())
    assert isinstance(task.settings, dict)
    assert dataclasses.is_dataclass(task)


def test_rows_are_those_of_the_encoder():
    assert [task.rows for task in TASKS] == [1, 1, 1, 3, 1]


def test_shortcomings_are_noticed():
    class Incomplete(NamedEntityRecognition):
        rows = property()  # raises an AttributeError

        def encode(self, raw):
            """Lacks a parameter."""

    # Without a data set there are no settings either.
    names = [problem.split("(")[0] for problem in shortcomings(Incomplete(None, None, 8))]
    assert names == ["rows", "settings", "encode"]
