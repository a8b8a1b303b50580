"""The ELECTRA encoder (arXiv:2003.10555): BERT with embeddings of their own width, no pooler.

Shapes: B batch, T tokens, E embedding, H hidden, S sequences of a packed row, P positions.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import keras

from bert_tf.attention import attention, attention_bias
from bert_tf.encoder import encoder_inputs, run_last_block
from bert_tf.layers import BlockInputs, Embeddings, Shape, TransformerBlock, call_block, dense
from electra_tf.config import ElectraConfig


def google_names(network: str) -> dict[str, str]:
    """Our variables and Google's (google-research/electra), of "electra" or of "generator".

    Paths are relative to the model's own name; {w} is kernel or bias, of a layer norm gamma or
    beta. Both networks have the discriminator's embeddings.
    """
    layer = f"{network}/encoder/layer_{{i}}"
    return {
        "embeddings/word_embeddings": "electra/embeddings/word_embeddings",
        "embeddings/token_type_embeddings": "electra/embeddings/token_type_embeddings",
        "embeddings/position_embeddings": "electra/embeddings/position_embeddings",
        "embeddings/layer_norm/{w}": "electra/embeddings/LayerNorm/{w}",
        "embedding_projection/{w}": f"{network}/embeddings_project/{{w}}",
        "layer_{i}/attention/query/{w}": f"{layer}/attention/self/query/{{w}}",
        "layer_{i}/attention/key/{w}": f"{layer}/attention/self/key/{{w}}",
        "layer_{i}/attention/value/{w}": f"{layer}/attention/self/value/{{w}}",
        "layer_{i}/attention_output/{w}": f"{layer}/attention/output/dense/{{w}}",
        "layer_{i}/attention_layer_norm/{w}": f"{layer}/attention/output/LayerNorm/{{w}}",
        "layer_{i}/intermediate/{w}": f"{layer}/intermediate/dense/{{w}}",
        "layer_{i}/output/{w}": f"{layer}/output/dense/{{w}}",
        "layer_{i}/output_layer_norm/{w}": f"{layer}/output/LayerNorm/{{w}}",
    }


@keras.saving.register_keras_serializable(package="electra_tf")
class ElectraModel(keras.Model):
    """A `bert_tf.BertModel` with other embeddings, in which [CLS] itself stands for a sequence.

    Args:
        config: an `ElectraConfig`.
        attention_function: as `BertModel` takes it.
        embeddings: another network's embeddings, to share them; None for its own.
    """

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
        super().__init__(name=name, **kwargs)
        self.config = config
        self.attention_function = attention_function
        policy, hidden = self.dtype_policy, config.hidden_size
        self.embeddings = embeddings or Embeddings(config, name="embeddings", dtype=policy)
        # As Google: no projection where the widths are equal.
        self.projection = None
        if config.embedding_size != hidden:
            self.projection = dense(hidden, config, "embedding_projection", dtype=policy)
        self.blocks = [
            TransformerBlock(config, attention_function, name=f"layer_{i}", dtype=policy)
            for i in range(config.num_hidden_layers)
        ]
        self.build()

    def build(self, input_shape: Shape | None = None) -> None:
        if not self.embeddings.built:
            self.embeddings.build()
        if self.projection is not None:
            self.projection.build((None, None, self.config.embedding_size))
        for block in self.blocks:
            block.build()

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        return_all_layers: bool = False,
        positions: Any = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Does what `BertModel.call` does, but "embedding_output" is [B, T, E].

        "pooled_output" [B, H] (packed rows: [B, S, H]) is the output at [CLS] as it is, which
        google-research/electra's heads of whole texts read.
        """
        inputs = encoder_inputs(inputs, self.config)
        bias = attention_bias(inputs.input_mask, inputs.segment_index)  # [B, 1, 1 or T, T]
        of_blocks = BlockInputs(bias, inputs.position_ids)
        embedded = x = self.embeddings(
            inputs.input_ids, inputs.segment_ids, inputs.position_ids, training=training
        )  # [B, T, E]
        if self.projection is not None:
            x = self.projection(x)  # [B, T, H]
        outputs = {"embedding_output": embedded, "encoder_input": x, "encoder_outputs": []}
        for block in self.blocks[:-1]:
            x = run_block(block, x, of_blocks, training=training)
            outputs["encoder_outputs"].append(x)
        last = functools.partial(run_block, self.blocks[-1], x, training=training)
        x, first = run_last_block(last, of_blocks, inputs.sequence_starts, positions)
        outputs["encoder_outputs"].append(x)
        outputs = outputs if return_all_layers else {}
        return {"sequence_output": x, "pooled_output": first, **outputs}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        sizes = {field.name for field in dataclasses.fields(ElectraConfig)}
        rest = {key: value for key, value in config.items() if key not in sizes}
        return cls(ElectraConfig(**{key: config[key] for key in sizes}), **rest)


class Generator(ElectraModel):
    """The network that fills the masks, on the embeddings of the discriminator.

    Args:
        discriminator: the `ElectraModel`.
    """

    google_names = google_names("generator")

    def __init__(self, discriminator: ElectraModel, name: str = "generator") -> None:
        super().__init__(
            discriminator.config.generator,
            name,
            discriminator.attention_function,
            discriminator.embeddings,
            dtype=discriminator.dtype_policy,
        )
