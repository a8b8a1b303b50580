"""Writes updates.npz: twenty updates by `torch.optim.AdamW`, in float64.

    python tests/data/adamw/write_updates.py

Needs torch (2.14.1 wrote the file).
"""

import pathlib

import numpy as np
import torch

RATE, EPSILON, DECAY, UPDATES = 1e-2, 1e-6, 0.01, 20


def main() -> None:
    """Writes gradients and weights: "kernel" is decayed, "bias" is not."""
    rng = np.random.default_rng(0)
    start = {"kernel": rng.normal(size=(4, 3)), "bias": rng.normal(size=3)}
    parameters = {name: torch.tensor(v, requires_grad=True) for name, v in start.items()}
    decays = {"kernel": DECAY, "bias": 0.0}
    groups = [{"params": [parameters[name]], "weight_decay": decays[name]} for name in start]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=EPSILON)
    # Of sizes that epsilon matters to, and of others.
    gradients = {
        name: rng.normal(size=(UPDATES, *v.shape)) * 10.0 ** rng.integers(-7, 1, v.shape)
        for name, v in start.items()
    }
    weights = {name: [v] for name, v in start.items()}
    for step in range(UPDATES):
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[name][step])
        optimizer.step()
        for name, parameter in parameters.items():
            weights[name].append(parameter.detach().numpy().copy())
    arrays = {f"{name}_gradients": g for name, g in gradients.items()}
    arrays |= {name: np.stack(values) for name, values in weights.items()}
    np.savez_compressed(pathlib.Path(__file__).parent / "updates.npz", **arrays)


if __name__ == "__main__":
    main()
