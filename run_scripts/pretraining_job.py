"""Checks what the flags of a pre-training name, before TensorFlow is started."""

import dataclasses
import os
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.config import LARGEST_SIZE, EncoderConfig
from bert_tf.training.cluster import Cluster, read_cluster
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import (
    MASKED_WORDS,
    OBJECTIVES,
    PretrainingObjective,
    objective_of,
)
from run_scripts.flags.declaration import is_given, resolve_model_defaults
from run_scripts.flags.distillation import GivenTeacher
from run_scripts.flags.objectives import (
    SENTENCE_OBJECTIVES,
    check_begun_objective,
    config_of_objective,
    read_objective,
)
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import (
    PretrainFlags,
    check_checkpoints,
    check_described_tokenizer,
    check_flags,
    check_vocabulary,
    described_lengths,
    read_records_tokenizer,
    vocabulary_size,
)
from run_scripts.flags.training import check_kept, check_network, check_tokenizer
from run_scripts.given_model import GivenModel
from tokenization.loading import Tokenizer

if TYPE_CHECKING:
    from bert_tf.checkpoint import CheckpointArrays


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
    # A size that the file leaves out follows the vocabulary, which is not known yet.
    config = model.config_file.config_with(LARGEST_SIZE)
    files = eval_files = expand_globs(given.input_file, "input_file")
    flags = resolve_model_defaults(given, model.model_type, **described_lengths(files))
    note_unused_steps(given)
    check_flags(flags)
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
    lower = None if tokenizer is None else tokenizer.do_lower_case
    if None not in (lower, given.do_lower_case) and lower != given.do_lower_case:
        raise InputError(
            "--do_lower_case must agree with the tokenizer that is saved with the model (leave it "
            f"out). Received: --do_lower_case={given.do_lower_case}, the tokenizer: {lower}"
        )
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
    check_network(flags.output_dir, model.model_type, config)
    check_tokenizer(flags.output_dir, tokenizer)
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


def note_unused_steps(given: PretrainFlags) -> None:
    """Names the flags of updates that --max_train_hours leaves without an effect."""
    names = ("num_train_steps", "num_warmup_steps")
    unused = [f"--{name}" for name in names if is_given(given, name)]
    unused += ["--start_warmup_step"] if given.start_warmup_step else []
    if given.max_train_hours and unused:
        print(f"note: without effect beside --max_train_hours: {', '.join(unused)}")


def note_unused_rows(config: EncoderConfig, tokenizer: Tokenizer) -> None:
    """Says how many rows of the table of pieces have no piece, where that is more than padding."""
    unused = config.vocab_size - tokenizer.vocab_size
    if unused > PADDING_ROWS:
        print(
            f"note: {unused:,} of the {config.vocab_size:,} rows of the embedding table have no "
            f"token, {unused * config.embedding_size:,} weights that are never used: without "
            '"vocab_size" in the configuration the table is as large as the vocabulary'
        )
