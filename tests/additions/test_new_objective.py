"""An objective that is defined only in this file can do what the package's objectives do."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert_common.errors import InputError
from bert_tf import BertModel
from bert_tf.checkpoint import load_arrays, load_google_checkpoint, save_google_checkpoint
from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.encoder import EncoderModel, HeadOutput
from bert_tf.layers import call_block, dense
from bert_tf.objective import Loss, Objective
from bert_tf.optimization import OPTIMIZERS
from bert_tf.pretraining import cross_entropy
from bert_tf.summaries.reporter import NO_ILLUSTRATIONS, Reporter
from bert_tf.training.evaluation import RecordsEvaluator
from model_formats import keras_file
from model_formats.huggingface.architectures import ENCODER, choose_architecture
from model_formats.huggingface.card import make_card
from model_formats.huggingface.export import named_arrays
from model_formats.load_folder import load_folder
from model_formats.pretraining_objectives import OBJECTIVES, PretrainingObjective
from model_formats.runtimes.ids_graph import make_graph
from model_formats.weights import open_weights
from tests.support.crosses import slow
from tests.support.paths import ROOT
from tests.support.programs import NO_DROPOUT, PretrainingJob, curves, one_line, results
from tests.support.record_files import FORMAT, make_files
from tests.support.tiny_models import ONE_LAYER, random_batch, step_of, tensors, tiny_model
from tokenization import load_tokenizer

LOSSES = {
    "odd": Loss(
        labels=("input_ids",),
        weights="input_mask",
        epsilon=0.5,
        reported_as="odd_tokens",
        curves={"accuracy": "share of the tokens that were classified correctly"},
    )
}


def odd_sums(outputs, batch):
    """Whether each token's id is odd, [B, T]."""
    labels, logits = batch["input_ids"] % 2, outputs["odd_logits"]
    losses = cross_entropy(labels, logits)
    weights = ops.cast(batch["input_mask"], losses.dtype)
    right = ops.equal(ops.cast(ops.argmax(logits, axis=-1), labels.dtype), labels)
    return {
        "odd_loss": ops.sum(losses * weights),
        "odd_correct": ops.sum(ops.cast(right, losses.dtype) * weights),
        "odd_weight": ops.sum(weights),
    }


@keras.saving.register_keras_serializable(package="tests")
class OddTokens(EncoderModel):
    """An encoder with two logits at every token."""

    google_names = {"head/kernel": "odd/kernel", "head/bias": "odd/bias"}
    objective = Objective(LOSSES, odd_sums)

    def __init__(self, encoder, name="odd_tokens", **kwargs):
        super().__init__(encoder, name, **kwargs)
        self.head = dense(2, self.config, "head", dtype=self.dtype_policy)
        self.build()

    def build(self, input_shape=None):
        self.head.build((None, None, self.config.hidden_size))

    def call(self, inputs, training=None, run_block=call_block):
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        return {"odd_logits": self.head(x)}

    def head_outputs(self):
        output = HeadOutput(("head",), lambda encoded: self.head(encoded["sequence_output"]))
        return {"odd_logits": output}


@pytest.mark.parametrize("parts", (slow(1), 2))
def test_it_is_trained_reported_and_measured(tmp_path, parts):
    keras.utils.set_random_seed(3)
    strategy = tf.distribute.get_strategy()
    model = OddTokens(tiny_model(**ONE_LAYER).encoder)
    optimizer = OPTIMIZERS["adamw"](1e-3)
    optimizer.build(model.trainable_variables)
    step = step_of(model, optimizer, gradient_accumulation_steps=parts)
    sizes = {"batch_size": 8, "max_batches": 100}
    tokenizer = load_tokenizer(ROOT / "tests" / "data" / "sample_tokenizer")
    files = make_files(tmp_path, (9, 11))
    evaluator = RecordsEvaluator(model, strategy, files, FORMAT, tokenizer=tokenizer, **sizes)
    assert evaluator.illustrations() == NO_ILLUSTRATIONS  # it guesses no masked words
    before = evaluator.run()
    assert evaluator.score(before) == -before["odd_tokens_loss"]
    batch, losses = random_batch(0), []
    options = {"num_train_steps": 20, "batch_size": 8, "summary_steps": 20}
    with Reporter(tmp_path, model.objective, **options) as reporter:
        for i in range(20):
            metrics = {**step(tensors(batch)), "input_seconds": 0.0}
            losses.append(float(metrics["loss"]))
            reporter.steps(i + 1, {k: np.array([float(v)]) for k, v in metrics.items()})
        after = evaluator.run()
        reporter.evaluation(20, after)
    tokens = batch["input_mask"].sum()
    assert losses[0] == pytest.approx(np.log(2) * tokens / (tokens + 0.5), rel=0.02)
    assert losses[-1] < 0.9 * losses[0]
    assert set(after) == {"odd_tokens_loss", "odd_tokens_accuracy", "loss", "examples"}
    assert after["loss"] < before["loss"] and after["examples"] == 20
    tags = {tag for tag in curves(tmp_path) if tag.startswith(("loss/", "accuracy/"))}
    assert tags == {"loss/total", "accuracy/odd_tokens"}
    drawn = curves(tmp_path / "eval")["accuracy/odd_tokens"]
    assert drawn == [(20, pytest.approx(after["odd_tokens_accuracy"]))]


def assert_exported(loaded, folder):
    """Exports have its head, or say that they cannot."""
    assert isinstance(loaded.model, OddTokens) and loaded.missing == ()
    ids = np.ones((2, 5), np.int32)
    found = make_graph(loaded, "int32")(ids, ids, 0 * ids)
    expected = loaded.model({"input_ids": ids})
    np.testing.assert_allclose(found["odd_logits"], expected["odd_logits"], atol=1e-6)
    with pytest.raises(InputError, match="a name for every weight of BERT .* Received: odd/kernel"):
        named_arrays(loaded, choose_architecture(loaded))
    card = make_card(loaded, ENCODER, "none")
    assert "# BERT, pre-trained to find odd pieces" in card
    keras_file.export(loaded, folder)
    assert isinstance(keras.saving.load_model(folder / keras_file.FILE), OddTokens)


def test_outputs_that_it_does_not_name():
    """A model that says nothing of its heads is refused, not exported without them."""
    model = OddTokens(tiny_model(**ONE_LAYER).encoder)
    with pytest.raises(InputError, match="head_outputs of the model .* Received: OddTokens"):
        EncoderModel.head_outputs(model)


def test_its_checkpoint_is_read_without_its_row(tmp_path):
    """By an encoder, as a user of Google's checkpoints reads them; what fits no encoder stays."""
    prefix, encoder = str(tmp_path / "model.ckpt"), tiny_model(**ONE_LAYER).encoder
    save_google_checkpoint(OddTokens(tiny_model(**ONE_LAYER).encoder), prefix)
    report = load_google_checkpoint(encoder, prefix)
    assert not report.missing and report.ignored == ("odd/bias", "odd/kernel")
    save_google_checkpoint(tiny_model().encoder, prefix)  # of two layers
    with pytest.raises(InputError, match=r"\+ bert/encoder/layer_1/.* not part of the model"):
        load_google_checkpoint(encoder, prefix)


def test_its_head_can_begin_anew(tmp_path):
    """The message about a checkpoint without its head says how."""
    prefix, encoder = str(tmp_path / "model.ckpt"), tiny_model(**ONE_LAYER).encoder
    save_google_checkpoint(encoder, prefix)
    with pytest.raises(InputError, match=r"\(run_pretraining --allow_missing=odd/ begins new"):
        load_google_checkpoint(OddTokens(encoder), prefix)


ROW = PretrainingObjective(
    name="odd",
    predicts="whether a piece's id is odd",
    description="pre-trained to find odd pieces",
    model=f"{__name__}.OddTokens",
    measured=lambda model, pairs: model.objective,
    baseline=lambda results, most_frequent_share: "half of them are odd",
    uses_pairs=False,
    weights="odd/",
)


def test_it_drops_no_tokens(tmp_path, monkeypatch, capsys):
    """It has no losses of masked words, by which tokens are chosen: one line says so."""
    monkeypatch.setitem(OBJECTIVES, "odd", ROW)
    job = PretrainingJob(tmp_path, num_hidden_layers=4)
    assert job.run(objective="odd", token_dropping=0.5) == 1
    refusal = "--token_dropping needs --objective=mlm. Received: --objective=odd"
    assert one_line(capsys).endswith(refusal)


@pytest.mark.usefixtures("eagerly")
def test_it_is_a_choice_of_the_program(tmp_path, monkeypatch, capsys):
    """A row of the table: run_pretraining trains it, evaluates, and takes up its own folder."""
    monkeypatch.setitem(OBJECTIVES, "odd", ROW)
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    assert job.run(objective="odd", num_train_steps=2, do_eval=True) == 0
    assert "(half of them are odd)" in capsys.readouterr().out
    measured = {"odd_tokens_loss", "odd_tokens_accuracy", "loss", "examples", "global_step"}
    assert set(results(job.output)) == measured
    assert "accuracy/odd_tokens" in curves(job.output)
    assert_exported(load_folder(str(job.output)), tmp_path)
    # Its encoder alone, as fine-tuning reads it.
    encoder = BertModel(load_folder(str(job.output)).config)
    report = load_arrays(encoder, open_weights(latest_checkpoint(str(job.output))))
    assert not report.missing and {"odd/kernel", "odd/bias"} <= set(report.ignored)
    assert job.run(num_train_steps=3) == 1
    assert "--objective must be odd, with which the training in" in one_line(capsys)
    assert job.run(objective="odd", num_train_steps=3) == 0
