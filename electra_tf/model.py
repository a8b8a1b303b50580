"""The ELECTRA encoder (arXiv:2003.10555): BERT with embeddings of their own width, no pooler."""

from collections.abc import Callable
from typing import Any

import keras

from bert_tf.attention import attention
from bert_tf.layers import Embeddings
from bert_tf.model import GOOGLE_NAMES, BertModel
from electra_tf.config import ElectraConfig


def google_names(network: str) -> dict[str, str]:
    """Our variables and Google's (google-research/electra), of "electra" or of "generator".

    They are BERT's but for their beginnings; both networks have the discriminator's embeddings.
    """
    names = {"embedding_projection/{w}": f"{network}/embeddings_project/{{w}}"}
    for ours, google in GOOGLE_NAMES.items():
        if not ours.startswith("pooler/"):
            stem = "electra" if ours.startswith("embeddings/") else network
            names[ours] = google.replace("bert/", f"{stem}/", 1)
    return names


@keras.saving.register_keras_serializable(package="electra_tf")
class ElectraModel(BertModel):
    """A `bert_tf.BertModel` with other embeddings, in which [CLS] itself stands for a sequence.

    google-research/electra's heads of whole texts read [CLS] as it is. It takes the arguments of
    `BertModel`; its configuration is an `ElectraConfig`.
    """

    config: ElectraConfig
    config_class = ElectraConfig
    google_names = google_names("electra")
    # Its pre-training predicts nothing of two segments.
    sentence_objective = None

    def __init__(
        self,
        config: ElectraConfig,
        name: str = "electra",
        attention_function: Callable[..., Any] = attention,
        embeddings: Embeddings | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(config, name, attention_function, embeddings, **kwargs)


class Generator(ElectraModel):
    """The network that fills the masks, on the embeddings of the discriminator."""

    google_names = google_names("generator")

    def __init__(self, discriminator: ElectraModel, name: str = "generator") -> None:
        super().__init__(
            discriminator.config.generator,
            name,
            discriminator.attention_function,
            discriminator.embeddings,
            dtype=discriminator.dtype_policy,
        )
