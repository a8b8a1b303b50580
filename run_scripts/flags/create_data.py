"""Declares the flags of create_pretraining_data, with the checks that need no text."""

import dataclasses
import glob
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from create_pretraining_data.engine.plain_text import TEXT_KEY
from create_pretraining_data.engine.repeats import DROPPED_KINDS
from create_pretraining_data.engine.splitting import FORMATS
from create_pretraining_data.engine.work_plan import COMPRESSIONS
from create_pretraining_data.instances.long_lines import LONG_LINES
from create_pretraining_data.instances.packing import row_predictions
from create_pretraining_data.instances.pairs import OBJECTIVES, SHORTEST_SEQUENCE
from create_pretraining_data.records.shard_names import expand_output_file
from model_formats.encoders import ALBERT, BERT, ENCODERS
from model_formats.model_folder import ModelFolder
from run_scripts.flags import groups
from run_scripts.flags.declaration import PerModel, flag, is_given, resolve_model_defaults
from run_scripts.flags.paths import FILE, FOLDER, NOTHING, split_list
from run_scripts.flags.tokenizer import TokenizerFlags


@dataclasses.dataclass(frozen=True)
class CreateDataFlags(TokenizerFlags):
    """Turns text (UTF-8, one sentence per line, a blank line between documents) into records.

    The program runs on the CPU; a GPU does not help. If it is stopped or killed, the same command
    resumes the work.
    """

    EXAMPLE = (
        "--input_file='data/*.txt' --output_file=output/train.tfrecord "
        "--tokenizer_dir=data/vocab --objective=sop --max_seq_length=128"
    )

    input_file: str = groups.FILES.required(
        "The text to read: comma-separated files, folders or globs. Files hold plain text or "
        'JSON lines, optionally gzipped. With the pip extra "parquet", the program also reads'
        " Parquet files and folders saved by the Hugging Face datasets library.",
        is_input=True,
        is_path=True,
        in_manifest=False,
    )
    input_format: str = groups.FILES.optional(
        "The format of the input files. text: one sentence per line, a blank line between "
        "documents. jsonl: one JSON object per line, with a document under --text_key, its "
        "sentences separated by newlines. Default: jsonl for .jsonl, .ndjson and .json files, "
        "gzipped or not, else text.",
        choices=FORMATS,
    )
    text_key: str = groups.FILES.flag(
        TEXT_KEY,
        "The JSON key or the Parquet or Arrow column that holds a document. Use dots for nested "
        "keys, such as meta.body.",
        in_manifest=False,
    )
    split_sentences: bool = groups.FILES.flag(
        False, 'Split lines that hold several sentences. Needs the pip extra "korean" (kiwipiepy).'
    )
    long_lines: str = groups.FILES.flag(
        "split",
        "What to do with a line that does not fit in an example. split: divide it at sentence "
        "ends, else between words. truncate: drop tokens from either end at random, as Google's "
        "scripts do.",
        choices=LONG_LINES,
    )
    drop_duplicates: str = groups.FILES.flag(
        "none",
        "Which duplicates to drop, keeping the first occurrence. documents: whole documents. "
        "lines: documents, and lines of 10 or more characters.",
        choices=tuple(DROPPED_KINDS),
    )
    output_file: str = groups.OUTPUT.optional(
        "The TFRecord files to write, comma-separated. ko.tfrecord@64 means 64 files: "
        "ko-00000-of-00064.tfrecord and so on. Examples are shuffled across files. Default: "
        "one file beside each input file, with .tfrecord appended to its name.",
        is_path=True,
        in_manifest=False,
    )
    model_dir: str = groups.MODEL.input_folder(
        "The folder of the model that will be trained on the records. It provides the tokenizer "
        "and the default for --objective.",
        in_manifest=False,
    )
    objective: str = groups.ROWS.optional(
        "What to predict about segments A and B. nsp: whether B follows A or is random. sop: "
        "whether A and B are in order or swapped; other flags get ALBERT's defaults. none: "
        "nothing; there is no B. Default: depends on the model in --model_dir (BERT nsp, "
        "ALBERT sop, ELECTRA none); without one, sop if --spm_model_file, --ngram, "
        "--favor_shorter_ngram, --do_permutation, --input_file_mode or "
        "--random_next_sentence=false is given, else nsp.",
        choices=OBJECTIVES,
    )
    max_seq_length: int = groups.ROWS.flag(
        PerModel(128, {"albert": 512}),
        "The maximum number of tokens in an example, including special tokens.",
        least=SHORTEST_SEQUENCE,
        most=65_536,  # far more than any BERT takes; a billion would fill the memory
    )
    max_predictions_per_seq: int = groups.ROWS.optional(
        "The maximum number of masked tokens in an example, usually set to --max_seq_length * "
        "--masked_lm_prob. Default: 20; if --packing is on, that product, rounded up.",
        least=1,
    )
    packing: bool = groups.ROWS.flag(
        False,
        "Put several sequences into one example, without attention between them. This reduces "
        "padding and speeds up training.",
    )
    masking: str = groups.ROWS.flag(
        "static",
        "When to mask tokens. static: now, differently in each of the --dupe_factor passes. "
        "dynamic: during training, differently in each epoch.",
        choices=("static", "dynamic"),
    )
    masked_lm_prob: float = groups.ROWS.flag(
        0.15, "The share of tokens to mask and predict.", least=0, below=1
    )
    mask_replace_prob: float = groups.ROWS.flag(
        0.8,
        "Of the tokens to predict, the share to replace with [MASK]. To use [MASK] alone, set "
        "this to 1 and --random_replace_prob to 0.",
        least=0,
        most=1,
    )
    random_replace_prob: float = groups.ROWS.flag(
        0.1,
        "Of the tokens to predict, the share to replace with random tokens. Tokens left after "
        "this and --mask_replace_prob stay unchanged.",
        least=0,
        most=1,
    )
    do_whole_word_mask: bool = groups.ROWS.flag(
        PerModel(False, {"albert": True}), "Mask all tokens of a word together."
    )
    ngram: int = groups.ROWS.flag(
        PerModel(1, {"albert": 3}),
        "The maximum number of consecutive words (tokens if --do_whole_word_mask is off) to mask "
        "together.",
        least=1,
        most=32,  # SpanBERT's longest spans have 10 words
    )
    favor_shorter_ngram: bool = groups.ROWS.flag(
        PerModel(True),
        "Mask short n-grams more often: length n has weight 1/n. Off: mask long n-grams more "
        "often, with these weights in reverse order.",
    )
    do_permutation: bool = groups.ROWS.flag(
        PerModel(False),
        "Besides masking tokens, shuffle an equal number of other tokens, and predict the "
        "original tokens at the masked and the shuffled positions. Examples then hold up to 2"
        " * --max_predictions_per_seq predictions.",
    )
    random_next_sentence: bool = groups.ROWS.flag(
        PerModel(False),
        "true: the same as --objective=nsp, except that other flags get ALBERT's defaults. "
        "false: the same as --objective=sop.",
        in_manifest=False,
    )
    short_seq_prob: float = groups.ROWS.flag(
        0.1,
        "The probability that a document is split into shorter examples, of random length. "
        "Each pass over the text decides anew.",
        least=0,
        most=1,
    )
    dupe_factor: int = groups.ROWS.flag(
        PerModel(10, {"albert": 40}),
        "The number of passes over the text, each with different masks and pairs. The "
        "defaults of BERT and ALBERT are for --masking=static; with --masking=dynamic, the "
        "default is 1.",
        least=1,
    )
    random_seed: int = flag(
        12345,
        "The seed for all random choices. The same seed gives byte-identical output files.",
        least=-(2**63),
        most=2**63 - 1,
    )
    compression: str = groups.OUTPUT.flag(
        "none",
        "The compression of the record files. run_pretraining reads both kinds.",
        choices=COMPRESSIONS,
    )
    num_workers: int = groups.PROCESSES.optional(
        "The number of worker processes. Does not affect the record files. Default: one per core.",
        least=1,
        in_manifest=False,
        not_with=("engine=spark",),
    )
    num_tasks: int = groups.PROCESSES.flag(
        1,
        "The number of runs that share the work through a shared file system, each with its own "
        "--task_index. The last run to finish writes the TFRecord files.",
        least=1,
        in_manifest=False,
    )
    task_index: int = groups.PROCESSES.flag(
        0,
        "The index of this run among --num_tasks runs, from 0.",
        least=0,
        in_manifest=False,
    )
    engine: str = groups.PROCESSES.flag(
        "local",
        "Where the work runs. local: in processes on this machine. spark: on Apache Spark, "
        "with --spark_master; its executors need the same files and Python packages as this "
        "machine.",
        choices=("local", "spark"),
        in_manifest=False,
    )
    spark_master: str = groups.PROCESSES.optional(
        "The Spark master URL, such as spark://host:7077, yarn, k8s://... or local[4].",
        in_manifest=False,
        needs=("engine=spark",),
    )
    input_file_mode: str = groups.COMPATIBILITY.optional(
        "Accepted but has no effect, except on the default of --objective.", in_manifest=False
    )
    parallel: bool = groups.COMPATIBILITY.unused(in_manifest=False)


# The flags of google-research/albert's script that google-research/bert's lacks, except parallel,
# which was added later and does not depend on the model.
ALBERT_ONLY = (
    "spm_model_file", "ngram", "favor_shorter_ngram", "random_next_sentence", "do_permutation",
    "input_file_mode",
)  # fmt: skip

# The default of both reference scripts, whatever max_seq_length is.
GOOGLES_PREDICTIONS = 20


class ObjectiveDefaults(NamedTuple):
    """The objective, and the model whose defaults apply."""

    objective: str
    model_type: str  # a key of `ENCODERS`
    reason: str


def choose_objective(
    flags: CreateDataFlags, folder: ModelFolder | None = None
) -> ObjectiveDefaults:
    """Chooses the objective and whose defaults apply, from parsed flags and the model's folder."""
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
        # Only encoders with their own defaults; for records without pairs, BERT's apply.
        own = (e for e in ENCODERS.values() if e.defaults == e.name)
        encoders = (e for e in own if e.objective == flags.objective)
        reason = f"because of --objective={flags.objective}"
        return ObjectiveDefaults(flags.objective, next(encoders, BERT).name, reason)
    given = [name for name in ALBERT_ONLY if is_given(flags, name)]
    if folder and not is_given(flags, "random_next_sentence"):
        reason = f"because of {folder.config_file.path}"
        return ObjectiveDefaults(folder.encoder.objective, folder.model_type, reason)
    if not given:
        reason = "because neither --objective nor a flag of ALBERT's is given"
        return ObjectiveDefaults(BERT.objective, BERT.name, reason)
    if is_given(flags, "random_next_sentence") and wants_random:
        return ObjectiveDefaults("nsp", ALBERT.name, "because of --random_next_sentence")
    names = ", ".join(f"--{name}" for name in given)
    reason = f"because a flag of ALBERT's is given ({names})"
    return ObjectiveDefaults(ALBERT.objective, ALBERT.name, reason)


def resolve_defaults(flags: CreateDataFlags, model_type: str) -> CreateDataFlags:
    """Fills in the flags that are not given, from the model type and other flags."""
    known = {"max_predictions_per_seq": GOOGLES_PREDICTIONS}
    if flags.packing:
        length = resolve_model_defaults(flags, model_type).max_seq_length
        known["max_predictions_per_seq"] = row_predictions(length, flags.masked_lm_prob)
    if flags.masking == "dynamic":
        known["dupe_factor"] = 1
    return resolve_model_defaults(flags, model_type, **known)


def check_replacements(flags: CreateDataFlags) -> None:
    """Raises an `InputError` if the replacement probabilities add up to more than 1."""
    if flags.mask_replace_prob + flags.random_replace_prob > 1 + 1e-9:  # rounding
        raise InputError(
            "--mask_replace_prob and --random_replace_prob must add up to at most 1. Received: "
            f"--mask_replace_prob={flags.mask_replace_prob}, "
            f"--random_replace_prob={flags.random_replace_prob}"
        )


def check_engine(flags: CreateDataFlags) -> None:
    """Raises an `InputError` for Spark without an address or --task_index >= --num_tasks."""
    if flags.task_index >= flags.num_tasks:
        raise InputError(
            "--task_index must be below --num_tasks (tasks count from 0). Received: "
            f"--task_index={flags.task_index}, --num_tasks={flags.num_tasks}"
        )
    if flags.engine == "spark" and not flags.spark_master:
        raise InputError(
            "--engine=spark needs --spark_master, such as spark://host:7077 or local[4]. "
            "Received: no address"
        )


def choose_output_files(
    output_file: str | None, input_files: Sequence[str], protected: Sequence[str]
) -> list[str]:
    """Returns the files to write, from --output_file or beside the input, with links resolved.

    Raises an `InputError` for a file that is named twice, is `protected` (because it is read), is
    not a plain file, or cannot be written.
    """
    if output_file:
        files = [path for part in split_list(output_file) for path in expand_output_file(part)]
    else:
        files = [f"{path}.tfrecord" for path in input_files]  # as in google-research/albert
    if not files:
        raise InputError(f"--output_file must name a file. Received: {output_file!r}")
    targets = [os.path.realpath(path) for path in files]  # ./a is the same file as a
    if len(set(targets)) < len(files):
        counts = map(targets.count, targets)
        twice = next(path for path, count in zip(files, counts, strict=True) if count > 1)
        raise InputError(f"--output_file must name each file once. Received: {twice} twice")
    for path in files:
        # A new folder, "new/", would be noticed only when the records are written.
        kind = kind_of_path(path) if os.path.basename(path) else FOLDER
        if kind == NOTHING:
            continue
        if kind != FILE:
            raise InputError(f"--output_file must name plain files. Received: {path}, {kind}")
        if not os.access(path, os.W_OK):
            raise InputError(f"--output_file must be writable. Received: {path}, which is not")
        for source in protected:
            if os.path.samefile(path, source):
                raise InputError(
                    "--output_file must not be a file that is read. "
                    f"Received: {path}, the same as {source}"
                )
    return [os.path.realpath(path) if os.path.islink(path) else path for path in files]


def list_files_read(flags: TokenizerFlags, input_files: Iterable[str]) -> list[str]:
    """Returns every existing file that the program reads and must not overwrite."""
    paths = [*input_files, flags.vocab_file, flags.spm_model_file]
    if flags.tokenizer_dir:
        paths += glob.glob(os.path.join(glob.escape(flags.tokenizer_dir), "*"))
    return [path for path in paths if path and os.path.exists(path)]
