"""The reference model in Python beside transformers: every layer, attention, guesses, vectors."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from korean_bert import load_model
from model_formats.model_folder import REFERENCE_MODEL

ABSENT = [name for name in ("torch", "transformers") if not importlib.util.find_spec(name)]
TEXT = "나는 어제 친구와 [MASK] 보고 ㅋㅋ 웃었다!"

# Writes what transformers computes with a folder for a text; torch and TensorFlow do not run in one
# process.
SCRIPT = """
import sys, numpy as np, torch
from transformers import AutoModelForPreTraining, AutoTokenizer
folder, text, output = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForPreTraining.from_pretrained(folder, attn_implementation="eager").eval()
inputs = tokenizer(text, return_tensors="pt")
with torch.no_grad():
    found = model(**inputs, output_hidden_states=True, output_attentions=True)
place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
shares = found[0][0, place, : len(tokenizer)].softmax(-1)
best = shares.topk(5)
hidden_states, attentions = torch.cat(found.hidden_states), torch.cat(found.attentions)
np.savez(output, hidden_states=hidden_states, attentions=attentions,
         pieces=tokenizer.convert_ids_to_tokens(best.indices), shares=best.values)
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(ABSENT), reason=f"needs {', '.join(ABSENT)} (extra bench)")
def test_equal_to_transformers(tmp_path):
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", SCRIPT, REFERENCE_MODEL, TEXT, str(tmp_path / "found.npz")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with np.load(tmp_path / "found.npz") as file:
        expected = dict(file)
    model = load_model()
    (guesses,) = model.fill_mask(TEXT, max_pieces=1)
    assert [guess.pieces[0] for guess in guesses] == expected["pieces"].tolist()
    np.testing.assert_allclose([g.probability for g in guesses], expected["shares"], atol=1e-5)
    # In our texts "[MASK]" is three words but for fill_mask.
    plain = command[4] = TEXT.replace("[MASK]", "영화를")
    command[2] = SCRIPT.replace("tokenizer.mask_token_id", "tokenizer.cls_token_id")
    assert subprocess.run(command, env=environment).returncode == 0
    with np.load(tmp_path / "found.npz") as file:
        expected = dict(file)
    states, attention = model.hidden_states(plain), model.attention(plain)
    np.testing.assert_allclose(states.vectors, expected["hidden_states"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(attention.probabilities, expected["attentions"], atol=1e-5, rtol=0)
    mean = expected["hidden_states"][-1].mean(axis=0)
    np.testing.assert_allclose(model.embed(plain), mean, atol=1e-5, rtol=0)
