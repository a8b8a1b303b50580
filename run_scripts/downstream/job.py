"""What the flags of a downstream task mean: every default resolved, checked with their files."""

import dataclasses
import os

from bert_common.errors import InputError
from bert_tf.training.cluster import Cluster, read_cluster
from finetuning.metrics import check_installed
from run_scripts.downstream.saved_settings import fill_in_saved_model
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import (
    FinetuneFlags,
    check_finetune_flags,
    check_initial,
    find_fine_tuned,
    read_boundaries,
    resolve_steps,
)
from run_scripts.flags.tokenizer import check_tokenizer_flags, open_tokenizer, source_of
from run_scripts.flags.training import choose_model_type, read_config
from run_scripts.model_folder import check_table
from tokenization import FullTokenizer, validate_case_matches_checkpoint


@dataclasses.dataclass(frozen=True)
class DownstreamJob:
    """What the flags of a program mean, checked as far as possible without TensorFlow.

    Attributes:
        flags: the program's `FinetuneFlags`, with every default resolved.
        model_type: "bert" or "albert".
        config: the model's configuration.
        tokenizer: the model's.
        dataset: what `Program.read_data` returned.
        boundaries: the lengths that batches are cut to; None: chosen by the examples.
        settings: what the model's folder remembers of the flags.
        cluster: the workers, or None.
    """

    flags: FinetuneFlags
    model_type: str
    config: object
    tokenizer: object
    dataset: object
    boundaries: tuple | None
    settings: dict
    cluster: Cluster | None


def make_job(given, program):
    """Resolves the flags of a command line, and checks them with the files that they name.

    Args:
        given: the program's `FinetuneFlags`, as parsed.
        program: a `run_scripts.downstream.program.Program`.

    Returns:
        A `DownstreamJob`.

    Raises:
        InputError: a flag or a file that cannot work.
    """
    flags, model_type = resolve_flags(given, program)
    check_finetune_flags(flags)
    check_tokenizer_flags(flags)
    config = read_config(flags, model_type)
    if flags.max_seq_length > config.max_position_embeddings:
        raise InputError(
            "--max_seq_length must be at most max_position_embeddings of the configuration. "
            f"Received: {flags.max_seq_length} and {config.max_position_embeddings}"
        )
    evaluates = flags.do_eval or (flags.do_train and flags.eval_every_steps)
    if evaluates and program.uses_libraries:
        check_installed()
    boundaries = read_boundaries(flags.bucket_boundaries, flags.max_seq_length)
    tokenizer = open_tokenizer(flags)
    if isinstance(tokenizer, FullTokenizer):
        validate_case_matches_checkpoint(tokenizer.do_lower_case, flags.init_checkpoint)
    check_table(config, tokenizer.vocab_size, source_of(flags))
    if flags.do_train:
        check_initial(flags)
    else:
        find_fine_tuned(flags)
    dataset = program.read_data(flags)
    settings = {name: getattr(flags, name) for name in program.task_flags}
    cluster = read_cluster(os.environ)
    return DownstreamJob(
        flags=flags,
        model_type=model_type,
        config=config,
        tokenizer=tokenizer,
        dataset=dataset,
        boundaries=boundaries,
        settings=settings,
        cluster=cluster,
    )


def resolve_flags(given, program):
    """The flags with every default resolved: by folders, by the model, by other flags.

    Args:
        given, program: as for `make_job`.

    Returns:
        `FinetuneFlags`, and "bert" or "albert".
    """
    filled = fill_in_saved_model(given, program.task_flags, program.changeable)
    model_type = choose_model_type(filled)
    return resolve_steps(resolve_model_defaults(filled, model_type), given), model_type
