"""The program fill_masks: guesses for every mask, one line for bad input."""

import json

import numpy as np
import pytest

from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.checkpoint_files import checkpoint_path
from bert_tf.summaries.mask_predictions import best_guesses
from run_scripts.tools.fill_masks import main
from tests.support.tiny_models import SIZES, tiny_model
from tests.support.vocabularies import SPECIAL, encode_with_masks, write_tokenizer
from tokenization import load_tokenizer

PIECES = [*SPECIAL, "나", "##는", "학교", "##에", "갔", "##다", "."]


@pytest.fixture
def model_dir(tmp_path):
    """A directory as run_pretraining leaves it, with random weights."""
    write_tokenizer(tmp_path, PIECES)
    (tmp_path / "bert_config.json").write_text(json.dumps(SIZES))  # a table with spare rows
    save_google_checkpoint(tiny_model(), checkpoint_path(tmp_path, 3))
    return tmp_path


def run(model_dir, *arguments):
    return main(["fill_masks", f"--model_dir={model_dir}", *arguments])


def test_what_follows_a_mask_without_a_space_continues_its_word(model_dir):
    tokenizer = load_tokenizer(model_dir)

    def pieces(text):
        return tokenizer.convert_ids_to_tokens(encode_with_masks(tokenizer, text))

    assert pieces("나는 학교[MASK] 갔다.") == [
        "[CLS]", "나", "##는", "학교", "[MASK]", "갔", "##다", ".", "[SEP]",
    ]  # fmt: skip
    assert pieces("[MASK]는 [MASK]") == ["[CLS]", "[MASK]", "##는", "[MASK]", "[SEP]"]


def test_guesses_are_the_most_probable_pieces():
    model = tiny_model()
    ids, positions = [2, 5, 4, 7, 4, 3], [2, 4]
    guesses = best_guesses(model, ids, positions, list(range(50)), 3)
    logits = model({"input_ids": np.array([ids]), "masked_lm_positions": np.array([positions])})
    logits = logits["masked_lm_logits"].numpy()[0, :, :50].astype(np.float64)
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for row, found in zip(probabilities, guesses, strict=True):
        best = np.argsort(-row)[:3]
        assert [piece for piece, _ in found] == best.tolist()
        assert [p for _, p in found] == pytest.approx(row[best], rel=1e-5)


def test_prints_a_line_for_every_mask(model_dir, prints):
    text = "나는 학교[MASK] 갔다[MASK]|[MASK]는 갔다."
    lines = prints(lambda: run(model_dir, f"--text={text}", "--guesses=4")).splitlines()
    assert [line for line in lines if "%" not in line] == text.split("|")
    shown = [line for line in lines if "%" in line]
    assert len(shown) == 3 and all(line.count("%") == 4 for line in shown)


@pytest.mark.parametrize(
    "text, words",
    (
        ("나는 갔다.", ("[MASK]", "나는 갔다.")),
        ("[MASK]" + " 학교" * 40, ("at most 32 tokens", "43")),
    ),
)
def test_bad_input(model_dir, fails, text, words):
    fails(lambda: run(model_dir, f"--text={text}"), *words)


def test_models_that_cannot_guess(model_dir, fails):
    """Without a head for masked words, or with fewer rows than the vocabulary."""
    save_google_checkpoint(tiny_model().encoder, checkpoint_path(model_dir, 3))
    fails(lambda: run(model_dir, "--text=[MASK]"), "guesses need a pre-trained model")
    (model_dir / "vocab.txt").write_text("\n".join(PIECES + [f"p{i}" for i in range(60)]) + "\n")
    fails(lambda: run(model_dir, "--text=[MASK]"), "vocab_size=60")


def test_more_guesses_than_pieces_by_an_export(model_dir, prints):
    """[UNK], [PAD] and their like are no guess."""
    for path in model_dir.glob("model.ckpt-3.*"):
        path.rename(path.with_name(path.name.replace("model.ckpt-3", "model.ckpt")))
    shown = prints(lambda: run(model_dir, "--text=[MASK]", "--guesses=9999"))
    assert shown.count("%") == len(PIECES) - 5
