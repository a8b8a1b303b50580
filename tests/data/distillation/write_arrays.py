"""Writes losses and gradients of students of transformers that learn from teachers, by torch.

    python tests/data/distillation/write_arrays.py OUTPUT.npz

In float64, in an environment with torch. Soft targets by torch's kl_div, as arXiv:1503.02531,
section 2; relations by the formula of arXiv:2012.15828, section 3, of queries, keys and values that
hooks take from the projections of transformers' layers.
"""

import sys

import numpy as np
import torch
import transformers as hf
from torch.nn import functional as F

SIZES = {
    "vocab_size": 31, "max_position_embeddings": 12, "type_vocab_size": 2, "num_labels": 3,
    "num_hidden_layers": 2, "num_attention_heads": 2,
    "hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
WIDTHS = {
    "teacher": {"hidden_size": 16, "intermediate_size": 10},
    "student": {"hidden_size": 8, "intermediate_size": 12},
}
TEMPERATURE, WEIGHT, HEADS, TEACHER_LAYER = 2.5, 0.3, 4, 1
MASKED_LM_EPSILON = 1e-5
ROWS, LENGTH, PLACES = 3, 10, 3
# The class of a task's networks; its labels, and their weights.
TASKS = {
    "words": (hf.BertForPreTraining, ["masked_lm_ids"], "masked_lm_weights"),
    "classes": (hf.BertForSequenceClassification, ["label_ids"], "label_weights"),
    "tokens": (hf.BertForTokenClassification, ["token_label_ids"], "token_label_weights"),
    "spans": (hf.BertForQuestionAnswering, ["start_positions", "end_positions"], "span_weights"),
    "choices": (hf.BertForMultipleChoice, ["label_ids"], "label_weights"),
}


def make_inputs():
    """Rows, one of them padded, with the labels of every task."""
    rng = np.random.default_rng(3)
    mask = np.ones((ROWS, LENGTH), np.int64)
    mask[1, 7:] = 0
    weights = np.ones((ROWS, PLACES))
    weights[0, 2] = weights[2, 1] = 0.0
    token_weights = mask * 1.0
    token_weights[:, 0] = 0.0
    return {
        "input_ids": rng.integers(1, SIZES["vocab_size"], (ROWS, LENGTH)) * mask,
        "input_mask": mask,
        "segment_ids": np.repeat([[0] * 5 + [1] * 5], ROWS, axis=0),
        "masked_lm_positions": np.array([[1, 4, 0], [2, 3, 6], [8, 0, 9]]),
        "masked_lm_ids": rng.integers(1, SIZES["vocab_size"], (ROWS, PLACES)),
        "masked_lm_weights": weights,
        "label_ids": rng.integers(0, SIZES["num_labels"], ROWS),
        "label_weights": np.array([1.0, 0.5, 2.0]),
        "token_label_ids": rng.integers(0, SIZES["num_labels"], (ROWS, LENGTH)),
        "token_label_weights": token_weights,
        "start_positions": np.array([1, 2, 5]),
        "end_positions": np.array([4, 2, 9]),
        "span_weights": np.array([1.0, 1.0, 0.0]),
    }


def rows_of(inputs, task):
    """transformers' names of the inputs; of a choice the rows are the options of one question."""
    ours = {
        "input_ids": "input_ids", "attention_mask": "input_mask", "token_type_ids": "segment_ids"
    }  # fmt: skip
    return {n: inputs[o][None] if task == "choices" else inputs[o] for n, o in ours.items()}


def divergence(logits, targets):
    q, p = F.log_softmax(logits / TEMPERATURE, -1), F.softmax(targets / TEMPERATURE, -1)
    return TEMPERATURE**2 * F.kl_div(q, p, reduction="none").sum(-1)


def cross_entropy(logits, labels):
    losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return losses.view(labels.shape)


def logits_of(task, outputs, inputs):
    """The logits of each of the task's labels."""
    if task == "words":
        places = inputs["masked_lm_positions"]
        return [torch.stack([outputs.prediction_logits[i, p] for i, p in enumerate(places)])]
    return [outputs.start_logits, outputs.end_logits] if task == "spans" else [outputs.logits]


def losses(task, outputs, taught, inputs):
    """The mean loss of the labels, and that of the teacher's logits."""
    _, names, weights = TASKS[task]
    labels, weights = [inputs[name] for name in names], inputs[weights]
    if task == "choices":
        labels, weights = [labels[0][:1]], weights[:1]
    own, theirs = (logits_of(task, found, inputs) for found in (outputs, taught))
    total = weights.sum() + (MASKED_LM_EPSILON if task == "words" else 0.0)
    return [
        (sum(map(loss, own, targets)) / len(own) * weights).sum() / total
        for loss, targets in ((cross_entropy, labels), (divergence, theirs))
    ]


def watch(model, layer):
    """A dict that a forward pass fills with queries, keys and values of a layer, from 0."""
    found, attention = {}, model.bert.encoder.layer[layer].attention.self
    for name in ("query", "key", "value"):
        getattr(attention, name).register_forward_hook(
            lambda module, args, output, name=name: found.__setitem__(name, output)
        )
    return found


def relation_loss(teacher, student, mask, pairs):
    """1 / (A |x|) sum KL(R^T || R^S), added up over the pairs."""
    total = 0.0
    for one, other in pairs:
        found = []
        for vectors in (teacher, student):
            a, b = (vectors[n].view(ROWS, LENGTH, HEADS, -1).transpose(1, 2) for n in (one, other))
            scores = a @ b.transpose(-1, -2) / a.shape[-1] ** 0.5
            scores = scores.masked_fill(mask[:, None, None] == 0, -1e9)
            found.append(F.log_softmax(scores, -1))
        kl = F.kl_div(found[1], found[0], reduction="none", log_target=True).sum(-1)  # [B, A, T]
        total = total + (kl * mask[:, None]).sum() / (HEADS * mask.sum())
    return total


def main(path):
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    plain = make_inputs()
    inputs = {name: torch.tensor(value) for name, value in plain.items()}
    arrays = {f"input/{name}": value for name, value in plain.items()}

    def store(task, student, hard, soft):
        student.zero_grad()
        loss = (1 - WEIGHT) * hard + WEIGHT * soft
        loss.backward()
        for name, value in (("hard", hard), ("soft", soft), ("loss", loss)):
            arrays[f"{task}/{name}"] = value.detach().numpy()
        for name, weight in student.named_parameters():
            if weight.grad is not None:
                arrays[f"{task}/gradient/{name}"] = weight.grad.numpy().copy()

    for task, (kind, *_) in TASKS.items():
        models = {}
        for who, widths in WIDTHS.items():
            sizes = {**SIZES, **widths, **({"num_labels": 2} if task == "spans" else {})}
            model = kind(hf.BertConfig(**sizes)).double().eval()
            with torch.no_grad():
                for weight in model.parameters():  # no bias is zero
                    weight.add_(0.3 * torch.randn_like(weight))
            for name, weight in model.named_parameters():
                arrays[f"{task}/{who}/{name}"] = weight.detach().numpy().copy()
            models[who] = model
        student, teacher = models["student"], models["teacher"]
        inside = watch(student, -1), watch(teacher, TEACHER_LAYER - 1)
        with torch.no_grad():
            taught = teacher(**rows_of(inputs, task))
        outputs = student(**rows_of(inputs, task))
        store(task, student, *losses(task, outputs, taught, inputs))
        if task == "words":
            for name, pairs in (
                ("minilm2", [("query", "query"), ("key", "key"), ("value", "value")]),
                ("minilm1", [("query", "key"), ("value", "value")]),
            ):
                outputs = student(**rows_of(inputs, task))
                hard, _ = losses(task, outputs, taught, inputs)
                soft = relation_loss(inside[1], inside[0], inputs["input_mask"], pairs)
                store(name, student, hard, soft)
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
