"""Vectors and attention in Python, against the formulas in float64 and against extract_features."""

import contextlib
import itertools
import threading
import time
import types
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from finetuning.features import extraction as features
from finetuning.inputs import encode_pairs
from korean_bert import load_model
from korean_bert.model import as_pairs
from korean_bert.vector_graphs import MOST_GRAPHS
from run_scripts import extract_features
from tests.support import oracle
from tests.support.models.model_folders import write_folder, write_model
from tests.support.tiny_models import weights_of
from tests.support.vocabularies import write_lines

TEXTS = [
    "나는 학교에 갔다.",
    ("the book is red", "is the book red ?"),
    "",
    "나는 나는 학교에 학교에 갔다. the books is reds . 나는 갔다 학교에 . the end",
    "books",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each kind, with its weights in float64 by Google's names."""
    made = {}
    for kind in ("bert", "albert"):
        folder = tmp_path_factory.mktemp(kind)
        model = write_model(folder, kind, sizes={"initializer_range": 0.4})
        weights = {k: v.astype(np.float64) for k, v in weights_of(model).items()}
        made[kind] = load_model(folder), weights
    return made


def computed(model, weights, text, second=None):
    """What the formulas give for a text, [CLS] and [SEP] included."""
    tokenizer = model.tokenizer
    ids = [tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id]
    segments = [0] * len(ids)
    if second is not None:
        ids += [*tokenizer.encode(second), tokenizer.sep_id]
        segments += [1] * (len(ids) - len(segments))
    batch = {"input_ids": np.array([ids]), "segment_ids": np.array([segments])}
    return oracle.encode(weights, model.loaded.config, batch)


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_every_layer(folders, kind):
    model, weights = folders[kind]
    for text, second in as_pairs(TEXTS[:2])[0]:
        expected = computed(model, weights, text, second)
        states, attention = model.hidden_states(text, second), model.attention(text, second)
        vectors = np.stack(expected["hidden_states"])[:, 0]
        assert states.vectors.shape == vectors.shape == (3, len(states.pieces), 32)
        np.testing.assert_allclose(states.vectors, vectors, atol=1e-5, rtol=0)
        shares = np.stack(expected["attentions"])[:, 0]
        np.testing.assert_allclose(attention.probabilities, shares, atol=1e-5, rtol=0)
        assert attention.probabilities.shape == (2, 4, *2 * [len(states.pieces)])
        assert shares.std() > 0.01 and np.abs(np.diff(vectors, axis=0)).max() > 0.1
        assert attention.pieces == states.pieces and attention.spans == states.spans


def test_pieces_with_their_places(folders):
    model, _ = folders["bert"]
    found = model.attention("나는 학교에", "the  books")
    assert " ".join(found.pieces) == "[CLS] 나 ##는 학교 ##에 [SEP] the book ##s [SEP]"
    assert found.spans == (
        None, (0, 1), (1, 2), (3, 5), (5, 6), None, (0, 3), (5, 9), (9, 10), None,
    )  # fmt: skip


@pytest.mark.parametrize("second", ("", " \n"))
def test_a_second_text_without_tokens_is_none(folders, second):
    model, _ = folders["bert"]
    states, attention = model.hidden_states("books", second), model.attention("books", second)
    assert states.pieces == attention.pieces == ("[CLS]", "book", "##s", "[SEP]")
    assert states.spans == attention.spans == (None, (0, 4), (4, 5), None)
    (expected,) = model.embed([("books", second)])
    np.testing.assert_allclose(states.vectors[-1].mean(axis=0), expected, atol=1e-5, rtol=0)


POOLED = {
    "mean": lambda vectors: vectors.mean(axis=0),
    "cls": lambda vectors: vectors[0],
    "max": lambda vectors: vectors.max(axis=0),
}


@pytest.mark.parametrize("kind, pooling", (("bert", "mean"), ("bert", "cls"), ("albert", "max")))
def test_embed_equals_the_formulas(folders, kind, pooling):
    """Layer 0 is the embedding output, of ALBERT at the width of the layers; order is kept."""
    model, weights = folders[kind]
    texts = [*TEXTS[:3], TEXTS[4]]
    found = model.embed(texts, pooling, layers=(0, 1, -1), batch_size=3)
    assert found.shape == (4, 3, 32) and found.dtype == np.float32
    for vectors, (text, second) in zip(found, as_pairs(texts)[0], strict=True):
        # An empty second sentence, and none, are the same.
        states = computed(model, weights, text, second)["hidden_states"]
        expected = [POOLED[pooling](states[i][0]) for i in (0, 1, -1)]
        np.testing.assert_allclose(vectors, expected, atol=1e-5, rtol=0)
    one, row = model.embed(texts[0], pooling), model.embed(texts[:1], pooling)[0]
    np.testing.assert_array_equal(one, row)
    assert model.embed([]).shape == (0, 32)


def train(encoder):
    inputs = {"input_ids": np.arange(5, encoder.config.vocab_size)[None, :30]}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(inputs)["sequence_output"][..., 0])
    weights = encoder.trainable_weights
    keras.optimizers.SGD(0.1).apply(tape.gradient(loss, weights), weights)


def train_words(encoder):
    for part in (*encoder.blocks, encoder.embeddings.layer_norm, encoder.pooler):
        part.trainable = False
    train(encoder)


def put_low_rank_weights(encoder):
    layer = encoder.blocks[0].intermediate
    layer.enable_lora(2)
    layer.lora_kernel_a.assign(np.ones(layer.lora_kernel_a.shape))
    layer.lora_kernel_b.assign(np.arange(layer.lora_kernel_b.shape[1]) % 3 + layer.lora_kernel_b)


def silence_unit(encoder):
    kernel = encoder.blocks[1].output_dense.kernel
    values = kernel.numpy()
    values[3] = 0
    kernel.assign(values)


@pytest.mark.parametrize("change", [train, train_words, put_low_rank_weights, silence_unit])
def test_weights_that_change_after_the_first_call(tmp_path, change):
    """Graphs hold weights as constants."""
    write_folder(tmp_path, sizes={"initializer_range": 0.4})
    model, text = load_model(tmp_path), TEXTS[0]
    before = model.embed(text)
    change(model.encoder)
    found = model.embed(text)
    np.testing.assert_allclose(found, model.hidden_states(text).vectors[-1].mean(0), atol=1e-5)
    assert np.abs(found - before).max() > 1e-3


def test_a_training_between_calls_makes_one_other_graph(tmp_path):
    """Its weights are variables: TensorFlow keeps the memory of each graph that is dropped."""
    write_folder(tmp_path, sizes={"initializer_range": 0.4})
    model, text, graphs = load_model(tmp_path), TEXTS[0], []
    for _ in range(4):
        found = model.embed(text)
        np.testing.assert_allclose(found, model.hidden_states(text).vectors[-1].mean(0), atol=1e-5)
        graphs += model._vectors._graphs.values()
        train(model.encoder)
    assert len(set(map(id, graphs))) == 2


@pytest.mark.parametrize("change", [train, put_low_rank_weights])
@pytest.mark.parametrize("task", ["pretraining", "classification"])
def test_fill_mask_and_predict_after_a_change(tmp_path, task, change):
    """Their graphs hold variables: only other layers need a new one, which takes seconds."""
    write_folder(tmp_path, task=task, sizes={"initializer_range": 0.4})
    model, other = load_model(tmp_path), load_model(tmp_path)

    def ask(model):
        if task == "classification":
            return list(model.predict(TEXTS[0]).probabilities.values())
        return [guess.probability for guess in model.fill_mask("[MASK]", max_pieces=1)[0]]

    before, made = ask(model), (model._guesser, model._made_predictor)
    for each in (model, other):
        change(each.encoder)
    found = ask(model)
    np.testing.assert_allclose(found, ask(other), atol=1e-6)
    assert np.abs(np.subtract(found, before)).max() > 1e-3
    assert (made == (model._guesser, model._made_predictor)) == (change is train)


def test_few_graphs_hold_a_copy_of_the_weights(tmp_path):
    """TensorFlow keeps the memory of those that are dropped."""
    write_folder(tmp_path)
    model, graphs = load_model(tmp_path), {}
    for pooling, layer in itertools.product(POOLED, range(model.num_layers + 1)):
        model.embed(TEXTS[0], pooling, layer)
        graphs.update({id(graph): graph for graph in model._vectors._graphs.values()})
    copies = [not graph.get_concrete_function().captured_inputs for graph in graphs.values()]
    assert len(copies) > MOST_GRAPHS and sum(copies) == MOST_GRAPHS


def extracted(model, folder, lines, *flags):
    """What extract_features writes."""
    write_lines(folder / "in.txt", lines)
    argv = ["x", f"--model_dir={model.loaded.folder.path}", f"--input_file={folder}/in.txt"]
    argv += [f"--output_file={folder}/out.npz", "--max_seq_length=16", *flags]
    assert extract_features.main(argv) == 0
    with np.load(folder / "out.npz") as file:
        return file["features"]


def test_embed_equals_extract_features(folders, tmp_path):
    model, _ = folders["bert"]
    lines = [text if isinstance(text, str) else " ||| ".join(text) for text in TEXTS]
    expected = extracted(model, tmp_path, lines, "--layers=-2,0")
    found = model.embed(TEXTS, layers=(-2, 0))  # the folder says that 16 positions were trained
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    longer = model.embed(TEXTS, layers=(-2, 0), max_length=30)
    assert np.abs(longer - found).max(axis=(1, 2)).argmax() == 3


@pytest.mark.parametrize("normalize", (True, False))
def test_vectors_that_were_trained_equal_extract_features(tmp_path, normalize):
    """They have length 1 in the last layer, unless a pooling is given."""
    write_folder(tmp_path / "m", "bert", "similarity", pooling="max", normalize=normalize)
    model, lines = load_model(tmp_path / "m"), ["나는 학교에 갔다.", "books"]
    for pooling, flags in ((None, ()), ("max", ("--pooling=max",))):
        found = extracted(model, tmp_path, lines, "--layers=1,-1,2", *flags)
        expected = model.embed(lines, pooling, layers=(1, -1, 2))
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
        lengths = np.linalg.norm(found, axis=-1)
        assert np.allclose(lengths[:, 1:], 1) == (normalize and pooling is None)
        assert np.abs(lengths[:, 0] - 1).min() > 0.01


# Of 3 to 14 pieces, in no order.
MANY = ["나는 학교에 books the "[:length] for length in (3, 9, 5, 17, 1, 13, 7, 15, 11, 4, 2, 12)]


class Running:
    """Stands in for what threads run: the longer a batch, the later it ends."""

    def __init__(self, monkeypatch, fails_at=None):
        self.lock, self.fails_at = threading.Lock(), fails_at
        self.calls, self.pieces, self.most_calls, self.most_pieces = 0, [], 0, 0
        self.run = features._run
        monkeypatch.setattr(features, "_run", self)

    def __call__(self, graph, batch):
        pieces = batch["input_ids"].size
        with self.lock:
            self.calls += 1
            number = self.calls
            self.pieces.append(pieces)
            self.most_calls = max(self.most_calls, len(self.pieces))
            self.most_pieces = max(self.most_pieces, sum(self.pieces))
        time.sleep(0.005 * pieces)
        found = self.run(graph, batch)
        with self.lock:
            self.pieces.remove(pieces)
        if number == self.fails_at:
            raise MemoryError("in a thread")
        return found


def threads():
    return [each.name for each in threading.enumerate() if each.name.startswith("features")]


def test_several_batches_at_once(folders, monkeypatch):
    """Every vector is in its place though batches end in another order; few are in memory."""
    model, _ = folders["bert"]
    expected = np.stack([model.embed(text) for text in MANY])
    assert np.abs(np.diff(expected, axis=0)).max(axis=1).min() > 0.01
    running = Running(monkeypatch)
    np.testing.assert_allclose(model.embed(MANY, batch_size=2), expected, atol=1e-5, rtol=0)
    backwards = model.embed(MANY[::-1], batch_size=2)
    np.testing.assert_allclose(backwards[::-1], expected, atol=1e-5, rtol=0)
    assert running.most_calls == features.BATCHES_AT_ONCE and running.calls == 12
    monkeypatch.setattr(features, "PIECES_AT_ONCE", 30)
    running = Running(monkeypatch)
    model.embed(MANY, batch_size=2)
    assert running.most_calls > 1 and 20 < running.most_pieces <= 30
    assert not threads()


def test_batches_are_filled_up_to_a_number_of_pieces(folders, monkeypatch):
    """Short texts share larger batches, without padding beyond the number; a long one is alone."""
    model, _ = folders["bert"]
    texts = ["가"] * 9 + ["나는 학교에 갔다."] * 2
    expected = np.stack([model.embed(text) for text in texts])
    batches, pad = [], features.pad_rows

    def noted(rows, length, pad_id):
        batches.append((len(rows), length))
        return pad(rows, length, pad_id)

    monkeypatch.setattr(features, "pad_rows", noted)
    np.testing.assert_allclose(model.embed(texts), expected, atol=1e-5, rtol=0)
    assert len(batches) == 1 and batches.pop()[0] == len(texts)
    short, long = (len(model.tokenizer.encode(text)) + 2 for text in (texts[0], texts[-1]))
    monkeypatch.setattr(features, "PIECES_OF_BATCH", 4 * short)
    np.testing.assert_allclose(model.embed(texts), expected, atol=1e-5, rtol=0)
    assert 2 * long > 4 * short >= long
    assert batches == [(1, long), (1, long), (4, short), (4, short), (1, short)]


def test_an_error_in_a_thread(folders, monkeypatch):
    model, _ = folders["bert"]
    expected = model.embed(MANY)
    with monkeypatch.context() as patch:
        Running(patch, fails_at=3)
        with pytest.raises(MemoryError, match="in a thread"):
            model.embed(MANY, batch_size=2)
    assert not threads()
    np.testing.assert_allclose(model.embed(MANY, batch_size=2), expected, atol=1e-5, rtol=0)


def test_ctrl_c_between_two_batches(folders, monkeypatch):
    """What is under way ends first, and nothing else begins."""
    model, _ = folders["bert"]
    running, pad, padded = Running(monkeypatch), features.pad_rows, []

    def interrupted(rows, length, pad_id):
        padded.append(rows)
        if len(padded) > features.BATCHES_AT_ONCE:
            raise KeyboardInterrupt
        return pad(rows, length, pad_id)

    monkeypatch.setattr(features, "pad_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.embed(MANY, batch_size=1)
    assert running.calls == features.BATCHES_AT_ONCE and not running.pieces and not threads()


@pytest.mark.parametrize("blockwise", [False, True])
def test_graphs_are_traced_once_in_the_thread_of_the_caller(blockwise, folders, monkeypatch):
    """One graph computes all lengths, except those on which the attention depends."""
    model, _ = folders["bert"]
    rows = encode_pairs(model.tokenizer, [(text, None) for text in MANY], 16)
    traced, updates = [], []
    original = features.pooled_layers

    def traces(*arguments):
        traced.append((arguments[-1]["input_ids"].shape[1], threading.current_thread()))
        return original(*arguments)

    monkeypatch.setattr(features, "pooled_layers", traces)
    if blockwise:
        monkeypatch.setattr(features, "BLOCKWISE_TOKENS", 1)
    bar = types.SimpleNamespace(update=updates.append)
    monkeypatch.setattr(features, "progress", lambda *_: contextlib.nullcontext(bar))
    found = list(features.extract(model.encoder, rows, (-1,), "mean", 1))
    lengths = {-(-len(row.ids) // 8) * 8 for row in rows}
    assert len(lengths) == 2
    known = lengths if blockwise else {None}
    assert len(traced) == len(known)
    assert set(traced) == {(length, threading.main_thread()) for length in known}
    assert sum(updates) == sum(len(row.ids) for row in rows) and len(updates) == len(rows)
    np.testing.assert_allclose(np.stack(found)[:, 0], model.embed(MANY), atol=1e-5, rtol=0)


ASKS = {
    "fill_mask": lambda model, text: model.fill_mask(text + " [MASK]"),
    "hidden_states": lambda model, text: model.hidden_states(text),
    "attention": lambda model, text: model.attention(text),
    "embed": lambda model, text: model.embed(text, max_length=20),
}


@pytest.mark.parametrize("name", ASKS)
def test_untrained_positions_are_warned_of_once(name, tmp_path):
    """As the programs warn; a text as long as those of the training is none."""
    write_folder(tmp_path / "model")  # 16 positions were trained
    model, ask = load_model(tmp_path / "model"), ASKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(model, "books")
        model.embed("나 " * 17)  # is cut
        with pytest.warns(UserWarning, match="has (19|20) tokens, but .* at most 16: .* untrained"):
            ask(model, "나 " * 17)
        ask(model, "나 " * 18)
