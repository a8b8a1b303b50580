"""Checks the flags and files of a pre-training run before TensorFlow is started."""

import dataclasses
import os
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_tf.config import LARGEST_SIZE, EncoderConfig
from bert_tf.training.cluster import read_cluster
from model_formats.model_folder import ModelFolder, stages_of
from model_formats.pretraining_objectives import OBJECTIVES, PretrainingObjective, objective_of
from run_scripts.flags.begun import Begun
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.distillation import GivenTeacher
from run_scripts.flags.objectives import SENTENCE_OBJECTIVES, config_of_objective
from run_scripts.flags.pretrain import PretrainFlags, check_flags
from run_scripts.flags.record_files import RecordFiles, find_tokenizer
from run_scripts.flags.training import check_checkpoint
from run_scripts.given_model import GivenModel
from run_scripts.job import Job
from tokenization.loading import Tokenizer

if TYPE_CHECKING:
    from bert_tf.checkpoint import CheckpointArrays


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingJob(Job[PretrainFlags]):
    """A run of run_pretraining. Its `config` has the records' vocab_size if no file gives it."""

    pretraining: PretrainingObjective  # of --objective
    files: RecordFiles  # to train on
    eval_files: RecordFiles
    # The sentence objectives of `files` and `eval_files`: "nsp", "sop" or "none"; None if unknown.
    # If --objective uses no sentence pairs, `objective` is its name, such as "rtd".
    objective: str | None
    eval_objective: str | None

    def open_weights(self, path: str) -> "CheckpointArrays":
        """Opens a checkpoint to start from, with the one in --generator_dir if that is given."""
        from model_formats.weights import open_weights

        arrays = open_weights(path)
        trained = objective_of(arrays.shapes)
        is_another = trained.weights and trained is not self.pretraining
        fits = not trained.encoders or self.model.model_type in trained.encoders
        if is_another and fits and not self.flags.allow_missing:
            raise InputError(
                f"--objective must be {trained.name}, as {path} was trained "
                "(--allow_missing=cls/ begins new heads). "
                f"Received: {self.flags.objective}"
            )
        if self.flags.generator_dir is None:
            return arrays
        from model_formats.electra_generator import beside

        folder = ModelFolder.open(self.flags.generator_dir)
        return beside(arrays, open_weights(folder.checkpoint))


# A configuration may have up to this many rows without a token, to make its table a round number.
PADDING_ROWS = 128


def make_job(given: PretrainFlags) -> PretrainingJob:
    """Resolves `PretrainFlags` and checks them with the files that they name."""
    model = GivenModel.of(given)
    # If the file leaves out vocab_size, the vocabulary decides it, which is not known yet.
    config = model.config_file.config_with(LARGEST_SIZE)
    files = eval_files = RecordFiles.of(given.input_file, "input_file")
    flags = resolve_model_defaults(given, model.model_type, **files.lengths)
    check_flags(given, flags)
    if flags.eval_input_file:
        eval_files = RecordFiles.of(flags.eval_input_file, "eval_input_file")
    begun = Begun.of(flags.output_dir, model.model_type)
    begun.check_encoder()
    model = dataclasses.replace(model, resumes=bool(begun.checkpoint))
    config = config_of_objective(flags, model, config, begun)
    objective, eval_objective = files.objective, eval_files.objective
    pretraining = OBJECTIVES[flags.objective]
    if not pretraining.uses_pairs:
        if objective in SENTENCE_OBJECTIVES:
            print(f"note: --objective={flags.objective} leaves the labels of sentence pairs out")
        objective = flags.objective
    begun.check_objective(flags.objective, objective if flags.do_train else None)
    tokenizer, size = find_tokenizer(flags, model.folder, config, files, eval_files)
    lower = None if tokenizer is None else tokenizer.do_lower_case
    if None not in (lower, given.do_lower_case) and lower != given.do_lower_case:
        raise InputError(
            "--do_lower_case must agree with the tokenizer that is saved with the model (leave it "
            f"out). Received: --do_lower_case={given.do_lower_case}, the tokenizer: {lower}"
        )
    if config.vocab_size == LARGEST_SIZE:
        config = dataclasses.replace(config, vocab_size=count_rows(begun, size, files))
    if tokenizer is not None:
        note_unused_rows(config, tokenizer)
    elif flags.do_train:
        print(
            "note: there is no tokenizer beside the records, so none is saved with the model "
            "(--tokenizer_dir names one)"
        )
    begun.check_model(config, tokenizer)
    start = model.checkpoint
    if not model.resumes:
        check_checkpoint(start)
    source = begun.checkpoint or start
    if not (flags.do_train or source):
        raise InputError(
            "to evaluate there must be a checkpoint in --output_dir, or --init_checkpoint. "
            f"Received: none in {flags.output_dir}"
        )
    if flags.do_train:
        begun.check_kept(flags)
    return PretrainingJob(
        flags=flags,
        model=model,
        config=config,
        begun=begun,
        source=source,
        stages=begun.stages if begun.checkpoint else stages_of(source),
        pretraining=pretraining,
        files=files,
        eval_files=eval_files,
        objective=objective,
        eval_objective=eval_objective,
        tokenizer=tokenizer,
        cluster=read_cluster(os.environ),
        teacher=GivenTeacher.of(flags, config, tokenizer),
    )


def count_rows(begun: Begun, size: int | None, files: RecordFiles) -> int:
    """Returns the vocab_size of a configuration without one: `size`, the number of tokens.

    A resumed run keeps the number that it began with.
    """
    size = begun.config.vocab_size if begun.config else size
    if size is None:
        raise InputError(
            "vocab_size must be in the configuration where there is no tokenizer beside the "
            f"records (--tokenizer_dir names one). Received: {files.paths[0]} without one"
        )
    return size


def note_unused_rows(config: EncoderConfig, tokenizer: Tokenizer) -> None:
    """Prints a note if more rows of the embedding table have no token than padding explains."""
    unused = config.vocab_size - tokenizer.vocab_size
    if unused > PADDING_ROWS:
        print(
            f"note: {unused:,} of the {config.vocab_size:,} rows of the embedding table have no "
            f"token, {unused * config.embedding_size:,} weights that are never used: without "
            '"vocab_size" in the configuration the table is as large as the vocabulary'
        )
