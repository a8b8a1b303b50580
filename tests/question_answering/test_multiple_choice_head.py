"""The head that chooses: equal to the classifier's on every option, trained on all of them."""

import keras
import numpy as np
import pytest

from bert_tf import load_google_checkpoint
from bert_tf.checkpoint import google_variables, save_google_checkpoint
from finetuning.classification.head import SequenceClassifier
from finetuning.downstream_task import SHOWN_MISTAKES
from finetuning.examples import Examples
from finetuning.multiple_choice.data import ChoiceDataset, ChoiceQuestion
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.multiple_choice.task import MultipleChoice, letter
from tests.support.task_heads import choice_batch
from tests.support.tiny_models import tiny_model


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_every_option_is_scored_as_a_separate_row(kind, tmp_path):
    """By a regression of the same weights, whose head has Google's names and shapes too."""
    keras.utils.set_random_seed(0)
    scorer = SequenceClassifier(tiny_model(kind).encoder, 1, dropout=0.0)
    scorer.head.output_bias.assign([0.5])
    save_google_checkpoint(scorer, str(tmp_path / "model.ckpt"))
    model = MultipleChoiceModel(tiny_model(kind).encoder)
    report = load_google_checkpoint(model, str(tmp_path / "model.ckpt"))
    assert set(report.loaded) == set(google_variables(scorer)) and not report.ignored
    batch = choice_batch()
    logits = model(batch)["logits"].numpy()
    assert logits.shape == (8, 4)
    for option in range(4):
        rows = {n: batch[n][:, option] for n in ("input_ids", "input_mask", "segment_ids")}
        np.testing.assert_allclose(logits[:, option], scorer(rows)["logits"][:, 0], atol=1e-6)
    without_mask = model({"input_ids": batch["input_ids"]})["logits"].numpy()
    assert np.abs(without_mask - logits).max() > 1e-4


def test_more_options_than_letters():
    assert [letter(n) for n in (0, 25, 26, np.int64(27), 51, 52, 701, 702)] == [
        "A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA",
    ]  # fmt: skip


def test_right_answers_take_no_place_among_the_mistakes():
    """Though among four options a right one may be less probable than the true one of a mistake."""
    unsure, mistake = np.array([0.1, 0.0, 0.0, 0.0]), np.array([3.0, 3.1, 0.0, 0.0])
    logits = [*[unsure] * SHOWN_MISTAKES, *[mistake] * (SHOWN_MISTAKES + 1)]
    raw = [ChoiceQuestion(str(n), "", f"question {n}", (*"wxyz",), 0) for n in range(len(logits))]
    examples = Examples(np.ones(len(raw)), None, [each.id for each in raw], raw)
    task = MultipleChoice(ChoiceDataset({}), None, 16, 8)
    table = task.illustrations(None, examples, {"logits": logits}).texts["most_wrong"]
    assert "| question 10 | w | x |" in table and "question 9 " not in table
    assert table.count("question 1") == SHOWN_MISTAKES
