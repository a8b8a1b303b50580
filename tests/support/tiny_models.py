"""Tiny models, random batches and examples, and training steps of them."""

import contextlib
import json
import warnings

import keras
import numpy as np
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel, attention, dropout
from bert_tf.checkpoint import google_variables
from bert_tf.optimization import OPTIMIZERS, WarmupPolynomialDecay
from bert_tf.training.loop import TrainingConfig
from bert_tf.training.step import StepConfig, TrainingStep
from bert_tf.training.xla import Compilation
from finetuning.examples import Examples

SIZES = {
    "vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 32, "type_vocab_size": 2,
}  # fmt: skip
ONE_LAYER = {"num_hidden_layers": 1}  # traced and compiled sooner, where the second adds nothing


def optimize_graphs(wanted):
    """Switches TensorFlow's graph optimizer on or off, for functions not yet called."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not wanted})


@contextlib.contextmanager
def without_graphs(wanted=True):
    """Computes operation by operation, if that is wanted.

    To compute a step once or twice takes a third of the time that it takes to trace it. That its
    graph computes the same is for the tests that train longer.
    """
    tf.config.run_functions_eagerly(wanted)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Even though")  # that it is not for tf.data
            yield
    finally:
        tf.config.run_functions_eagerly(False)


def tiny_model(kind="bert", dropout=0.0, **changes):
    """A pre-training model of two layers, `kind` "bert" or "albert"."""
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    sizes = {**SIZES, **rates, **changes}
    if kind == "albert":
        return PretrainingModel(AlbertModel(AlbertConfig(**{"embedding_size": 16, **sizes})))
    return PretrainingModel(BertModel(BertConfig(**sizes)))


def write_config(path, kind="bert", **changes):
    """Writes a configuration of one layer; returns its path."""
    sizes = {"embedding_size": 16} if kind == "albert" else {}
    path.write_text(json.dumps({**SIZES, **ONE_LAYER, **sizes, **changes}))
    return path


def make_optimizer(name, model, steps=100):
    """The named optimizer, built for the model, with a warm-up of two steps."""
    optimizer = OPTIMIZERS[name](WarmupPolynomialDecay(1e-2, steps, 2))
    optimizer.build(model.trainable_variables)
    return optimizer


def products(function, spec):
    """The operations of all matrix products in the graph of a function."""
    graph = tf.function(function, autograph=False).get_concrete_function(spec).graph
    total = 0
    for op in graph.get_operations():
        if "MatMul" in op.type:
            a, _ = op.inputs
            transposed = op.get_attr("adj_x" if "Batch" in op.type else "transpose_a")
            inner = a.shape[-2 if transposed else -1]
            total += 2 * op.outputs[0].shape.num_elements() * inner
        assert "Einsum" not in op.type
    return total


def random_batch(seed, size=8, length=16, predictions=4, vocab_size=60, padding=True):
    """Features of a global batch; the masked counts differ from row to row."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(length // 2, length + 1, size) if padding else np.full(size, length)
    mask = (np.arange(length) < lengths[:, None]).astype(np.int32)
    counts = rng.integers(1, predictions + 1, size)
    return {
        "input_ids": (rng.integers(1, vocab_size, (size, length)) * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": (rng.integers(0, 2, (size, length)) * mask).astype(np.int32),
        "masked_lm_positions": rng.integers(1, length // 2, (size, predictions)).astype(np.int32),
        "masked_lm_ids": rng.integers(1, vocab_size, (size, predictions)).astype(np.int32),
        "masked_lm_weights": (np.arange(predictions) < counts[:, None]).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (size, 1)).astype(np.int32),
        "next_sentence_weights": np.ones(size, np.float32),
    }


def tensors(batch):
    """A batch for one device."""
    return {name: tf.constant(value) for name, value in batch.items()}


def split_batch(batch, strategy):
    """The global batch, dealt to the strategy's replicas as training deals it."""
    replicas = strategy.num_replicas_in_sync
    parts = [
        tensors({k: np.array_split(v, replicas)[i] for k, v in batch.items()})
        for i in range(replicas)
    ]
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


def strategy_of(devices):
    """The strategy of one device, or that of two."""
    return two_devices() if devices == 2 else tf.distribute.get_strategy()


def two_devices():
    """A strategy over two logical CPUs, as `bert_tf.training.distribution` makes one."""
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce()
    )


@contextlib.contextmanager
def computing_in(policy):
    """Models that are made inside compute in this Keras policy; None for the one that is set."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy or before)
    yield
    keras.config.set_dtype_policy(before)


def make_step(
    kind="bert",
    optimizer="adamw",
    strategy=None,
    step_class=TrainingStep,
    policy=None,
    make_loss_scale=lambda: None,
    sizes=None,
    dropout=0.0,
    **options,
):
    """A training step of a tiny model, whose weights are the same every time; without XLA."""
    strategy = strategy or tf.distribute.get_strategy()
    keras.utils.set_random_seed(3)
    with strategy.scope(), computing_in(policy):
        model = tiny_model(kind, dropout=dropout, **(sizes or {}))
        optimizer, loss_scale = make_optimizer(optimizer, model), make_loss_scale()
    return step_of(
        model, optimizer, strategy, step_class=step_class, loss_scale=loss_scale, **options
    )


def step_of(
    model,
    optimizer,
    strategy=None,
    *,
    step_class=TrainingStep,
    xla=False,
    xla_update=False,
    loss_scale=None,
    token_dropping=None,
    seed=0,
    **config,
):
    """A training step, without XLA; `config` are fields of `StepConfig`."""
    strategy = strategy or tf.distribute.get_strategy()
    config = StepConfig(seed=seed, **config)
    compilation = Compilation(whole=xla, auto_clustering=False, update=xla_update)
    own = {} if token_dropping is None else {"token_dropping": token_dropping}
    return step_class(model, optimizer, strategy, config, compilation, loss_scale, **own)


def training_config(output_dir="", size=8, **fields):
    """A `TrainingConfig` of 100 updates of `size` examples."""
    sizes = {"train_batch_size": size, "num_train_steps": 100}
    return TrainingConfig(output_dir=str(output_dir), **{**sizes, **fields})


def weights_of(model):
    """Its weights as arrays by Google's names."""
    return {name: variable.numpy() for name, variable in google_variables(model).items()}


def trained_variables(step):
    """Weights and the optimizer's slots by their names in a checkpoint."""
    variables = {}
    for name, variable in google_variables(step.model).items():
        kept = step.optimizer.slot_variables(variable)
        names = [f"{name}/{slot.suffix}" for slot in step.optimizer.slots.values()]
        variables |= {name: variable, **dict(zip(names, kept, strict=True))}
    return variables


def training_state(step):
    """Those as arrays: name -> a list with an array for every replica."""
    return {
        name: [value.numpy() for value in step.strategy.experimental_local_results(variable.value)]
        for name, variable in trained_variables(step).items()
    }


def first_state(step):
    """Those of the first replica alone: name -> an array."""
    return {name: values[0] for name, values in training_state(step).items()}


def forward_backward(step, batch, updates=0, replica=0, **others):
    """Loss sums and a list of gradients, None where there is none, after so many updates.

    `others` go to `TrainingStep.forward_backward`.
    """
    weights = [v.value for v in step.weights]
    place = tf.constant(updates, tf.int64), tf.constant(replica)
    sizes = step.objective.denominators(step.objective.weight_sums(batch))
    scale = tf.constant(1.0, step.dtype)
    return step.forward_backward(weights, *place, batch, sizes, scale, **others)


def gradients_of(step, batch):
    """Loss sums, and the gradient of each weight by its path, before any update; one device."""
    sums, gradients = forward_backward(step, tensors(batch))
    paths = [v.path for v in step.weights]
    sums = {name: float(value) for name, value in sums.items()}
    return sums, dict(zip(paths, (g.numpy() for g in gradients), strict=True))


def assert_close(found, expected, share, floor):
    """Arrays by name are equal up to a share of the expected one's largest entry.

    That entry counts as at least `floor`: the key bias has a gradient of zero up to rounding.
    """
    assert set(found) == set(expected)
    for name, value in expected.items():
        bound = share * max(np.abs(value).max(), floor)
        np.testing.assert_allclose(found[name], value, atol=bound, rtol=0, err_msg=name)


class ProbedStep(TrainingStep):
    """A step that also returns what every dropout layer dropped, in the order of the calls."""

    def _accumulate(self, *arguments, **others):
        masks = []
        original = dropout.dropout

        def recording(x, rate, seed, rows=None):
            outputs = original(x, rate, seed, rows)
            masks.append(tf.reshape(tf.cast(tf.equal(outputs, 0), tf.float32), [-1]))
            return outputs

        dropout.dropout = attention.dropout = recording
        try:
            sums, gradients = super()._accumulate(*arguments, **others)
        finally:
            dropout.dropout = attention.dropout = original
        self.count = len(masks)
        return {**sums, **{f"dropped_{i}": mask for i, mask in enumerate(masks)}}, gradients


def make_examples(count, seed=0):
    """Examples whose pieces are their number, of lengths up to 32."""
    lengths = np.random.default_rng(seed).integers(1, 33, count)

    def make_batch(numbers, length):
        mask = (np.arange(length) < lengths[numbers, None]).astype(np.int32)
        return {
            "input_ids": mask * np.array(numbers, np.int32)[:, None],
            "input_mask": mask,
            "label_ids": np.array(numbers, np.int32),
            "label_weights": np.ones(len(numbers), np.float32),
        }

    return Examples(lengths, make_batch, [f"example {i}" for i in range(count)])
