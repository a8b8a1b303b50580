"""Lists the downstream tasks, with a record of everything in which they differ."""

import dataclasses
import importlib
from types import ModuleType
from typing import NamedTuple

from finetuning.classification.custom_data import TASK_TYPES
from finetuning.inputs import SHORTEST
from finetuning.question_answering.scores import BENCHMARKS
from finetuning.settings import ALWAYS, UNTRAINED, Setting
from finetuning.tables import FILE_TYPES, OWN_FILES


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
    * task: `TASK`, its `finetuning.downstream_task.DownstreamTask`;
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

# As google-research's programs.
MAX_SEQ_LENGTH = Setting(int, 128, {"albert": 512}, least=SHORTEST, changeable=ALWAYS)

# Must equal the keys of `finetuning.heads.POOLINGS`, which imports Keras.
POOLINGS = ("mean", "cls", "max")

# The parts that a head which reads all tokens does not need.
POOLER = ("pooler",)


# A column of a user's own files.
COLUMN = Setting(str, changeable=UNTRAINED, of_own_files=True)

TASKS = {
    task.name: task
    for task in (
        Task(
            name="classification",
            package="finetuning.classification",
            description="fine-tuned to classify texts",
            takes="texts, or pairs (text, second text)",
            settings={
                "task_name": Setting(str, "tsv", needed=True, alike=(OWN_FILES, *FILE_TYPES)),
                "max_seq_length": MAX_SEQ_LENGTH,
                "task_type": Setting(str, "single_label", choices=TASK_TYPES, of_own_files=True),
                "text_column": COLUMN,
                "second_column": COLUMN,
                "label_column": COLUMN,
                "id_column": COLUMN,
                "labels": Setting(str, of_own_files=True),
                "metrics": Setting(str, changeable=UNTRAINED, of_own_files=True),
                "feature_layers": Setting(str),
            },
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
            settings={
                "task_name": Setting(str, "conll", needed=True),
                "max_seq_length": MAX_SEQ_LENGTH,
                "labels": Setting(str, needed=True),
                "feature_layers": Setting(str),
            },
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
            settings={
                "task_name": Setting(
                    str, "squad", choices=tuple(BENCHMARKS), needed=True, changeable=ALWAYS
                ),
                "max_seq_length": MAX_SEQ_LENGTH._replace(default=384, of_encoder={}),
                "doc_stride": Setting(int, 128, least=1, needed=True, changeable=ALWAYS),
                "max_query_length": Setting(int, 64, least=1, needed=True, changeable=ALWAYS),
                "n_best_size": Setting(int, 20, least=1, needed=True, changeable=ALWAYS),
                "max_answer_length": Setting(int, 30, least=1, needed=True, changeable=ALWAYS),
                "null_score_diff_threshold": Setting(
                    float, 0.0, least=-1e9, needed=True, changeable=ALWAYS
                ),
                "version_2_with_negative": Setting(bool, False, needed=True),
                "start_n_top": Setting(int, least=0),
                "end_n_top": Setting(int, least=0),
            },
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
            settings={
                "task_name": Setting(
                    str, "race", choices=("race", "jsonl"), needed=True, changeable=ALWAYS
                ),
                "max_seq_length": MAX_SEQ_LENGTH._replace(default=512, of_encoder={}),
                "max_qa_length": Setting(int, 128, least=1, needed=True, changeable=ALWAYS),
            },
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
            settings={
                "task_name": Setting(str, "files", needed=True, changeable=ALWAYS),
                "max_seq_length": MAX_SEQ_LENGTH._replace(inherited=UNTRAINED),
                "pooling": Setting(str, "mean", choices=POOLINGS, needed=True, inherited=ALWAYS),
                "normalize": Setting(bool, True, needed=True, inherited=ALWAYS),
                "embedding_sizes": Setting(str, inherited=UNTRAINED),
            },
            labels=None,
            fields=("text", "second"),
            view="labels",
            transformers=ENCODER._replace(pipeline="sentence-similarity", makes_vectors=True),
            may_lack=POOLER,
        ),
    )
}
