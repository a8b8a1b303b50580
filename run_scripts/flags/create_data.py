"""The flags of create_pretraining_data, with the checks that need no text."""

import dataclasses
import glob
import os
from typing import NamedTuple

from bert_common.errors import InputError
from create_pretraining_data.engine.splitting import FORMATS
from create_pretraining_data.engine.work_plan import COMPRESSIONS
from create_pretraining_data.instances.packing import row_predictions
from create_pretraining_data.instances.pairs import OBJECTIVES, SHORTEST_SEQUENCE
from create_pretraining_data.records.shard_names import expand_output_file
from run_scripts.flags.declaration import PerModel, flag, resolve_model_defaults
from run_scripts.flags.limits import LONGEST_SEQUENCE, MOST_PROCESSES
from run_scripts.flags.paths import split_list
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.model_folder import find_config, find_folder

MASKINGS = ("static", "dynamic")

# SpanBERT's longest runs have 10 words.
LONGEST_NGRAM = 32

# ALBERT's default is 40.
MOST_PASSES = 10_000


@dataclasses.dataclass(frozen=True)
class CreateDataFlags(TokenizerFlags):
    """Turns text (UTF-8, one sentence a line, a blank line between documents) into records.

    Runs on the CPU; a GPU is of no use to it. Stopped or killed, it goes on from where it was
    when the same command is started again.
    """

    input_file: str = flag(
        None,
        "Text files, plain or gzip: paths or globs, comma-separated.",
        required=True,
        is_input=True,
    )
    input_format: str = flag(
        "text",
        "text: one sentence a line, a blank line between documents; jsonl: on each line an object "
        'with "text", a document with one sentence a line.',
        choices=FORMATS,
    )
    split_sentences: bool = flag(
        False,
        "Lines are running text, such as paragraphs: kiwipiepy (the extra korean) splits them into "
        "sentences.",
    )
    output_file: str = flag(
        None,
        "Record files to write, comma-separated; ko.tfrecord@64 stands for 64 files, "
        "ko-00000-of-00064.tfrecord and so on. Examples are shuffled over all of them. "
        "Without it: each input file's name with .tfrecord after it.",
    )
    model_dir: str = flag(
        None,
        "The folder of the model that will be trained on: stands for its tokenizer, where no other "
        "flag names one, and for --objective=sop if it is an ALBERT's, nsp if it is a BERT's.",
        is_input=True,
    )
    objective: str = flag(
        None,
        "nsp: is B the sentence after A, or a random one; sop: are A and B in order; none: one "
        "segment without a sentence label. Without it: that of --model_dir; else sop if a flag "
        "that only ALBERT's script has is given, else nsp.",
        choices=OBJECTIVES,
    )
    max_seq_length: int = flag(
        PerModel(128, 512),
        "Most pieces of an example, specials included.",
        least=SHORTEST_SEQUENCE,
        most=LONGEST_SEQUENCE,
    )
    max_predictions_per_seq: int = flag(
        None,
        "Most masked pieces of an example; max_seq_length * masked_lm_prob is what it takes. "
        "Without it: 20, or what full rows need with --packing.",
        least=1,
        most=LONGEST_SEQUENCE,
    )
    packing: bool = flag(
        False,
        "Fill rows of max_seq_length with several sequences, which do not see each other: less "
        "padding, so fewer records and faster training, the more so the longer they are.",
    )
    masking: str = flag(
        "static",
        "static: the masks are in the records, another for each pass over the text; dynamic: "
        "run_pretraining draws them, others in every epoch, from records that are made once.",
        choices=MASKINGS,
    )
    masked_lm_prob: float = flag(0.15, "The share of the pieces that is masked.", least=0, below=1)
    do_whole_word_mask: bool = flag(
        PerModel(False, True), "Mask all pieces of a word at once; a word is the tokenizer's word."
    )
    ngram: int = flag(
        PerModel(1, 3),
        "Mask up to so many words (or pieces) in a row.",
        least=1,
        most=LONGEST_NGRAM,
    )
    favor_shorter_ngram: bool = flag(
        PerModel(True, True), "Draw a run of n with weight 1/n; if false, the other way round."
    )
    do_permutation: bool = flag(
        PerModel(False, False),
        "Besides masking, let as many pieces again trade places, to be predicted too; such "
        "records have 2 * max_predictions_per_seq places.",
    )
    random_next_sentence: bool = flag(
        PerModel(False, False), "ALBERT's name for the objective nsp (with ALBERT's defaults)."
    )
    short_seq_prob: float = flag(
        0.1, "The share of passes over a document that make shorter examples.", least=0, most=1
    )
    dupe_factor: int = flag(
        PerModel(10, 40),
        "How many passes over the text, each with other cuts and masks. With --masking=dynamic 1 "
        "is enough, and what there is without it.",
        least=1,
        most=MOST_PASSES,
    )
    random_seed: int = flag(
        12345, "The same seed gives the same bytes.", least=-(2**63), most=2**63 - 1
    )
    compression: str = flag(
        "none", "Of the record files; run_pretraining reads both.", choices=COMPRESSIONS
    )
    num_workers: int = flag(
        None,
        "Processes; any number writes the same bytes. Without it: one for each core.",
        least=1,
        most=MOST_PROCESSES,
    )
    engine: str = flag(
        "local",
        "local: processes of this machine; spark: Apache Spark, whose executors see the same files "
        "and the same Python. Both write the same bytes.",
        choices=("local", "spark"),
    )
    spark_master: str = flag(
        None, "For --engine=spark: spark://host:7077, yarn, k8s://..., or local[4] to try it."
    )
    num_tasks: int = flag(
        1,
        "Runs of this program that share the work, on machines with a common file system; "
        "whichever finds all of it done makes the record files.",
        least=1,
        most=MOST_PROCESSES,
    )
    task_index: int = flag(0, "Which of them this is, from 0.", least=0, most=MOST_PROCESSES - 1)
    input_file_mode: str = flag(None, "Accepted for ALBERT's command lines; means nothing here.")
    parallel: bool = flag(None, "Accepted for ALBERT's command lines; means nothing here.")


# The flags that google-research/albert's script has and google-research/bert's has not. (parallel
# is not among them: it was added later, and says nothing about the model.)
ALBERT_ONLY = (
    "spm_model_file", "ngram", "favor_shorter_ngram", "random_next_sentence", "do_permutation",
    "input_file_mode",
)  # fmt: skip

# The default of both reference scripts, whatever max_seq_length is.
GOOGLES_PREDICTIONS = 20

MODEL_NAMES = {"bert": "BERT", "albert": "ALBERT"}
MODEL_TYPE_OF_OBJECTIVE = {"nsp": "bert", "sop": "albert", "none": "bert"}


class Plan(NamedTuple):
    """The objective, and the model whose defaults go with it."""

    objective: str
    model_type: str  # "bert" or "albert"
    reason: str


def is_given(flags, name):
    """Whether the command line has the flag, for flags that default to None or `PerModel`."""
    value = getattr(flags, name)
    return value is not None and not isinstance(value, PerModel)


def choose_plan(flags):
    """Chooses objective and defaults from what the command line has.

    Args:
        flags: `CreateDataFlags` as parsed, its `PerModel` not resolved.

    Returns:
        A `Plan`.

    Raises:
        InputError: --objective and --random_next_sentence contradict each other.
    """
    wants_random = flags.random_next_sentence
    if flags.objective:
        contradicted = is_given(flags, "random_next_sentence") and (
            flags.objective in (("sop", "none") if wants_random else ("nsp",))
        )
        if contradicted:
            raise InputError(
                "--random_next_sentence must agree with --objective (true is nsp, false is sop). "
                f"Received: --objective={flags.objective}, "
                f"--random_next_sentence={str(wants_random).lower()}"
            )
        model_type = MODEL_TYPE_OF_OBJECTIVE[flags.objective]
        return Plan(flags.objective, model_type, f"because of --objective={flags.objective}")
    given = [name for name in ALBERT_ONLY if is_given(flags, name)]
    if flags.model_dir and not is_given(flags, "random_next_sentence"):
        model_type, path = find_config(find_folder(flags.model_dir))
        return Plan({"bert": "nsp", "albert": "sop"}[model_type], model_type, f"because of {path}")
    if not given:
        return Plan("nsp", "bert", "because neither --objective nor a flag of ALBERT's is given")
    if is_given(flags, "random_next_sentence") and wants_random:
        return Plan("nsp", "albert", "because of --random_next_sentence")
    names = ", ".join(f"--{name}" for name in given)
    return Plan("sop", "albert", f"because a flag of ALBERT's is given ({names})")


def resolve_defaults(flags, model_type):
    """The flags with a value each: those that were not given, by the model and by other flags.

    Args:
        flags: `CreateDataFlags` as parsed.
        model_type: "bert" or "albert".
    """
    chosen = {}
    if flags.masking == "dynamic" and not is_given(flags, "dupe_factor"):
        chosen["dupe_factor"] = 1
    flags = dataclasses.replace(resolve_model_defaults(flags, model_type), **chosen)
    if flags.max_predictions_per_seq is not None:
        return flags
    number = GOOGLES_PREDICTIONS
    if flags.packing:
        number = row_predictions(flags.max_seq_length, flags.masked_lm_prob)
    return dataclasses.replace(flags, max_predictions_per_seq=number)


def check_task(flags):
    """Refuses a task that is none of --num_tasks.

    Raises:
        InputError: names both flags.
    """
    if flags.task_index >= flags.num_tasks:
        raise InputError(
            "--task_index must be below --num_tasks. Received: "
            f"--task_index={flags.task_index}, --num_tasks={flags.num_tasks}"
        )


def check_engine(flags):
    """Refuses flags of one engine with the other.

    Raises:
        InputError: names the flags.
    """
    if flags.engine == "spark" and not flags.spark_master:
        raise InputError("--engine=spark must come with --spark_master. Received: no address")
    if flags.engine != "spark" and flags.spark_master:
        raise InputError(
            "--spark_master must come with --engine=spark. "
            f"Received: --spark_master={flags.spark_master}, --engine={flags.engine}"
        )
    if flags.engine == "spark" and flags.num_workers:
        raise InputError(
            "--num_workers must come with --engine=local; Spark has its own setting, "
            f"spark.executor.cores. Received: --num_workers={flags.num_workers}"
        )


def choose_output_files(output_file, input_files, protected):
    """The files to write, by --output_file or beside the input; a link's target for a link.

    Args:
        output_file: the flag's value, or None.
        input_files: paths.
        protected: files that must not be written over.

    Raises:
        InputError: a name twice, a file that is read, no plain file, or not writable.
    """
    if output_file:
        files = [path for part in split_list(output_file) for path in expand_output_file(part)]
    else:
        files = [f"{path}.tfrecord" for path in input_files]  # as google-research/albert
    if not files:
        raise InputError(f"--output_file must name a file. Received: {output_file!r}")
    if len(set(files)) < len(files):
        twice = next(path for path in files if files.count(path) > 1)
        raise InputError(f"--output_file must name each file once. Received: {twice} twice")
    for path in files:
        if not os.path.exists(path):
            continue
        if not os.path.isfile(path):
            raise InputError(
                f"--output_file must name plain files. Received: {path}, which is none"
            )
        if not os.access(path, os.W_OK):
            raise InputError(f"--output_file must be writable. Received: {path}, which is not")
        for source in protected:
            if os.path.samefile(path, source):
                raise InputError(
                    "--output_file must not be a file that is read. "
                    f"Received: {path}, the same as {source}"
                )
    return [os.path.realpath(path) if os.path.islink(path) else path for path in files]


def files_read(flags, input_files):
    """Every file that the program reads, none of which it may write over."""
    paths = [*input_files, flags.vocab_file, flags.spm_model_file]
    if flags.tokenizer_dir:
        paths += glob.glob(os.path.join(glob.escape(flags.tokenizer_dir), "*"))
    return [path for path in paths if path and os.path.exists(path)]
