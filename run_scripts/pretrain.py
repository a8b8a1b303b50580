"""The run_pretraining program, which trains a model on pre-training records."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_tf.checkpoint_files import EXPORTED_NAME
from bert_tf.input.data_order import sizes_of
from bert_tf.training.cluster import shorten_lost_worker_errors
from create_pretraining_data.records.metadata import sidecar_path
from create_pretraining_data.records.record_format import RecordFormat
from model_formats.model_folder import (
    ModelFolder,
    add_trained_positions,
    warn_of_untrained_positions,
)
from model_formats.training_record import add_counts, trained_objective
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.distillation import lasting_values
from run_scripts.flags.objectives import SENTENCE_OBJECTIVES, measured_pairs
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import split_list
from run_scripts.flags.pretrain import PretrainFlags, read_bucket_boundaries
from run_scripts.flags.training import check_length, compilation_cache
from run_scripts.pretraining_job import PretrainingJob, make_job

if TYPE_CHECKING:
    from bert_tf.input.training_records import TrainingRecords
    from bert_tf.training.evaluation import RecordsEvaluator
    from bert_tf.training.state import TrainingState
    from create_pretraining_data.instances.mask_processes import MaskProcesses
    from run_scripts.session import Session


def pretrain(given: PretrainFlags) -> None:
    """Checks flags and files, trains and evaluates."""
    job = make_job(given)
    flags = job.flags
    for name in ("output_dir", "export_dir"):
        if folder := getattr(flags, name):
            make_writable(folder, f"--{name} must be a directory that can be written")
    shorten_lost_worker_errors(job.cluster)
    trained = [flags.output_dir] if flags.do_train else []
    start_tensorflow(flags, functools.partial(compilation_cache, flags))
    from run_scripts.session import open_session

    with open_session(flags, flags.xla, job.cluster, trained) as session:
        run(job, session)


def run(job: PretrainingJob, session: "Session") -> None:
    """Loads records, builds the model, trains and evaluates; all of this needs TensorFlow."""
    flags, replicas = job.flags, session.strategy.num_replicas_in_sync
    session.check_flags(job)
    if (flags.do_eval or flags.eval_input_file) and flags.eval_batch_size % replicas:
        raise InputError(
            "--eval_batch_size must be a multiple of the number of devices. Received: "
            f"--eval_batch_size={flags.eval_batch_size}, {replicas} devices"
        )
    records, held_out = load_records(job, session)
    state = build(job, session)
    if job.source and not (flags.do_train or job.begun.checkpoint):  # only weights were set
        from bert_tf.checkpoint import trained_step

        state.step = trained_step(job.source)
    write_files = model_files_writer(job, state, records)
    if session.chief:
        write_files(flags.output_dir)
    evaluator = None
    finished = state.has_nothing_left(flags.last_step, bool(flags.eval_input_file))
    if flags.do_eval or (flags.eval_input_file and not finished):
        evaluator = make_evaluator(job, session, state, held_out)
    if flags.do_train:
        evaluated = evaluator if flags.eval_input_file else None
        if train(job, session, state, records, evaluated):
            return
    if flags.export_dir and session.chief:
        from bert_tf.checkpoint import save_google_checkpoint

        save_google_checkpoint(state.model, os.path.join(flags.export_dir, EXPORTED_NAME))
        write_files(flags.export_dir)
        session.print(f"exported to {flags.export_dir}")
    if flags.do_eval and evaluator:
        # Training has drawn this point, unless it had ended before.
        drawn = flags.do_train and bool(flags.eval_input_file) and not finished
        evaluate(job, session, state, evaluator, held_out, draw=not drawn)
    elif flags.do_train and not finished:
        session.print(f"trained to step {state.step}, saved in {flags.output_dir}")


def load_records(
    job: PretrainingJob, session: "Session"
) -> "tuple[TrainingRecords, TrainingRecords]":
    """Checks the records to train on and to evaluate on; returns two `TrainingRecords`."""
    from bert_tf.input.record_checks import check_records
    from bert_tf.input.training_records import TrainingRecords

    flags, config, files = job.flags, job.config, job.files.paths

    def load(files, lengths, teacher=None):
        shape = lengths["max_seq_length"], lengths["max_predictions_per_seq"]
        limited = teacher.limited(config) if teacher else config
        record_format, examples = check_records(files, *shape, limited)
        if not record_format.packed_sequences:  # packed sequences each start at position 0
            check_length(record_format, config, ", unless rows are packed")
            if teacher:
                teacher.check_length(record_format.max_seq_length)
        return TrainingRecords(files, record_format, examples, limited)

    records = held_out = load(files, vars(flags), job.teacher if flags.do_train else None)
    read_bucket_boundaries(flags.bucket_boundaries, records.record_format)
    if flags.eval_input_file:
        held_out = load(job.eval_files.paths, vars(flags) | job.eval_files.lengths)
    agreed = {"records": records.examples, "record files": sizes_of(files)}
    if flags.eval_input_file:
        agreed["files of --eval_input_file"] = sizes_of(job.eval_files.paths)
    session.check_agreement(agreed)
    return records, held_out


def build(job: PretrainingJob, session: "Session") -> "TrainingState":
    """Builds model and optimizer, from a checkpoint if there is one, as a `TrainingState`."""
    from bert_tf.optimization import TimedDecay, WarmupPolynomialDecay
    from bert_tf.training.time_budget import TimeBudget
    from bert_tf.training.token_dropping import TokenDropping

    flags, budget = job.flags, None
    schedule: Any = WarmupPolynomialDecay(
        flags.learning_rate,
        flags.last_step,
        flags.num_warmup_steps,
        power=flags.poly_power,
        start_warmup_step=flags.start_warmup_step,
    )
    if flags.max_train_hours and flags.do_train:
        with session.strategy.scope():
            budget = TimeBudget(3600 * flags.max_train_hours)
        schedule = TimedDecay(flags.learning_rate, budget.variable, flags.poly_power)
    pairs = SENTENCE_OBJECTIVES.get(job.objective or "")

    make_model = job.pretraining.make_model
    state = session.build(job, lambda encoder: make_model(encoder, pairs), schedule, budget)
    if flags.token_dropping and flags.do_train:
        with session.strategy.scope():
            state.token_dropping = TokenDropping(flags.token_dropping, job.config.vocab_size)
    allow_missing = split_list(flags.allow_missing)
    session.restore(state, job, job.open_weights, allow_missing=allow_missing)
    if budget:
        budget.begin()  # so that compiling the evaluation counts too
    return state


def model_files_writer(
    job: PretrainingJob, state: "TrainingState", records: "TrainingRecords"
) -> Callable[[str], None]:
    """Returns a function that writes a model's files other than checkpoints into a folder."""
    from bert_tf.input.record_checks import longest_sequence

    flags = job.flags
    trains = flags.do_train and not state.is_finished(flags.last_step)
    longest = longest_sequence(records.files, records.record_format) if trains else 0
    positions = add_trained_positions(job.source, longest)
    stages = job.stages
    if trains:
        described = {sidecar_path(p): says for p, says in job.files.described.items()}
        settings = lasting_values(flags)
        if flags.max_train_hours:  # with it, both flags have no effect
            del settings["num_train_steps"], settings["num_warmup_steps"]
        corpus = add_counts(list(described.values()))
        stage = {"program": "pre-training", "corpus": corpus, "settings": settings}
        stage |= {"objective": job.objective} if job.objective else {}
        stages = [*job.earlier_stages, stage]
    write = functools.partial(
        ModelFolder.write, tokenizer=job.tokenizer, positions=positions, stages=stages
    )
    return lambda folder: write(folder, job.model.model_type, job.config)


def make_evaluator(
    job: PretrainingJob, session: "Session", state: "TrainingState", held_out: "TrainingRecords"
) -> "RecordsEvaluator":
    """Returns the evaluator of the pre-training heads on the held-out records."""
    from bert_tf.input.record_checks import longest_sequence
    from bert_tf.training.evaluation import RecordsEvaluator

    flags = job.flags
    if job.source and not flags.do_train and session.chief:
        longest = longest_sequence(held_out.files, held_out.record_format)
        warn_of_untrained_positions(job.source, longest, "the longest record")
    own = job.objective if flags.do_train else trained_objective(job.stages)
    pairs, note = None, None
    if job.pretraining.uses_pairs:
        pairs, note = measured_pairs(own, job.eval_objective, state.model.sentence_objective)
    if note:
        session.print(note)
    if session.compilation.whole:
        session.print("compiling the evaluation with XLA, which may take minutes")
    return RecordsEvaluator(
        model=state.model,
        strategy=session.strategy,
        files=held_out.files,
        record_format=held_out.record_format,
        batch_size=flags.eval_batch_size,
        max_batches=flags.max_eval_steps,
        tokenizer=job.tokenizer,
        objective=job.pretraining.measured(state.model, pairs),
        xla=session.xla,
    )


def train(
    job: PretrainingJob,
    session: "Session",
    state: "TrainingState",
    records: "TrainingRecords",
    evaluator: "RecordsEvaluator | None",
) -> bool:
    """Trains to --num_train_steps; returns True if a signal ended the training."""
    from bert_tf.summaries.markdown import as_markdown_table
    from run_scripts.announcement import Workload

    flags, record_format = job.flags, records.record_format
    boundaries = read_bucket_boundaries(flags.bucket_boundaries, record_format)
    config = session.training_config(
        flags, num_train_steps=flags.last_step, bucket_boundaries=boundaries
    )
    workload = Workload(
        records.examples,
        flags.max_seq_length,
        flags.max_predictions_per_seq,
        token_dropping=flags.token_dropping,
        sequences=record_format.packed_sequences or 1,
        predicts_words=True,
        memory_line=job.pretraining.memory_line,
    )
    command = [f"    --{name}={value}" for name, value in vars(flags).items() if value is not None]
    texts = {
        "configuration": as_markdown_table(dataclasses.asdict(job.config).items()),
        "command": "\n".join(["    run_pretraining", *command]),
    }
    with open_mask_processes(flags.mask_processes, flags.num_gpus, record_format) as processes:
        records = dataclasses.replace(records, mask_processes=processes)
        return session.train(job, state, records, config, workload, evaluator, texts=texts)


def open_mask_processes(
    count: int | None, num_gpus: int | None, record_format: RecordFormat
) -> "AbstractContextManager[MaskProcesses | None]":
    """Returns a context manager of the `MaskProcesses` of --mask_processes, or of None."""
    import tensorflow as tf

    from create_pretraining_data.instances.mask_processes import MaskProcesses, default_count

    if count is None:
        gpus = len(tf.config.list_physical_devices("GPU"))
        count = default_count(min(num_gpus or gpus, gpus))
    if count == 0 or record_format.masking is None:
        return contextlib.nullcontext()
    return MaskProcesses(count)


def evaluate(
    job: PretrainingJob,
    session: "Session",
    state: "TrainingState",
    evaluator: "RecordsEvaluator",
    held_out: "TrainingRecords",
    *,
    draw: bool,
) -> None:
    """Evaluates the model; writes and prints its results and a trivial baseline's.

    `draw`: whether to show the results and guesses for masked words on TensorBoard.
    """
    from bert_tf.input.pipeline import most_frequent_share
    from bert_tf.summaries.reporter import NO_ILLUSTRATIONS

    flags = job.flags
    of = " of the training files" if flags.do_train and not flags.eval_input_file else ""
    session.print(f"evaluating on {evaluator.records:,} records{of}")
    results = {**evaluator.run(), "global_step": state.step}
    if not session.chief:
        return
    batches = flags.eval_batch_size, flags.max_eval_steps
    records = held_out.files, held_out.record_format, job.config
    note = job.pretraining.baseline(results, lambda: most_frequent_share(*records, *batches))
    illustrations = evaluator.illustrations() if draw else NO_ILLUSTRATIONS
    session.report(flags.output_dir, results, note, illustrations=illustrations, draw=draw)


main = functools.partial(run_program, pretrain, PretrainFlags)
