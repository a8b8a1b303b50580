"""Defines the ELECTRA encoder (arXiv:2003.10555), for both of its networks."""

import keras

from bert_tf.model import GOOGLE_NAMES, BertModel
from electra_tf.config import ElectraConfig


def google_names(network: str) -> dict[str, str]:
    """Maps our variables to google-research/electra's, for network "electra" or "generator".

    Only the prefixes differ from BERT; both networks have the discriminator's embeddings.
    """
    names = {"embedding_projection/{w}": f"{network}/embeddings_project/{{w}}"}
    for ours, google in GOOGLE_NAMES.items():
        if not ours.startswith("pooler/"):
            stem = "electra" if ours.startswith("embeddings/") else network
            names[ours] = google.replace("bert/", f"{stem}/", 1)
    return names


@keras.saving.register_keras_serializable(package="electra_tf")
class ElectraModel(BertModel):
    """A `bert_tf.BertModel` without a pooler, whose embeddings have their own width.

    As in google-research/electra, classification heads read the vector of [CLS] directly. It takes
    the arguments of `BertModel`; its configuration is an `ElectraConfig`.
    """

    config: ElectraConfig
    default_name = "electra"
    config_class = ElectraConfig
    google_names = google_names("electra")
    # Its pre-training predicts nothing about two segments.
    sentence_objective = None


class Generator(ElectraModel):
    """The network that fills the masks; it uses the embeddings of the discriminator."""

    google_names = google_names("generator")

    def __init__(self, discriminator: ElectraModel, name: str = "generator") -> None:
        super().__init__(
            discriminator.config.generator,
            name,
            discriminator.attention_function,
            discriminator.embeddings,
            dtype=discriminator.dtype_policy,
        )
