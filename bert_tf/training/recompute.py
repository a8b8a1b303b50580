"""Recomputes blocks for the gradient, so that only their inputs are kept (arXiv:1604.06174).

A block's activations are about thirty times the size of its input; this saves them at the price
of a second forward pass.
"""

import keras
import tensorflow as tf

from bert_tf.layers import BlockInputs


def recompute_block(
    scope: keras.StatelessScope,
    block: keras.layers.Layer,
    x: tf.Tensor,
    inputs: BlockInputs,
    training: bool | None = None,
) -> tf.Tensor:
    """Runs a block like `bert_tf.layers.call_block`, with equal results, but keeps only its input.

    The block's weights and seeds are passed to the recomputed function explicitly. Inside a
    stateless scope, which holds them, gradients of captured weights would be None, and dropout
    would draw a different mask the second time. The seeds advance with every call, as they do
    without recomputation, because ALBERT calls its blocks several times.
    """
    # The scope's own values, because `value` would be cast to the precision of the caller.
    own = {id(v) for v in block.weights}  # including frozen weights
    seed_states = [v for v in block.non_trainable_variables if id(v) not in own]
    weights = [scope.get_current_value(v) for v in block.weights]
    seeds = [scope.get_current_value(v) for v in seed_states]

    def run(x, *weights):
        state = [*zip(block.weights, weights, strict=True), *zip(seed_states, seeds, strict=True)]
        with keras.StatelessScope(state_mapping=state):
            return block(x, inputs, training=training)

    y = tf.recompute_grad(run)(x, *weights)
    for variable, seed in zip(seed_states, seeds, strict=True):
        # As in `keras.random.SeedGenerator.next`, once, because a block calls each dropout once.
        scope.add_update((variable, seed + tf.constant([0, 1], seed.dtype)))
    return y
