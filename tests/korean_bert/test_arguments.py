"""Every argument of a model's public methods is checked before anything is computed."""

import numpy as np
import pytest

from bert_common.errors import InputError
from korean_bert import guesses as guesses_module
from korean_bert import load_model, vector_graphs
from tests.support.models.model_folders import PIECES, write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.vocabularies import write_pieces


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    write_strong_folder(folder, "classification")
    return load_model(folder)


class Table:
    """As pandas' tables: their names of columns are what they give one by one."""

    columns = ("text", "label")

    def __iter__(self):
        return iter(self.columns)


COUNT = "must be a whole number"
LAYERS = "layers must be whole numbers from -3 to 2"
POOLING = "pooling must be one of mean, cls, max. Received: "
SEED = "seed must be a whole number from 0 to 4294967295. Received: "
METHOD = "method must be one of vectors, bm25, hybrid. Received: "
ONLY_TEXTS = "must be texts for every method but"
IN_LIST = "must be in a list. Received: "
OF_SPACE = np.zeros((2, 2, 4), np.float32)

# A call of a pre-trained model, and what its refusal says.
REFUSED = (
    (lambda m: m.nearest("학교", top=0), "top must be a whole number, at least 1. Received: 0"),
    (lambda m: m.nearest("학교", top=1.5), COUNT),
    (lambda m: m.nearest("학교", top=True), COUNT),
    (lambda m: m.fill_mask("[MASK]", top=None), COUNT),
    (lambda m: m.fill_mask("[MASK]", max_pieces=0), COUNT),
    (lambda m: m.fill_mask("[MASK]", max_pieces=10**6), "max_pieces must .* from 1 to 10"),
    (lambda m: m.fill_mask("[MASK]", before_each=3), "before_each must be a function. Re.*: 3"),
    (lambda m: m.embed("나는", batch_size=-1), COUNT),
    (lambda m: m.embed("나는", max_length=33), "max_length must .* from 3 to 32. Received: 33"),
    (lambda m: m.search("가", ["나"], 0), "top must be a whole number"),
    (lambda m: m.cluster(["가", "나"], 0), "k must be a whole number, at least 1. Received: 0"),
    (lambda m: m.cluster(["가", "나"], 3), "k must be at most the number of texts, 2. Received: 3"),
    (lambda m: m.cluster(np.ones(4), 2), "k must be at most the number of texts, 1"),
    (lambda m: m.cluster(["가"], 1, -1), f"{SEED}-1"),
    (lambda m: m.cluster(["가"], 1, 2**32), SEED),
    (lambda m: m.fill_mask(3), "must be a string"),
    (lambda m: m.nearest(b"a"), "must be a string"),
    (lambda m: m.hidden_states(["a"]), "must be a string"),
    (lambda m: m.hidden_states("a", 3), "must be a string"),
    (lambda m: m.attention(None), "must be a string"),
    (lambda m: m.fill_mask("나는 갔다"), r"a text must hold \[MASK\]. Received: '나는 갔다'"),
    (lambda m: m.fill_mask("[MASK]" + " 나" * 40), "at most 32 tokens .* Received: 43"),
    (lambda m: m.attention("나 " * 40), "at most 32 tokens .* Received: 42"),
    (lambda m: m.embed(None), IN_LIST),
    (lambda m: m.embed({"가": 1}), IN_LIST),
    (lambda m: m.embed({"가"}), IN_LIST),
    (lambda m: m.embed(Table()), IN_LIST),
    (lambda m: m.embed([b"a"]), "a text must be a string, or a pair of them. Received: b'a'"),
    (lambda m: m.embed([("a", 3)]), "a text must be a string, or a pair of them"),
    (lambda m: m.embed([("a", "b", "c")]), "a text must be a string, or a pair of them"),
    (lambda m: m.search("가", "나"), IN_LIST),
    (lambda m: m.search(None, ["나"]), f"{IN_LIST}None"),
    (lambda m: m.search("가", ["나", 3]), "a text must be a string"),
    (lambda m: m.search("비", "비가 온다", method="bm25"), IN_LIST),
    (lambda m: m.search("가", [("나", "다")]), "texts to compare must be strings"),
    (lambda m: m.cluster("가", 1), IN_LIST),
    (lambda m: m.cluster([("가", "나")], 1), "texts to compare must be strings"),
    (lambda m: m.search(np.ones((2, 7)), ["나"]), "vectors that are compared must have one size"),
    (lambda m: m.search("가", OF_SPACE), "vectors must be numbers with a decimal point"),
    (lambda m: m.search("가", "none.npy"), "none.npy must be an array of NumPy"),
    (lambda m: m.search("비", ["눈"], method="tf_idf"), f"{METHOD}'tf_idf'"),
    (lambda m: m.search("비", np.ones((5, 4)), method="bm25"), f"corpus {ONLY_TEXTS}"),
    (lambda m: m.search("비", "v.npy", method="hybrid"), f"corpus {ONLY_TEXTS}"),
    (lambda m: m.search(np.ones((1, 4)), ["눈"], method="hybrid"), f"queries {ONLY_TEXTS}"),
    (lambda m: m.embed("나는", layers=[]), LAYERS),
    (lambda m: m.embed("나는", layers=3), LAYERS),
    (lambda m: m.embed("나는", layers=-4), LAYERS),
    (lambda m: m.embed("나는", layers=[True]), LAYERS),
    (lambda m: m.embed("나는", layers={0, 1}), LAYERS),
    (lambda m: m.embed("나는", pooling="sum"), POOLING),
    (lambda m: m.embed("나는", pooling=np.array("mean")), POOLING),
)

REFUSED_OF_A_CLASSIFIER = (
    (lambda m: m.predict("나는", batch_size=0), COUNT),
    (lambda m: m.predict(Table()), IN_LIST),
    (lambda m: m.predict([None]), "this model takes texts, or pairs"),
    (lambda m: m.fill_mask("[MASK]"), "guesses need a pre-trained model .*classification"),
)


@pytest.mark.parametrize(
    "kind, call, message",
    [
        *(("model", *case) for case in REFUSED),
        *(("classifier", *case) for case in REFUSED_OF_A_CLASSIFIER),
    ],
)
def test_what_is_refused(request, kind, call, message):
    model = request.getfixturevalue(kind)
    with pytest.raises(InputError, match=message):
        call(model)


@pytest.mark.filterwarnings("error")  # the message is all
@pytest.mark.parametrize("value", (np.nan, np.inf))
def test_vectors_must_be_finite(model, value):
    good, bad = np.ones((2, 4), np.float32), np.full((2, 4), value)
    for call in (
        lambda: model.similarity(good, bad),
        lambda: model.similarity(bad[0], good),
        lambda: model.search(bad, good),
        lambda: model.search(good, bad),
        lambda: model.cluster(bad, 2),
    ):
        with pytest.raises(InputError, match="vectors must be finite numbers. Received: NaN"):
            call()


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


@pytest.mark.parametrize("value", (5, ["model"], ""))
def test_what_load_model_takes(value):
    with pytest.raises(InputError, match="a model's folder must be a path. Received: "):
        load_model(value)
    with pytest.raises(InputError, match="tokenizer must be a tokenizer or a path. Received: "):
        load_model(tokenizer=value)


def test_two_poolings_by_turns_make_two_graphs(model, monkeypatch):
    made, plain = [], vector_graphs.ServedModel

    def counted(*arguments, **options):
        made.append(arguments)
        return plain(*arguments, **options)

    monkeypatch.setattr(vector_graphs, "ServedModel", counted)
    model._vectors._graphs.clear()
    for pooling in ("mean", "max") * 3:
        model.embed("나는", pooling=pooling)
    assert len(made) == 2


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
