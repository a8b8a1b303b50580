"""The program run_pretraining: flags in, a trained BERT or ALBERT out."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_tf.checkpoint_files import EXPORTED_NAME, latest_checkpoint
from bert_tf.config import LARGEST_SIZE, EncoderConfig
from bert_tf.input.data_order import sizes_of
from bert_tf.training.cluster import Cluster, read_cluster, shorten_lost_worker_errors
from bert_tf.training.interruptions.output_folder import training_folders
from create_pretraining_data.records.metadata import read_sidecar, sidecar_path
from create_pretraining_data.records.record_format import RecordFormat
from model_formats.model_folder import (
    ModelFolder,
    add_trained_positions,
    earlier_stages,
    stages_of,
)
from model_formats.pretraining_objectives import (
    MASKED_WORDS,
    OBJECTIVES,
    PretrainingObjective,
    objective_of,
)
from model_formats.training_record import add_counts, trained_objective
from run_scripts.flags.declaration import PerModel, resolve_model_defaults
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.distillation import GivenTeacher, lasting_values
from run_scripts.flags.limits import MOST_STEPS
from run_scripts.flags.objectives import (
    SENTENCE_OBJECTIVES,
    check_begun_objective,
    config_of_objective,
    measured_pairs,
    read_objective,
)
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import (
    PretrainFlags,
    check_checkpoints,
    check_described_tokenizer,
    check_flags,
    check_vocabulary,
    described_lengths,
    read_bucket_boundaries,
    read_records_tokenizer,
    vocabulary_size,
)
from run_scripts.flags.training import check_kept, check_length, compilation_cache
from run_scripts.given_model import GivenModel
from tokenization.loading import Tokenizer

if TYPE_CHECKING:
    from bert_tf.checkpoint import CheckpointArrays
    from bert_tf.input.training_records import TrainingRecords
    from bert_tf.training.evaluation import RecordsEvaluator
    from bert_tf.training.interruptions.output_folder import TrainingFolder
    from bert_tf.training.state import TrainingState
    from bert_tf.training.time_budget import TimeBudget
    from create_pretraining_data.instances.mask_processes import MaskProcesses
    from run_scripts.session import Session


def main(argv: Sequence[str] | None = None) -> int:
    """The console script and the launcher; returns the exit status."""
    return run_program(pretrain, PretrainFlags, argv)


def pretrain(given: PretrainFlags) -> None:
    """Checks flags and files, then trains, then evaluates."""
    job = make_job(given)
    flags = job.flags
    for name in ("output_dir", "export_dir"):
        if folder := getattr(flags, name):
            make_writable(folder, f"--{name} must be a directory that can be written")
    shorten_lost_worker_errors(job.cluster)
    trained = [flags.output_dir] if flags.do_train else []
    with training_folders(trained, job.cluster) as (folders, refusal_reason):
        start_tensorflow(flags, functools.partial(compilation_cache, flags))
        from run_scripts.session import open_session

        with open_session(flags, flags.xla, job.cluster, refusal_reason) as session:
            run(job, session, folders.get(flags.output_dir))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingJob:
    """What the flags of a pre-training mean, checked as far as possible without TensorFlow."""

    flags: PretrainFlags  # with every default resolved
    model: GivenModel  # what the flags name
    config: EncoderConfig  # the model's, with the records' vocab_size where no file says it
    files: list[str]  # record files
    eval_files: list[str]
    # The sentence objective of each: "nsp", "sop" or "none"; None if it is not known. Of a training
    # without sentence objective: the name of its own, "rtd".
    objective: str | None
    eval_objective: str | None
    tokenizer: Tokenizer | None  # the records', or None
    cluster: Cluster | None
    teacher: GivenTeacher | None = None

    @property
    def source(self) -> str | None:
        """The checkpoint that the training starts or goes on from; None for new weights."""
        return latest_checkpoint(self.flags.output_dir) or self.model.checkpoint

    def open_weights(self, path: str) -> "CheckpointArrays":
        """Opens a checkpoint to start from, together with the one in --generator_dir."""
        from model_formats.weights import open_weights

        arrays = open_weights(path, self.model.folder)
        trained = objective_of(arrays.shapes)
        if trained.weights and trained is not self.pretraining and not self.flags.allow_missing:
            raise InputError(
                f"--objective must be {trained.name}, as {path} was trained "
                "(--allow_missing=cls/ begins new heads). "
                f"Received: {self.flags.objective}"
            )
        if self.flags.generator_dir is None:
            return arrays
        from model_formats.electra_generator import beside

        folder = ModelFolder.open(self.flags.generator_dir)
        return beside(arrays, open_weights(folder.checkpoint, folder))

    @property
    def pretraining(self) -> PretrainingObjective:
        """The `PretrainingObjective` of --objective."""
        return OBJECTIVES[self.flags.objective]


# Rows without a piece that a configuration may have to make its table a round number.
PADDING_ROWS = 128


def make_job(given: PretrainFlags) -> PretrainingJob:
    """Resolves `PretrainFlags`, and checks them with the files that they name."""
    model = GivenModel.of(given)
    flags = limit_time(given, resolve_model_defaults(given, model.model_type))
    check_flags(flags)
    # A size that the file leaves out follows the vocabulary, which is not known yet.
    config = model.config_file.config_with(LARGEST_SIZE)
    files = expand_globs(flags.input_file, "input_file")
    described = described_lengths(files)
    default = [name for name in described if isinstance(getattr(given, name), PerModel)]
    flags = dataclasses.replace(flags, **{name: described[name] for name in default})
    eval_files = files
    if flags.eval_input_file:
        eval_files = expand_globs(flags.eval_input_file, "eval_input_file")
    cluster = read_cluster(os.environ)
    is_chief = cluster is None or cluster.is_chief
    config = config_of_objective(flags, model, config)
    objective, eval_objective = read_objective(files), read_objective(eval_files)
    if not OBJECTIVES[flags.objective].uses_pairs:
        if objective in SENTENCE_OBJECTIVES and is_chief:
            print(f"note: --objective={flags.objective} leaves the labels of sentence pairs out")
        objective = flags.objective
    check_begun_objective(flags, objective)
    tokenizer = check_vocabulary(flags, model.folder, config)
    check_described_tokenizer(flags, tokenizer, [*files, *eval_files])
    if tokenizer is None:
        tokenizer = read_records_tokenizer(config, files)
    if config.vocab_size == LARGEST_SIZE:
        config = dataclasses.replace(
            config, vocab_size=vocabulary_size(flags, model.model_type, tokenizer, files)
        )
    if tokenizer is not None and is_chief:
        note_unused_rows(config, tokenizer)
    if tokenizer is None and flags.do_train and is_chief:
        print(
            "note: there is no tokenizer beside the records, so none is saved with the model "
            "(--tokenizer_dir names one)"
        )
    check_checkpoints(flags, model.checkpoint)
    if flags.do_train:
        check_kept(flags.output_dir, flags)
    return PretrainingJob(
        flags=flags,
        model=model,
        config=config,
        files=files,
        eval_files=eval_files,
        objective=objective,
        eval_objective=eval_objective,
        tokenizer=tokenizer,
        cluster=cluster,
        teacher=find_teacher(flags, config, tokenizer),
    )


def find_teacher(
    flags: PretrainFlags, config: EncoderConfig, tokenizer: Tokenizer | None
) -> GivenTeacher | None:
    """The teacher of --teacher_dir, from which the student must be able to learn; or None."""
    if flags.teacher_dir and flags.objective != MASKED_WORDS.name:
        raise InputError(
            f"--teacher_dir needs --objective={MASKED_WORDS.name}. "
            f"Received: --objective={flags.objective}"
        )
    return GivenTeacher.of(flags, config, tokenizer)


def limit_time(given: PretrainFlags, flags: PretrainFlags) -> PretrainFlags:
    """`PretrainFlags` without a number of updates where --max_train_hours limits the time."""
    if not flags.max_train_hours:
        return flags
    names = ("num_train_steps", "num_warmup_steps")
    unused = [f"--{name}" for name in names if not isinstance(getattr(given, name), PerModel)]
    unused += ["--start_warmup_step"] if given.start_warmup_step else []
    if unused:
        print(f"note: without effect beside --max_train_hours: {', '.join(unused)}")
    return dataclasses.replace(flags, num_train_steps=MOST_STEPS, num_warmup_steps=0)


def note_unused_rows(config: EncoderConfig, tokenizer: Tokenizer) -> None:
    """Says how many rows of the table of pieces have no piece, where that is more than padding."""
    unused = config.vocab_size - tokenizer.vocab_size
    if unused > PADDING_ROWS:
        print(
            f"note: {unused:,} of the {config.vocab_size:,} rows of the embedding table have no "
            f"token, {unused * config.embedding_size:,} weights that are never used: without "
            '"vocab_size" in the configuration the table is as large as the vocabulary'
        )


def run(job: PretrainingJob, session: "Session", folder: "TrainingFolder | None") -> None:
    """The part that needs TensorFlow: loads records, builds the model, trains, evaluates.

    `folder` is the `TrainingFolder` of --output_dir; None in workers that write nothing.
    """
    flags, replicas = job.flags, session.strategy.num_replicas_in_sync
    session.check_flags(job)
    if (flags.do_eval or flags.eval_input_file) and flags.eval_batch_size % replicas:
        raise InputError(
            "--eval_batch_size must be a multiple of the number of devices. Received: "
            f"--eval_batch_size={flags.eval_batch_size}, {replicas} devices"
        )
    records, held_out = load_records(job, session)
    source = job.source
    state = build(job, session)
    write_files = model_files_writer(job, state, source, records)
    if session.chief:
        write_files(flags.output_dir)
    evaluator = None
    finished = state.is_finished(flags.num_train_steps) and state.evaluated == state.step
    if flags.do_eval or (flags.eval_input_file and not finished):
        evaluator = make_evaluator(job, session, state, held_out)
    if flags.do_train:
        evaluated = evaluator if flags.eval_input_file else None
        if train(
            job, session, state, records, evaluated, folder=folder, write_model_files=write_files
        ):
            return
    if flags.export_dir and session.chief:
        export(flags, session, state, write_files)
    if flags.do_eval and evaluator:
        evaluate(job, session, state, evaluator, held_out)


def load_records(
    job: PretrainingJob, session: "Session"
) -> "tuple[TrainingRecords, TrainingRecords]":
    """Checks the records to train on and those to evaluate on; returns two `TrainingRecords`."""
    from bert_tf.input.record_checks import check_records, longest_sequence
    from bert_tf.input.training_records import TrainingRecords

    flags, config = job.flags, job.config

    def load(files, lengths):
        shape = lengths.max_seq_length, lengths.max_predictions_per_seq
        record_format, examples = check_records(files, *shape, config)
        if not record_format.packed_sequences:  # whose positions start at 0 in each sequence
            check_length(record_format, config, ", unless rows are packed")
        return TrainingRecords(files, record_format, examples, config)

    records = held_out = load(job.files, flags)
    read_bucket_boundaries(flags, records.record_format)
    if flags.eval_input_file:
        held_out = load(
            job.eval_files, dataclasses.replace(flags, **described_lengths(job.eval_files))
        )
    if job.teacher and flags.do_train:
        longest = longest_sequence(job.files, records.record_format)
        job.teacher.check_length(longest, "--max_seq_length")
    session.check_agreement({"records": records.examples, "record files": sizes_of(job.files)})
    return records, held_out


def build(job: PretrainingJob, session: "Session") -> "TrainingState":
    """Builds model and optimizer, from a checkpoint if there is one; returns a `TrainingState`."""
    from bert_tf.training.token_dropping import TokenDropping

    flags = job.flags
    schedule, time_budget = make_schedule(flags, session)
    pairs = SENTENCE_OBJECTIVES.get(job.objective or "")

    def add_heads(encoder: Any) -> Any:
        return job.pretraining.make_model(encoder, pairs)

    state = session.build(job, add_heads, schedule, time_budget)
    if flags.token_dropping and flags.do_train:
        with session.strategy.scope():
            state.token_dropping = TokenDropping(flags.token_dropping, job.config.vocab_size)
    allow_missing = tuple(filter(None, flags.allow_missing.split(",")))
    session.restore(state, job, job.open_weights, allow_missing=allow_missing)
    return state


def make_schedule(flags: PretrainFlags, session: "Session") -> tuple[Any, "TimeBudget | None"]:
    """The learning rate by updates or by time, and the `TimeBudget` or None."""
    from bert_tf.optimization import TimedDecay, WarmupPolynomialDecay
    from bert_tf.training.time_budget import TimeBudget

    if flags.max_train_hours and flags.do_train:
        with session.strategy.scope():
            budget = TimeBudget(3600 * flags.max_train_hours)
        return TimedDecay(flags.learning_rate, budget.variable, flags.poly_power), budget
    schedule = WarmupPolynomialDecay(
        flags.learning_rate,
        flags.num_train_steps,
        flags.num_warmup_steps,
        power=flags.poly_power,
        start_warmup_step=flags.start_warmup_step,
    )
    return schedule, None


def model_files_writer(
    job: PretrainingJob, state: "TrainingState", source: str | None, records: "TrainingRecords"
) -> Callable[[str], None]:
    """A function of a folder that writes what a model's folder holds beside the checkpoints.

    `source` is the checkpoint that training starts from, or None.
    """
    from bert_tf.input.record_checks import longest_sequence

    flags = job.flags
    trains = flags.do_train and not state.is_finished(flags.num_train_steps)
    longest = longest_sequence(job.files, records.record_format) if trains else 0
    positions = add_trained_positions(source, longest)
    stages = stages_of(source)
    if trains:
        stages = [*earlier_stages(flags.output_dir, job.model.checkpoint), make_stage(job)]
    write = functools.partial(
        ModelFolder.write, tokenizer=job.tokenizer, positions=positions, stages=stages
    )
    return lambda folder: write(folder, job.model.model_type, job.config)


def make_stage(job: PretrainingJob) -> dict[str, Any]:
    """Makes the record of a pre-training that `model_formats.training_record` keeps."""
    sidecars = {sidecar_path(path): path for path in job.files}
    descriptions = [read_sidecar(path) or {} for path in sidecars.values()]
    settings = lasting_values(job.flags)
    stage = {"program": "pre-training", "corpus": add_counts(descriptions), "settings": settings}
    return {**stage, "objective": job.objective} if job.objective else stage


def make_evaluator(
    job: PretrainingJob, session: "Session", state: "TrainingState", held_out: "TrainingRecords"
) -> "RecordsEvaluator":
    """The evaluator of the pre-training heads on the held-out records."""
    from bert_tf.training.evaluation import RecordsEvaluator

    flags = job.flags
    own = job.objective if flags.do_train else trained_objective(stages_of(job.source))
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
    **options: Any,
) -> bool:
    """Trains to --num_train_steps; returns whether a signal ended it."""
    from bert_tf.summaries.markdown import as_markdown_table
    from run_scripts.session import Workload

    flags, record_format = job.flags, records.record_format
    boundaries = read_bucket_boundaries(flags, record_format)
    config = session.training_config(flags, bucket_boundaries=boundaries)
    workload = Workload(
        job.config,
        records.examples,
        flags.max_seq_length,
        flags.max_predictions_per_seq,
        attention=flags.attention,
        token_dropping=flags.token_dropping,
        sequences=record_format.packed_sequences or 1,
        predicts_words=True,
        teacher=job.teacher,
        memory_line=job.pretraining.memory_line,
    )
    command = [f"    --{name}={value}" for name, value in vars(flags).items() if value is not None]
    texts = {
        "configuration": as_markdown_table(dataclasses.asdict(job.config).items()),
        "command": "\n".join(["    run_pretraining", *command]),
    }
    with open_mask_processes(flags, record_format) as processes:
        records = dataclasses.replace(records, mask_processes=processes)
        return session.train(
            state,
            records,
            config,
            workload,
            evaluator,
            texts=texts,
            teacher=session.load_teacher(job, state),
            **options,
        )


def open_mask_processes(
    flags: PretrainFlags, record_format: RecordFormat
) -> "AbstractContextManager[MaskProcesses | None]":
    """A context with the `MaskProcesses` of --mask_processes; None where there are none."""
    import tensorflow as tf

    from create_pretraining_data.instances.mask_processes import MaskProcesses, default_count

    count = flags.mask_processes
    if count is None:
        gpus = len(tf.config.list_physical_devices("GPU"))
        count = default_count(min(flags.num_gpus or gpus, gpus))
    if count == 0 or record_format.masking is None:
        return contextlib.nullcontext()
    return MaskProcesses(count)


def export(
    flags: PretrainFlags,
    session: "Session",
    state: "TrainingState",
    write_files: Callable[[str], None],
) -> None:
    """Writes the weights alone into --export_dir."""
    from bert_tf.checkpoint import save_google_checkpoint

    save_google_checkpoint(state.model, os.path.join(flags.export_dir, EXPORTED_NAME))
    write_files(flags.export_dir)
    session.print(f"exported to {flags.export_dir}")


def evaluate(
    job: PretrainingJob,
    session: "Session",
    state: "TrainingState",
    evaluator: "RecordsEvaluator",
    held_out: "TrainingRecords",
) -> None:
    """Evaluates; writes and prints the results beside a trivial baseline's."""
    from bert_tf.input.pipeline import most_frequent_share

    flags = job.flags
    session.print(f"evaluating on {evaluator.records:,} records")
    results = {**evaluator.run(), "global_step": state.step}
    if not session.chief:
        return
    batches = flags.eval_batch_size, flags.max_eval_steps
    records = held_out.files, held_out.record_format, job.config
    note = job.pretraining.baseline(results, lambda: most_frequent_share(*records, *batches))
    drawn = flags.do_train and bool(flags.eval_input_file)  # training has drawn this point
    session.report(flags.output_dir, results, note, draw=not drawn)
