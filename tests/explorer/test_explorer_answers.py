"""What the page is told is what the model's own methods return."""

import json

import numpy as np
import pytest

from bert_common.errors import InputError
from explorer.answers import ANSWERS, Explored, describe, words_of
from explorer.attention import CELLS, shrink
from explorer.fields import read_fields
from korean_bert import load_model
from korean_bert.masked_text import encode_masked
from tests.support.models.model_folders import write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.vocabularies import encode_with_masks

TEXT, MASKED = "나는 학교에 갔다.", "나는 학교[MASK] 갔다."


def make_model(folder, task="pretraining", **settings):
    if task == "pretraining":
        write_folder(folder, sizes={"initializer_range": 0.4})
    else:
        write_strong_folder(folder, task, **settings)
    return load_model(folder)


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    model = make_model(tmp_path_factory.mktemp("m") / "tiny")
    return Explored(model, (("letters", list),))


def answer(explored, name, **values):
    """As the application answers, without HTTP."""
    function, fields = ANSWERS[name]
    return function(explored, **read_fields(json.dumps(values).encode(), fields))


def test_the_model_is_described(explored):
    found = describe(explored)
    assert found["name"] == "tiny" and found["mask"] == "[MASK]" and found["labels"] == []
    assert (found["layers"], found["heads"], found["longest"]) == (2, 4, 32)
    assert found["pooling"] == "mean"
    assert found["vocabularies"] == ["letters"] and found["vocab_size"] == 18


def test_pieces_with_ids_places_and_words(explored):
    tokenizer = explored.model.tokenizer
    found = answer(explored, "pieces", text=MASKED, second="the books")
    first, second = found["texts"]
    ids = [tokenizer.cls_id, *(each["id"] for each in first), tokenizer.sep_id]
    assert ids == encode_with_masks(tokenizer, MASKED)
    assert [MASKED[each["start"] : each["end"]] for each in first] == [
        "나", "는", "학교", "[MASK]", "갔", "다", ".",
    ]  # fmt: skip
    assert [each["word"] for each in first] == [0, 0, 1, 1, 2, 2, 3]
    assert [each["piece"] for each in second] == ["the", "book", "##s"]
    assert found["count"] == len(explored.model.attention(MASKED, "the books").pieces)
    assert answer(explored, "pieces", text="") == {"texts": [[]], "count": 2}
    for second in ("", "\u200b"):  # one text to the model
        found = answer(explored, "pieces", text=MASKED, second=second)
        assert found["count"] == len(explored.model.attention(MASKED, second).pieces)


def test_words_are_apart_at_spaces_and_punctuation():
    text = "(나는)  a,b"
    spans = [(0, 1), (1, 2), (2, 3), (3, 4), (6, 7), (7, 8), (8, 9)]
    assert words_of(text, spans) == [0, 1, 1, 2, 3, 4, 5]
    assert words_of("각각", [(0, 1), (0, 1), (1, 2)]) == [0, 0, 0]  # jamo share their syllable
    assert words_of(" 나 다", [(0, 1), (1, 2), (2, 3), (3, 4)]) == [0, 0, 1, 1]


@pytest.mark.parametrize("text", (MASKED, "[MASK]는 [MASK]", "학교[MASK]에[MASK][MASK] 다", "a"))
def test_masks_have_places(explored, text):
    tokenizer = explored.model.tokenizer
    ids, spans, _ = encode_masked(tokenizer, text)
    assert [tokenizer.cls_id, *ids, tokenizer.sep_id] == encode_with_masks(tokenizer, text)
    for index, (start, end) in zip(ids, spans, strict=True):
        if index != tokenizer.unk_id:
            token = tokenizer.convert_ids_to_tokens([index])[0]
            assert text[start:end] == token.removeprefix("##")


def test_guesses(explored):
    found = answer(explored, "guesses", text=MASKED, top=3, max_pieces=2)
    expected = explored.model.fill_mask(MASKED, 3, max_pieces=2)
    for guesses, wanted in zip(found["masks"], expected, strict=True):
        assert [each["text"] for each in guesses] == [each.text for each in wanted]
        shares = [each["probability"] for each in guesses]
        assert shares == pytest.approx([each.probability for each in wanted], abs=1e-6)
        assert shares[0] > shares[-1] > 0


def test_attention_of_heads_and_averages(explored):
    expected = explored.model.attention(MASKED, TEXT)
    assert "[MASK]" in expected.pieces
    probabilities = expected.probabilities
    for layer, head, weights in (
        (2, 3, probabilities[1, 2]),
        (0, 3, probabilities[:, 2].mean(axis=0)),
        (1, 0, probabilities[0].mean(axis=0)),
        (0, 0, probabilities.mean(axis=(0, 1))),
    ):
        found = answer(explored, "attention", text=MASKED, second=TEXT, layer=layer, head=head)
        np.testing.assert_allclose(found["weights"], weights, atol=6e-5)
        assert found["pieces"] == list(expected.pieces)
    assert np.ptp(probabilities[:, :, 0, 1]) > 0.01
    heads = answer(explored, "heads", text=MASKED, second=TEXT)
    levels = np.array(heads["heads"])
    assert levels.shape == (2, 4, heads["cells"] ** 2) and levels.max() == 255
    for name in ("layer", "head"):
        said = f"{name} must be from 1 to .*, or 0 for .* Received: 9"
        with pytest.raises(InputError, match=said):
            answer(explored, "attention", text=TEXT, **{name: 9})


def test_attention_is_computed_once_a_text(explored, monkeypatch):
    calls = []
    compute = explored.model.attention
    monkeypatch.setattr(explored.model, "attention", lambda *r: calls.append(r) or compute(*r))
    for text in ("나는", "나는", "갔다", "나는"):
        answer(explored, "attention", text=text, head=1)
        answer(explored, "heads", text=text)
    assert [text for text, _ in calls] == ["나는", "갔다", "나는"]


def test_small_pictures_keep_the_largest():
    shares = np.zeros((1, 1, 50, 50), np.float32)
    shares[0, 0, 49, 0], shares[0, 0, 0, 20] = 0.7, 0.2
    found = shrink(shares)[0, 0]
    assert found.shape == (CELLS, CELLS) and found[-1, 0] == np.float32(0.7)
    assert np.count_nonzero(found) == 2 and found.max() == found[-1, 0]
    np.testing.assert_array_equal(shrink(shares[:, :, :9, :9]), shares[:, :, :9, :9])


def test_neighbours(explored):
    found = answer(explored, "neighbours", word="학교", top=4)
    expected = explored.model.nearest("학교", 4)
    assert [each["piece"] for each in found["neighbours"]] == [each.piece for each in expected]
    assert found["pieces"] == ["학교"]


def test_cuts_with_the_numbers_of_their_words(explored):
    tiny, letters = answer(explored, "cuts", text="나는 [MASK]에 갔다")["cuts"]
    assert (tiny["name"], letters["name"]) == ("tiny", "letters")
    assert [tuple(each.values()) for each in tiny["pieces"]] == [
        ("나", 0), ("##는", 0), ("[MASK]", 1), ("##에", 1), ("갔", 2), ("##다", 2),
    ]  # fmt: skip
    shown = [*"나는 ", "[MASK]", *"에 갔다"]
    numbered = [(letter, number) for number, letter in enumerate(shown)]
    assert [tuple(each.values()) for each in letters["pieces"]] == numbered


def cosine(first, second):
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


def test_similarity_of_texts_by_layer(explored):
    found = answer(explored, "similarity", first=TEXT, second="the red book", pooling="max")
    vectors = explored.model.embed([TEXT, "the red book"], "max", (0, 1, 2))
    expected = [cosine(*pair) for pair in vectors.swapaxes(0, 1)]
    assert found["similarities"] == pytest.approx(expected, abs=1e-5)
    assert np.ptp(expected) > 0.01
    with pytest.raises(InputError, match="pooling must be one of mean, cls, max. Received: 'sum'"):
        answer(explored, "similarity", first="a", second="b", pooling="sum")


@pytest.mark.parametrize("pooling", ("cls", "max"))
def test_texts_are_compared_as_the_model_was_trained(tmp_path, pooling):
    """The page chooses this pooling, so that its tabs show one number for two texts."""
    sizes = {"initializer_range": 0.4}
    write_folder(tmp_path, "bert", "similarity", sizes, pooling=pooling)
    trained = Explored(load_model(tmp_path))
    assert describe(trained)["pooling"] == pooling
    found = answer(trained, "similarity", first=TEXT, second="the red book")["similarities"]
    score = answer(trained, "prediction", text=TEXT, second="the red book")["score"]
    (hit,) = answer(trained, "search", query=TEXT, lines=["the red book"])["hits"]
    assert found[-1] == pytest.approx(score, abs=1e-5) == pytest.approx(hit["similarity"], abs=1e-5)


def test_a_folder_with_other_modules_is_described(tmp_path):
    write_folder(tmp_path)
    modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.Dense"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert describe(Explored(load_model(tmp_path)))["pooling"] is None


def test_lines_that_are_like_a_query(explored):
    lines = ["the red book", "학교에 갔다", "나는 학교에 갔다 ."]
    hits = answer(explored, "search", query=TEXT, lines=lines, top=2)["hits"]
    vectors = explored.model.embed([TEXT, *lines])
    cosines = [cosine(vectors[0], other) for other in vectors[1:]]
    order = np.argsort(cosines)[::-1][:2]
    assert [hit["text"] for hit in hits] == [lines[i] for i in order]
    assert [h["similarity"] for h in hits] == pytest.approx([cosines[i] for i in order], abs=1e-5)


def test_one_word_in_two_sentences(explored):
    sentences = "학교에 갔다 나는", "the 학교 book"
    found = answer(explored, "word", word="학교", first=sentences[0], second=sentences[1], layer=1)
    states = [explored.model.hidden_states(each).vectors for each in sentences]
    expected = [cosine(states[0][i, 1], states[1][i, 2]) for i in range(3)]
    assert found["similarities"] == pytest.approx(expected, abs=1e-5)
    points = found["points"]
    assert [each["label"] for each in points if each["is_word"]] == ["학교", "학교"]
    assert [each["sentence"] for each in points] == [0] * 6 + [1] * 3
    # What is far apart in the picture is far apart in the layer: two directions of all.
    places = np.array([[each["x"], each["y"]] for each in points])
    rows = [states[0][1, [1, 2, 3, 4, 5, 6]], states[1][1, [2, 1, 3]]]
    vectors = np.concatenate(rows)
    centred = vectors - vectors.mean(axis=0)
    scales = np.linalg.svd(centred, compute_uv=False)
    assert found["share"] == pytest.approx((scales[:2] ** 2).sum() / (scales**2).sum(), abs=1e-5)
    ratio = np.linalg.norm(places) ** 2 / (scales[:2] ** 2).sum()
    shown = ((places[:, None] - places[None]) ** 2).sum(-1) / ratio
    true = ((centred[:, None] - centred[None]) ** 2).sum(-1)
    assert (shown <= true + 1e-3).all() and np.abs(places).max() == 1
    assert answer(explored, "word", word="나는", first="나는", second="나는 갔다")["layer"] == 2
    for values, message in (
        ({"word": "book"}, "The word book must be in both sentences"),
        ({"word": "학교", "layer": 3}, "layer must be from 0 to 2"),
    ):
        with pytest.raises(InputError, match=message):
            answer(explored, "word", first=sentences[0], second=sentences[1], **values)


def test_one_word_in_a_sentence_with_a_mask(explored):
    """The places are those of the row itself, in which [MASK] is one piece."""
    sentences = "[MASK] 학교에 갔다", "나는 [MASK][MASK] 학교"
    found = answer(explored, "word", word="학교", first=sentences[0], second=sentences[1])
    states = [explored.model.hidden_states(each) for each in sentences]
    places = [each.pieces.index("학교") for each in states]
    assert places == [2, 5]
    vectors = [each.vectors[:, place] for each, place in zip(states, places, strict=True)]
    expected = [cosine(*pair) for pair in zip(*vectors, strict=True)]
    assert found["similarities"] == pytest.approx(expected, abs=1e-5)
    shown = answer(explored, "word", word="[MASK]", first=sentences[0], second=sentences[1])
    expected = [cosine(states[0].vectors[i, 1], states[1].vectors[i, 3]) for i in range(3)]
    assert shown["similarities"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ("pieces", "guesses", "heads", "attention"))
@pytest.mark.parametrize("dropped", ("\u200b", "\ufeff", "\u00ad", "\x01"))
def test_a_mask_before_a_dropped_character(explored, name, dropped):
    for text in (f"[MASK]{dropped}", f"나는 [MASK]{dropped} 갔다"):
        found, wanted = (answer(explored, name, text=t) for t in (text, text.replace(dropped, "")))
        for key in set(found) - {"texts", "spans"}:  # places in the text, which is longer
            assert found[key] == wanted[key]


def test_labels(tmp_path):
    explored = Explored(make_model(tmp_path, "classification"))
    found = answer(explored, "prediction", text=TEXT, second="the book")
    expected = explored.model.predict((TEXT, "the book"))
    chosen = [each["label"] for each in found["labels"] if each["chosen"]]
    assert chosen == [expected.label] == [found["labels"][0]["label"]]
    shares = {each["label"]: each["probability"] for each in found["labels"]}
    assert shares == pytest.approx(expected.probabilities, abs=1e-6)
    assert describe(explored)["mask"] is None and describe(explored)["task"] == "classification"


def test_scores(tmp_path):
    labels = {"labels": None, "task_name": "klue-sts", "task_type": "regression"}
    explored = Explored(make_model(tmp_path, "classification", **labels))
    found = answer(explored, "prediction", text=TEXT)
    assert found["labels"] == [] and found["score"] == explored.model.predict(TEXT).label


def test_entities_answers_and_options(tmp_path):
    ner = Explored(make_model(tmp_path / "ner", "ner"))
    text = "나는 학교에 갔다. the book is red"
    found, expected = answer(ner, "prediction", text=text), ner.model.predict(text)
    entities = [tuple(each.values())[:4] for each in found["entities"]]
    assert entities == [tuple(each)[:4] for each in expected.entities] != []
    squad = Explored(make_model(tmp_path / "squad", "question_answering"))
    found = answer(squad, "prediction", text=text, second="the book ?")
    expected = squad.model.predict(("the book ?", text))
    assert found["answer"]["text"] == expected.answer.text
    assert len(found["candidates"]) == len(expected.candidates) > 1
    race = Explored(make_model(tmp_path / "race", "multiple_choice"))
    options = ["red", "book", "학교"]
    found = answer(race, "prediction", text=text, second="the _ ?", options=options)
    expected = race.model.predict(("the _ ?", text, tuple(options)))
    assert found["chosen"] == expected.index
    assert found["probabilities"] == pytest.approx(expected.probabilities, abs=1e-6)
    for explored in (squad, race):
        with pytest.raises(InputError, match="second .*must be given"):
            answer(explored, "prediction", text=text)
