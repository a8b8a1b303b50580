"""Resolves the flags of a downstream task's program."""

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bert_common.errors import InputError
from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.training.cluster import read_cluster
from finetuning.metrics import check_installed
from model_formats.model_folder import stages_of
from run_scripts.downstream.saved_settings import find_model, saved_task_flags
from run_scripts.flags.begun import Begun
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.distillation import GivenTeacher, check_task
from run_scripts.flags.finetune import (
    Flags,
    check_finetune_flags,
    evaluated_splits,
    find_fine_tuned,
    read_boundaries,
    unused_steps,
)
from run_scripts.flags.training import check_checkpoint, check_length
from run_scripts.job import Job
from tokenization import FullTokenizer, validate_case_matches_checkpoint
from tokenization.loading import Tokenizer

if TYPE_CHECKING:
    from finetuning.downstream_task import TaskDataset
    from run_scripts.downstream.program import Program


# The type that a program's `Program.read_data` returns.
Data = TypeVar("Data", bound="TaskDataset")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DownstreamJob(Job[Flags], Generic[Flags, Data]):
    """A run of a downstream task's program."""

    tokenizer: Tokenizer
    dataset: Data  # what `Program.read_data` returned
    evaluates: bool  # by --do_eval, or --do_predict with `Program.scores_predictions`
    # The lengths that batches are cut to; None if they are chosen from the examples.
    boundaries: tuple[int, ...] | None
    task: str  # a key of `finetuning.tasks.TASKS`
    settings: dict[str, Any]  # the task's settings, for the model's folder to record


def make_job(
    given: Flags, program: "Program[Flags, Data]", **known: Any
) -> DownstreamJob[Flags, Data]:
    """Resolves the flags given to `finetune` and checks them with the files that they name."""
    check_finetune_flags(given)
    model = find_model(given)
    checkpoint = None if given.num_seeds > 1 else latest_checkpoint(given.output_dir)
    resumes = bool(given.do_train and checkpoint)  # several seeds train in folders inside it
    model = dataclasses.replace(model, resumes=resumes)
    saved = saved_task_flags(given, model, program.task, **known)
    source = checkpoint or model.checkpoint
    if not given.do_train:  # reports a missing model before its missing configuration
        source = find_fine_tuned(given, model)
    known |= saved | unused_steps(given)
    flags = resolve_model_defaults(given, model.model_type, **known)
    config = model.config
    check_length(flags, config)
    measures = flags.do_eval or (flags.do_train and flags.eval_every_steps)
    if measures and program.uses_libraries:
        check_installed()
    boundaries = read_boundaries(flags.bucket_boundaries, flags.max_seq_length)
    tokenizer = model.tokenizer
    if isinstance(tokenizer, FullTokenizer):
        validate_case_matches_checkpoint(bool(tokenizer.do_lower_case), model.checkpoint)
    if flags.do_train and not resumes:
        check_checkpoint(source)
    teacher = GivenTeacher.of(flags, config, tokenizer)
    dataset = program.read_data(flags)
    scores = program.scores_predictions and flags.do_predict
    evaluates = flags.do_eval or (scores and bool(evaluated_splits(flags, dataset)))
    if flags.num_seeds > 1 and not (flags.do_train and evaluates):
        raise InputError(
            "--num_seeds needs --do_train and --do_eval. Received: "
            f"--num_seeds={flags.num_seeds} without them"
        )
    settings = {name: getattr(flags, name) for name in program.task.settings}
    settings |= program.head_settings(flags, model.encoder)
    if teacher:
        teacher.check_length(flags.max_seq_length)
        labels = getattr(dataset, "labels", ()) or getattr(dataset, "tags", ())
        check_task(teacher, program.task.name, labels, settings)
    return DownstreamJob(
        flags=flags,
        model=model,
        config=config,
        begun=Begun(flags.output_dir, model.model_type, checkpoint),
        source=source,
        stages=stages_of(source),
        tokenizer=tokenizer,
        dataset=dataset,
        evaluates=evaluates,
        boundaries=boundaries,
        task=program.task.name,
        settings=settings,
        cluster=read_cluster(os.environ),
        teacher=teacher,
    )
