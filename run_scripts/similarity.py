"""The program run_similarity: trains vectors of texts whose cosines say how alike the texts are."""

import dataclasses
import functools
import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.text_encoding import NAMES
from finetuning.question_answering.data import read_questions
from finetuning.similarity.data import (
    FILE_TYPES,
    INFERENCES,
    OWN_FILES,
    SCORED,
    Columns,
    SimilarityDataset,
    SimilarityExample,
    folder_dataset,
    is_of_questions,
    known_dataset,
    read_examples,
    with_files,
)
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import ALWAYS, PerModel, redeclare
from run_scripts.flags.finetune import FinetuneFlags, check_is_file
from run_scripts.flags.parser import run_program
from run_scripts.flags.path_kinds import FILE

if TYPE_CHECKING:
    from finetuning.similarity.task import Similarity

shared = functools.partial(redeclare, FinetuneFlags)

# Kept in step with `finetuning.similarity`, whose modules import TensorFlow.
OBJECTIVES = ("cosine", "ranking", "simcse")
POOLINGS = ("mean", "cls", "max")

# The cosine of a right pair in units of this decides how sharply a wrong one is pushed away.
HIGHEST_TEMPERATURE = 100.0


@dataclasses.dataclass(frozen=True)
class SimilarityFlags(FinetuneFlags):
    """Trains vectors of texts to search and compare with: the cosine of two vectors says how alike
    two texts are. It starts from any pre-trained BERT or ALBERT.

    With --do_eval or --do_predict alone, only --output_dir (of an earlier training) and the
    examples must be given: pooling, sizes and tokenizer are stored beside the weights."""

    EXAMPLE = (
        "--task_name=klue-nli --data_dir=data/klue-nli-v1.1 --output_dir=output/vectors "
        "--bert_config_file=output/model/bert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval"
    )

    data_dir: str = shared(
        "data_dir",
        help="The folder with the task's files. Not needed with --train_file, --dev_file or "
        "--test_file.",
        required=False,
    )
    train_file: str = groups.FILES.flag(
        None,
        "Your own training file: .csv, .tsv, .jsonl, .json or .parquet with a text and, if you "
        "have them, its partner and a score or a third text of another meaning; or a .json in "
        "SQuAD's format, whose questions and texts are the pairs.",
        is_input=True,
        is_path=True,
    )
    dev_file: str = groups.FILES.flag(
        None,
        "Your own evaluation file, in any of these formats with pairs.",
        is_input=True,
        takes=(FILE,),
    )
    test_file: str = groups.FILES.flag(
        None, "Your own test file, in the same formats.", is_input=True, takes=(FILE,)
    )
    task_name: str = groups.TASK.flag(
        None,
        f"The data set: {', '.join(INFERENCES)}, which give triples (a sentence, one that it "
        f"entails, one that contradicts it); {', '.join(SCORED)}, which have scores; or csv, tsv "
        "or jsonl for your own train, dev and test files in --data_dir. Default: files, if "
        "--train_file or the like is given.",
        changeable=ALWAYS,
    )
    text_column: str = groups.COLUMNS.flag(
        None,
        "For your own files: the column of the text. Default: the one called text, sentence1, "
        "query, question or the like.",
    )
    second_column: str = groups.COLUMNS.flag(
        None,
        "For your own files: the column of the text's partner. Default: the one called second, "
        "sentence2, positive, passage or the like, if any.",
    )
    third_column: str = groups.COLUMNS.flag(
        None,
        "For your own files: the column of a text that means something else. Default: the one "
        "called third, negative or the like, if any.",
    )
    label_column: str = groups.COLUMNS.flag(
        None,
        "For your own files: the column of the score. Default: the one called score, label or "
        "the like, if any.",
    )
    encoding: str = groups.COLUMNS.flag(
        None,
        "The encoding of your own files. Default: recognized for each file.",
        choices=tuple(NAMES),
    )
    objective: str = groups.OPTIMIZER.flag(
        None,
        "cosine: the cosine of a pair becomes its score (the highest score is a cosine of 1). "
        "ranking: a text's partner ranks before all other texts of the batch. simcse: a text is "
        "its own partner, under another dropout. Default: cosine for scored pairs, ranking for "
        "pairs and triples, simcse for texts.",
        choices=OBJECTIVES,
        recorded=True,
        kept=True,
    )
    temperature: float = groups.OPTIMIZER.flag(
        0.05,
        "For ranking and simcse: the divisor of similarities; a lower one pushes near texts "
        "further apart.",
        above=0,
        most=HIGHEST_TEMPERATURE,
        recorded=True,
        kept=True,
    )
    pooling: str = groups.HEAD.flag(
        PerModel("mean"),
        "How the tokens of a text become one vector: their mean, their maximum, or the vector of "
        "[CLS].",
        choices=POOLINGS,
    )
    normalize: bool = groups.HEAD.flag(
        PerModel(True),
        "Give vectors the length 1; off, ranking compares dot products instead of cosines.",
    )
    embedding_sizes: str = groups.HEAD.flag(
        None,
        "Sizes that vectors can be cut to, such as 256,128,64: a loss for each size makes its "
        "first numbers a vector of their own (Matryoshka). Default: the whole vector.",
        recorded=True,
    )
    classifier_dropout: float = shared(
        "classifier_dropout",
        default=None,
        help="Has no effect here: there is no head.",
        no_effect=True,
        group=groups.COMPATIBILITY,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The console script and the launcher; returns the exit status."""
    return run_program(learn_vectors, SimilarityFlags, argv)


def learn_vectors(values: SimilarityFlags) -> None:
    """Checks the flags that are run_similarity's own, and runs the program."""
    if values.task_name:
        values = dataclasses.replace(values, task_name=values.task_name.lower())
    elif any(_own_files(values).values()) and not values.data_dir:
        values = dataclasses.replace(values, task_name=OWN_FILES)
    for name in ("train_file", "dev_file", "test_file"):
        check_is_file(values, name)
    finetune(values, PROGRAM)


def _own_files(values: SimilarityFlags) -> dict[str, str]:
    """Split -> path, of the flags that name files."""
    files = {"train": values.train_file, "dev": values.dev_file, "test": values.test_file}
    return {split: path for split, path in files.items() if path}


def read_data(values: SimilarityFlags) -> SimilarityDataset:
    """The data set of the flags, which must suit --objective."""
    columns = Columns(
        values.text_column, values.second_column, values.third_column, values.label_column
    )
    files, name = _own_files(values), values.task_name
    if name not in (*INFERENCES, *SCORED, *FILE_TYPES, OWN_FILES):
        raise InputError(
            f"--task_name must be one of {', '.join((*INFERENCES, *SCORED, *FILE_TYPES))}. "
            f"Received: {name or 'none'}"
        )
    if not values.data_dir and not files:
        raise InputError(
            "--data_dir must be given, or --train_file, --dev_file or --test_file with your own "
            "file. Received: none"
        )
    dataset = SimilarityDataset(OWN_FILES, {})
    if values.data_dir and name in FILE_TYPES:
        dataset = folder_dataset(name, values.data_dir, columns, values.encoding)
    elif values.data_dir and name != OWN_FILES:
        dataset = known_dataset(name)
    dataset = with_files(dataset, files, columns, values.encoding)
    if values.do_train and "train" in dataset.sources:
        check_objective(values, dataset)
    return dataset


def check_objective(values: SimilarityFlags, dataset: SimilarityDataset) -> None:
    """Refuses an objective that the training examples cannot serve."""
    form = dataset.form("train")
    if values.objective not in (None, form.objective, "simcse"):
        needed = {"cosine": "pairs with scores", "ranking": "pairs or triples without scores"}
        raise InputError(
            f"--objective={values.objective} needs {needed[values.objective]} to train on. "
            f"Received: {form}"
        )


def read_split(
    dataset: SimilarityDataset, split: str, data_dir: str
) -> tuple[list[SimilarityExample], dict[str, int]]:
    """Reads the examples of a split, and counts what was left out."""
    source = dataset.sources[split]
    if split in dataset.own and is_of_questions(source):
        path = source.files[0]
        questions, _ = read_questions(path, with_answers=False)
        pairs = [(q.id, (q.question, q.context)) for q in questions]
        return [SimilarityExample(name, texts, None, path) for name, texts in pairs], {}
    return read_examples(dataset, split, data_dir)


def make_task(job: DownstreamJob[SimilarityFlags, SimilarityDataset]) -> "Similarity":
    """The task of a `DownstreamJob` as a `Similarity`."""
    from finetuning.similarity.task import Similarity

    flags, objective = job.flags, job.flags.objective
    if objective is None and "train" in job.dataset.sources:
        objective = job.dataset.form("train").objective
    if flags.do_train and objective == "simcse":
        check_dropout(job.config)
    return Similarity(
        job.dataset,
        job.tokenizer,
        flags.max_seq_length,
        pooling=flags.pooling,
        normalize=flags.normalize,
        sizes=read_sizes(flags.embedding_sizes, job.config.hidden_size),
        objective=objective or "ranking",
        temperature=flags.temperature,
    )


def check_dropout(config: Any) -> None:
    """Refuses simcse for a model in which both passes of a text are the same."""
    rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if not any(rates):
        raise InputError(
            "--objective=simcse needs dropout: hidden_dropout_prob or "
            "attention_probs_dropout_prob above 0 in the model's configuration. Received: 0 and 0"
        )


def read_sizes(text: str | None, hidden_size: int) -> tuple[int, ...]:
    """The sizes of --embedding_sizes, parts of a vector of the model; none without the flag."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() and 1 <= int(part[:9]) <= hidden_size for part in parts):
        raise InputError(
            f"--embedding_sizes must be numbers from 1 to {hidden_size}, the model's hidden_size, "
            f"separated by commas. Received: {text}"
        )
    return tuple(map(int, parts))


PROGRAM = Program(
    TASKS["similarity"],
    read_data,
    read_split,
    make_task,
    texts=operator.attrgetter("texts"),
)


if __name__ == "__main__":
    sys.exit(main())
