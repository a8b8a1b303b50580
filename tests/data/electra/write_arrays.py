"""Writes the losses and gradients of replaced-token detection by transformers' two networks.

    python tests/data/electra/write_arrays.py OUTPUT.npz

In float64, in an environment with torch: the networks of transformers, wired by the formula of
arXiv:2003.10555, section 3, with the constants of google-research/electra, run_pretraining.py.
"""

import sys

import numpy as np
import torch
import transformers as hf

SIZES = {
    "vocab_size": 41, "embedding_size": 8, "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 12,
    "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
GENERATOR = {**SIZES, "hidden_size": 12, "num_attention_heads": 1, "intermediate_size": 48}
DISCRIMINATOR_WEIGHT, EPSILON = 50.0, 1e-6
ROWS, LENGTH, PLACES = 3, 10, 3


def make_inputs():
    """Rows of records: masked, two of the places without a prediction, one row padded."""
    rng = np.random.default_rng(3)
    originals = rng.integers(5, SIZES["vocab_size"], (ROWS, LENGTH))
    mask = np.ones((ROWS, LENGTH), np.int64)
    mask[1, 7:] = 0
    originals *= mask
    weights = np.ones((ROWS, PLACES))
    weights[0, 2] = weights[2, 1] = 0.0
    positions = np.array([[1, 4, 0], [2, 3, 6], [8, 0, 9]])
    ids = np.take_along_axis(originals, positions, axis=1) * (weights > 0)
    masked = originals.copy()
    for row, place in zip(*np.nonzero(weights), strict=True):
        masked[row, positions[row, place]] = 4
    segments = np.repeat([[0] * 5 + [1] * 5], ROWS, axis=0)
    return {
        "input_ids": masked, "input_mask": mask, "segment_ids": segments,
        "masked_lm_positions": positions, "masked_lm_ids": ids, "masked_lm_weights": weights,
    }, originals  # fmt: skip


def main(path):
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    discriminator = hf.ElectraForPreTraining(hf.ElectraConfig(**SIZES)).double().eval()
    generator = hf.ElectraForMaskedLM(hf.ElectraConfig(**GENERATOR)).double().eval()
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    networks = {"discriminator": discriminator, "generator": generator}
    weights = {}
    for name, network in networks.items():
        weights |= {f"{name}/{key}": value for key, value in network.named_parameters()}
    with torch.no_grad():
        for weight in {id(w): w for w in weights.values()}.values():  # no bias is zero
            weight.add_(0.2 * torch.randn_like(weight))

    inputs, originals = make_inputs()
    tensors = {key: torch.tensor(value) for key, value in inputs.items()}
    more = {"attention_mask": tensors["input_mask"], "token_type_ids": tensors["segment_ids"]}
    rows, is_used = torch.arange(ROWS)[:, None], tensors["masked_lm_weights"] > 0
    logits = generator(tensors["input_ids"], **more).logits
    logits = logits[rows, tensors["masked_lm_positions"]]  # [B, P, V]
    shares = torch.softmax(logits.detach(), -1).reshape(-1, logits.shape[-1])
    drawn = torch.multinomial(shares, 1).reshape(ROWS, PLACES)
    drawn[1, 0] = tensors["masked_lm_ids"][1, 0]  # one is drawn right, so it is an original
    words = torch.nn.functional.cross_entropy(
        logits[is_used], tensors["masked_lm_ids"][is_used], reduction="sum"
    )
    corrupted = torch.tensor(originals)
    for row, place in is_used.nonzero().tolist():
        corrupted[row, inputs["masked_lm_positions"][row, place]] = drawn[row, place]
    replaced = (corrupted != torch.tensor(originals)).double()
    found = discriminator(corrupted, **more).logits  # [B, T]
    is_token = tensors["input_mask"] > 0
    tokens = torch.nn.functional.binary_cross_entropy_with_logits(
        found[is_token], replaced[is_token], reduction="sum"
    )
    loss = words / (is_used.sum() + EPSILON)
    loss = loss + DISCRIMINATOR_WEIGHT * tokens / (is_token.sum() + EPSILON)
    loss.backward()
    arrays = {f"input/{key}": value for key, value in inputs.items()}
    arrays |= {f"weight/{key}": value.detach().numpy() for key, value in weights.items()}
    arrays |= {f"gradient/{key}": value.grad.numpy() for key, value in weights.items()}
    np.savez_compressed(
        path, drawn=drawn.numpy(), corrupted=corrupted.numpy(), replaced=replaced.numpy(),
        masked_lm_loss=words.item(), discriminator_loss=tokens.item(), loss=loss.item(),
        masked_lm_logits=logits.detach().numpy(), discriminator_logits=found.detach().numpy(),
        **arrays,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
