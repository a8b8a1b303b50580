"""The models compute what a NumPy float64 oracle of the formulas computes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel
from bert_tf.attention import attention_bias
from bert_tf.checkpoint import google_variables
from bert_tf.objective import total_loss
from bert_tf.pretraining import example_losses, loss_sums, pretraining_objective
from tests.support import oracle
from tests.support.crosses import but_slow

# Of one token only: there is one key, and its attention is 1.
pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")

# The largest difference, as a share of the largest entry of what is compared (or of 1).
FLOAT64 = 1e-10
# Root mean square, as a largest error depends on the machine: eight bits of precision through
# three layers give 0.014 where the CPU's instructions round, 0.020 where TensorFlow truncates.
BFLOAT16 = 0.04

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

# Odd sizes throughout: a transposed or a confused axis has no other of its length to hide in. The
# last three are ALBERT's.
KEYS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "hidden_act", "embedding_size",
    "num_hidden_groups", "inner_group_num",
)  # fmt: skip
ROWS = {
    "bert_no_activation": (37, 10, 1, 1, 23, 13, 1, None),
    "bert_three_layers_tanh": (29, 15, 3, 5, 7, 11, 3, "tanh"),
    "bert_linear": (31, 14, 2, 2, 19, 9, 3, "linear"),
    "bert_relu": (27, 21, 2, 7, 33, 17, 4, "ReLU"),
    "albert_two_groups_of_two": (33, 15, 4, 3, 22, 11, 3, "gelu", 6, 2, 2),
    "albert_three_layers_in_two_groups": (26, 12, 3, 4, 17, 13, 2, "tanh", 7, 2, 1),
    "albert_one_width": (35, 10, 3, 2, 13, 9, 2, "gelu", 10, 1, 1),
    "albert_wide_embeddings": (25, 11, 2, 1, 16, 8, 2, "ReLU", 18, 1, 1),
}


def make_config(row):
    kind = AlbertConfig if len(row) == len(KEYS) else BertConfig
    return kind(**dict(zip(KEYS, row, strict=False)), **NO_DROPOUT)


CONFIGS = {name: make_config(row) for name, row in ROWS.items()}

# rows, tokens (None: as many as positions), what the batch leaves out
BATCHES = {
    "one_token": (1, 1, ()),
    "rows_of_one_token": (5, 1, ()),
    "one_full_row": (1, None, ()),
    "full_rows": (5, None, ()),
    "shorter_rows": (5, 6, ()),
    "no_mask": (5, 6, ("input_mask",)),
    "no_segment_ids": (5, 6, ("segment_ids",)),
    "input_ids_alone": (5, 6, ("input_mask", "segment_ids")),
}


def make_batch(config, name, empty_row=False):
    """A random batch with holes in its masks; with `empty_row` the last row's mask is all 0."""
    rows, length, left_out = BATCHES[name]
    length = length or config.max_position_embeddings
    rng = np.random.default_rng(sum(map(ord, name)))
    predictions = min(4, length)

    def draw(below, width):
        return rng.integers(0, below, (rows, width)).astype(np.int32)

    mask = (rng.random((rows, length)) < 0.6).astype(np.int32)
    mask[:, rng.integers(length)] = 1
    if empty_row:
        mask[-1] = 0
    batch = {
        "input_ids": draw(config.vocab_size, length),
        "input_mask": mask,
        "segment_ids": draw(config.type_vocab_size, length),
        "masked_lm_positions": draw(length, predictions),
        "masked_lm_ids": draw(config.vocab_size, predictions),
        "masked_lm_weights": rng.choice([0.0, 0.5, 1.0], (rows, predictions)),
        "next_sentence_labels": draw(2, 1),
        "next_sentence_weights": np.ones(rows),
    }
    batch["masked_lm_weights"][0, 0] = 1.0
    batch["input_ids"][0, 0] = 0  # [PAD]'s id: it is the mask that decides, not the id
    return {key: value for key, value in batch.items() if key not in left_out}


def make_model(config, **options):
    """A pre-training model whose every weight matters, with those weights in float64."""
    kind = BertModel if isinstance(config, BertConfig) else AlbertModel
    model = PretrainingModel(kind(config, **options))
    rng = np.random.default_rng(20)
    weights = {}
    for name, variable in google_variables(model).items():
        value = rng.normal(0, 0.3, variable.shape) + name.endswith("gamma")
        # Rounded to what a float32 model can hold, lest the rounding be taken for an error.
        weights[name] = value.astype(np.float32).astype(np.float64)
        variable.assign(weights[name])
    return model, weights


def losses(outputs, batch):
    """The total loss with its two parts, as training computes them."""
    objective = pretraining_objective("next_sentence")
    sums = loss_sums(outputs, batch)
    denominators = objective.denominators(objective.weight_sums(batch))
    parts = {f"{name}_loss": sums[f"{name}_loss"] / denominators[name] for name in denominators}
    return {**parts, "total_loss": total_loss(sums, denominators)}


def assert_close(actual, expected, name):
    """Equal up to rounding of the largest expected entry, or of 1."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, name
    scale = max(1.0, np.abs(expected).max())
    assert np.abs(actual - expected).max() <= FLOAT64 * scale, name


def compare(model, weights, batch):
    """Compares every layer, both outputs, both logits, all losses."""
    expected = oracle.pretrain(weights, model.config, batch)
    for name in ("hidden_states", "attentions"):  # for test_run_inside.py
        expected.pop(name)
    logits = model(batch)
    actual = {**model.encoder(batch, return_all_layers=True), **logits, **losses(logits, batch)}
    layers = zip(actual.pop("encoder_outputs"), expected.pop("encoder_outputs"), strict=True)
    for i, (layer, expected_layer) in enumerate(layers):
        assert_close(layer, expected_layer, f"layer {i}")
    assert actual.keys() == expected.keys()
    for name in expected:
        assert_close(actual[name], expected[name], name)


PAIR = ("bert_three_layers_tanh", "albert_three_layers_in_two_groups")


# The quick run has BERT, layers in groups, and embeddings wider than the layers.
QUICK = ("albert_two_groups_of_two", "albert_wide_embeddings", "bert_three_layers_tanh")
SOME = but_slow(CONFIGS, QUICK)


@pytest.mark.parametrize("name", SOME)
def test_float64_model(float64, name):
    model, weights = make_model(CONFIGS[name])
    for batch, (rows, _, _) in BATCHES.items():
        # In float32 the addition of -10000 to every score of a row rounds the scores away.
        batch = make_batch(CONFIGS[name], batch, empty_row=rows > 1)
        compare(model, weights, batch)


def test_masked_scores_are_lowered_by_10000():
    # No output differs between 10000 and 9999 while every entry of a mask is 0 or 1.
    bias = attention_bias(np.array([[1, 0, 1], [0, 0, 0]], np.int32))
    expected = [[[[0, -10000, 0]]], [[[-10000, -10000, -10000]]]]
    np.testing.assert_array_equal(bias, expected)


# Without relu: a central difference across its corner is no derivative.
SMOOTH = but_slow([n for n in CONFIGS if str(CONFIGS[n].hidden_act).lower() != "relu"], QUICK)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_is_the_finite_difference_of_the_oracle(float64, name):
    config = CONFIGS[name]
    model, weights = make_model(config)
    batch = make_batch(config, "shorter_rows", empty_row=True)
    variables = google_variables(model)
    with tf.GradientTape() as tape:
        loss = losses(model(batch), batch)["total_loss"]
    gradients = tape.gradient(loss, [variable.value for variable in variables.values()])
    dense = (tf.convert_to_tensor(gradient).numpy() for gradient in gradients)
    gradients = dict(zip(variables, dense, strict=True))
    rng = np.random.default_rng(22)

    def difference(direction):
        step = 1e-5
        ends = [
            {key: value + sign * step * direction.get(key, 0) for key, value in weights.items()}
            for sign in (1, -1)
        ]
        above, below = (oracle.pretrain(end, config, batch)["total_loss"] for end in ends)
        return (above - below) / (2 * step)

    slopes = {}
    for key, value in weights.items():  # one variable at a time, so that none hides
        direction = {key: rng.normal(size=value.shape) / np.sqrt(value.size)}
        slopes[key] = np.sum(gradients[key] * direction[key]), difference(direction)
    scale = max(abs(slope) for slope, _ in slopes.values())
    for key, (slope, expected) in slopes.items():
        assert abs(slope - expected) <= 1e-6 * scale, key


@pytest.mark.parametrize("name", (*PAIR, "albert_one_width"))
def test_bfloat16_is_near_float32_with_losses_in_float32(name):
    config = CONFIGS[name]
    model, weights = make_model(config, dtype="mixed_bfloat16")
    batch = make_batch(config, "full_rows")
    expected = oracle.pretrain(weights, config, batch)
    logits = model(batch)
    actual = {**model.encoder(batch), **logits}
    assert all(variable.dtype == "float32" for variable in model.weights)
    for key, value in actual.items():
        assert value.dtype == tf.bfloat16, key
        assert_near(tf.cast(value, tf.float32), expected[key], key)
    # A difference shows that the products were indeed computed with fewer bits.
    rounded = np.abs(tf.cast(actual["sequence_output"], tf.float32) - expected["sequence_output"])
    assert rounded.max() > 1e-3
    total = losses(logits, batch)
    for value in (*example_losses(logits, batch).values(), *total.values()):
        assert value.dtype == tf.float32
    assert_near(total["total_loss"], expected["total_loss"], "total_loss")


def assert_near(actual, expected, name):
    """As exact as bfloat16 is on any machine, in the root mean square."""
    error = np.sqrt(np.mean((np.asarray(actual, np.float64) - expected) ** 2))
    assert error <= BFLOAT16 * max(1.0, np.sqrt(np.mean(np.square(expected)))), name


@pytest.mark.parametrize("name", PAIR)
@pytest.mark.parametrize("policy", ("float32", "mixed_bfloat16"))
def test_keras_file_round_trip(name, policy, tmp_path):
    config = CONFIGS[name]
    model, _ = make_model(config, name="encoder", dtype=policy)
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded.encoder) is type(model.encoder)
    assert (loaded.encoder.name, loaded.config) == ("encoder", config)
    assert loaded.dtype_policy.name == loaded.encoder.dtype_policy.name == policy
    assert [v.path for v in loaded.weights] == [v.path for v in model.weights]
    for ours, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
    batch = make_batch(config, "full_rows")
    expected, actual = model(batch), loaded(batch)
    for key in expected:
        np.testing.assert_array_equal(actual[key], expected[key])
