"""Lists the downstream tasks, with a record of everything in which they differ."""

import dataclasses
import importlib
from types import ModuleType
from typing import NamedTuple

from finetuning.settings import MANY, Setting


class TransformersClass(NamedTuple):
    """A class of transformers, named without its prefix "Bert" or "Albert"."""

    suffix: str
    pipeline: str | None  # the task of transformers.pipeline that it serves
    # The parts of our model, as for `bert_tf.checkpoint.part_names`, that the class lacks.
    without: tuple[str, ...] = ()
    # Whether sentence-transformers loads it; the folder's settings "pooling" and "normalize" then
    # say how a text becomes one vector.
    makes_vectors: bool = False


@dataclasses.dataclass(frozen=True)
class Task:
    """The record of a downstream task for training, loading, export, prediction and display.

    Its package has these modules, which are imported when they are used:

    * head: `from_settings(encoder, settings)` returns the model and the names of its labels;
    * predict: `make_task(loaded, tokenizer, max_length)` returns a `DownstreamTask`;
      `read_input(task, name, value)` makes a raw example of a user's input; and
      `read_outputs(task, examples, outputs)` returns the prediction for each example;
    * serving: `signatures(loaded)` makes a SavedModel's `finetuning.serving.signatures.Signatures`.
    """

    name: str  # as models' folders record it
    package: str  # the package with the modules above
    description: str  # for model cards, after the model's name
    takes: str  # what `predict` takes, for messages
    settings: dict[str, Setting]  # name -> `Setting`, which its folders record
    labels: str | None  # what the names of its labels are: "classes", "tags" (of BIO2) or None
    # The fields on the page for a text, in the order in which `predict` takes them: "text",
    # "second" and "options".
    fields: tuple[str, ...]
    view: str  # how the page shows an answer, a key of `explorer.predictions.VIEWS`
    transformers: TransformersClass  # the class that its models are exported to
    optional_fields: tuple[str, ...] = ()  # the fields that may be left out
    row: tuple[str, ...] = ("text", "second")  # the fields in the order of a row's two segments
    # The parts that its files may lack, because the head does not read them.
    may_lack: tuple[str, ...] = ()

    def module(self, name: str) -> ModuleType:
        """Imports a module of the task's package."""
        return importlib.import_module(f"{self.package}.{name}")


# The class of an encoder without a head.
ENCODER = TransformersClass("Model", "feature-extraction", ("masked_lm", "next_sentence"))

# As google-research's programs; see the flag --max_seq_length.
LENGTH, LENGTHS = 128, {"albert": 512}

# The parts that a head which reads all tokens does not need.
POOLER = ("pooler",)


def _settings(task_name, length, *, lengths=None, has_length=False, **more):
    """Returns the settings of a task: the data set, the length of a row, and `more`.

    `lengths` are the lengths of encoders that have another; `has_length` says whether the files of
    transformers record the length too.
    """
    return {
        "task_name": Setting(str, needed=True, default=task_name),
        # [CLS], a piece and [SEP].
        "max_seq_length": Setting(
            int, 3, MANY, default=length, evaluated=has_length, of_encoder=lengths or {}
        ),
        **more,
    }


TASKS = {
    task.name: task
    for task in (
        Task(
            name="classification",
            package="finetuning.classification",
            description="fine-tuned to classify texts",
            takes="texts, or pairs (text, second text)",
            settings=_settings(
                "tsv",
                LENGTH,
                lengths=LENGTHS,
                task_type=Setting(str, default="single_label"),
                text_column=Setting(str),
                second_column=Setting(str),
                label_column=Setting(str),
                id_column=Setting(str),
                labels=Setting(str),
                metrics=Setting(str),
                feature_layers=Setting(str),
            ),
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
            settings=_settings(
                "conll",
                LENGTH,
                lengths=LENGTHS,
                labels=Setting(str, needed=True),
                feature_layers=Setting(str),
            ),
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
            settings=_settings(
                "squad",
                384,
                doc_stride=Setting(int, 1, MANY, True, 128),
                max_query_length=Setting(int, 1, MANY, True, 64),
                n_best_size=Setting(int, 1, MANY, True, 20),
                max_answer_length=Setting(int, 1, MANY, True, 30),
                null_score_diff_threshold=Setting(float, needed=True, default=0.0),
                version_2_with_negative=Setting(bool, needed=True, default=False),
                start_n_top=Setting(int, 0, MANY),
                end_n_top=Setting(int, 0, MANY),
            ),
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
            settings=_settings("race", 512, max_qa_length=Setting(int, 1, MANY, True, 128)),
            labels=None,
            fields=("second", "text", "options"),
            view="choice",
            transformers=TransformersClass("ForMultipleChoice", None),
        ),
        Task(
            name="similarity",
            package="finetuning.similarity",
            description="trained so that the cosine of two texts' vectors says how alike they are",
            takes="pairs (text, second text)",
            settings=_settings(
                "files",
                128,
                has_length=True,
                pooling=Setting(str, needed=True, default="mean", inherited=True),
                normalize=Setting(bool, needed=True, default=True, inherited=True),
                embedding_sizes=Setting(str, evaluated=True),
            ),
            labels=None,
            fields=("text", "second"),
            view="labels",
            transformers=ENCODER._replace(pipeline="sentence-similarity", makes_vectors=True),
            may_lack=POOLER,
        ),
    )
}
