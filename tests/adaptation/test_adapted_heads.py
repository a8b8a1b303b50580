"""What adapt_checkpoint does with the head of a fine-tuned model of transformers."""

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf import BertConfig
from bert_tf.checkpoint import CheckpointArrays
from bert_tf.model import GOOGLE_NAMES
from model_formats.adaptation.arrays import Changes, adapted_arrays
from model_formats.load_folder import load_folder
from run_scripts.conversion.adapt_checkpoint import main
from tests.support.paths import TEST_DATA


def test_a_fine_tuned_model(tmp_path):
    """The task, which config.json names, is in the folder that is written."""
    source, new = TEST_DATA / "transformers" / "bert_classifier", tmp_path / "new"
    before = load_folder(str(source))
    positions = before.config.max_position_embeddings + 9
    argv = [f"--model_dir={source}", f"--output_dir={new}"]
    assert main(["adapt_checkpoint", *argv, f"--max_position_embeddings={positions}"]) == 0
    after = load_folder(str(new))
    assert (after.task, after.labels) == ("classification", before.labels)
    inputs = {"input_ids": np.random.default_rng(0).integers(5, 61, (2, 9))}
    expected = before.model(inputs)["logits"]
    np.testing.assert_allclose(after.model(inputs)["logits"], expected, atol=1e-6, rtol=0)


def test_a_head_that_no_model_has():
    """ELECTRA's for sequences, whose names open_huggingface leaves as they are."""
    arrays = CheckpointArrays("x", {"classifier.dense.weight": [32, 32]}, None)
    with pytest.raises(InputError, match="this project has. Received: classifier.dense.weight"):
        adapted_arrays(arrays, BertConfig(vocab_size=60), Changes(positions=600), GOOGLE_NAMES)
