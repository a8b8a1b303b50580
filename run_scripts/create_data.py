"""Makes pre-training records from text files (python create_pretraining_data.py)."""

import contextlib
import os
import sys
import time
import warnings

from bert_common.atomic_write import remove_partial_files
from bert_common.cores import available_cores
from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.process_pool import start_workers
from bert_common.progress import format_bytes
from bert_common.stop_signals import interrupt_once
from create_pretraining_data.engine import spark as spark_engine
from create_pretraining_data.engine.disk_space import check_free_space
from create_pretraining_data.engine.passes import make_chunks, make_shards, read_summaries
from create_pretraining_data.engine.work_folder import (
    begin,
    clear,
    has_chunks,
    locked,
    read_manifest,
)
from create_pretraining_data.engine.work_plan import (
    DEFLATED,
    estimate_records_size,
    work_folder_of,
)
from create_pretraining_data.instances import sentences
from create_pretraining_data.instances.layout_checks import find_layout_problems
from create_pretraining_data.instances.make_instances import ONE_WORD
from create_pretraining_data.records.metadata import (
    check_names,
    describe_records,
    is_made,
    remove_sidecars,
    write_sidecars,
)
from run_scripts.create_data_plan import make_manifest, make_plan, make_settings
from run_scripts.flags.create_data import (
    MODEL_NAMES,
    CreateDataFlags,
    check_engine,
    check_task,
    choose_output_files,
    choose_plan,
    files_read,
    is_given,
    resolve_defaults,
)
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.tokenizer import check_tokenizer_flags, open_tokenizer
from run_scripts.model_folder import fill_in_tokenizer

# What every worker process needs.
PRELOADED = ("create_pretraining_data.engine.passes",)

FEWER_WORKERS = "the same command goes on from here, and needs less with fewer --num_workers"


def main(argv=None):
    """Runs the program; returns its exit status."""
    with interrupt_once():
        return run_program(create_data, CreateDataFlags, argv)


def create_data(flags):
    """Makes the records.

    Args:
        flags: `CreateDataFlags` as parsed.

    Raises:
        InputError: anything that a person can set right.
    """
    started = time.monotonic()
    defaults = choose_plan(flags)
    print(
        f"objective: {defaults.objective}, defaults: {MODEL_NAMES[defaults.model_type]}'s, "
        f"{defaults.reason}"
    )
    for name in ("input_file_mode", "parallel"):
        if is_given(flags, name):
            print(f"--{name} means nothing here (text is read as UTF-8, by --num_workers)")
    flags = fill_in_tokenizer(flags)
    check_tokenizer_flags(flags)
    flags = resolve_defaults(flags, defaults.model_type)
    check_task(flags)
    check_engine(flags)
    if flags.engine == "spark":
        spark_engine.check_installed()
    if flags.split_sentences:
        sentences.check_installed()
    input_files = expand_globs(flags.input_file, "input_file")
    protected = files_read(flags, input_files)
    output_files = choose_output_files(flags.output_file, input_files, protected)
    check_names(output_files, protected)
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
    settings = make_settings(flags, defaults, tokenizer)
    manifest = make_manifest(flags, defaults, tokenizer, input_files, output_files)
    folder = work_folder_of(output_files)
    left = read_manifest(folder)
    if left is not None and is_made(output_files, left):  # killed before it was removed
        clear(folder)
    if is_made(output_files, manifest):
        print(f"already there, made of this text with these settings: {shown(output_files)}")
        return
    os.makedirs(folder, exist_ok=True)
    with locked(folder, f"task-{flags.task_index}") as is_free:
        if not is_free:
            raise InputError(
                f"one process at a time must work in {folder} (several: --num_tasks). Received: "
                "another one is at work"
            )
        begin(folder, manifest, may_clear=flags.num_tasks == 1)
        try:
            plan = make_plan(flags, settings, input_files, output_files, folder)
            made = run_passes(flags, plan, manifest, tokenizer)
        except InputError:
            # Nothing to go on from; and the text or the flags will be others.
            if flags.num_tasks == 1 and not has_chunks(folder):
                clear(folder)
            raise
    if made is not None:
        print(summary(made, flags.max_seq_length, defaults, time.monotonic() - started))
        print(f"written: {shown(output_files)}")


def run_passes(flags, plan, manifest, tokenizer):
    """Makes this task's chunks, then the record files if all chunks are there.

    Args:
        flags: `CreateDataFlags` without `PerModel`.
        plan: a `WorkPlan`.
        manifest: what decided the records, for the JSON beside them.
        tokenizer: what cuts the text.

    Returns:
        `ChunkStatistics` of the whole text, or None if the record files are for another task.

    Raises:
        InputError: bad text, text of which no example can be made, a full disk.
    """
    text_bytes = sum(map(plan.chunk_size, range(len(plan.chunks))))
    estimate = estimate_records_size(text_bytes, plan.settings)
    own = range(flags.task_index, len(plan.chunks), flags.num_tasks)
    if flags.engine == "spark":
        who = "Spark"
        engine = spark_engine.start_executors(plan, tokenizer, flags.spark_master)
    else:
        cores = flags.num_workers or available_cores()
        workers = max(1, min(cores, len(plan.chunks)))
        who = f"{workers} worker{'s' * (workers > 1)}"
        engine = start_workers(plan, tokenizer, workers, FEWER_WORKERS, PRELOADED)
    size = estimate * (DEFLATED if plan.compression == "GZIP" else 1)
    print(
        f"text: {format_bytes(text_bytes)} in {len(plan.chunks):,} chunk{'s' * (len(plan.chunks) != 1)}"
        + (f" ({len(own):,} of them for this task)" if flags.num_tasks > 1 else "")
        + f", {who}, records: about {format_bytes(size)} in "
        f"{len(plan.output_files):,} file{'s' * (len(plan.output_files) > 1)}",
        flush=True,
    )
    check_free_space(plan, estimate)
    own_files = list(map(plan.chunk_file, own))
    remove_partial_files(own_files)
    objective = plan.settings.pair_rules.objective

    def look(statistics):
        # Early, where the whole takes long. That it is one document is not known yet.
        if len(plan.chunks) > 1 and objective != "none":
            for problem in find_layout_problems(statistics, "sop"):
                warnings.warn(f"so far {problem}", stacklevel=2)

    with contextlib.ExitStack() as held:
        held.callback(remove_partial_files, own_files)  # of workers that were killed at an error
        with engine as run:
            make_chunks(plan, run, own, look)
            # One task at a time looks, so that of two that end at once the second sees all chunks.
            with locked(plan.folder, "look", wait=True):
                found = read_summaries(plan)
                is_last = found is not None and held.enter_context(locked(plan.folder, "shards"))
            if is_last:
                held.callback(remove_partial_files, plan.output_files)
            else:
                print("this task's chunks are made; the last task makes the record files")
                return None
            statistics, expected = found
            try:
                check_text(flags, plan, statistics, expected)
            except InputError:
                clear(plan.folder)  # another start would find the same
                raise
            remove_partial_files(plan.output_files)
            remove_sidecars(plan.output_files)  # not true of all record files from here on
            shards = make_shards(plan, run, expected)
        # With the lock, but without an engine that may have been making a file twice.
        remove_partial_files(plan.output_files)
        description = describe_records(plan, manifest, tokenizer, statistics, shards)
        write_sidecars(plan.output_files, description, tokenizer)
        clear(plan.folder)
    return statistics


def check_text(flags, plan, statistics, expected):
    """Refuses text of which no useful records were made; warns of its layout.

    Args:
        flags: `CreateDataFlags` without `PerModel`.
        plan: a `WorkPlan`.
        statistics: `ChunkStatistics` of the whole text.
        expected: for each shard (records, bytes).

    Raises:
        InputError: no sentence, no example, or fewer examples than files.
    """
    if not statistics.sentences:
        size = sum(map(plan.chunk_size, range(len(plan.chunks))))
        raise InputError(
            "the input must hold at least one sentence. Received: "
            f"--input_file={flags.input_file}, {size} bytes, no sentence"
        )
    objective = plan.settings.pair_rules.objective
    for problem in find_layout_problems(statistics, objective):
        warnings.warn(problem, stacklevel=2)
    if statistics.left_out[ONE_WORD] == statistics.documents:
        raise InputError(
            "the input must hold a document of at least two words. "
            f"Received: {statistics.documents} documents of one word"
        )
    if not all(records for records, _ in expected):
        raise InputError(
            "there must be an example for each output file. "
            f"Received: {statistics.examples} examples, {len(expected)} files"
        )


def summary(statistics, max_seq_length, defaults, seconds):
    """The one line about what was made."""
    left_out = [f"{count:,} of {reason}" for reason, count in sorted(statistics.left_out.items())]
    documents = statistics.documents
    parts = [
        f"{documents:,} documents" + (f" ({', '.join(left_out)} left out)" if left_out else ""),
        f"{statistics.sentences:,} sentences",
        f"{statistics.examples:,} examples"
        + (
            f" of {statistics.sequences:,} sequences"
            if statistics.examples < statistics.sequences
            else ""
        ),
    ]
    if defaults.objective != "none":
        parts.append(f"label 1: {statistics.label_ones / statistics.sequences:.1%}")
    pieces = sum(length * count for length, count in statistics.lengths.items())
    parts += [
        f"mean length {pieces / statistics.examples:.1f} of {max_seq_length}",
        f"[UNK] {statistics.unknown_pieces / statistics.pieces:.2%}",
        f"{seconds:.1f} s",
        f"{statistics.examples / seconds:,.0f} examples/s",
    ]
    return ", ".join(parts)


def shown(files):
    """File names for one line: all of a few, else the first and the last."""
    return ", ".join(files) if len(files) <= 8 else f"{files[0]} to {files[-1]}"


if __name__ == "__main__":
    sys.exit(main())
