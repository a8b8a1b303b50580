"""The create_pretraining_data program, which turns text files into pre-training records."""

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager

from bert_common.atomic_write import check_name_length, remove_partial_files
from bert_common.cpu import available_cores
from bert_common.errors import InputError, MachineError
from bert_common.folders import make_writable
from bert_common.process_pool import Run, start_workers
from bert_common.progress import format_bytes
from bert_common.stop_signals import interrupt_once
from create_pretraining_data.engine import spark as spark_engine
from create_pretraining_data.engine.chunk_file import chunk_files
from create_pretraining_data.engine.passes import make_chunk_files, make_shard_files, read_summaries
from create_pretraining_data.engine.plain_text import recognise_all
from create_pretraining_data.engine.repeat_report import (
    Repeats,
    describe_repeats,
    find_repeat_problems,
    summarize_repeats,
)
from create_pretraining_data.engine.repeats import count_repeats
from create_pretraining_data.engine.size_estimate import SizeEstimate, check_free_space
from create_pretraining_data.engine.splitting import read_chunk_text
from create_pretraining_data.engine.work_folder import (
    begin_or_resume,
    has_chunks,
    locked,
    read_manifest,
    remove_work_folder,
)
from create_pretraining_data.engine.work_plan import WorkPlan, work_folder_for
from create_pretraining_data.instances import sentences
from create_pretraining_data.instances.coverage import NO_PIECE, ONE_WORD
from create_pretraining_data.instances.layout_checks import (
    describe_lost_pieces,
    find_layout_problems,
    find_lost_text,
)
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.records.metadata import (
    are_up_to_date,
    check_names,
    choose_sidecars,
    describe_records,
    remove_sidecars,
    restore_tokenizer,
    write_sidecars,
)
from model_formats.encoders import ENCODERS
from model_formats.model_folder import ModelFolder
from run_scripts.create_data_plan import make_manifest, make_plan, make_settings
from run_scripts.flags.corpora import find_texts
from run_scripts.flags.create_data import (
    CreateDataFlags,
    ObjectiveDefaults,
    check_engine,
    check_replacements,
    choose_objective,
    choose_output_files,
    list_files_read,
    resolve_defaults,
)
from run_scripts.flags.parser import run_program
from run_scripts.flags.tokenizer import check_tokenizer_flags, open_tokenizer
from run_scripts.given_model import named_tokenizer
from tokenization.loading import Tokenizer
from tokenization.unknown_share import UnknownCounter

# The modules that every worker process imports.
PRELOADED = ("create_pretraining_data.engine.passes",)

FEWER_WORKERS = "the same command resumes from here, and needs less with fewer --num_workers"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program for the console script and the launcher; returns the exit status."""
    with interrupt_once():
        return run_program(create_data, CreateDataFlags, argv)


def create_data(flags: CreateDataFlags) -> None:
    """Creates the records from flags as parsed."""
    started = time.monotonic()
    model = ModelFolder.open(flags.model_dir) if flags.model_dir else None
    defaults = choose_objective(flags, model)
    print(
        f"objective: {defaults.objective}, defaults: {ENCODERS[defaults.model_type].title}'s, "
        f"{defaults.reason}"
    )
    tokenizer_flags = named_tokenizer(flags, *filter(None, [model]))
    check_tokenizer_flags(tokenizer_flags, flags.model_dir)
    flags = resolve_flags(flags, defaults)
    input_files = find_texts(flags.input_file)
    protected = list_files_read(tokenizer_flags, input_files)
    output_files = choose_output_files(flags.output_file, input_files, protected)
    check_names(output_files, protected)
    sources = recognise_all(input_files, flags.input_format, flags.text_key)
    tokenizer = open_tokenizer(tokenizer_flags)
    warn_of_few_predictions(flags)
    if model:
        warn_of_small_tables(flags, model, tokenizer)
    for directory in sorted({os.path.dirname(path) or "." for path in output_files}):
        make_writable(
            directory, "--output_file must lie in a folder that can be created and written to"
        )
    for path in (*output_files, *choose_sidecars(output_files)):
        check_name_length(path, "--output_file must be short enough to add to while it is written")
    settings = make_settings(flags, defaults, tokenizer)
    manifest = make_manifest(flags, defaults, tokenizer, sources, output_files)
    folder = work_folder_for(output_files)
    previous = read_manifest(folder)
    if previous is not None and are_up_to_date(output_files, previous):  # killed before removing it
        remove_work_folder(folder)
    if are_up_to_date(output_files, manifest):
        restore_tokenizer(output_files, tokenizer)
        print(f"up to date, made from this text with these settings: {list_files(output_files)}")
        return
    os.makedirs(folder, exist_ok=True)
    with locked(folder, f"task-{flags.task_index}") as is_free:
        if not is_free:
            raise InputError(
                f"only one process at a time may work in {folder} (several: --num_tasks). "
                "Received: another process is running"
            )
        begin_or_resume(folder, manifest, may_clear=flags.num_tasks == 1)
        made_here = flags.num_tasks == 1 and not has_chunks(folder)
        try:
            plan, estimate = make_plan(flags, settings, tokenizer, manifest, sources, output_files)
            done = run_passes(flags, plan, estimate)
        except MachineError:  # the same command resumes, also if only text was unpacked or hashed
            raise
        except InputError:
            # There is nothing to resume: the next run will have different text or flags.
            if flags.num_tasks == 1 and not has_chunks(folder):
                remove_work_folder(folder)
            raise
    if done is not None:
        print(summary(*done, flags, defaults, time.monotonic() - started, made_here))
        print(f"written: {list_files(output_files)}")


def resolve_flags(flags: CreateDataFlags, defaults: ObjectiveDefaults) -> CreateDataFlags:
    """Checks the flags and fills in those that are not given."""
    flags = resolve_defaults(flags, defaults.model_type)
    check_engine(flags)
    check_replacements(flags)
    if flags.engine == "spark":
        spark_engine.check_installed()
    if flags.split_sentences:
        sentences.check_installed()
    return flags


def warn_of_few_predictions(flags: CreateDataFlags) -> None:
    """Warns if --max_predictions_per_seq limits the masking of full examples."""
    needed = round(flags.max_seq_length * flags.masked_lm_prob)
    if needed > flags.max_predictions_per_seq:
        warnings.warn(
            f"--max_predictions_per_seq={flags.max_predictions_per_seq} masks less than "
            f"--masked_lm_prob={flags.masked_lm_prob:g} of the longest examples; "
            f"--max_predictions_per_seq={needed} would do",
            stacklevel=3,
        )


def warn_of_small_tables(flags: CreateDataFlags, model: ModelFolder, tokenizer: Tokenizer) -> None:
    """Warns, before the long work, if the model has too few positions or tokens for the records."""
    most, config = flags.max_seq_length, model.config
    for needed, has, what, cure in (
        (most, config.max_position_embeddings, "positions", f"--max_position_embeddings={most}"),
        (tokenizer.vocab_size, config.vocab_size, "tokens", "--tokenizer_dir"),
    ):
        if needed > has:
            warnings.warn(
                f"the examples have {needed:,} {what}, the model in --model_dir has {has:,}: "
                f"run_pretraining cannot train it on them before adapt_checkpoint {cure}",
                stacklevel=3,
            )


def choose_engine(
    flags: CreateDataFlags, plan: WorkPlan, workers: int
) -> tuple[AbstractContextManager[Run], str]:
    """Returns the context manager, like `start_workers`, that runs tasks, and a name to print."""
    if flags.engine == "spark":
        return spark_engine.start_executors(plan, flags.spark_master), "Spark"
    engine = start_workers((plan,), workers, FEWER_WORKERS, PRELOADED)
    return engine, f"{workers} worker{'s' * (workers > 1)}"


def run_passes(
    flags: CreateDataFlags, plan: WorkPlan, estimate: SizeEstimate
) -> tuple[CorpusStatistics, Repeats] | None:
    """Creates this task's chunk files, then the record files if all chunk files exist.

    Returns:
        The statistics and the repeats of the whole text, or None if another task writes the record
        files.
    """
    text_bytes = sum(map(plan.chunk_size, range(len(plan.chunks))))
    numbers = range(flags.task_index, len(plan.chunks), flags.num_tasks)
    workers = max(1, min(flags.num_workers or available_cores(), len(plan.chunks)))
    engine, engine_name = choose_engine(flags, plan, workers)
    print(
        f"text: {format_bytes(text_bytes)} in "
        f"{len(plan.chunks):,} chunk{'s' * (len(plan.chunks) != 1)}"
        + (f" ({len(numbers):,} of them for this task)" if flags.num_tasks > 1 else "")
        + f", {engine_name}, records: about {format_bytes(estimate.files)} in "
        f"{len(plan.output_files):,} file{'s' * (len(plan.output_files) > 1)}",
        flush=True,
    )
    check_free_space(plan, estimate)
    files_of_chunks = [file for n in numbers for file in chunk_files(plan.chunk_path(n))]
    remove_partial_files(files_of_chunks)

    def warn_early(statistics):
        # Called before the long work; whether the text is a single document is not known yet.
        if len(plan.chunks) == 1:
            return
        known = "none" if plan.settings.pair_rules.objective == "none" else "sop"
        warn_of_layout(plan, statistics, known, "so far ")
        warn_of_unknown_pieces(plan, statistics, "so far ")

    with contextlib.ExitStack() as stack:
        stack.callback(remove_partial_files, files_of_chunks)  # of workers killed after an error
        with engine as run:
            repeats = count_repeats(plan, run, numbers)
            for problem in find_repeat_problems(repeats, plan):
                warnings.warn(problem, stacklevel=2)
            make_chunk_files(plan, run, numbers, warn_early)
            # One task at a time, so that if two end at once, the second one sees all chunks.
            with locked(plan.folder, "look", wait=True):
                summaries = read_summaries(plan)
                is_last = summaries and stack.enter_context(locked(plan.folder, "shards"))
            if not (summaries and is_last):
                print("this task's chunks are done; the last task writes the record files")
                return None
            stack.callback(remove_partial_files, plan.output_files)
            statistics, expected = summaries
            try:
                check_text(flags, plan, statistics, expected)
                warn_of_unknown_pieces(plan, statistics)
            except InputError:
                remove_work_folder(plan.folder)  # resuming would end in the same error
                raise
            remove_partial_files(plan.output_files)
            remove_sidecars(plan.output_files)  # which no longer describe all record files
            shards = make_shard_files(plan, run, expected)
        # Still locked, but after the engine has ended, which may have been writing a file twice.
        remove_partial_files(plan.output_files)
        description = describe_records(plan, statistics, shards, describe_repeats(repeats))
        write_sidecars(plan.output_files, description, plan.tokenizer)
        remove_work_folder(plan.folder)
    return statistics, repeats


def warn_of_layout(
    plan: WorkPlan, statistics: CorpusStatistics, objective: str, when: str = ""
) -> None:
    """Warns of text that is laid out in a way that suits the objective badly, or is lost."""
    for problem in (
        *find_layout_problems(statistics, objective, plan.split_sentences),
        *find_lost_text(statistics, plan.settings.pair_rules, plan.split_sentences),
    ):
        warnings.warn(f"{when}{problem}", stacklevel=2)


def warn_of_unknown_pieces(plan: WorkPlan, statistics: CorpusStatistics, when: str = "") -> None:
    """Warns if its `CorpusStatistics` say that much of the text is [UNK], and quotes such words."""
    counter = UnknownCounter(plan.tokenizer)
    if counter.describe_share(statistics.unknown_pieces, statistics.pieces):
        for documents in map(read_chunk_text, plan.chunks):
            counter.add(sentence for document in documents for sentence in document)
            if counter.is_done or counter.words:
                break
        found = counter.describe_share(statistics.unknown_pieces, statistics.pieces)
        warnings.warn(f"{when}{found}", stacklevel=2)


def check_text(
    flags: CreateDataFlags,
    plan: WorkPlan,
    statistics: CorpusStatistics,
    expected: Sequence[tuple[int, int]],
) -> None:
    """Raises an `InputError` if the text gives no useful records; warns of layout problems.

    `expected` has the number of records and of bytes of each shard.
    """
    if not statistics.sentences:
        size = sum(map(plan.chunk_size, range(len(plan.chunks))))
        raise InputError(
            "the input must hold at least one sentence. Received: "
            f"--input_file={flags.input_file}, {size} bytes, no sentence"
        )
    warn_of_layout(plan, statistics, plan.settings.pair_rules.objective)
    if statistics.left_out[ONE_WORD] == statistics.documents:
        raise InputError(
            "the input must hold a document of at least two words. "
            f"Received: {statistics.documents} documents of one word"
        )
    if not all(records for records, _ in expected):
        raise InputError(
            "the text must give an example for each output file. "
            f"Received: {statistics.examples} examples, {len(expected)} files"
        )


def summary(
    statistics: CorpusStatistics,
    repeats: Repeats,
    flags: CreateDataFlags,
    defaults: ObjectiveDefaults,
    seconds: float,
    made_here: bool,
) -> str:
    """Returns a three-line summary of the text, its records and the time.

    It shows the speed only if this run did all of the work (`made_here`)."""
    left_out = [
        f"{count:,} of {'no token' if reason == NO_PIECE else reason}"
        for reason, count in sorted(statistics.left_out.items())
    ]
    fewer = f" ({', '.join(left_out)} left out)" if left_out else ""
    counts = [f"{statistics.documents:,} documents{fewer}", f"{statistics.sentences:,} sentences"]
    if statistics.repeated_lines:
        counts.append(f"{statistics.repeated_lines:,} repeated lines left out")
    if statistics.long_lines:
        counts.append(f"{statistics.long_lines:,} lines longer than a row ({flags.long_lines})")
    is_packed = statistics.examples < statistics.sequences
    packed = f" of {statistics.sequences:,} sequences" if is_packed else ""
    counts.append(f"{statistics.examples:,} examples{packed}")
    if defaults.objective != "none":
        counts.append(f"label 1: {statistics.label_ones / statistics.sequences:.1%}")
    pieces = sum(length * count for length, count in statistics.lengths.items())
    lost = sum(statistics.pieces_in_no_row.values())
    rows = [
        f"mean length {pieces / statistics.examples:.1f} of {flags.max_seq_length}",
        f"{lost / statistics.pieces:.1%} of the tokens in no row"
        + (f" ({describe_lost_pieces(statistics)})" if lost else ""),
        f"[UNK] {statistics.unknown_pieces / statistics.pieces:.2%}",
    ]
    text = [summarize_repeats(repeats), f"{seconds:.1f} s"]
    if made_here:
        text.append(f"{statistics.examples / seconds:,.0f} examples/s")
    return "\n".join(", ".join(parts) for parts in (counts, rows, text))


def list_files(files: Sequence[str]) -> str:
    """Returns a line that lists up to eight files, or the first and the last of more."""
    return ", ".join(files) if len(files) <= 8 else f"{files[0]} to {files[-1]}"


if __name__ == "__main__":
    sys.exit(main())
