"""The downstream tasks: for each a record of all that differs between them."""

import dataclasses
import importlib
from typing import NamedTuple


class TransformersClass(NamedTuple):
    """A class of transformers, without the "Bert" or "Albert" before its name."""

    suffix: str
    pipeline: str | None  # the task of transformers.pipeline that it serves
    # Prefixes of those of Google's weights that the class lacks.
    without: tuple = ()


@dataclasses.dataclass(frozen=True)
class Task:
    """A downstream task, wherever one is trained, loaded, exported, asked or shown.

    Its package has these modules, which are imported when they are used:

    * head: `from_settings(encoder, settings)`, the model and the names of its labels;
    * predict: `make_task(loaded, tokenizer, max_length)`, a `DownstreamTask`;
      `read_input(task, name, value)`, the raw example of what a user gives; and
      `read_outputs(task, examples, outputs)`, what the model's outputs say of each;
    * serving: `signatures(loaded)`, the `finetuning.serving.signatures.Signatures` of a SavedModel.

    Attributes:
        name: as models' folders record it.
        package: the package with the modules above.
        description: for model cards, after the model's name.
        takes: what `predict` takes, for messages.
        labels: "classes", "tags" (of BIO2) or None: what the names of the labels are.
        fields: the fields of the page for a text, in the order in which `predict` takes them:
            "text", "second" and "options".
        optional_fields: those that may be left out.
        row: the fields in the order of a row's two segments.
        view: how the page shows an answer, a key of `explorer.predictions.VIEWS`.
        may_lack: prefixes of the weights that its files may lack: what the head does not read.
        transformers: the class that its models become.
    """

    name: str
    package: str
    description: str
    takes: str
    labels: str | None
    fields: tuple
    view: str
    transformers: TransformersClass
    optional_fields: tuple = ()
    row: tuple = ("text", "second")
    may_lack: tuple = ()

    def module(self, name):
        """A module of the task's package."""
        return importlib.import_module(f"{self.package}.{name}")


# As no head but these reads the pooler.
POOLER = ("bert/pooler/",)

TASKS = {
    task.name: task
    for task in (
        Task(
            name="classification",
            package="finetuning.classification",
            description="fine-tuned to classify texts",
            takes="texts, or pairs (text, second text)",
            labels="classes",
            fields=("text", "second"),
            optional_fields=("second",),
            view="labels",
            transformers=TransformersClass("ForSequenceClassification", "text-classification"),
        ),
        Task(
            name="ner",
            package="finetuning.ner",
            description="fine-tuned to find named entities",
            takes="texts",
            labels="tags",
            fields=("text",),
            view="entities",
            transformers=TransformersClass(
                "ForTokenClassification", "token-classification", POOLER
            ),
            may_lack=POOLER,
        ),
        Task(
            name="question_answering",
            package="finetuning.question_answering",
            description="fine-tuned to answer questions with a span of a text",
            takes="pairs (question, text)",
            labels=None,
            fields=("second", "text"),
            row=("second", "text"),
            view="answer",
            transformers=TransformersClass("ForQuestionAnswering", "question-answering", POOLER),
            may_lack=POOLER,
        ),
        Task(
            name="multiple_choice",
            package="finetuning.multiple_choice",
            description="fine-tuned to answer multiple-choice questions",
            takes="triples (question, text, options), with as many options each",
            labels=None,
            fields=("second", "text", "options"),
            view="choice",
            transformers=TransformersClass("ForMultipleChoice", None),
        ),
    )
}
