"""Adds to folders of transformers what it computes inside, in an environment with torch.

    python tests/data/transformers/write_inside.py FOLDER [FOLDER ...]

Each folder has a model and the inputs in its expected.npz; it gets an inside.npz with every hidden
state [L + 1, B, T, H] and the probabilities of attention [L, B, N, T, T].
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel


def write(folder):
    """Writes inside.npz into a folder."""
    with np.load(folder / "expected.npz") as file:
        inputs = {name.removeprefix("input/"): file[name] for name in file.files if "/" in name}
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    types = inputs["segment_ids"] * (model.config.model_type != "roberta")
    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor(inputs["input_ids"], dtype=torch.long),
            attention_mask=torch.tensor(inputs["input_mask"], dtype=torch.long),
            token_type_ids=torch.tensor(types, dtype=torch.long),
            output_hidden_states=True,
            output_attentions=True,
        )
    np.savez_compressed(
        folder / "inside.npz",
        hidden_states=torch.stack(outputs.hidden_states).numpy(),
        attentions=torch.stack(outputs.attentions).numpy(),
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
