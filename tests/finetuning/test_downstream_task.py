"""Every task has the members that the fine-tuning programs rely on."""

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


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_what_programs_read_of_tasks(task):
    name, higher_is_better = task.best_by
    assert name.startswith("eval_") and higher_is_better is True
    assert isinstance(task.rows, int) and task.rows >= 1
    assert all(isinstance(labelled, bool) for labelled in task.dataset.splits.values())
    assert isinstance(task.settings, dict)


def test_rows_are_those_of_the_encoder():
    assert [task.rows for task in TASKS] == [1, 1, 1, 3, 1]


def test_a_task_that_lacks_a_member_is_not_made():
    class Incomplete(DownstreamTask):
        best_by = ("eval_loss", False)

    with pytest.raises(TypeError, match="encode.*make_model.*measure.*read_input"):
        Incomplete()
