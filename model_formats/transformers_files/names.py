"""Maps the names of weights in Hugging Face's files to Google's.

torch stores the kernel of a projection transposed, [out, in] instead of [in, out]. In a table, {w}
stands for such a layer's weight or bias and {n} for a layer norm's; an array whose name has neither
is stored identically in both.

A folder holds BERT, ALBERT, ELECTRA or RoBERTa. RoBERTa has BERT's network and loads into BERT's
model. The rows of its tables of positions and token types differ, and are converted by
`model_formats.transformers_files.weights`.

Source: the `state_dict` of transformers' classes, version 5.
"""

import re
from collections.abc import Mapping

# Hugging Face's last word of a name -> Google's. Files from before 2019 have gamma and beta.
PROJECTION = {"weight": "kernel", "bias": "bias"}
LAYER_NORM = {"weight": "gamma", "bias": "beta", "gamma": "gamma", "beta": "beta"}

_EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings",
    "embeddings.token_type_embeddings.weight": "bert/embeddings/token_type_embeddings",
    "embeddings.position_embeddings.weight": "bert/embeddings/position_embeddings",
    "embeddings.LayerNorm.{n}": "bert/embeddings/LayerNorm/{n}",
}

_LAYER, _GOOGLES_LAYER = "encoder.layer.{i}", "bert/encoder/layer_{i}"
# The names of BertModel, and of classes modeled on it.
_BERT_ENCODER = {
    **_EMBEDDINGS,
    f"{_LAYER}.attention.self.query.{{w}}": f"{_GOOGLES_LAYER}/attention/self/query/{{w}}",
    f"{_LAYER}.attention.self.key.{{w}}": f"{_GOOGLES_LAYER}/attention/self/key/{{w}}",
    f"{_LAYER}.attention.self.value.{{w}}": f"{_GOOGLES_LAYER}/attention/self/value/{{w}}",
    f"{_LAYER}.attention.output.dense.{{w}}": f"{_GOOGLES_LAYER}/attention/output/dense/{{w}}",
    f"{_LAYER}.attention.output.LayerNorm.{{n}}": (
        f"{_GOOGLES_LAYER}/attention/output/LayerNorm/{{n}}"
    ),
    f"{_LAYER}.intermediate.dense.{{w}}": f"{_GOOGLES_LAYER}/intermediate/dense/{{w}}",
    f"{_LAYER}.output.dense.{{w}}": f"{_GOOGLES_LAYER}/output/dense/{{w}}",
    f"{_LAYER}.output.LayerNorm.{{n}}": f"{_GOOGLES_LAYER}/output/LayerNorm/{{n}}",
    "pooler.dense.{w}": "bert/pooler/dense/{w}",
}

_GROUP = "encoder.albert_layer_groups.{g}.albert_layers.{k}"
_GOOGLES_GROUP = "bert/encoder/transformer/group_{g}/inner_group_{k}"
_ALBERT_ENCODER = {
    **_EMBEDDINGS,
    "encoder.embedding_hidden_mapping_in.{w}": "bert/encoder/embedding_hidden_mapping_in/{w}",
    f"{_GROUP}.attention.query.{{w}}": f"{_GOOGLES_GROUP}/attention_1/self/query/{{w}}",
    f"{_GROUP}.attention.key.{{w}}": f"{_GOOGLES_GROUP}/attention_1/self/key/{{w}}",
    f"{_GROUP}.attention.value.{{w}}": f"{_GOOGLES_GROUP}/attention_1/self/value/{{w}}",
    f"{_GROUP}.attention.dense.{{w}}": f"{_GOOGLES_GROUP}/attention_1/output/dense/{{w}}",
    f"{_GROUP}.attention.LayerNorm.{{n}}": f"{_GOOGLES_GROUP}/LayerNorm/{{n}}",
    f"{_GROUP}.ffn.{{w}}": f"{_GOOGLES_GROUP}/ffn_1/intermediate/dense/{{w}}",
    f"{_GROUP}.ffn_output.{{w}}": f"{_GOOGLES_GROUP}/ffn_1/intermediate/output/dense/{{w}}",
    f"{_GROUP}.full_layer_layer_norm.{{n}}": f"{_GOOGLES_GROUP}/LayerNorm_1/{{n}}",
    "pooler.{w}": "bert/pooler/dense/{w}",
}

# ElectraModel has BERT's names and the projection of its embeddings, but no pooler.
_ELECTRA_ENCODER = {
    **{
        name: google.replace("bert/", "electra/", 1)
        for name, google in _BERT_ENCODER.items()
        if not name.startswith("pooler")
    },
    "embeddings_project.{w}": "electra/embeddings_project/{w}",
}

_TASK_HEADS = {
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
}


def _with_prefix(prefix, encoder):
    return {f"{prefix}.{name}": google for name, google in encoder.items()}


BERT_NAMES = {
    **_with_prefix("bert", _BERT_ENCODER),
    "cls.predictions.transform.dense.{w}": "cls/predictions/transform/dense/{w}",
    "cls.predictions.transform.LayerNorm.{n}": "cls/predictions/transform/LayerNorm/{n}",
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    **_TASK_HEADS,
}

ALBERT_NAMES = {
    **_with_prefix("albert", _ALBERT_ENCODER),
    "predictions.dense.{w}": "cls/predictions/transform/dense/{w}",
    "predictions.LayerNorm.{n}": "cls/predictions/transform/LayerNorm/{n}",
    "predictions.bias": "cls/predictions/output_bias",
    "sop_classifier.classifier.weight": "cls/seq_relationship/output_weights",
    "sop_classifier.classifier.bias": "cls/seq_relationship/output_bias",
    **_TASK_HEADS,
}

ELECTRA_NAMES = {
    **_with_prefix("electra", _ELECTRA_ENCODER),
    "discriminator_predictions.dense.{w}": "discriminator_predictions/dense/{w}",
    "discriminator_predictions.dense_prediction.{w}": "discriminator_predictions/dense_1/{w}",
    # A generator alone is a masked-word model, whose head computes the same as BERT's.
    "generator_predictions.dense.{w}": "cls/predictions/transform/dense/{w}",
    "generator_predictions.LayerNorm.{n}": "cls/predictions/transform/LayerNorm/{n}",
    "generator_lm_head.bias": "cls/predictions/output_bias",
    **_TASK_HEADS,
}

ROBERTA_NAMES = {
    **_with_prefix("roberta", _BERT_ENCODER),
    "lm_head.dense.{w}": "cls/predictions/transform/dense/{w}",
    "lm_head.layer_norm.{n}": "cls/predictions/transform/LayerNorm/{n}",
    "lm_head.bias": "cls/predictions/output_bias",
    # Its sequence head is BERT's pooler ([CLS] through a tanh layer) followed by BERT's head.
    "classifier.dense.{w}": "bert/pooler/dense/{w}",
    "classifier.out_proj.weight": "output_weights",
    "classifier.out_proj.bias": "output_bias",
    **_TASK_HEADS,
}

# Copy -> the weight to which transformers ties it; they must be equal.
TIED_NAMES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
    "generator_lm_head.weight": "electra.embeddings.word_embeddings.weight",
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}

# Regular expressions for weights that no model here has, which are ignored.
IGNORED_NAMES = (
    r"(\w+\.)?embeddings\.(position_ids|token_type_ids)",  # counters, saved until 2023
)

# The parts (see `bert_tf.checkpoint.part_names`) that some transformers classes lack. A model that
# needs a missing part gets new weights. The pair head reads the pooler, so if the pooler is new,
# the pair head is too.
OPTIONAL_PARTS = ("pooler", "next_sentence")


def translate_back(name: str, table: Mapping[str, str]) -> tuple[str | None, bool]:
    """Returns Hugging Face's name of one of Google's weights, and whether it is transposed."""
    inverse = {google: ours for ours, google in table.items()}
    norms = {"gamma": "weight", "beta": "bias"}
    return translate(name, inverse, {"kernel": "weight", "bias": "bias"}, norms)


def translate(
    name: str,
    table: Mapping[str, str],
    projection: Mapping[str, str] = PROJECTION,
    layer_norm: Mapping[str, str] = LAYER_NORM,
) -> tuple[str | None, bool]:
    """Translates a Hugging Face name such as "bert.encoder.layer.0.output.dense.weight".

    Returns:
        Google's name, and whether the array is transposed between the two; (None, False) if no
        row of the table matches.
    """
    last = {"w": projection, "n": layer_norm}
    for ours, theirs in table.items():
        pattern = re.sub(r"\\\{(\w)\\\}", r"(?P<\1>[^./]+)", re.escape(ours))
        match = re.fullmatch(pattern, name)
        if not match:
            continue
        values = match.groupdict()
        for key in values.keys() & last.keys():
            if values[key] not in last[key]:
                break
            values[key] = last[key][values[key]]
        else:
            kernels = ("weight", "kernel")
            return theirs.format(**values), match.groupdict().get("w") in kernels
    return None, False
