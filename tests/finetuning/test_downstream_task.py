"""What the fine-tuning programs read of tasks."""

import pytest

from finetuning.classification.task import Classification
from finetuning.datasets import DATASETS
from finetuning.multiple_choice.data import ChoiceDataset, ChoiceQuestion
from finetuning.multiple_choice.task import MultipleChoice
from finetuning.ner.data import FORMATS, NerDataset
from finetuning.ner.task import NamedEntityRecognition
from finetuning.question_answering.data import QuestionDataset
from finetuning.question_answering.task import QuestionAnswering

QUESTION = ChoiceQuestion("0", "text", "question", ("a", "b", "c"), 0)
NER_FORMAT = FORMATS["klue-ner"]
# Each with what chooses the best checkpoint, and the rows of an example.
TASKS = (
    (Classification(DATASETS["klue-tc"], None, 8), "eval_macro_f1", 1),
    (Classification(DATASETS["klue-sts"], None, 8), "eval_pearson", 1),
    (Classification(DATASETS["klue-re"], None, 8), "eval_relation_micro_f1", 1),
    (
        NamedEntityRecognition(NerDataset(NER_FORMAT, NER_FORMAT.tags, {"dev": True}), None, 8),
        "eval_entity_f1", 1,
    ),
    (MultipleChoice(ChoiceDataset({"dev": [QUESTION]}), None, 8, 4), "eval_accuracy", 3),
    (
        QuestionAnswering(
            dataset=QuestionDataset("squad", True, {}), tokenizer=None, max_length=8, doc_stride=4,
            max_query_length=2, n_best_size=3, max_answer_length=2, threshold=0.0, beams=None,
        ),
        "eval_best_f1", 1,
    ),
)  # fmt: skip


@pytest.mark.parametrize("task, best_by, rows", TASKS)
def test_what_programs_read_of_tasks(task, best_by, rows):
    assert (task.best_by, task.rows) == ((best_by, True), rows)
