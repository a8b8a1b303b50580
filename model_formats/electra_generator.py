"""Extracts an ELECTRA's generator as a masked-word model, or joins both networks again.

transformers has a folder for each network, ElectraForPreTraining and ElectraForMaskedLM, with the
same names for the encoder's weights; google-research/electra's checkpoints hold both networks.
"""

import dataclasses
import warnings

import numpy as np

from bert_common.errors import InputError
from bert_tf import PretrainingModel
from bert_tf.checkpoint import CheckpointArrays, google_name, google_variables
from electra_tf import ElectraConfig, ElectraModel
from electra_tf.model import Generator
from electra_tf.replaced_tokens import ReplacedTokensModel
from model_formats.loaded_model import LoadedModel

# Google's name of a generator's weight in a masked-word model -> its name in a checkpoint of both
# networks, if that differs. Both networks share their embeddings, so those names stay.
BESIDE = {
    alone[ours]: both[ours]
    for alone, both in (
        (ElectraModel.google_names, Generator.google_names),
        (PretrainingModel.google_names, ReplacedTokensModel.google_names),
    )
    for ours in alone.keys() & both.keys()
    if alone[ours] != both[ours]
}


def generator_alone(loaded: LoadedModel) -> LoadedModel:
    """Returns the generator of an ELECTRA as a model; raises an `InputError` if it has none."""
    if not loaded.fills_masks or loaded.lacks_part("generator"):
        raise InputError(
            "--generator needs an ELECTRA with both networks, as run_pretraining --objective=rtd "
            f"trains it. Received: {loaded.source}"
        )
    assert isinstance(loaded.config, ElectraConfig)  # only ELECTRA has a generator
    config = loaded.config.generator
    model = PretrainingModel(ElectraModel(config))
    both, missing = google_variables(loaded.model), []
    for name, variable in google_variables(model).items():
        source = google_name(name, BESIDE) or name
        if source in both:
            variable.assign(both[source].value)
        else:
            missing.append(name)
    return dataclasses.replace(loaded, model=model, config=config, missing=tuple(missing))


def beside(discriminator: CheckpointArrays, generator: CheckpointArrays) -> CheckpointArrays:
    """Joins the arrays of two checkpoints as one that holds both networks.

    The embeddings are the discriminator's. The generator can be any masked-word model.
    """
    table = ElectraModel.google_names["embeddings/word_embeddings"]
    if not np.array_equal(discriminator.read(table), generator.read(table)):
        warnings.warn(
            f"{generator.source} must have the embeddings of {discriminator.source}, which both "
            "networks share: with others it fills masks worse at first",
            stacklevel=2,
        )
    renamed = {both: name for name in generator.shapes if (both := google_name(name, BESIDE))}
    own = [name for name in discriminator.shapes if name not in renamed]
    return CheckpointArrays(
        f"{discriminator.source} with the generator {generator.source}",
        {name: discriminator.shapes[name] for name in own}
        | {both: generator.shapes[name] for both, name in renamed.items()},
        lambda name: generator.read(renamed[name]) if name in renamed else discriminator.read(name),
        ignored=(*discriminator.ignored, *generator.ignored),
        config=discriminator.config,
    )
