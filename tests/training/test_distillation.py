"""A student learns from a frozen teacher what torch computes by the published formulas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel, PretrainingModel
from bert_tf.checkpoint import google_variables
from bert_tf.distillation import OutputTeacher, RelationTeacher, soft_binary_divergence
from bert_tf.training.step import StepConfig, TrainingStep
from bert_tf.training.token_dropping import FEATURE, TokenDropping
from bert_tf.training.xla import Compilation
from finetuning.classification.head import SequenceClassifier
from finetuning.multiple_choice.head import MultipleChoiceModel
from finetuning.ner.head import TokenClassifier
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.span_head import SpanModel
from tests.model.test_packed import packed, sequences
from tests.support.golden import by_google_names, inputs_of
from tests.support.paths import TEST_DATA
from tests.support.programs import NO_DROPOUT
from tests.support.tiny_models import (
    SIZES,
    assert_close,
    forward_backward,
    make_optimizer,
    random_batch,
    tensors,
    tiny_model,
    training_state,
)

# As tests/data/distillation/write_arrays.py.
TEMPERATURE, WEIGHT, HEADS, TEACHER_LAYER = 2.5, 0.3, 4, 1
WIDTHS = {
    "teacher": {"hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 10},
    "student": {"hidden_size": 8, "num_hidden_layers": 2, "intermediate_size": 12},
}
HEADS_OF_TASKS = {
    "words": PretrainingModel,
    "classes": lambda encoder: SequenceClassifier(encoder, 3, 0.0),
    "tokens": lambda encoder: TokenClassifier(encoder, 3, 0.0),
    "spans": SpanModel,
    "choices": lambda encoder: MultipleChoiceModel(encoder, 0.0),
}
RELATIONS = {"minilm2": ("qq", "kk", "vv"), "minilm1": ("qk", "vv")}


def relation_teacher(model, student, relations=("qq", "kk", "vv"), weight=WEIGHT, **options):
    last = student.config.num_block_calls
    options = {"heads": HEADS, "layer": TEACHER_LAYER, **options}
    return RelationTeacher(model, weight, student_layer=last, relations=relations, **options)


@pytest.fixture(scope="module")
def theirs():
    """The arrays of write_arrays.py."""
    with np.load(TEST_DATA / "distillation" / "distillation.npz") as file:
        return dict(file)


def model_of(theirs, task, who):
    """Our model of a task with the weights of transformers' one."""
    sizes = {"vocab_size": 31, "num_attention_heads": 2, "max_position_embeddings": 12}
    config = BertConfig(**sizes, type_vocab_size=2, **NO_DROPOUT, **WIDTHS[who])
    model = HEADS_OF_TASKS[task](BertModel(config, name=f"bert_{who}"))
    weights = by_google_names(theirs, f"{task}/{who}")
    for name, variable in google_variables(model).items():
        if name in weights:  # transformers' NER and questions have no pooler
            variable.assign(weights[name])
        else:
            assert "pooler" in name and task in ("tokens", "spans")
    return model


def step_with(model, teacher, strategy=None, xla=False, dropped=None, **config):
    strategy = strategy or tf.distribute.get_strategy()
    with strategy.scope():
        optimizer = make_optimizer("adamw", model)
        dropping = None if dropped is None else TokenDropping(dropped, model.config.vocab_size)
    compilation = Compilation(whole=xla, auto_clustering=False, update=xla)
    own = {"teacher": teacher, "token_dropping": dropping}
    config = StepConfig(seed=0, **config)
    return TrainingStep(model, optimizer, strategy, config, compilation, **own)


def sums_and_gradients(step, batch):
    """As `tiny_models.gradients_of`, by Google's names, with what the teacher computes."""
    taught = [v.value for v in step.teacher.weights]
    sums, gradients = forward_backward(step, tensors(batch), taught=taught)
    names = {v.path: name for name, v in google_variables(step.model).items()}
    pairs = zip(step.weights, gradients, strict=True)
    found = {names[v.path]: g.numpy() for v, g in pairs if g is not None}
    return {name: value.numpy() for name, value in sums.items()}, found


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("case", (*HEADS_OF_TASKS, *RELATIONS))
def test_losses_and_gradients(float64, theirs, case):
    task = case if case in HEADS_OF_TASKS else "words"
    student, model = (model_of(theirs, task, who) for who in ("student", "teacher"))
    if case in RELATIONS:
        teacher = relation_teacher(model, student, RELATIONS[case])
    else:
        teacher = OutputTeacher(model, WEIGHT, TEMPERATURE)
    batch = inputs_of(theirs)
    if task == "choices":  # the rows are the options of one question
        rows = ("input_ids", "input_mask", "segment_ids")
        batch = {k: v[None] if k in rows else v[:1] for k, v in batch.items()}
    step = step_with(student, teacher)
    sums, gradients = sums_and_gradients(step, batch)
    epsilon = step.objective.losses["distillation"].epsilon
    soft = sums["distillation_loss"] / (sums["distillation_weight"] + epsilon)
    assert soft == pytest.approx(float(theirs[f"{case}/soft"]), rel=1e-10)
    metrics = step(tensors(batch))
    assert float(metrics["loss"]) == pytest.approx(float(theirs[f"{case}/loss"]), rel=1e-10)
    expected = by_google_names(theirs, f"{case}/gradient")
    gradients = {n: g for n, g in gradients.items() if n in expected or np.abs(g).max() > 0}
    table = "bert/embeddings/word_embeddings"
    if not expected[table][0].any():  # torch has none for the row of padding as an input
        gradients[table][0] = 0
    assert_close(gradients, expected, 1e-9, floor=1e-3)


def test_independent_classes_and_scores_and_beams(float64):
    """By scipy's relative entropy of two-class distributions, and by plain NumPy."""
    scipy_special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(1)
    own, theirs = rng.normal(size=(2, 5, 4)) * 3

    def entropies(t):
        q, p = (1 / (1 + np.exp(-x / t)) for x in (own, theirs))
        pairs = scipy_special.rel_entr(p, q) + scipy_special.rel_entr(1 - p, 1 - q)
        return t * t * pairs

    np.testing.assert_allclose(
        soft_binary_divergence(own, theirs, 3.0), entropies(3.0), rtol=1e-10, atol=0
    )
    encoder = BertModel(BertConfig(**{**SIZES, "num_hidden_layers": 1}))
    weights = np.array([1.0, 0.5, 0.0, 2.0, 1.0])

    def soft_loss(model, outputs, taught, batch):
        batch = {**batch, **{f"teacher_{name}": value for name, value in taught.items()}}
        teacher = OutputTeacher(model, 0.5, 3.0)
        return float(teacher.loss_sums(model.objective, outputs, batch)["distillation_loss"])

    several = SequenceClassifier(encoder, 4, multi_label=True)
    outputs, taught = {"logits": own}, {"logits": theirs}
    each = np.broadcast_to(weights[:, None], (5, 4))
    for label_weights, expected in (
        (weights, entropies(3.0).mean(1) @ weights),
        (each, (entropies(3.0) * each).sum()),
    ):
        found = soft_loss(several, outputs, taught, {"label_weights": label_weights})
        assert found == pytest.approx(expected, rel=1e-10)
    score = SequenceClassifier(encoder, 1)
    one = {"logits": own[:, :1]}, {"logits": theirs[:, :1]}
    found = soft_loss(score, *one, {"label_weights": weights})
    assert found == pytest.approx((own[:, 0] - theirs[:, 0]) ** 2 @ weights, rel=1e-12)
    beams = BeamSpanModel(encoder)
    masked = np.full((5, 1), -1e30)
    spans = [
        {"start_logits": np.hstack([x, masked]), "end_logits": x[::-1], "cls_logits": x[:, 0]}
        for x in (own, theirs)
    ]
    q, p = (scipy_special.softmax(x / 3.0, axis=1) for x in (own, theirs))
    classes = 9 * scipy_special.rel_entr(p, q).sum(1)
    expected = 0.5 * (classes + classes[::-1] + entropies(3.0)[:, 0]) @ weights
    found = soft_loss(beams, *spans, {"span_weights": weights})
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.usefixtures("eagerly")
def test_packed_rows_relate_as_rows_of_their_own(float64):
    keras.utils.set_random_seed(4)
    student, model = tiny_model(), tiny_model(hidden_size=64, num_attention_heads=8)
    step, rows = step_with(student, relation_teacher(model, student)), sequences()
    apart, expected = sums_and_gradients(step, rows)
    together, gradients = sums_and_gradients(step, packed(rows))
    weights = [sums["distillation_weight"] for sums in (apart, together)]
    assert weights == [rows["input_mask"].sum()] * 2
    assert together["distillation_loss"] == pytest.approx(apart["distillation_loss"], rel=1e-10)
    assert_close(gradients, expected, 1e-9, floor=1e-4)


def make_teacher(kind, student, weight=0.5):
    """A wider teacher, an ALBERT where relations are learned."""
    sizes = {**SIZES, "hidden_size": 64, "num_attention_heads": 8}
    if kind == "logits":
        return OutputTeacher(tiny_model(hidden_size=64, dropout=0.3), weight, 2.0)
    # Not while it teaches.
    dropout = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}
    model = PretrainingModel(AlbertModel(AlbertConfig(embedding_size=16, **sizes, **dropout)))
    return relation_teacher(model, student, weight=weight)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", ("logits", "minilm"))
def test_a_teacher_stays_as_it_is(float64, kind):
    student = tiny_model()
    teacher = make_teacher(kind, student)
    step, before = step_with(student, teacher), [v.numpy() for v in teacher.weights]
    losses = [float(step(tensors(random_batch(i)))["distillation_loss"]) for i in range(2)]
    assert 0 < losses[0] != losses[1] > 0
    for old, variable in zip(before, teacher.weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), old)
    assert not any("teacher" in name for name in training_state(step))


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", ("logits", "minilm"))
def test_a_student_drops_tokens(float64, kind):
    """The teacher reads all tokens; the losses and gradients are linear in its weight."""
    found = {}
    for weight in (0.0, 0.25, 1.0):
        keras.utils.set_random_seed(3)
        student = tiny_model(num_hidden_layers=4)
        step = step_with(student, make_teacher(kind, student, weight), dropped=0.5)
        batch = {**random_batch(0), FEATURE: tf.constant(step.token_dropping.losses)}
        _, found[weight] = sums_and_gradients(step, batch)
    for name, gradient in found[0.25].items():
        expected = 0.75 * found[0.0].get(name, 0) + 0.25 * found[1.0].get(name, 0)
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)
    names = [n for n in found[1.0] if n.endswith("query/kernel")]
    assert names and all(np.abs(found[1.0][n]).max() > 1e-9 for n in names)
