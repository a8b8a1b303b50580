"""Encoders of the Model Garden load, whether by attributes or by the numbers of layers."""

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint import load_arrays
from model_formats.weights import open_weights
from tests.support.tiny_models import SIZES, tiny_model, weights_of

HEADS, LAYERS = SIZES["num_attention_heads"], SIZES["num_hidden_layers"]

# Google's name -> the path below the encoder that tensorflow/models writes.
EMBEDDINGS = {
    "bert/embeddings/word_embeddings": "_embedding_layer/embeddings",
    "bert/embeddings/position_embeddings": "_position_embedding_layer/embeddings",
    "bert/embeddings/token_type_embeddings": "_type_embedding_layer/embeddings",
    "bert/embeddings/LayerNorm/gamma": "_embedding_norm_layer/gamma",
    "bert/embeddings/LayerNorm/beta": "_embedding_norm_layer/beta",
    "bert/encoder/embedding_hidden_mapping_in/kernel": "_embedding_projection/kernel",
    "bert/encoder/embedding_hidden_mapping_in/bias": "_embedding_projection/bias",
    "bert/pooler/dense/kernel": "_pooler_layer/kernel",
    "bert/pooler/dense/bias": "_pooler_layer/bias",
}
BLOCK = {
    "attention/self/query/": "_attention_layer/_query_dense/",
    "attention/self/key/": "_attention_layer/_key_dense/",
    "attention/self/value/": "_attention_layer/_value_dense/",
    "attention/output/dense/": "_attention_layer/_output_dense/",
    "attention/output/LayerNorm/": "_attention_layer_norm/",
    "intermediate/dense/": "_intermediate_dense/",
    "output/dense/": "_output_dense/",
    "output/LayerNorm/": "_output_layer_norm/",
}
# The one block of an ALBERT.
SHARED_BLOCK = {
    "attention_1/self/query/": "_attention_layer/_query_dense/",
    "attention_1/self/key/": "_attention_layer/_key_dense/",
    "attention_1/self/value/": "_attention_layer/_value_dense/",
    "attention_1/output/dense/": "_attention_layer/_output_dense/",
    "LayerNorm/": "_attention_layer_norm/",
    "ffn_1/intermediate/dense/": "_intermediate_dense/",
    "ffn_1/intermediate/output/dense/": "_output_dense/",
    "LayerNorm_1/": "_output_layer_norm/",
}
ORDER = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer",
         "_embedding_norm_layer", "_embedding_projection")  # fmt: skip


def garden_path(name, kind):
    """The path of a variable of the encoder, or None for one of the heads."""
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    if kind == "albert":
        start, table = "bert/encoder/transformer/group_0/inner_group_0/", SHARED_BLOCK
        number = 0
    else:
        number = next((i for i in range(LAYERS) if f"/layer_{i}/" in name), None)
        start, table = f"bert/encoder/layer_{number}/", BLOCK
    if not name.startswith(start):
        return None
    rest, last = name.removeprefix(start).rsplit("/", 1)
    return f"_transformer_layers/{number}/{table[f'{rest}/']}{last}"


def numbered(path, kind):
    """The same path in a functional model, whose layers Keras numbered in their order."""
    first = ORDER if kind == "albert" else ORDER[:-1]
    blocks = 1 if kind == "albert" else LAYERS
    parts = path.split("/")
    if parts[0] == "_transformer_layers":
        return "/".join([f"layer_with_weights-{len(first) + int(parts[1])}", *parts[2:]])
    number = len(first) + blocks if parts[0] == "_pooler_layer" else first.index(parts[0])
    return "/".join([f"layer_with_weights-{number}", *parts[1:]])


def with_heads(path, array):
    """An array as Keras's attention holds it: an axis of its own for the heads."""
    if "/_attention_layer/" not in path:
        return array
    if path.endswith("bias"):
        return array if "_output_dense" in path else array.reshape(HEADS, -1)
    if "_output_dense" in path:
        return array.reshape(HEADS, -1, array.shape[-1])
    return array.reshape(array.shape[0], HEADS, -1)


def objects(arrays):
    """A module whose variables have these paths."""
    top = tf.Module()
    for path, array in arrays.items():
        *way, last = path.split("/")
        module = top
        for part in way:
            if not hasattr(module, part):
                setattr(module, part, tf.Module())
            module = getattr(module, part)
        setattr(module, last, tf.Variable(array))
    return top


def save(prefix, arrays, **others):
    """Writes a tf.train.Checkpoint of an "encoder" whose objects have these paths."""
    return tf.train.Checkpoint(encoder=objects(arrays), **others).save(prefix)


def random_model(kind, seed):
    model, rng = tiny_model(kind), np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(rng.normal(size=variable.shape))
    return model


@pytest.mark.parametrize("kind", ("bert", "albert"))
@pytest.mark.parametrize("functional", (True, False))
def test_every_variable_of_the_encoder(kind, functional, tmp_path):
    model = random_model(kind, 1)
    arrays = weights_of(model.encoder)
    paths = {n: garden_path(n, kind) for n in arrays}
    assert all(paths.values())
    written = {
        numbered(path, kind) if functional else path: with_heads(path, arrays[name])
        for name, path in paths.items()
    }
    prefix = save(str(tmp_path / "ckpt"), written, global_step=tf.Variable(7))
    names = {name for name, _ in tf.train.list_variables(prefix)}
    query = f"encoder/{'layer_with_weights-5' if functional else '_transformer_layers/0'}"
    if kind == "albert":
        assert f"{query}/_attention_layer/_query_dense/kernel/.ATTRIBUTES/VARIABLE_VALUE" in names
    loaded = random_model(kind, 2).encoder
    report = load_arrays(loaded, open_weights(prefix))
    assert report.missing == () and len(report.loaded) == len(arrays)
    np.testing.assert_equal(weights_of(loaded), arrays)


def test_the_heads_of_a_pretrainer(tmp_path):
    """masked_lm beside the encoder; the pooler is an item of the classification head."""
    model = random_model("bert", 1)
    arrays = weights_of(model)
    paths = {n: path for n in arrays if (path := garden_path(n, "bert"))}
    pooler = {n: paths.pop(n) for n in list(paths) if "pooler" in n}
    written = {path: with_heads(path, arrays[name]) for name, path in paths.items()}
    head = {"bias": arrays["cls/predictions/output_bias"]}
    for name in ("dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta"):
        path = name.replace("LayerNorm", "layer_norm")
        head[path] = arrays[f"cls/predictions/transform/{name}"]
    dense = {name.split("/")[-1]: arrays[name] for name in pooler}
    items = {"masked_lm": objects(head), "next_sentence.pooler_dense": objects(dense)}
    prefix = save(str(tmp_path / "bert_model.ckpt"), written, **items)
    loaded = random_model("bert", 2)
    report = load_arrays(loaded, open_weights(prefix))
    new = {n: array for n, array in weights_of(loaded).items() if "seq_relationship" in n}
    assert set(report.missing) == set(new)
    np.testing.assert_equal(weights_of(loaded), {**arrays, **new})


def test_other_objects_are_refused(tmp_path):
    prefix = save(str(tmp_path / "ckpt"), {"dense/kernel": np.zeros((2, 2))})
    with pytest.raises(InputError, match="must hold an encoder of the Model Garden"):
        open_weights(prefix)
    encoder = {garden_path(n, "bert"): v for n, v in weights_of(tiny_model().encoder).items()}
    written = {path: with_heads(path, array) for path, array in encoder.items()}
    prefix = save(str(tmp_path / "more"), {**written, "_adapter/kernel": np.zeros(2)})
    with pytest.raises(InputError, match=r"\+ encoder/_adapter/kernel.* not part of the model"):
        load_arrays(tiny_model().encoder, open_weights(prefix))
