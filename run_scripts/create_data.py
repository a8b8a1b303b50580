"""Makes pre-training records from text files (python create_pretraining_data.py)."""

import dataclasses
import glob
import os
import random
import sys
import time
import warnings
from typing import NamedTuple

from tqdm import tqdm

from bert_tf.quiet import import_tensorflow
from create_pretraining_data.documents import describe, find_layout_problems, read_documents
from create_pretraining_data.instances import make_features, make_instances
from create_pretraining_data.masking import MaskingRules
from create_pretraining_data.pairs import (
    OBJECTIVES,
    SHORTEST_SEQUENCE,
    PairRules,
    is_too_short_for_a_pair,
)
from run_scripts.cli import Columns, expand_globs, flag, resolve_columns, run_program
from run_scripts.tokenizer_flags import check_tokenizer_flags, open_tokenizer
from tokenization.errors import InputError
from tokenization.folders import make_writable


@dataclasses.dataclass(frozen=True)
class CreateDataFlags:
    """Turns text (UTF-8, one sentence a line, a blank line between documents) into records.

    Runs on the CPU; a GPU is of no use to it.
    """

    input_file: str = flag(None, "Text files: paths or globs, comma-separated.", required=True)
    output_file: str = flag(
        None,
        "Record files to write, comma-separated; examples go to them in turn. "
        "Without it: each input file's name with .tfrecord behind it.",
    )
    objective: str = flag(
        None,
        "nsp: is B the sentence after A, or a random one; sop: are A and B in order; none: one "
        "segment without a sentence label. Without it: sop if a flag that only ALBERT's script "
        "has is given, else nsp.",
        choices=OBJECTIVES,
    )
    vocab_file: str = flag(None, "The vocabulary, one piece a line.")
    spm_model_file: str = flag(None, "A SentencePiece model, instead of vocab_file.")
    tokenizer: str = flag(
        None,
        "full: google-research/bert's; korean: keeps Hangul and its words whole; sentencepiece. "
        "Without it: sentencepiece if spm_model_file is given, else full.",
        choices=("full", "korean", "sentencepiece"),
    )
    tokenizer_dir: str = flag(
        None, "A folder with tokenizer_config.json and its vocabulary, instead of the three above."
    )
    do_lower_case: bool = flag(
        None, "Lower-case the text. Without it: true for full and sentencepiece, false for korean."
    )
    max_seq_length: int = flag(Columns(128, 512), "Most pieces of an example, specials included.")
    max_predictions_per_seq: int = flag(
        20, "Most masked pieces of an example; max_seq_length * masked_lm_prob is what it takes."
    )
    masked_lm_prob: float = flag(0.15, "The share of the pieces that is masked.")
    do_whole_word_mask: bool = flag(
        Columns(False, True), "Mask all pieces of a word at once; a word is the tokenizer's word."
    )
    ngram: int = flag(Columns(1, 3), "Mask up to so many words (or pieces) in a row.")
    favor_shorter_ngram: bool = flag(
        Columns(True, True), "Draw a run of n with weight 1/n; if false, the other way round."
    )
    do_permutation: bool = flag(
        Columns(False, False),
        "Besides masking, let as many pieces again trade places, to be predicted too; such "
        "records have 2 * max_predictions_per_seq places.",
    )
    random_next_sentence: bool = flag(
        Columns(False, False), "ALBERT's name for the objective nsp (with ALBERT's defaults)."
    )
    short_seq_prob: float = flag(
        0.1, "The share of passes over a document that make shorter examples."
    )
    dupe_factor: int = flag(
        Columns(10, 40), "How many passes over the text, each with other cuts and masks."
    )
    random_seed: int = flag(12345, "The same seed gives the same bytes.")
    input_file_mode: str = flag(None, "Accepted for ALBERT's command lines; means nothing here.")
    parallel: bool = flag(None, "Accepted for ALBERT's command lines; means nothing here.")


# The flags that google-research/albert's script has and google-research/bert's has not. (parallel
# is not among them: it was added later, and says nothing about the model.)
ALBERT_ONLY = (
    "spm_model_file", "ngram", "favor_shorter_ngram", "random_next_sentence", "do_permutation",
    "input_file_mode",
)  # fmt: skip

# Far beyond any BERT; a larger one is a slip of the hand, and would fill the memory.
LONGEST_SEQUENCE = 65_536

MODEL_NAMES = {"bert": "BERT", "albert": "ALBERT"}
COLUMN_OF_OBJECTIVE = {"nsp": "bert", "sop": "albert", "none": "bert"}


class Plan(NamedTuple):
    """The objective with the column of defaults that goes with it."""

    objective: str
    column: str  # "bert" or "albert"
    reason: str


def main(argv=None):
    """Runs the program; returns its exit status."""
    return run_program(create_data, CreateDataFlags, argv)


def is_given(flags, name):
    """Whether the command line has the flag, for flags that default to None or `Columns`."""
    value = getattr(flags, name)
    return value is not None and not isinstance(value, Columns)


def choose_plan(flags):
    """Chooses objective and defaults from what the command line has.

    Args:
        flags: `CreateDataFlags` as parsed, its `Columns` not resolved.

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
        column = COLUMN_OF_OBJECTIVE[flags.objective]
        return Plan(flags.objective, column, f"because of --objective={flags.objective}")
    given = [name for name in ALBERT_ONLY if is_given(flags, name)]
    if not given:
        return Plan("nsp", "bert", "because neither --objective nor a flag of ALBERT's is given")
    if is_given(flags, "random_next_sentence") and wants_random:
        return Plan("nsp", "albert", "because of --random_next_sentence")
    names = ", ".join(f"--{name}" for name in given)
    return Plan("sop", "albert", f"because a flag of ALBERT's is given ({names})")


def create_data(flags):
    """Makes the records.

    Args:
        flags: `CreateDataFlags` as parsed.

    Raises:
        InputError: anything that a person can set right.
    """
    started = time.monotonic()
    plan = choose_plan(flags)
    print(f"objective: {plan.objective}, defaults: {MODEL_NAMES[plan.column]}'s, {plan.reason}")
    for name in ("input_file_mode", "parallel"):
        if is_given(flags, name):
            print(f"--{name} means nothing here (text is read as UTF-8, in one process)")
    check_tokenizer_flags(flags)
    flags = resolve_columns(flags, plan.column)
    check_numbers(flags)
    input_files = expand_globs(flags.input_file, "input_file")
    output_files = choose_output_files(
        flags.output_file, input_files, files_read(flags, input_files)
    )
    tokenizer = open_tokenizer(flags)
    needed = round(flags.max_seq_length * flags.masked_lm_prob)
    if needed > flags.max_predictions_per_seq:
        warnings.warn(
            f"--max_predictions_per_seq={flags.max_predictions_per_seq} masks less than "
            f"--masked_lm_prob={flags.masked_lm_prob:g} of the longest examples; "
            f"--max_predictions_per_seq={needed} would do",
            stacklevel=2,
        )
    for folder in sorted({os.path.dirname(path) or "." for path in output_files}):
        make_writable(folder, "--output_file must lie in a folder that can be made and written to")

    documents = read_documents(input_files, tokenizer)
    for problem in find_layout_problems(documents, plan.objective):
        warnings.warn(problem, stacklevel=2)
    left_out = 0
    if plan.objective != "none":
        left_out = sum(map(is_too_short_for_a_pair, documents))
        if left_out == len(documents):
            raise InputError(
                "the input must hold a document of at least two words. "
                f"Received: {len(documents)} documents of one word"
            )
    import_tensorflow()
    from create_pretraining_data.records import RecordFormat, write_records

    rng = random.Random(flags.random_seed)
    instances = make_instances(
        documents,
        *make_rules(flags, plan.objective, tokenizer),
        flags.dupe_factor,
        rng,
        progress=lambda passes: _progress(passes, "making", "document"),
    )
    if len(instances) < len(output_files):
        raise InputError(
            "there must be an example for each output file. "
            f"Received: {len(instances)} examples, {len(output_files)} files"
        )
    record_format = RecordFormat(
        max_seq_length=flags.max_seq_length,
        max_predictions_per_seq=flags.max_predictions_per_seq * (1 + flags.do_permutation),
        sentence_label=plan.objective != "none",
        token_boundary=plan.column == "albert",  # as ALBERT's script, whose training reads it
    )
    write_records(
        output_files,
        (
            make_features(instance, record_format, tokenizer.pad_id or 0)
            for instance in _progress(instances, "writing", "example")
        ),
        record_format,
    )
    corpus = describe(documents, tokenizer.unk_id)
    print(summary(corpus, left_out, instances, flags.max_seq_length, time.monotonic() - started))
    print(f"written: {', '.join(output_files)}")


def make_rules(flags, objective, tokenizer):
    """How sequences are cut, how they are masked.

    Args:
        flags: `CreateDataFlags` without `Columns`.
        objective: "nsp", "sop" or "none".
        tokenizer: the tokenizer of the flags.

    Returns:
        `PairRules`, `MaskingRules`.
    """
    pair_rules = PairRules(
        objective=objective,
        max_seq_length=flags.max_seq_length,
        short_seq_prob=flags.short_seq_prob,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    masking_rules = MaskingRules(
        masked_lm_prob=flags.masked_lm_prob,
        max_predictions_per_seq=flags.max_predictions_per_seq,
        do_whole_word_mask=flags.do_whole_word_mask,
        ngram=flags.ngram,
        favor_shorter_ngram=flags.favor_shorter_ngram,
        do_permutation=flags.do_permutation,
        mask_id=tokenizer.mask_id,
        vocab_size=tokenizer.vocab_size,
    )
    return pair_rules, masking_rules


def summary(corpus, left_out, instances, max_seq_length, seconds):
    """The one line about what was made."""
    parts = [
        f"{corpus.documents} documents" + (f" ({left_out} of one word left out)" * bool(left_out)),
        f"{corpus.sentences} sentences",
        f"{len(instances)} examples",
    ]
    labels = [instance.sentence_label for instance in instances]
    if labels[0] is not None:
        parts.append(f"label 1: {sum(labels) / len(labels):.1%}")
    mean_length = sum(len(instance.input_ids) for instance in instances) / len(instances)
    parts += [
        f"mean length {mean_length:.1f} of {max_seq_length}",
        f"[UNK] {corpus.unknown / corpus.pieces:.2%}",
        f"{seconds:.1f} s",
        f"{len(instances) / seconds:.0f} examples/s",
    ]
    return ", ".join(parts)


def check_numbers(flags):
    """Refuses numbers out of their range.

    Raises:
        InputError: names the flag, its range, its value.
    """
    least = {
        "max_seq_length": SHORTEST_SEQUENCE,
        "max_predictions_per_seq": 1,
        "ngram": 1,
        "dupe_factor": 1,
    }
    for name, bound in least.items():
        if getattr(flags, name) < bound:
            raise InputError(f"--{name} must be at least {bound}. Received: {getattr(flags, name)}")
    if flags.max_seq_length > LONGEST_SEQUENCE:
        raise InputError(
            f"--max_seq_length must be at most {LONGEST_SEQUENCE}. Received: {flags.max_seq_length}"
        )
    if not 0 <= flags.masked_lm_prob < 1:
        raise InputError(
            f"--masked_lm_prob must be at least 0 and below 1. Received: {flags.masked_lm_prob}"
        )
    if not 0 <= flags.short_seq_prob <= 1:
        raise InputError(
            f"--short_seq_prob must be between 0 and 1. Received: {flags.short_seq_prob}"
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
        files = [part.strip() for part in output_file.split(",") if part.strip()]
    else:
        files = [f"{path}.tfrecord" for path in input_files]  # as google-research/albert
    if not files:
        raise InputError(f"--output_file must name a file. Received: {output_file!r}")
    for path in files:
        if files.count(path) > 1:
            raise InputError(f"--output_file must name each file once. Received: {path} twice")
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


def _progress(items, what, unit):
    return tqdm(items, desc=what, unit=f" {unit}s", leave=False, delay=1, disable=None)


if __name__ == "__main__":
    sys.exit(main())
