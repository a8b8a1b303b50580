"""Writes the loss and the gradients of a step with token dropping by transformers' blocks.

    python tests/data/token_dropping/write_steps.py

In float64, in an environment with torch: the blocks of transformers' BERT, wired by
arXiv:2203.13240, section 3, and the Model Garden's official/projects/token_dropping.
"""

import pathlib

import numpy as np
import torch
import transformers as hf

SIZES = {
    "vocab_size": 41, "hidden_size": 8, "num_hidden_layers": 5, "num_attention_heads": 2,
    "intermediate_size": 12, "max_position_embeddings": 16, "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu_new",
}  # fmt: skip
ROWS, LENGTH, PLACES, KEPT = 3, 16, 3, 9
CLS, SEP, MASK = 1, 2, 3
INITIAL, BETA = 10.0, 0.995
MLM_EPSILON = 1e-5


def make_inputs(packed):
    """Rows of records; packed ones hold two sequences, the others one of two segments."""
    rng = np.random.default_rng(5)
    ids = rng.integers(5, SIZES["vocab_size"], (ROWS, LENGTH))
    mask = np.ones((ROWS, LENGTH), np.int64)
    mask[1, 11:] = 0
    segments = np.zeros((ROWS, LENGTH), np.int64)
    # Where each row's two [SEP] are.
    for row, ends in enumerate(((6, 15), (4, 10), (8, 15))):
        ids[row, [0, *ends]] = CLS, SEP, SEP
        segments[row, ends[0] + 1 : ends[1] + 1] = 1
    sequences = mask + segments  # 1, then 2; 0 in padding
    inputs = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments}
    if packed:
        starts = sequences.argmax(1)
        inputs["input_ids"][range(ROWS), starts] = CLS
        inputs["segment_ids"] = np.zeros_like(segments)
        inputs["segment_index"] = sequences
        positions = np.arange(LENGTH) - starts[:, None] * (sequences == 2)
        inputs["position_ids"] = positions * mask
        inputs["sequence_starts"] = np.stack([np.zeros(ROWS, np.int64), starts], 1)
    weights = np.ones((ROWS, PLACES))
    weights[0, 2] = 0.0
    positions = np.array([[1, 4, 0], [2, 8, 9], [3, 5, 14]])
    labels = np.take_along_axis(inputs["input_ids"], positions, 1) * (weights > 0)
    labels[2, 1] = labels[0, 0]  # one piece is predicted twice
    for row, place in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)):  # (1, 2), (2, 2) unchanged
        inputs["input_ids"][row, positions[row, place]] = MASK
    inputs |= {"masked_lm_positions": positions, "masked_lm_ids": labels}
    inputs["masked_lm_weights"] = weights
    return inputs


def important(inputs, average):
    """The kept positions of each row, by a plain loop."""
    kept = []
    for row in range(ROWS):
        ids, mask = inputs["input_ids"][row], inputs["input_mask"][row]
        masked = set(inputs["masked_lm_positions"][row][inputs["masked_lm_weights"][row] > 0])
        order = []
        for place, piece in enumerate(ids):
            group = 0 if place in masked else 1 if piece in (CLS, SEP) else 2
            order.append((group if mask[place] else 3, -average[piece], place))
        kept.append(sorted(place for *_, place in sorted(order)[:KEPT]))
    return np.array(kept)


def compute(model, inputs, average):
    """The loss, its parts and the average after the step; sets the gradients."""
    tensors = {key: torch.tensor(value) for key, value in inputs.items()}
    kept = torch.tensor(important(inputs, average))
    rows, bert = torch.arange(ROWS)[:, None], model.bert
    allowed = tensors["input_mask"][:, None, :].expand(-1, LENGTH, -1).clone()
    if "segment_index" in tensors:
        index = tensors["segment_index"]
        allowed = allowed * (index[:, :, None] == index[:, None, :])
    bias = (1.0 - allowed.double())[:, None] * -10000.0  # [B, 1, T, T]
    x = bert.embeddings(
        input_ids=tensors["input_ids"], token_type_ids=tensors["segment_ids"],
        position_ids=tensors.get("position_ids"),
    )  # fmt: skip

    def run(layer, x, bias):
        outputs = layer(x, bias)
        return outputs[0] if isinstance(outputs, tuple) else outputs

    # Five layers: the first, then the one that reads all, two that are short, the last.
    first, reading, *short, last = bert.encoder.layer
    x = run(first, x, bias)
    y = run(reading, x, bias)[rows, kept]
    columns = torch.stack([b[k][:, k] for b, k in zip(bias[:, 0], kept, strict=True)])[:, None]
    for layer in short:
        y = run(layer, y, columns)
    merged = [list(values) for values in x]
    for row, number in np.ndindex(ROWS, KEPT):
        merged[row][kept[row, number]] = y[row, number]
    x = run(last, torch.stack([torch.stack(values) for values in merged]), bias)
    logits = model.cls.predictions(x[rows, tensors["masked_lm_positions"]])
    weights = tensors["masked_lm_weights"]
    losses = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), tensors["masked_lm_ids"].reshape(-1), reduction="none"
    ).reshape(ROWS, PLACES)
    loss = (losses * weights).sum() / (weights.sum() + MLM_EPSILON)
    model.zero_grad()
    loss.backward()
    after = average.copy()
    used = inputs["masked_lm_weights"] > 0
    for piece in set(inputs["masked_lm_ids"][used].tolist()):
        seen = losses.detach().numpy()[used & (inputs["masked_lm_ids"] == piece)]
        after[piece] = BETA * after[piece] + (1 - BETA) * seen.mean()
    return {"kept": kept.numpy(), "loss": loss.item(), "average_after": after}


def main() -> None:
    """Writes both cases; the weights are the same."""
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    config = hf.BertConfig(**SIZES, attn_implementation="eager")
    model = hf.BertForPreTraining(config).double().eval()
    with torch.no_grad():
        for weight in model.parameters():  # no bias is zero
            weight.add_(0.2 * torch.randn_like(weight))
    average = np.full(SIZES["vocab_size"], INITIAL)
    average[5::2] = np.random.default_rng(2).uniform(0, 9, len(average[5::2]))
    arrays = {f"weight/{k}": v.detach().numpy() for k, v in model.named_parameters()}
    arrays["average"] = average
    for case in ("plain", "packed"):
        inputs = make_inputs(case == "packed")
        arrays |= {f"{case}/{k}": v for k, v in compute(model, inputs, average).items()}
        arrays |= {f"{case}/input/{k}": v for k, v in inputs.items()}
        arrays |= {
            f"{case}/gradient/{k}": v.grad.numpy()
            for k, v in model.named_parameters()
            if v.grad is not None
        }
    path = pathlib.Path(__file__).parent / "arrays.npz"
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    main()
