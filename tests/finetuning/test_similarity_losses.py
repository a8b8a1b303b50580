"""The losses of vectors: a formula in float64, and batches that are split in any way."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.objective import total_loss
from finetuning.similarity import losses
from finetuning.similarity.head import SentenceEncoder
from tests.support.crosses import slow
from tests.support.tiny_models import ONE_LAYER, assert_close, tiny_model
from tests.support.training_checks import train, train_on_two_workers

G, H = 6, 8
TEMPERATURE = 0.2


def random_vectors(seed, texts=3):
    return np.random.default_rng(seed).normal(size=(G, texts, H))


def expected_ranking(vectors, numbers, weights, size, normalize):
    """Loss by loss, with loops over candidates."""
    cut = vectors[..., :size]
    if normalize:
        cut = cut / np.linalg.norm(cut, axis=-1, keepdims=True)
    found = []
    for i in range(G):
        shares = []
        for j in range(G):
            for s in range(1, cut.shape[1]):
                is_partner = (j, s) == (i, 1)
                if not is_partner and (weights[j] == 0 or numbers[j, s] in numbers[i, :2]):
                    continue
                shares.append(np.exp(cut[i, 0] @ cut[j, s] / TEMPERATURE))
        found.append(-np.log(np.exp(cut[i, 0] @ cut[i, 1] / TEMPERATURE) / sum(shares)))
    return np.array(found)


NUMBERS = np.arange(3 * G).reshape(G, 3).astype(float)
NUMBERS[2, 1] = NUMBERS[0, 1]  # the same partner
NUMBERS[4, 2] = NUMBERS[5, 0]  # a third text that is another one's first
WEIGHTS = np.array([1, 1, 1, 1, 1, 0.0])


def ranking(vectors, numbers, normalize=True):
    arrays = map(tf.constant, (vectors, numbers, WEIGHTS))
    return losses.ranking_losses(*arrays, (H, 4), TEMPERATURE, normalize)[0]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("texts", [2, 3])
def test_ranking_is_its_formula(texts, normalize):
    vectors, numbers = random_vectors(0, texts), NUMBERS[:, :texts]
    found = ranking(vectors, numbers, normalize=normalize)
    expected = [expected_ranking(vectors, numbers, WEIGHTS, size, normalize) for size in (H, 4)]
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-12, rtol=0)


def test_gradient_of_ranking_is_that_of_differences():
    vectors = random_vectors(1)
    batch = {"text_numbers": tf.constant(NUMBERS), "label_weights": tf.constant(WEIGHTS)}

    def loss(values):
        sums = losses.ranking_sums((H,), TEMPERATURE, True, {"vectors": values}, batch)
        return sums["ranking_loss"]

    with tf.GradientTape() as tape:
        values = tf.constant(vectors)
        tape.watch(values)
        total = loss(values)
    gradient = tape.gradient(total, values).numpy()
    for place in ((0, 0, 0), (2, 1, 3), (4, 2, 5), (3, 2, 7)):
        step = np.zeros_like(vectors)
        step[place] = 1e-6
        difference = float(loss(tf.constant(vectors + step)) - loss(tf.constant(vectors - step)))
        np.testing.assert_allclose(gradient[place], difference / 2e-6, atol=1e-8)
    expected = expected_ranking(vectors, NUMBERS, WEIGHTS, H, True)
    np.testing.assert_allclose(total, np.sum(expected * WEIGHTS), atol=1e-12)


def test_ranking_counts_partners_that_are_nearest():
    vectors = np.tile(np.eye(G, H)[:, None], (1, 2, 1))
    vectors[1, 1] = np.eye(H)[H - 1]  # its partner is now as far from it as all others
    numbers = np.arange(2.0 * G).reshape(G, 2)
    _, correct = losses.ranking_losses(
        tf.constant(vectors), tf.constant(numbers), tf.ones(G, tf.float64), (H,), 1.0, True
    )
    assert correct.numpy().tolist() == [True, False, True, True, True, True]


def test_cosine_is_its_formula():
    vectors, scores = random_vectors(2, 2), np.linspace(0, 1, G)
    batch = {"label_ids": tf.constant(scores), "label_weights": tf.constant(WEIGHTS)}
    sums = losses.cosine_sums((H, 4), {"vectors": tf.constant(vectors)}, batch)
    expected = 0
    for size in (H, 4):
        a, b = vectors[:, 0, :size], vectors[:, 1, :size]
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        expected += np.sum((cosines - scores) ** 2 * WEIGHTS) / 2
    np.testing.assert_allclose(sums["cosine_loss"], expected, atol=1e-12)
    assert float(sums["cosine_weight"]) == 5


def test_pairs_among_triples_lose_what_pairs_alone_do():
    """A third text that is not there is no candidate of any text."""
    vectors, numbers = random_vectors(3), NUMBERS.copy()
    numbers[:, 2] = losses.NO_TEXT
    padded, pairs = ranking(vectors, numbers), ranking(vectors[:, :2], numbers[:, :2])
    np.testing.assert_allclose(padded, pairs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("scored", [True, False])
def test_both_is_the_objective_that_suits_the_batch(float64, scored):
    """Cosine counts 1 / temperature times, and the other loss and its gradient are 0."""
    batch = {
        "label_ids": tf.constant(np.linspace(0, 1, G)),
        "text_numbers": tf.constant(NUMBERS),
        "label_weights": tf.constant(WEIGHTS * (not scored)),
        "score_weights": tf.constant(WEIGHTS * scored),
    }
    alone = {**batch, "label_weights": tf.constant(WEIGHTS)}
    found = []
    for name, features in (("both", batch), ("cosine" if scored else "ranking", alone)):
        objective = losses.make_objective(name, TEMPERATURE, (H,), True)
        with tf.GradientTape() as tape:
            values = tf.constant(random_vectors(4))
            tape.watch(values)
            sums = objective.loss_sums({"vectors": values}, features)
            loss = total_loss(sums, objective.denominators(objective.weight_sums(features)))
        found.append((float(loss), tape.gradient(loss, values).numpy()))
    factor = 1 / TEMPERATURE if scored else 1
    np.testing.assert_allclose(found[0][0], factor * found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], factor * found[1][1], rtol=1e-6, atol=1e-12)
    assert np.abs(found[0][1]).max() > 1e-3


# === Batches in parts ===

ROWS, LENGTH = 8, 8


def make_model(training="ranking", pooling="mean", dropout=0.0):
    options = {"training": training, "temperature": TEMPERATURE}
    encoder = tiny_model(**ONE_LAYER, dropout=dropout).encoder
    return SentenceEncoder(encoder, pooling, True, (16,), **options)


def random_texts(seed=0, texts=3):
    """A batch of triples, the last with weight 0."""
    draw = np.random.default_rng(seed)
    mask = np.arange(LENGTH) < draw.integers(3, LENGTH + 1, (ROWS, texts, 1))
    numbers = np.arange(ROWS * texts, dtype=float).reshape(ROWS, texts)
    numbers[3, 1] = numbers[1, 1]
    return {
        "input_ids": draw.integers(5, 60, mask.shape) * mask,
        "input_mask": mask.astype(np.int64),
        "segment_ids": np.zeros(mask.shape, np.int64),
        "label_ids": draw.uniform(size=ROWS),
        "label_weights": np.where(np.arange(ROWS) == ROWS - 1, 0.0, 1.0),
        "text_numbers": numbers,
    }


def run_ranking(strategy=None, parts=1):
    """Losses and gradient norms of three steps, then moments and weights."""
    options = {"gradient_accumulation_steps": parts, "xla": False}
    state, metrics = train(make_model, random_texts(), 3, strategy or 1, **options)
    numbers = [[float(each[name]) for name in ("loss", "gradient_norm")] for each in metrics]
    return np.array(numbers), state


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2])
def test_two_workers_are_one_large_batch(float64, tmp_path, parts):
    """Each has half the batch, and contrasts its texts with those of the other."""
    module = "tests.finetuning.test_similarity_losses"
    numbers, state = train_on_two_workers(tmp_path, module, "run_ranking", parts=parts)
    expected = run_ranking()
    np.testing.assert_allclose(numbers, expected[0], atol=1e-9, rtol=0)
    assert_close(state, expected[1], 1e-9, 1e-6)


@pytest.mark.usefixtures("eagerly")
def test_both_passes_of_a_part_drop_the_same(float64, tmp_path):
    """Else the parts' gradients would be those of other vectors."""
    batch = random_texts()
    del batch["label_ids"]
    path = tmp_path / "sums.txt"

    class Watched(SentenceEncoder):
        def call(self, inputs, training=None, **options):
            outputs = super().call(inputs, training, **options)
            tf.print(tf.reduce_sum(tf.abs(outputs["vectors"])), output_stream=f"file://{path}")
            return outputs

    def make():
        return Watched(tiny_model(dropout=0.3, **ONE_LAYER).encoder, name="watched")

    train(make, batch, 1, gradient_accumulation_steps=2)
    seen = [float(line) for line in path.read_text().splitlines()]
    assert sorted(collections.Counter(seen).values()) == [2, 2]  # two parts, each twice


@pytest.mark.parametrize("training", ["simcse", slow("cosine")])
def test_other_objectives_train(float64, training):
    batch = random_texts(texts=2)
    if training == "simcse":
        del batch["label_ids"]
    _, metrics = train(lambda: make_model(training), batch, 40)
    assert float(metrics[-1]["loss"]) < 0.3 * float(metrics[0]["loss"])


# === The model ===


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pooling_reads_no_padding(float64, pooling):
    keras.utils.set_random_seed(1)
    model, batch = make_model(pooling=pooling), random_texts()
    rows = {n: batch[n] for n in ("input_ids", "input_mask", "segment_ids")}
    vectors = model(rows)["vectors"].numpy()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-12)
    for i, s in ((0, 0), (3, 2)):
        length = rows["input_mask"][i, s].sum()
        one = {n: v[i : i + 1, s, :length] for n, v in rows.items()}
        states = model.encoder(one)["sequence_output"][0].numpy()
        pooled = {"mean": states.mean(0), "cls": states[0], "max": states.max(0)}[pooling]
        np.testing.assert_allclose(vectors[i, s], pooled / np.linalg.norm(pooled), atol=1e-12)
