"""Reads encoders of TensorFlow's Model Garden by Google's names.

Such a checkpoint is a tf.train.Checkpoint, whose names are paths through the saved objects. An
encoder's paths consist of attributes (_embedding_layer, _transformer_layers/0), or of the numbers
that Keras gave the layers of a functional model (layer_with_weights-4), which are first rewritten
to attributes.

Attention's kernels are [H, N, D] there, and its output kernel is [N, D, H]; here both are [H, H].

Sources: tensorflow/models, official/nlp/modeling/networks/bert_encoder.py, albert_encoder.py,
layers/transformer_encoder_block.py, layers/masked_lm.py; tools/checkpoint_conversion of KerasNLP,
for the numbers in the released files.
Shapes: H hidden, N heads, D head size.
"""

import re
from typing import Any

from bert_common.errors import InputError
from bert_tf.checkpoint import CheckpointArrays, google_name, read_tensor
from model_formats.transformers_files.names import OPTIONAL_PARTS

# The entry of every tf.train.Checkpoint, which checkpoints by variable names lack.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"

_EMBEDDINGS = {
    "_embedding_layer/embeddings": "bert/embeddings/word_embeddings",
    "_position_embedding_layer/embeddings": "bert/embeddings/position_embeddings",
    "_position_embedding_layer/_position_embeddings": "bert/embeddings/position_embeddings",
    "_type_embedding_layer/embeddings": "bert/embeddings/token_type_embeddings",
    "_embedding_norm_layer/{w}": "bert/embeddings/LayerNorm/{w}",
    "_pooler_layer/{w}": "bert/pooler/dense/{w}",
}

# A block's layers there -> Google's for BERT, and for ALBERT.
_LAYERS = {
    "_attention_layer/_query_dense": ("attention/self/query", "attention_1/self/query"),
    "_attention_layer/_key_dense": ("attention/self/key", "attention_1/self/key"),
    "_attention_layer/_value_dense": ("attention/self/value", "attention_1/self/value"),
    "_attention_layer/_output_dense": ("attention/output/dense", "attention_1/output/dense"),
    # Until 2020 the output layer was separate from the attention layer.
    "_attention_output_dense": ("attention/output/dense", "attention_1/output/dense"),
    "_attention_layer_norm": ("attention/output/LayerNorm", "LayerNorm"),
    "_intermediate_dense": ("intermediate/dense", "ffn_1/intermediate/dense"),
    "_output_dense": ("output/dense", "ffn_1/intermediate/output/dense"),
    "_output_layer_norm": ("output/LayerNorm", "LayerNorm_1"),
}
_THERE = "_transformer_layers/{i}"
_BERTS, _ALBERTS = "bert/encoder/layer_{i}", "bert/encoder/transformer/group_{i}/inner_group_0"
BERT_NAMES = {
    **_EMBEDDINGS,
    **{f"{_THERE}/{n}/{{w}}": f"{_BERTS}/{google}/{{w}}" for n, (google, _) in _LAYERS.items()},
}
# For encoders with narrow embeddings. AlbertEncoder has one block, which all layers share.
ALBERT_NAMES = {
    **_EMBEDDINGS,
    "_embedding_projection/{w}": "bert/encoder/embedding_hidden_mapping_in/{w}",
    **{f"{_THERE}/{n}/{{w}}": f"{_ALBERTS}/{google}/{{w}}" for n, (_, google) in _LAYERS.items()},
}

# The heads that a checkpoint of BertPretrainerV2 adds to the encoder in the released files.
HEAD_NAMES = {
    "masked_lm/dense/{w}": "cls/predictions/transform/dense/{w}",
    "masked_lm/layer_norm/{w}": "cls/predictions/transform/LayerNorm/{w}",
    "masked_lm/bias": "cls/predictions/output_bias",
    # TensorFlow doubles a period in an object's name.
    "next_sentence..pooler_dense/{w}": "bert/pooler/dense/{w}",
}

# Names that training adds.
IGNORED_NAMES = (
    rf"{OBJECT_GRAPH}|(.*/)?(save_counter|global_step|optimizer)(/.*)?|.*\.OPTIMIZER_SLOT.*"
)

_ROOT = re.compile(rf"(.*/)?(?:layer_with_weights-0|_embedding_layer)/embeddings{re.escape(VALUE)}")
_NUMBERED = re.compile(r"layer_with_weights-(\d+)(?=/)")


def open_model_garden(reader: Any, prefix: str) -> CheckpointArrays:
    """Returns the arrays of a Model Garden encoder; `reader` is from `open_checkpoint`."""
    stored = reader.get_variable_to_shape_map()
    roots = [match[1] or "" for match in map(_ROOT.fullmatch, sorted(stored)) if match]
    if not roots:
        raise InputError(
            "a checkpoint that tf.train.Checkpoint wrote must hold an encoder of the Model Garden, "
            f"with _embedding_layer or layer_with_weights-0. Received: {prefix} without"
        )
    root = min(roots, key=len)
    # Strip the encoder's root and the variables' suffix.
    paths = {name: name.removesuffix(VALUE).removeprefix(root) for name in stored}
    paths = _by_attributes(paths)
    narrow = any(path.startswith("_embedding_projection/") for path in paths.values())
    table = {**(ALBERT_NAMES if narrow else BERT_NAMES), **HEAD_NAMES}
    shapes, names, ignored = {}, {}, []
    for name, path in paths.items():
        if re.fullmatch(IGNORED_NAMES, name):
            ignored.append(name)
            continue
        google = google_name(path, table) or name
        shapes[google], names[google] = _matrix_shape(path, stored[name]), name

    def read(google):
        return read_tensor(reader, prefix, names[google]).reshape(shapes[google])

    return CheckpointArrays(str(prefix), shapes, read, OPTIONAL_PARTS, tuple(ignored))


def _by_attributes(paths):
    """Rewrites the paths of numbered layers to attributes.

    The layers of a functional model are numbered in this order: word, position and type
    embeddings, their norm, an optional projection, the blocks, the pooler.
    """
    numbered = {name: match for name, path in paths.items() if (match := _NUMBERED.match(path))}
    blocks = sorted(
        {int(m[1]) for name, m in numbered.items() if "/_attention_layer/" in paths[name]}
    )
    if not blocks:
        return paths
    first = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer",
             "_embedding_norm_layer", "_embedding_projection")  # fmt: skip
    layers = dict(enumerate(first))
    layers |= {number: f"_transformer_layers/{i}" for i, number in enumerate(blocks)}
    layers[blocks[-1] + 1] = "_pooler_layer"
    renamed = {
        name: layers[int(match[1])] + paths[name][match.end() :]
        for name, match in numbered.items()
        if int(match[1]) in layers
    }
    return {**paths, **renamed}


def _matrix_shape(path, shape):
    """Returns a weight's shape here, merging the heads' separate axis in attention weights."""
    if len(shape) == 3:
        if "/_output_dense/" in path or "/_attention_output_dense/" in path:
            return [shape[0] * shape[1], shape[2]]  # [N, D, H] -> [H, H]
        return [shape[0], shape[1] * shape[2]]  # [H, N, D] -> [H, H]
    if len(shape) == 2 and path.endswith("_dense/bias"):
        return [shape[0] * shape[1]]  # [N, D] -> [H]
    return list(shape)
