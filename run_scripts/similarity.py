"""The run_similarity program, which trains text vectors whose cosines measure similarity."""

import dataclasses
import functools
import operator
import sys
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from bert_common.text_encoding import NAMES
from finetuning.similarity.data import INFERENCES, OBJECTIVES, SCORED, SimilarityDataset
from finetuning.tables import OWN_FILES, composed
from finetuning.tasks import TASKS
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.finetune import TRAIN_PART, FinetuneFlags
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE
from run_scripts.similarity_data import own_files, read_data, read_split, train_names

if TYPE_CHECKING:
    from finetuning.similarity.task import Similarity

SETTINGS = TASKS["similarity"].settings

shared = functools.partial(redeclare, FinetuneFlags)


@dataclasses.dataclass(frozen=True)
class SimilarityFlags(FinetuneFlags):
    """Trains a model that turns texts into vectors, for search and comparison.

    The cosine of two vectors says how similar their texts are. Training starts from any pre-trained
    BERT, ALBERT or ELECTRA.

    To evaluate or predict after training, give --do_eval or --do_predict, the examples and the
    --output_dir of the training run."""

    EXAMPLE = (
        "--task_name=klue-nli --data_dir=data/klue-nli-v1.1 --output_dir=output/vectors "
        "--bert_config_file=output/model/bert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval"
    )

    data_dir: str = shared(
        "data_dir",
        help="The folder with the task's files. Not needed if flags such as --train_file name all "
        "the files.",
        required=False,
    )
    train_file: str = groups.FILES.optional(
        "Your own training file: .csv, .tsv, .jsonl, .json or .parquet with single texts, pairs, "
        "scored pairs, or triples (the third text differs in meaning from the first). A .json "
        "file in SQuAD's format gives pairs of question and text. Separate several files with "
        "commas; each batch comes from one file. To train on --task_name's data set too, add its "
        "name to the list.",
        is_input=True,
        is_path=True,
    )
    train_shares: str = groups.FILES.optional(
        "How often each file in --train_file supplies a batch, as a ratio such as 3,1. Default: "
        "proportional to its number of examples.",
        recorded=True,
        kept=True,
    )
    dev_file: str = groups.FILES.input_file(
        "Your own dev file: pairs, in any format that --train_file accepts."
    )
    test_file: str = groups.FILES.input_file(
        "Your own test file: pairs, in any format that --train_file accepts."
    )
    task_name: str = groups.TASK.optional(
        f"The data set. {', '.join(INFERENCES)}: triples of a sentence, an entailed sentence and "
        f"a contradicting sentence. {', '.join(SCORED)}: pairs with scores. csv, tsv, jsonl: your "
        "own train, dev and test files in --data_dir. Not needed if a flag such as --train_file "
        "names your files. mismnli is MNLI with its mismatched dev and test sets.",
        convert=str.lower,
    )
    text_column: str = groups.COLUMNS.optional(
        "The column with the first text of each example in your own data files. Default: the "
        "column named text, sentence1, query, question or the like.",
        convert=composed,
    )
    second_column: str = groups.COLUMNS.optional(
        "The column with the second text of each pair in your own data files. Default: the column "
        "named second, sentence2, positive, passage or the like, if any.",
        convert=composed,
    )
    third_column: str = groups.COLUMNS.optional(
        "The column with the third text of each triple in your own data files. Default: the column "
        "named third, negative or the like, if any.",
        convert=composed,
    )
    label_column: str = groups.COLUMNS.optional(
        "The column with each pair's score in your own data files. Default: the column named "
        "score, label or the like, if any.",
        convert=composed,
    )
    encoding: str = groups.COLUMNS.optional(
        "The encoding of your own data files. Default: detected.", choices=tuple(NAMES)
    )
    objective: str = groups.OPTIMIZER.optional(
        "The training objective. cosine: the cosine of a pair's vectors should equal the "
        "pair's score, scaled to at most 1. ranking: a text should be closer to its partner "
        "than to other texts in the batch. simcse: a text is its own partner, under different"
        " dropout. both: cosine for files with scores, ranking for others. Default: cosine "
        "for pairs with scores; ranking for pairs without scores and for triples; simcse for "
        'single texts; "both" if only some files have scores.',
        choices=OBJECTIVES,
        recorded=True,
        kept=True,
    )
    temperature: float = groups.OPTIMIZER.flag(
        0.05,
        "The softmax temperature by which similarities are divided, for every --objective except "
        "cosine. Lower values put more weight on hard negatives.",
        above=0,
        recorded=True,
        kept=True,
    )
    pooling: str = groups.HEAD.setting(
        SETTINGS["pooling"],
        "How to combine a text's token vectors into one. mean: their mean. max: their "
        "element-wise maximum. cls: the vector of [CLS].",
    )
    normalize: bool = groups.HEAD.setting(
        SETTINGS["normalize"],
        "Scale vectors to length 1. If off, the ranking and simcse objectives use dot products "
        "instead of cosines.",
    )
    embedding_sizes: str = groups.HEAD.optional(
        "Train vectors that can also be truncated to these numbers of dimensions, such as "
        "256,128,64 (Matryoshka embeddings). Each adds a loss term. Default: only the full size.",
        recorded=True,
    )
    freeze_embeddings: bool = groups.LAYERS.flag(
        False,
        "Do not train the token, position and segment embeddings. This makes the output of "
        "export_model.py --format=difference much smaller.",
        recorded=True,
        kept=True,
    )
    classifier_dropout: float = shared(
        "classifier_dropout",
        default=None,
        help="Accepted but has no effect: there is no task head.",
        no_effect=True,
        group=groups.COMPATIBILITY,
    )


def learn_vectors(values: SimilarityFlags) -> None:
    """Checks run_similarity's own flags and runs the program."""
    known = {}
    if not (values.task_name or values.data_dir) and (values.train_file or own_files(values)):
        known = {"task_name": OWN_FILES}
    names = train_names(values)
    for path in names:
        is_task = len(names) > 1 and path == known.get("task_name", values.task_name)
        if path and not is_task and (kind := kind_of_path(path)) != FILE:
            raise InputError(f"--train_file must be {FILE}. Received: {path}, {kind}")
    finetune(values, PROGRAM, **known)


def check_dropout(job: DownstreamJob[SimilarityFlags, SimilarityDataset], objective: str) -> None:
    """Raises an `InputError` if texts are their own partners without dropout, as equal vectors."""
    config, dropout = job.config, job.flags.encoder_dropout
    rates = [config.hidden_dropout_prob, config.attention_probs_dropout_prob]
    rates = rates if dropout is None else [dropout]
    if objective == "simcse":
        needs = "--objective=simcse needs"
    elif job.dataset.parts and any(form.texts == 1 for form in job.dataset.forms):
        needs = "single texts in --train_file need"
    else:
        return
    if not any(rates):
        raise InputError(
            f"{needs} dropout: --encoder_dropout above 0, or without that flag "
            "hidden_dropout_prob or attention_probs_dropout_prob in the model's configuration. "
            f"Received: {' and '.join(f'{rate:g}' for rate in rates)}"
        )


def make_task(job: DownstreamJob[SimilarityFlags, SimilarityDataset]) -> "Similarity":
    """Returns the `Similarity` of a `DownstreamJob`."""
    from finetuning.similarity.task import Similarity

    flags, config, objective = job.flags, job.config, job.flags.objective
    if objective is None:
        objective = job.dataset.objective if "train" in job.dataset.sources else "ranking"
    if flags.do_train:
        check_dropout(job, objective)
    return Similarity(
        job.dataset,
        job.tokenizer,
        flags.max_seq_length,
        pooling=flags.pooling,
        normalize=flags.normalize,
        sizes=read_sizes(flags.embedding_sizes, config.hidden_size),
        objective=objective,
        temperature=flags.temperature,
        freeze_embeddings=flags.freeze_embeddings,
        on_train_part=flags.eval_on == TRAIN_PART,
    )


def read_sizes(text: str | None, hidden_size: int) -> tuple[int, ...]:
    """Returns the sizes of --embedding_sizes, at most `hidden_size`; none without the flag."""
    if not text:
        return ()
    return read_numbers(
        "embedding_sizes",
        text,
        f"numbers from 1 to {hidden_size}, the model's hidden_size, separated by commas",
        lambda sizes: all(1 <= size <= hidden_size for size in sizes),
    )


PROGRAM = Program(
    TASKS["similarity"], read_data, read_split, make_task, texts=operator.attrgetter("texts")
)


main = functools.partial(run_program, learn_vectors, SimilarityFlags)

if __name__ == "__main__":
    sys.exit(main())
