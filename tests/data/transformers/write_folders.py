"""Writes small models of transformers beside what they compute, in an environment with torch.

    python tests/data/transformers/write_folders.py OUTPUT_DIR [CASE ...]

It runs in a process of its own: torch and TensorFlow do not go together in one.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import transformers as hf

SIZES = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 37, "max_position_embeddings": 24, "type_vocab_size": 2,
}  # fmt: skip
NARROW = {**SIZES, "embedding_size": 16}
SHORT = {**SIZES, "num_hidden_layers": 1, "num_labels": 3}
# As klue/roberta-base: two rows before the first position, one token type, another epsilon.
ROBERTA = {"max_position_embeddings": 26, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
           "pad_token_id": 1}  # fmt: skip

# The sizes of models that Korean texts are often trained with.
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "initializer_range": 0.02}  # fmt: skip
PUBLISHED = {
    "klue/bert-base": (hf.BertForPreTraining, {**BASE, "vocab_size": 32000}),
    "beomi/kcbert-base": (
        hf.BertForMaskedLM,
        {**BASE, "vocab_size": 30000, "max_position_embeddings": 300},
    ),
    "monologg/koelectra-base-v3-discriminator": (
        hf.ElectraForPreTraining,
        {**BASE, "vocab_size": 35000, "embedding_size": 768},
    ),
    "monologg/koelectra-small-v3-discriminator": (
        hf.ElectraForPreTraining,
        {**BASE, "vocab_size": 35000, "embedding_size": 128, "hidden_size": 256,
         "num_attention_heads": 4, "intermediate_size": 1024},
    ),
    "klue/roberta-base": (
        hf.RobertaForMaskedLM,
        {**BASE, **ROBERTA, "vocab_size": 32000, "max_position_embeddings": 514},
    ),
    "kykim/albert-kor-base": (
        hf.AlbertForMaskedLM,
        {**BASE, "vocab_size": 42000, "embedding_size": 128, "hidden_dropout_prob": 0.0,
         "attention_probs_dropout_prob": 0.0},
    ),
}  # fmt: skip

# Name -> the class and the arguments of its configuration. Those of KEPT are in tests/data.
KEPT = {
    "bert_erf": (hf.BertForPreTraining, SIZES),
    "bert_tanh": (hf.BertForPreTraining, {**SIZES, "hidden_act": "gelu_new"}),
    "albert": (hf.AlbertForPreTraining, NARROW),
    "electra_base": (hf.ElectraForPreTraining, {**SIZES, "embedding_size": 32}),
    "electra_small": (hf.ElectraForPreTraining, NARROW),
    "roberta": (hf.RobertaForMaskedLM, {**SIZES, **ROBERTA}),
    "bert_classifier": (hf.BertForSequenceClassification, SHORT),
    "roberta_classifier": (hf.RobertaForSequenceClassification, {**SHORT, **ROBERTA}),
}
CASES = {
    **KEPT,
    "bert_encoder": (hf.BertModel, SIZES),
    "bert_masked_lm": (hf.BertForMaskedLM, {**SIZES, "hidden_act": "relu"}),
    "bert_tokens": (hf.BertForTokenClassification, SHORT),
    "bert_questions": (hf.BertForQuestionAnswering, SIZES),
    "bert_choices": (hf.BertForMultipleChoice, SHORT),
    "albert_groups": (
        hf.AlbertForMaskedLM,
        {**NARROW, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2,
         "hidden_act": "gelu"},
    ),
    "albert_classifier": (hf.AlbertForSequenceClassification, {**NARROW, "num_labels": 3}),
    "electra_generator": (hf.ElectraForMaskedLM, NARROW),
    "electra_tokens": (hf.ElectraForTokenClassification, {**NARROW, "num_labels": 3}),
    "roberta_encoder": (hf.RobertaModel, {**SIZES, **ROBERTA}),
    **PUBLISHED,
}  # fmt: skip


def make_inputs(kind):
    """ids, mask, segments [2, 11] and masked positions with their pieces [2, 3]."""
    rng = np.random.default_rng(3)
    ids = rng.integers(5, SIZES["vocab_size"], (2, 11))
    mask = np.ones((2, 11), np.int64)
    mask[1, 8:] = 0
    if kind == "roberta":
        ids[mask == 0] = ROBERTA["pad_token_id"]  # its positions count other pieces alone
    types = np.repeat([[0] * 5 + [1] * 6], 2, axis=0)
    return {
        "input_ids": ids, "input_mask": mask, "segment_ids": types,
        "masked_lm_positions": np.array([[1, 3, 4], [2, 3, 5]]),
        "masked_lm_ids": rng.integers(5, SIZES["vocab_size"], (2, 3)),
        "next_sentence_labels": np.array([[0], [1]]),
    }  # fmt: skip


def compute(model, inputs):
    """What transformers computes in float32, by our names."""
    kind, positions = model.config.model_type, inputs["masked_lm_positions"]
    tensors = {
        "input_ids": torch.tensor(inputs["input_ids"]),
        "attention_mask": torch.tensor(inputs["input_mask"]),
        "token_type_ids": torch.tensor(inputs["segment_ids"] * (kind != "roberta")),
    }
    labels = np.full(inputs["input_ids"].shape, -100)
    np.put_along_axis(labels, positions, inputs["masked_lm_ids"], axis=1)
    labels = torch.tensor(labels)
    pairs = torch.tensor(inputs["next_sentence_labels"][:, 0])
    base = getattr(model, model.base_model_prefix, model)
    encoded, name = base(**tensors), type(model).__name__
    found = {"sequence_output": encoded.last_hidden_state}
    if getattr(encoded, "pooler_output", None) is not None:
        found["pooled_output"] = encoded.pooler_output
    rows = torch.arange(len(positions))[:, None]
    if name in ("BertForPreTraining", "AlbertForPreTraining"):
        pair_name = "next_sentence_label" if kind == "bert" else "sentence_order_label"
        both = model(**tensors, labels=labels, **{pair_name: pairs})
        pair_logits = both.seq_relationship_logits if kind == "bert" else both.sop_logits
        found["masked_lm_logits"] = both.prediction_logits[rows, torch.tensor(positions)]
        found |= {"next_sentence_logits": pair_logits, "loss": both.loss}
    elif name.endswith("MaskedLM"):
        outputs = model(**tensors, labels=labels)
        found["masked_lm_logits"] = outputs.logits[rows, torch.tensor(positions)]
        found["loss"] = outputs.loss
    elif name == "ElectraForPreTraining":
        found["discriminator_logits"] = model(**tensors).logits
    elif name.endswith("QuestionAnswering"):
        outputs = model(**tensors)
        found |= {"start_logits": outputs.start_logits, "end_logits": outputs.end_logits}
    elif name.endswith("MultipleChoice"):  # both rows are choices of one question
        found["logits"] = model(**{k: v[None] for k, v in tensors.items()}).logits
    elif name.endswith("Classification"):
        found["logits"] = model(**tensors).logits
    return {key: value.numpy() for key, value in found.items()}


def write(folder, model_class, values):
    """Writes one model with random weights, its inputs and outputs."""
    torch.manual_seed(1)
    model = model_class(model_class.config_class(**values)).eval()
    with torch.no_grad():
        for weight in model.parameters():  # no bias is zero, no scale is one
            weight.add_(0.05 * torch.randn_like(weight))
        inputs = make_inputs(model.config.model_type)
        outputs = compute(model, inputs)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(
        folder / "expected.npz",
        **{f"input/{name}": value.astype(np.int32) for name, value in inputs.items()},
        **outputs,
    )


if __name__ == "__main__":
    target, *chosen = sys.argv[1:]
    for case in chosen or KEPT:
        write(Path(target) / case, *CASES[case])
