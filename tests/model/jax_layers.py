"""Runs a pre-training model on Keras's JAX backend, for the tests that compare it with TensorFlow.

    KERAS_BACKEND=jax python tests/model/jax_layers.py KIND IN.npz OUT.npz

IN has the weights by path ("weights/..."), a batch ("batch/..."), and the dropout layers' seeds
("seeds", [layers, 2]); OUT gets the outputs, the loss sums, and the gradients by path.
"""

import functools
import sys

import keras
import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.model import AlbertModel
from bert_tf import blockwise_attention as blockwise
from bert_tf.attention import attention
from bert_tf.config import BertConfig
from bert_tf.model import BertModel
from bert_tf.objective import total_loss
from bert_tf.pretraining import PretrainingModel

# Those of tests/support/tiny_models.py, which imports TensorFlow.
SIZES = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 32, "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip
BLOCK_QUERIES = 6  # so that 16 queries are three blocks


def make_model(kind):
    """A tiny model; `kind` is "bert" or "albert", "_blockwise" at its end for that attention."""
    kind, _, blocks = kind.partition("_")
    if blocks:
        blockwise.BLOCK_QUERIES = BLOCK_QUERIES
    attend = blockwise.blockwise_attention if blocks else attention
    if kind == "albert":
        config = AlbertConfig(embedding_size=16, **SIZES)
        return PretrainingModel(AlbertModel(config, attention_function=attend))
    return PretrainingModel(BertModel(BertConfig(**SIZES), attention_function=attend))


def loss_and_results(model, batch, seeds, weights):
    """The loss as a function of the weights, with the model's outputs and the loss sums."""
    state = [*zip(model.trainable_variables, weights, strict=True)]
    state += [*zip(model.non_trainable_variables, seeds, strict=True)]
    with keras.StatelessScope(state_mapping=state):
        outputs = model(batch, training=True)
        sums = model.objective.loss_sums(outputs, batch)
    denominators = model.objective.denominators(model.objective.weight_sums(batch))
    return total_loss(sums, denominators), {**outputs, **sums}


def part(arrays, name):
    """The arrays below a name."""
    return {key[len(name) + 1 :]: arrays[key] for key in arrays if key.startswith(f"{name}/")}


def main(kind, source, target):
    """Reads IN, runs the model, writes OUT."""
    import jax

    assert keras.backend.backend() == "jax"
    arrays = dict(np.load(source))
    model, given = make_model(kind), part(arrays, "weights")
    weights = [jax.numpy.asarray(given[v.path]) for v in model.trainable_variables]
    batch = {name: jax.numpy.asarray(value) for name, value in part(arrays, "batch").items()}
    seeds = list(jax.numpy.asarray(arrays["seeds"], "uint32"))
    run = functools.partial(loss_and_results, model, batch, seeds)
    (_, results), gradients = jax.jit(jax.value_and_grad(run, has_aux=True))(weights)
    paths = [v.path for v in model.trainable_variables]
    found = {f"gradients/{p}": g for p, g in zip(paths, gradients, strict=True)}
    # Keras itself may import TensorFlow; what the project's layers need is asserted of theirs.
    np.savez(target, **found, **{f"results/{name}": value for name, value in results.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
