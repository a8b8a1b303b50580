"""The generator of an ELECTRA as a model of its own, for masked words, in both directions.

transformers has a folder for each network, ElectraForPreTraining and ElectraForMaskedLM, whose
names are alike; google-research/electra's checkpoints hold both.
"""

import dataclasses
import warnings

import numpy as np

from bert_common.errors import InputError
from bert_tf import PretrainingModel
from bert_tf.checkpoint import TABLE, CheckpointArrays, google_variables
from electra_tf import ElectraConfig, ElectraModel
from model_formats.encoders import ELECTRA
from model_formats.loaded_model import LoadedModel

# How a name begins in a checkpoint of both networks -> in one of a model for masked words.
ALONE = {
    "generator/": ELECTRA.stem,
    "generator_predictions/dense/": "cls/predictions/transform/dense/",
    "generator_predictions/LayerNorm/": "cls/predictions/transform/LayerNorm/",
    "generator_predictions/output_bias": "cls/predictions/output_bias",
}
EMBEDDINGS = f"{ELECTRA.stem}embeddings/"


def name_in_both(name: str) -> str | None:
    """The name in a checkpoint of both networks of a weight of the generator alone.

    None if both share it, or lack it.
    """
    if name.startswith(EMBEDDINGS):
        return None
    for beside, alone in ALONE.items():
        if name.startswith(alone):
            return beside + name.removeprefix(alone)
    return None


def generator_alone(loaded: LoadedModel) -> LoadedModel:
    """The generator of a model as a model: its embeddings, encoder and head; else refuses."""
    if not loaded.fills_masks or loaded.lacks("generator/"):
        raise InputError(
            "--generator needs an ELECTRA with both networks, as run_pretraining --objective=rtd "
            f"trains it. Received: {loaded.source}"
        )
    assert isinstance(loaded.config, ElectraConfig)  # no other has a generator
    config = loaded.config.generator
    model = PretrainingModel(ElectraModel(config))
    both, missing = google_variables(loaded.model), []
    for name, variable in google_variables(model).items():
        source = name if name.startswith(EMBEDDINGS) else name_in_both(name)
        if source is None:
            missing.append(name)
        else:
            variable.assign(both[source].value)
    return dataclasses.replace(loaded, model=model, config=config, missing=tuple(missing))


def beside(discriminator: CheckpointArrays, generator: CheckpointArrays) -> CheckpointArrays:
    """Joins the arrays of two checkpoints into one that holds both networks.

    The embeddings are the discriminator's; the generator is any model for masked words.
    """
    table = ELECTRA.stem + TABLE
    if not np.array_equal(discriminator.read(table), generator.read(table)):
        warnings.warn(
            f"{generator.source} must have the embeddings of {discriminator.source}, which both "
            "networks share: with others it fills masks worse at first",
            stacklevel=2,
        )
    renamed = {both: name for name in generator.shapes if (both := name_in_both(name))}
    own = [name for name in discriminator.shapes if name not in renamed]
    return CheckpointArrays(
        f"{discriminator.source} with the generator {generator.source}",
        {name: discriminator.shapes[name] for name in own}
        | {both: generator.shapes[name] for both, name in renamed.items()},
        lambda name: generator.read(renamed[name]) if name in renamed else discriminator.read(name),
        ignored=(*discriminator.ignored, *generator.ignored),
        config=discriminator.config,
    )
