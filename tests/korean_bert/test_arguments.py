"""Every argument of a model's public methods is checked before anything is computed."""

import numpy as np
import pytest

from bert_common.errors import InputError
from korean_bert import guesses as guesses_module
from korean_bert import load_model, vector_graphs
from tests.support.models.model_folders import PIECES, write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.refusals import refused
from tests.support.vocabularies import write_pieces


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    write_strong_folder(folder, "classification")
    return load_model(folder)


NO_COUNTS = (0, -1, 1.5, True, "5", None, np.float64(2), [3], float("nan"))


@pytest.mark.parametrize("value", NO_COUNTS)
def test_counts(model, classifier, value):
    calls = [
        lambda: model.nearest("학교", top=value),
        lambda: model.fill_mask("[MASK]", top=value),
        lambda: model.fill_mask("[MASK]", max_pieces=value),
        lambda: classifier.predict("나는", batch_size=value),
    ]
    if value is not None:
        calls.append(lambda: model.embed("나는", batch_size=value))
        calls.append(lambda: model.embed("나는", max_length=value))
    for call in calls:
        with refused("must be a whole number"):
            call()


@pytest.mark.parametrize("value", (None, 3, b"a", ["a"], ("a", "b"), {"a"}, np.array("a")))
def test_texts(model, value):
    calls = [
        lambda: model.fill_mask(value),
        lambda: model.hidden_states(value),
        lambda: model.attention(value),
        lambda: model.nearest(value),
    ]
    if value is not None:
        calls += [lambda: model.hidden_states("a", value), lambda: model.attention("a", value)]
    for call in calls:
        with pytest.raises(InputError, match="must be a string"):
            call()


@pytest.mark.parametrize(
    "value", (None, 3, b"a", {"가": 1}, {"가"}, [None], [3], [b"a"], [("a", 3)], [("a", "b", "c")])
)
def test_lists_of_texts(model, classifier, value):
    for call in (model.embed, classifier.predict):
        with refused("Received: "):
            call(value)


def test_numpys_values_are_values(model, classifier):
    texts = ["나는 학교", "the book"]
    wanted = model.embed(texts)
    for given in (np.array(texts), np.array(texts, object), (t for t in texts), tuple(texts)):
        np.testing.assert_array_equal(model.embed(given), wanted)
    np.testing.assert_array_equal(model.embed(np.str_(texts[0])), model.embed(texts[0]))
    pairs = [("나는", "학교"), ("the", "book")]
    np.testing.assert_array_equal(model.embed(np.array(pairs)), model.embed(pairs))
    assert classifier.predict(np.array(texts)) == classifier.predict(texts)
    assert len(model.nearest("학교", np.int64(3))) == 3
    by_layer = model.embed(texts, layers=[0, 2])
    np.testing.assert_array_equal(model.embed(texts, layers=np.array([0, 2])), by_layer)
    np.testing.assert_array_equal(model.embed(texts, layers=range(0, 3, 2)), by_layer)
    np.testing.assert_array_equal(model.embed(texts, layers=np.int32(2)), wanted)


@pytest.mark.parametrize(
    "layers", ([], 3, -4, True, "1", 1.5, [0, None], None, [True], b"1", {0, 1}, {0: 1})
)
def test_layers(model, layers):
    with pytest.raises(InputError, match="layers must be whole numbers from -3 to 2"):
        model.embed("나는", layers=layers)


@pytest.mark.parametrize(
    "pooling", ((), ["mean"], "sum", 1, np.array("mean"), np.array(["mean", "cls"]))
)
def test_poolings(model, pooling):
    with pytest.raises(InputError, match="pooling must be one of mean, cls, max. Received: "):
        model.embed("나는", pooling=pooling)


class Table:
    """As pandas' tables: their names of columns are what they give one by one."""

    columns = ("text", "label")

    def __iter__(self):
        return iter(self.columns)


def test_a_table_is_no_list(model, classifier):
    for call in (model.embed, classifier.predict):
        with pytest.raises(InputError, match="must be in a list. Received: "):
            call(Table())


def test_searches_without_end_are_refused(model):
    with pytest.raises(InputError, match="max_length must be a whole number from 3 to 32. Re.*33"):
        model.embed("나는", max_length=33)
    with pytest.raises(InputError, match="max_pieces must be a whole number, from 1 to 10"):
        model.fill_mask("[MASK]", max_pieces=10**6)
    with pytest.raises(InputError, match="before_each must be a function. Received: 3"):
        model.fill_mask("[MASK]", before_each=3)


def test_few_beginnings_of_words_are_continued(model, monkeypatch):
    """However many guesses are asked for: each is a row of the next batch."""
    rows = []
    compute = guesses_module.piece_probabilities

    def counted(guesser, ids, *rest):
        rows.append(len(ids))
        return compute(guesser, ids, *rest)

    monkeypatch.setattr(guesses_module, "piece_probabilities", counted)
    monkeypatch.setattr(guesses_module, "MOST_BEAMS", 3)
    (found,) = model.fill_mask("[MASK]", top=20, max_pieces=2)
    assert len(found) == 20 and max(rows) == 3


@pytest.mark.parametrize("value", (5, b"model", ["model"], True, 1.5, ""))
def test_what_load_model_takes(value):
    with pytest.raises(InputError, match="a model's folder must be a path. Received: "):
        load_model(value)
    with pytest.raises(InputError, match="tokenizer must be a tokenizer or a path. Received: "):
        load_model(tokenizer=value)


def test_two_poolings_by_turns_make_two_graphs(model, monkeypatch):
    made = []

    class Counted(vector_graphs.ServedModel):
        def __init__(self, *arguments, **options):
            made.append(arguments)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(vector_graphs, "ServedModel", Counted)
    model._vectors._graphs.clear()
    for _ in range(3):
        for pooling in ("mean", "max"):
            model.embed("나는", pooling=pooling)
    assert len(made) == 2
    for layer in range(3):
        model.embed("나는", layers=[layer, 0])
    assert len(model._vectors._graphs) == vector_graphs.MOST_GRAPHS


def write_words(folder, words):
    write_folder(folder, sizes={"initializer_range": 0.4})
    others = [f"단어{letter}" for letter in "가나다라마바사아자차카타파하"]
    write_pieces(folder, [*words, *others][: len(PIECES) - 5])
    return load_model(folder)


def test_a_vocabulary_of_whole_words(tmp_path):
    """No piece continues a word, so a search ends after one."""
    model = write_words(tmp_path, ["나는", "학교"])
    for text in ("[MASK]", "나는 [MASK] 학교", "학교[MASK]"):
        (guesses,) = model.fill_mask(text, top=3, max_pieces=3)
        assert len(guesses) == (0 if text == "학교[MASK]" else 3)
        assert all(len(guess.pieces) == 1 for guess in guesses)


def test_special_pieces_are_no_guess(tmp_path):
    model = write_words(tmp_path, ["[unused1]", "[unused2]", "나는"])
    for pieces in (1, 2):
        guesses, *_ = model.fill_mask("[MASK]", top=99, max_pieces=pieces)
        assert guesses and not any(piece.startswith("[") for g in guesses for piece in g.pieces)
