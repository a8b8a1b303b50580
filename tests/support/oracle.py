"""A NumPy float64 oracle of BERT's or ALBERT's forward pass, from the published formulas.

Sources: arXiv:1810.04805, arXiv:1909.11942, arXiv:1706.03762, arXiv:1606.08415, with the
constants of google-research/bert. Weights come as a dict by Google's names.

Shapes: B batch, T tokens, N heads, D head size, H hidden, E embedding, V vocabulary,
P predictions.
"""

import numpy as np

GELU_CUBIC = 0.044715


def gelu(x):
    """The tanh form of the Gaussian error linear unit."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + GELU_CUBIC * x**3)))


def activation(name):
    """The function that hidden_act names; an empty name means none."""
    relu, linear = (lambda x: np.maximum(x, 0)), (lambda x: x)
    functions = {"gelu": gelu, "relu": relu, "tanh": np.tanh, "linear": linear}
    return functions[(name or "linear").lower()]


def log_softmax(x):
    """Over the last axis; the largest entry is taken away first, so that nothing overflows."""
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def layer_norm(weights, name, x):
    """Mean 0, biased variance 1, then gamma with beta."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + 1e-12)
    return normal * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def dense(weights, name, x):
    """x @ kernel + bias."""
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def attention(weights, name, x, input_mask, heads):
    """softmax(QK' / sqrt(D) - 10000 at masked keys) V, head by head: [B, T, H] -> [B, T, H].

    With the softmax of all heads, [B, N, T, T].
    """
    query, key, value = (
        np.split(dense(weights, f"{name}/{part}", x), heads, axis=-1)  # N arrays [B, T, D]
        for part in ("query", "key", "value")
    )
    masked = -10000.0 * (1.0 - input_mask)[:, None, :]  # [B, 1, T]: the keys' axis
    outputs, probabilities = [], []
    for q, k, v in zip(query, key, value, strict=True):
        scores = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1]) + masked
        probabilities.append(np.exp(log_softmax(scores)))
        outputs.append(np.einsum("bqk,bkd->bqd", probabilities[-1], v))
    return np.concatenate(outputs, axis=-1), np.stack(probabilities, axis=1)


# Part of a block -> its name in BERT's and in ALBERT's checkpoints.
PARTS = {
    "attention": ("attention/self", "attention_1/self"),
    "attention_output": ("attention/output/dense", "attention_1/output/dense"),
    "attention_norm": ("attention/output/LayerNorm", "LayerNorm"),
    "intermediate": ("intermediate/dense", "ffn_1/intermediate/dense"),
    "output": ("output/dense", "ffn_1/intermediate/output/dense"),
    "output_norm": ("output/LayerNorm", "LayerNorm_1"),
}


def block_names(config):
    """For every block that runs, in order, Google's names of its parts."""
    layers, groups = config.num_hidden_layers, getattr(config, "num_hidden_groups", 0)
    places = [f"layer_{i}" for i in range(layers)]
    if groups:
        places = [
            f"transformer/group_{i * groups // layers}/inner_group_{k}"
            for i in range(layers)
            for k in range(config.inner_group_num)
        ]
    for place in places:
        yield {part: f"bert/encoder/{place}/{names[groups > 0]}" for part, names in PARTS.items()}


def encode(weights, config, batch):
    """The encoder.

    Args:
        weights: a dict of float64 arrays by Google's names.
        config: a configuration; one with num_hidden_groups is ALBERT's.
        batch: input_ids [B, T], perhaps input_mask, segment_ids [B, T].

    Returns:
        A dict: "embedding_output" [B, T, E], "encoder_input" [B, T, H], "encoder_outputs" (a list
        of [B, T, H]), "sequence_output" [B, T, H], "pooled_output" [B, H], "hidden_states" (what
        each layer reads, then the last one's output), "attentions" (each layer's probabilities
        [B, N, T, T]).
    """
    ids = batch["input_ids"]
    mask = batch.get("input_mask", np.ones_like(ids)).astype(np.float64)
    segments = batch.get("segment_ids", np.zeros_like(ids))
    x = (
        weights["bert/embeddings/word_embeddings"][ids]
        + weights["bert/embeddings/token_type_embeddings"][segments]
        + weights["bert/embeddings/position_embeddings"][None, : ids.shape[1]]
    )
    x = embedded = layer_norm(weights, "bert/embeddings/LayerNorm", x)
    if x.shape[-1] != config.hidden_size:
        x = dense(weights, "bert/encoder/embedding_hidden_mapping_in", x)
    layers, hidden_states, attentions = [], [x], []
    for names in block_names(config):
        heads = config.num_attention_heads
        y, probabilities = attention(weights, names["attention"], x, mask, heads)
        attentions.append(probabilities)
        y = dense(weights, names["attention_output"], y)
        x = layer_norm(weights, names["attention_norm"], x + y)
        y = activation(config.hidden_act)(dense(weights, names["intermediate"], x))
        x = layer_norm(weights, names["output_norm"], x + dense(weights, names["output"], y))
        layers.append(x)
    return {
        "embedding_output": embedded,
        "encoder_input": hidden_states[0],
        "encoder_outputs": layers,
        "hidden_states": [*hidden_states, *layers],
        "attentions": attentions,
        "sequence_output": x,
        "pooled_output": np.tanh(dense(weights, "bert/pooler/dense", x[:, 0])),
    }


def pretrain(weights, config, batch):
    """The encoder with both heads, their losses, the total loss.

    Args:
        weights: a dict of float64 arrays by Google's names.
        config: a configuration.
        batch: what `encode` takes, with masked_lm_positions, masked_lm_ids,
            masked_lm_weights [B, P], next_sentence_labels [B, 1].

    Returns:
        What `encode` returns, with "masked_lm_logits" [B, P, V], "next_sentence_logits"
        [B, 2], "masked_lm_loss", "next_sentence_loss", "total_loss".
    """
    out = encode(weights, config, batch)
    rows = np.arange(len(batch["input_ids"]))[:, None]  # [B, 1]
    masked = out["sequence_output"][rows, batch["masked_lm_positions"]]  # [B, P, H]
    x = activation(config.hidden_act)(dense(weights, "cls/predictions/transform/dense", masked))
    x = layer_norm(weights, "cls/predictions/transform/LayerNorm", x)  # [B, P, E]
    table = weights["bert/embeddings/word_embeddings"]  # [V, E]
    words = x @ table.T + weights["cls/predictions/output_bias"]
    sentences = (
        out["pooled_output"] @ weights["cls/seq_relationship/output_weights"].T
        + weights["cls/seq_relationship/output_bias"]
    )
    word_losses = -np.take_along_axis(log_softmax(words), batch["masked_lm_ids"][..., None], -1)
    word_weights = batch["masked_lm_weights"].astype(np.float64)
    word_loss = (word_weights * word_losses[..., 0]).sum() / (word_weights.sum() + 1e-5)
    labels = batch["next_sentence_labels"].reshape(-1, 1)
    sentence_loss = -np.take_along_axis(log_softmax(sentences), labels, -1).mean()
    return {
        **out,
        "masked_lm_logits": words,
        "next_sentence_logits": sentences,
        "masked_lm_loss": word_loss,
        "next_sentence_loss": sentence_loss,
        "total_loss": word_loss + sentence_loss,
    }
