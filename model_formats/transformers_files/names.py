"""Maps the names of weights in Hugging Face's files to Google's.

The tables are for `bert_tf.checkpoint.google_name`. torch stores what Google's names call a kernel
transposed, [out, in] instead of [in, out], and all other arrays identically.

A folder holds BERT, ALBERT, ELECTRA or RoBERTa. RoBERTa has BERT's network and loads into BERT's
model. The rows of its tables of positions and token types differ, and are converted by
`model_formats.transformers_files.weights`.

Source: the `state_dict` of transformers' classes, version 5.
"""

from collections.abc import Mapping


def _dense(ours, google):
    """Returns the rows of a projection."""
    return {f"{ours}.weight": f"{google}/kernel", f"{ours}.bias": f"{google}/bias"}


def _norm(ours, google):
    """Returns the rows of a layer norm; files from before 2019 have gamma and beta."""
    words = {"weight": "gamma", "bias": "beta", "gamma": "gamma", "beta": "beta"}
    return {f"{ours}.{word}": f"{google}/{googles}" for word, googles in words.items()}


_EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings",
    "embeddings.token_type_embeddings.weight": "bert/embeddings/token_type_embeddings",
    "embeddings.position_embeddings.weight": "bert/embeddings/position_embeddings",
    **_norm("embeddings.LayerNorm", "bert/embeddings/LayerNorm"),
}

_LAYER, _GOOGLES_LAYER = "encoder.layer.{i}", "bert/encoder/layer_{i}"
# The names of BertModel, and of classes modeled on it.
_BERT_ENCODER = {
    **_EMBEDDINGS,
    **_dense(f"{_LAYER}.attention.self.query", f"{_GOOGLES_LAYER}/attention/self/query"),
    **_dense(f"{_LAYER}.attention.self.key", f"{_GOOGLES_LAYER}/attention/self/key"),
    **_dense(f"{_LAYER}.attention.self.value", f"{_GOOGLES_LAYER}/attention/self/value"),
    **_dense(f"{_LAYER}.attention.output.dense", f"{_GOOGLES_LAYER}/attention/output/dense"),
    **_norm(f"{_LAYER}.attention.output.LayerNorm", f"{_GOOGLES_LAYER}/attention/output/LayerNorm"),
    **_dense(f"{_LAYER}.intermediate.dense", f"{_GOOGLES_LAYER}/intermediate/dense"),
    **_dense(f"{_LAYER}.output.dense", f"{_GOOGLES_LAYER}/output/dense"),
    **_norm(f"{_LAYER}.output.LayerNorm", f"{_GOOGLES_LAYER}/output/LayerNorm"),
    **_dense("pooler.dense", "bert/pooler/dense"),
}

_GROUP = "encoder.albert_layer_groups.{g}.albert_layers.{k}"
_GOOGLES_GROUP = "bert/encoder/transformer/group_{g}/inner_group_{k}"
_ALBERT_ENCODER = {
    **_EMBEDDINGS,
    **_dense("encoder.embedding_hidden_mapping_in", "bert/encoder/embedding_hidden_mapping_in"),
    **_dense(f"{_GROUP}.attention.query", f"{_GOOGLES_GROUP}/attention_1/self/query"),
    **_dense(f"{_GROUP}.attention.key", f"{_GOOGLES_GROUP}/attention_1/self/key"),
    **_dense(f"{_GROUP}.attention.value", f"{_GOOGLES_GROUP}/attention_1/self/value"),
    **_dense(f"{_GROUP}.attention.dense", f"{_GOOGLES_GROUP}/attention_1/output/dense"),
    **_norm(f"{_GROUP}.attention.LayerNorm", f"{_GOOGLES_GROUP}/LayerNorm"),
    **_dense(f"{_GROUP}.ffn", f"{_GOOGLES_GROUP}/ffn_1/intermediate/dense"),
    **_dense(f"{_GROUP}.ffn_output", f"{_GOOGLES_GROUP}/ffn_1/intermediate/output/dense"),
    **_norm(f"{_GROUP}.full_layer_layer_norm", f"{_GOOGLES_GROUP}/LayerNorm_1"),
    **_dense("pooler", "bert/pooler/dense"),
}

# ElectraModel has BERT's names and the projection of its embeddings, but no pooler.
_ELECTRA_ENCODER = {
    **{
        name: google.replace("bert/", "electra/", 1)
        for name, google in _BERT_ENCODER.items()
        if not name.startswith("pooler")
    },
    **_dense("embeddings_project", "electra/embeddings_project"),
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
    **_dense("cls.predictions.transform.dense", "cls/predictions/transform/dense"),
    **_norm("cls.predictions.transform.LayerNorm", "cls/predictions/transform/LayerNorm"),
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    **_TASK_HEADS,
}

ALBERT_NAMES = {
    **_with_prefix("albert", _ALBERT_ENCODER),
    **_dense("predictions.dense", "cls/predictions/transform/dense"),
    **_norm("predictions.LayerNorm", "cls/predictions/transform/LayerNorm"),
    "predictions.bias": "cls/predictions/output_bias",
    "sop_classifier.classifier.weight": "cls/seq_relationship/output_weights",
    "sop_classifier.classifier.bias": "cls/seq_relationship/output_bias",
    **_TASK_HEADS,
}

ELECTRA_NAMES = {
    **_with_prefix("electra", _ELECTRA_ENCODER),
    **_dense("discriminator_predictions.dense", "discriminator_predictions/dense"),
    **_dense("discriminator_predictions.dense_prediction", "discriminator_predictions/dense_1"),
    # A generator alone is a masked-word model, whose head computes the same as BERT's.
    **_dense("generator_predictions.dense", "cls/predictions/transform/dense"),
    **_norm("generator_predictions.LayerNorm", "cls/predictions/transform/LayerNorm"),
    "generator_lm_head.bias": "cls/predictions/output_bias",
    **_TASK_HEADS,
}

ROBERTA_NAMES = {
    **_with_prefix("roberta", _BERT_ENCODER),
    **_dense("lm_head.dense", "cls/predictions/transform/dense"),
    **_norm("lm_head.layer_norm", "cls/predictions/transform/LayerNorm"),
    "lm_head.bias": "cls/predictions/output_bias",
    # Its sequence head is BERT's pooler ([CLS] through a tanh layer) followed by BERT's head.
    **_dense("classifier.dense", "bert/pooler/dense"),
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


def inverted(table: Mapping[str, str]) -> dict[str, str]:
    """Returns Google's names -> Hugging Face's, of two spellings the first."""
    inverse: dict[str, str] = {}
    for ours, google in table.items():
        inverse.setdefault(google, ours)
    return inverse
