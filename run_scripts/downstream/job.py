"""Resolves the flags of a downstream task's program."""

import dataclasses
import os

from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.training.cluster import Cluster, read_cluster
from finetuning.metrics import check_installed
from model_formats.folder_tokenizer import check_table
from run_scripts.downstream.saved_settings import fill_in_saved_model
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import (
    FinetuneFlags,
    check_finetune_flags,
    find_fine_tuned,
    read_boundaries,
    refuse_hub_handle,
    resolve_patience,
    resolve_steps,
)
from run_scripts.flags.tokenizer import check_tokenizer_flags, open_tokenizer, source_of
from run_scripts.flags.training import (
    check_checkpoint,
    check_length,
    choose_model_type,
    read_config,
)
from tokenization import FullTokenizer, validate_case_matches_checkpoint


@dataclasses.dataclass(frozen=True)
class DownstreamJob:
    """What the flags of a program mean, checked as far as possible without TensorFlow."""

    flags: FinetuneFlags  # with every default resolved
    model_type: str  # "bert" or "albert"
    config: object  # the model's
    tokenizer: object  # the model's
    dataset: object  # what `Program.read_data` returned
    boundaries: tuple | None  # the lengths that batches are cut to; None: chosen by the examples
    settings: dict  # the task flags, for the model's folder to record
    cluster: Cluster | None


def make_job(given, program):
    """Resolves the `FinetuneFlags` of a `Program`, and checks them with the files that they name.

    Raises:
        InputError: a flag or a file that cannot work.
    """
    refuse_hub_handle(given)
    given = resolve_patience(given)
    filled = fill_in_saved_model(given, program.task_flags, program.changeable, program.alike)
    model = (filled.model_dir, filled.bert_config_file, filled.albert_config_file)
    if (filled.do_eval or filled.do_predict) and not (filled.do_train or any(model)):
        find_fine_tuned(filled)  # before the configuration is missed of a model that is not there
    model_type = choose_model_type(filled)
    flags = resolve_steps(resolve_model_defaults(filled, model_type), given)
    check_finetune_flags(flags)
    check_tokenizer_flags(flags)
    config = read_config(flags, model_type)
    check_length(flags, config)
    evaluates = flags.do_eval or (flags.do_train and flags.eval_every_steps)
    if evaluates and program.uses_libraries:
        check_installed()
    boundaries = read_boundaries(flags.bucket_boundaries, flags.max_seq_length)
    tokenizer = open_tokenizer(flags)
    if isinstance(tokenizer, FullTokenizer):
        validate_case_matches_checkpoint(tokenizer.do_lower_case, flags.init_checkpoint)
    check_table(config, tokenizer.vocab_size, source_of(flags))
    if not flags.do_train:
        find_fine_tuned(flags)
    elif not latest_checkpoint(flags.output_dir):  # else the run resumes from there
        check_checkpoint(flags.init_checkpoint)
    dataset = program.read_data(flags)
    return DownstreamJob(
        flags=flags,
        model_type=model_type,
        config=config,
        tokenizer=tokenizer,
        dataset=dataset,
        boundaries=boundaries,
        settings={name: getattr(flags, name) for name in program.task_flags},
        cluster=read_cluster(os.environ),
    )
