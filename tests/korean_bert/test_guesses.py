"""Guesses for masked words, against fill_masks and an exhaustive search; nearest pieces."""

import json

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import google_variables
from korean_bert import load_model
from korean_bert.guesses import MaskGuesser, PieceKinds, text_of
from korean_bert.masked_text import encode_masked
from run_scripts.tools import fill_masks
from tests.support import oracle
from tests.support.models.model_folders import PIECES, write_model
from tests.support.models.released_models import write_albert
from tests.support.tiny_models import weights_of
from tests.support.vocabularies import encode_with_masks, write_pieces
from tokenization import KoreanTokenizer

TEXT = "나는 학교[MASK] 갔다 [MASK] the book[MASK]."


def test_single_pieces_are_those_of_fill_masks(model, capsys):
    found = model.fill_mask(TEXT, top=4, max_pieces=1)
    folder = model.loaded.folder.path
    argv = ["fill_masks", f"--model_dir={folder}", f"--text={TEXT}", "--guesses=4"]
    assert fill_masks.main(argv) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines() if "%" in line]
    for guesses, line in zip(found, shown, strict=True):
        words = [f"{guess.pieces[0]} {100 * guess.probability:.0f}%" for guess in guesses]
        assert line == "  ".join(words)
    assert len(shown) == 3


def exhaustively(model, ids, place, count):
    """The probability of every word of `count` pieces, by their ids."""
    weights = {k: v.astype(np.float64) for k, v in weights_of(model.loaded.model).items()}

    def shares(ids, position):
        """The probabilities of all pieces, by the formulas in float64."""
        batch = {"input_ids": np.array([ids]), "masked_lm_positions": np.array([[position]])}
        batch |= {"masked_lm_ids": np.zeros((1, 1), int), "masked_lm_weights": np.ones((1, 1))}
        batch["next_sentence_labels"] = np.zeros((1, 1), int)
        outputs = oracle.pretrain(weights, model.loaded.config, batch)
        logits = outputs["masked_lm_logits"][0, 0, : len(PIECES)]
        return np.exp(oracle.log_softmax(logits))

    kinds = PieceKinds(model.tokenizer)
    first = np.flatnonzero(kinds.inside if place.continues else kinds.begin)
    words = {(): 1.0}
    for number in range(count):
        grown = {}
        for pieces, probability in words.items():
            masks = [model.tokenizer.mask_id] * (count - number)
            row = [*ids[: place.position], *pieces, *masks, *ids[place.position + 1 :]]
            of_pieces = shares(row, place.position + number)
            for piece in first if number == 0 else np.flatnonzero(kinds.inside):
                grown[*pieces, int(piece)] = probability * of_pieces[piece]
        words = grown
    return words


def row_places(tokenizer, text):
    """The places in a row with [CLS]."""
    places = encode_masked(tokenizer, text).places
    return [place._replace(position=place.position + 1) for place in places]


def test_words_are_the_best_of_all(model):
    """The beam is as wide as the first pieces are many, so that nothing is lost."""
    tokenizer = model.tokenizer
    ids, places = encode_with_masks(tokenizer, TEXT), row_places(tokenizer, TEXT)
    assert [p.continues for p in places] == [True, False, True]
    assert not any(p.followed for p in places)
    found = model.fill_mask(TEXT, top=20, max_pieces=2)
    for place, guesses in list(zip(places, found, strict=True))[:2]:
        words = exhaustively(model, ids, place, 1) | exhaustively(model, ids, place, 2)
        best = sorted(words, key=words.get, reverse=True)[:20]
        pieces = [tuple(tokenizer.convert_tokens_to_ids(guess.pieces)) for guess in guesses]
        assert pieces == best
        shares = [guess.probability for guess in guesses]
        np.testing.assert_allclose(shares, [words[word] for word in best], rtol=1e-3)
        assert {len(word) for word in pieces} == {1, 2}


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_a_graph_with_open_sizes_computes_the_positions_asked_for(tmp_path, kind):
    model = write_model(tmp_path, kind, sizes={"initializer_range": 0.4})
    guesser = MaskGuesser(model, load_model(tmp_path).tokenizer)
    for rows, length, positions in ((1, 5, 1), (3, 9, 2)):
        ids = np.arange(rows * length, dtype=np.int32).reshape(rows, length) % len(PIECES)
        inputs = {"input_ids": ids, "masked_lm_positions": ids[:, :positions] % length}
        wanted = model(inputs, training=False)["masked_lm_logits"]
        found = guesser(inputs)["masked_lm_logits"]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_words_fit_where_the_mask_is(model):
    continuing, beginning, _ = model.fill_mask(TEXT, top=9)
    assert all(piece.startswith("##") for guess in continuing for piece in guess.pieces)
    for guess in beginning:
        assert not guess.pieces[0].startswith(("##", "["))
        assert all(piece.startswith("##") for piece in guess.pieces[1:])
        assert guess.text == "".join(guess.pieces).replace("##", "")
    for guesses in (continuing, beginning):
        shares = [guess.probability for guess in guesses]
        assert shares == sorted(shares, reverse=True) and len({g.text for g in guesses}) == 9


@pytest.mark.parametrize(
    "text, expected",
    (
        ("[MASK]는 갔다", [(False, True)]),
        ("“[MASK]” (학교[MASK])", [(False, False), (True, False)]),
        ("학교 [MASK][MASK].", [(False, True), (True, False)]),
        ("[MASK]", [(False, False)]),
    ),
)
def test_where_a_mask_is(model, text, expected):
    places = row_places(model.tokenizer, text)
    assert [(place.continues, place.followed) for place in places] == expected
    ids = encode_with_masks(model.tokenizer, text)
    assert all(ids[place.position] == model.tokenizer.mask_id for place in places)


def test_pieces_with_other_marks(tmp_path):
    """SentencePiece marks where a word begins, some vocabularies where it ends."""
    spm = load_model(write_albert(tmp_path / "uncased"))
    kinds = PieceKinds(spm.tokenizer)
    tokens = spm.tokenizer.convert_ids_to_tokens(kinds.ids)
    begins = [token for token, begin in zip(tokens, kinds.begin, strict=True) if begin]
    assert all(token.startswith("\u2581") for token in begins)
    for guess in spm.fill_mask("the [MASK] book", top=12)[0]:
        assert guess.pieces[0].startswith("\u2581") and "\u2581" not in guess.text
        assert guess.text == "".join(guess.pieces)[1:]
    path = write_pieces(tmp_path, ["학교_", "학", "교_", "에_", "\u1112", "\u1161"])
    options = {"continuation_prefix": "", "word_end_marker": "_", "strict_vocabulary": False}
    tokenizer = KoreanTokenizer(path, **options)
    kinds = PieceKinds(tokenizer)
    assert kinds.last.tolist() == [False] * 5 + [True, False, True, True, False, False]
    assert text_of(tokenizer, ("학", "교_")) == "학교"
    assert text_of(tokenizer, ("\u1112", "\u1161")) == "하"


def test_no_room_for_more_pieces(model):
    text = "[MASK]" + " 나" * 29  # 32 pieces, as many as the model has positions
    (guesses,) = model.fill_mask(text, max_pieces=3)
    assert len(guesses) == 5 and all(len(guess.pieces) == 1 for guess in guesses)


def test_nearest_pieces(model):
    variables = google_variables(model.loaded.model)
    table = variables["bert/embeddings/word_embeddings"].numpy().astype(np.float64)
    ids = model.tokenizer.convert_tokens_to_ids(["book", "##s"])
    vector = table[ids].mean(axis=0)
    cosines = {
        piece: table[i] @ vector / np.linalg.norm(table[i]) / np.linalg.norm(vector)
        for i, piece in enumerate(PIECES)
        if i not in ids and i >= 5
    }
    expected = sorted(cosines, key=cosines.get, reverse=True)
    found = model.nearest("books", top=50)
    assert [neighbour.piece for neighbour in found] == expected
    similarities = [neighbour.similarity for neighbour in found]
    np.testing.assert_allclose(similarities, [cosines[piece] for piece in expected], atol=1e-6)
    assert [n.piece for n in model.nearest("books", 3)] == expected[:3]
    with pytest.raises(InputError, match="a word must have a token. Received: ' '"):
        model.nearest(" ")
    assert json.dumps(found[0].similarity)  # a plain number


def test_all_rows_run_through_one_graph(model, monkeypatch):
    """Layers that are called one by one take five times as long."""
    made, traced = type(model.loaded.model), []
    call = made.call

    def counted(self, *arguments, **options):
        traced.append(arguments)
        return call(self, *arguments, **options)

    monkeypatch.setattr(made, "call", counted)
    monkeypatch.setattr(model, "_guesser", None)
    model.fill_mask(TEXT, top=3, max_pieces=2)
    assert len(traced) == 1


def test_a_search_asks_before_each_mask(model):
    """What is raised ends it."""
    asked = []

    def stop():
        asked.append(None)
        if len(asked) == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        model.fill_mask(TEXT, max_pieces=2, before_each=stop)
