"""Checks that the objectives of flags, models and records fit together."""

import dataclasses
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.costs.dropped_tokens import LEAST_CALLS
from model_formats.encoders import ENCODERS
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import OBJECTIVES, REPLACED_TOKENS
from model_formats.training_record import trained_by
from run_scripts.flags.training import check_outputs

if TYPE_CHECKING:
    from run_scripts.flags.begun import Begun
    from run_scripts.flags.pretrain import PretrainFlags
    from run_scripts.given_model import GivenModel

# --objective of create_pretraining_data -> the name of its loss and accuracy in results. In both,
# label 1 means that B does not follow A: it is from elsewhere (nsp) or precedes A (sop).
SENTENCE_OBJECTIVES = {"nsp": "next_sentence", "sop": "sentence_order"}


def config_of_objective(
    flags: "PretrainFlags", model: "GivenModel", config: EncoderConfig, begun: "Begun"
) -> EncoderConfig:
    """Returns the model's configuration as flags change it; checks that they fit the objective."""
    objective = OBJECTIVES[flags.objective]
    if objective.encoders and model.model_type not in objective.encoders:
        titles = " or ".join(ENCODERS[name].title for name in objective.encoders)
        raise InputError(
            f"--objective={flags.objective} needs an {titles}'s configuration (--config_file). "
            f"Received: {model.config_file.path}, of {model.encoder.title}"
        )
    if flags.token_dropping and not objective.drops_tokens:
        names = " or ".join(o.name for o in OBJECTIVES.values() if o.drops_tokens)
        raise InputError(
            f"--token_dropping needs --objective={names}. Received: --objective={flags.objective}"
        )
    if flags.token_dropping and config.num_block_calls < LEAST_CALLS:
        raise InputError(
            f"--token_dropping needs a model of at least {LEAST_CALLS} layers. Received: "
            f"{config.num_block_calls}"
        )
    if flags.objective != REPLACED_TOKENS.name:
        return config
    source = begun.checkpoint or model.checkpoint
    size = _size_in_folder(flags, source, config) if flags.generator_dir else flags.generator_size
    changes: dict[str, Any] = {} if size is None else {"generator_size": size}
    config = dataclasses.replace(config, **changes)
    if not flags.generator_dir:
        _check_trained_size(config, source)
    return config


def _size_in_folder(flags, source, config):
    """Returns the generator_size of the generator in --generator_dir, which must fit the model."""
    if source is None:
        raise InputError(
            "--generator_dir needs the discriminator's weights: --model_dir or "
            "--init_checkpoint. Received: neither"
        )
    folder = ModelFolder.open(flags.generator_dir, what="--generator_dir")
    check_outputs(flags, "generator_dir", folder.path)
    if folder.model_type not in REPLACED_TOKENS.encoders:
        raise InputError(
            "--generator_dir must hold an ELECTRA's generator. Received: "
            f"{flags.generator_dir}, of {ENCODERS[folder.model_type].title}"
        )
    generator = folder.config
    size = generator.hidden_size / config.hidden_size
    try:
        fitting = vars(dataclasses.replace(config, generator_size=size).generator)
    except InputError:
        fitting = {}
    others = [f"{n}={v}" for n, v in vars(generator).items() if n in SHAPES and fitting.get(n) != v]
    if others or size > 1:
        raise InputError(
            "--generator_dir must hold an ELECTRA's generator as deep as the discriminator, with "
            "its embeddings, a head for each 64 of its width and a feed-forward part four times as "
            f"wide. Received: {flags.generator_dir} with {', '.join(others)}"
        )
    given = flags.generator_size
    if given and round(config.hidden_size * given) != generator.hidden_size:
        raise InputError(
            f"--generator_size must be {size:g}, the size of the generator in --generator_dir. "
            f"Received: {given:g}"
        )
    return size


def _check_trained_size(config, source):
    """Raises an `InputError` if the generator's size differs from an rtd checkpoint's."""
    folder = ModelFolder.beside(source) if source else None
    if folder is None or trained_by(folder.stages) != REPLACED_TOKENS.name:
        return
    files = folder.config_files
    if files and files[0].is_of_transformers:
        return  # it describes a network alone; a new generator may have any size
    trained: Any = files[0].config if files else config
    size = trained.generator_size
    if round(size * config.hidden_size) != config.generator.hidden_size:
        raise InputError(
            f"--generator_size must be {size:g}, with which {source} was trained. "
            f"Received: {config.generator_size:g}"
        )


# Fields of a generator's configuration that follow from the discriminator's and the width.
SHAPES = (
    "embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
    "intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size",
)  # fmt: skip


def measured_pairs(
    own: str | None, theirs: str | None, default: str
) -> tuple[str | None, str | None]:
    """Chooses the name of the results for an evaluation's sentence pairs.

    Args:
        own: the objective that the model was trained with; None if it is not known.
        theirs: the objective of the records to evaluate on; None if it is not known.
        default: the name if neither is known.

    Returns:
        The name, or None if the results would mean nothing; and a line for the user, or None.
    """
    if theirs == "none":
        if own == "none":
            return None, None
        return None, "note: these records have no sentence pairs: only masked words are measured"
    name = SENTENCE_OBJECTIVES.get(theirs or own or "", default)
    if own == "none":
        return None, (
            "note: the model was trained with --objective=none, so it cannot classify sentence "
            f"pairs: {name}_accuracy is not measured"
        )
    if own and theirs and own != theirs:
        return name, (
            f"note: the model was trained with --objective={own}, these records were made with "
            f'--objective={theirs}: {name}_accuracy takes the model\'s "B does not follow A" for '
            "the records' label 1"
        )
    return name, None
