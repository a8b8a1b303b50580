"""The graph forms against the Python tokenizers: pieces, and where they are in the text."""

import functools
import pickle
import random
import unicodedata

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")
pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")

import tensorflow as tf  # noqa: E402

from tests.support.crosses import slow  # noqa: E402
from tests.support.refusals import refused  # noqa: E402
from tests.support.sentencepiece_models import NAMES, train  # noqa: E402
from tests.support.tokenizer_cases import (  # noqa: E402
    TEXTS,
    check_any,
    check_graph,
    check_offsets,
    check_round_trip,
    full_tokenizers,
    korean_tokenizers,
    write_vocabulary,
)
from tests.support.vocabularies import write_lines  # noqa: E402
from tokenization import FullTokenizer, HuggingFaceTokenizer, SentencePieceTokenizer  # noqa: E402
from tokenization.tf_graph.graph import GraphTokenizer  # noqa: E402
from tokenization.tf_graph.sentencepiece import GraphSentencePiece  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*was made for decomposed text")

# The widest of the graph's branches; all others are in the slow run.
QUICK = ("character-##-\u2581-eojeol-True", "full-True")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    path = write_vocabulary(folder / "huggingface.txt", "")
    made = dict([*korean_tokenizers(folder), *full_tokenizers(folder)])
    for on in (True, False):
        options = {"do_lower_case": on, "strip_accents": on, "tokenize_chinese_chars": on}
        made[f"huggingface-{on}"] = HuggingFaceTokenizer(path, **options)
    return made


def every_code_point(step):
    """Each in the middle of a word, at an end, alone, between marks."""
    for code in range(0, 0x110000, step):
        character = chr(code)
        yield f"a{character}가 {character}\u0301 E\u0323{character}\u0316\u0301{character}"


@pytest.mark.parametrize("name", [slow(QUICK[0]), QUICK[1]])  # the first is quick with its places
def test_equal_to_python(tokenizers, name):
    check_graph(tokenizers[name], TEXTS)
    check_graph(tokenizers[name], list(every_code_point(1021)))
    check_any(functools.partial(check_graph, tokenizers[name]), 10, 20)


def test_batches(tokenizers):
    tokenizer = tokenizers[QUICK[0]]
    for texts in (TEXTS, [], [""], np.array(["가", "가\ud800나"], object)):
        found = tokenizer.encode_batch(texts).to_list()
        assert found == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_words([]).to_list() == []
    assert tokenizer.encode_batch(tf.constant(["가"])).dtype == tf.int32
    found = tokenizer.encode_batch(tf.constant([b"\xea\xb0\x80\xff", b"\xed\xa0\x80"]))
    assert found.to_list() == [tokenizer.encode("가"), []]  # not UTF-8


@pytest.mark.parametrize("name", QUICK)
def test_the_first_call_may_be_traced(tokenizers, name):
    tokenizer = pickle.loads(pickle.dumps(tokenizers[name]))  # without a graph
    texts, expected = ["가 나", "e"], [tokenizer.encode("가 나"), tokenizer.encode("e")]
    data = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(tokenizer.encode_batch)
    assert [batch.to_list() for batch in data] == [expected]
    assert tokenizer.encode_batch(texts).to_list() == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_in_tf_data_and_in_a_saved_model(tokenizers, name, tmp_path):
    texts = [text for text in TEXTS if text.isprintable()]
    graph = GraphTokenizer(tokenizers[name])
    expected = [tokenizers[name].encode(text) for text in texts]
    data = tf.data.Dataset.from_tensor_slices(texts).batch(4).map(graph.encode_batch)
    assert [row for batch in data for row in batch.to_list()] == expected
    tf.saved_model.save(graph, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.encode_batch(tf.constant(texts)).to_list() == expected
    words = loaded.encode_words(tf.constant(texts)).to_list()
    assert [[piece for word in row for piece in word] for row in words] == expected


@pytest.mark.parametrize(
    "text",
    [slow("가" * 350_000), "😁" * 30_000, "뷁" * 30_000, "e" + "\u0301" * 30_000, "가 " * 30_000],
    ids=["a megabyte", "unknown", "jamo", "marks", "spaces"],
)
def test_length_is_no_obstacle(tokenizers, text):
    tokenizer = tokenizers[QUICK[0]]
    assert tokenizer.encode_batch([text, "가"]).to_list() == [
        tokenizer.encode(text), tokenizer.encode("가"),
    ]  # fmt: skip
    limited = tokenizers["full-False"]
    assert limited.encode_batch([text]).to_list() == [limited.encode(text)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a", "b"], "must hold [UNK] for the graph form"),
        (["[UNK]", "가" * 100], "at most 256 bytes"),
    ],
)
def test_refused(tmp_path, lines, message):
    tokenizer = FullTokenizer(write_lines(tmp_path / "vocab.txt", lines), False)
    with refused(message, "Received: "):
        GraphTokenizer(tokenizer)


# === Where pieces are; SentencePiece ===

QUOTED = ["``good'' film", "'" * 3 + "a''", "`'", "''", "a`", "`b `` c", "Σ'' abΣ", "'" * 5]
NUMBERS = ["in 1999, 2,000 and 30, 199, 9,", "Σ", "abΣ", "Σa", "\u00a8 a\u00a8", "3, 12, x 7,"]


def without_surrogates(text):
    """Lone surrogates, which UTF-8 cannot encode, as what is read in their place."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def check(tokenizer, graph, texts):
    """Ids and places of all texts."""
    texts = [without_surrogates(text) for text in texts]
    ids, spans = (tensor.to_list() for tensor in graph.encode_with_offsets(texts))
    for text, found, places in zip(texts, ids, spans, strict=True):
        expected, expected_places = tokenizer.encode_with_offsets(text)
        if is_tie(tokenizer, found, expected):
            continue
        assert found == expected, (tokenizer.config(), text)
        assert list(map(tuple, places)) == expected_places, (tokenizer.config(), text)
    return ids


def is_tie(tokenizer, found, expected):
    """Whether a SentencePiece model has two best segmentations, of which each release takes one."""
    if found == expected or tokenizer.kind != "sentencepiece":
        return False
    score = tokenizer.sp_model.get_score
    return abs(sum(map(score, found)) - sum(map(score, expected))) < 1e-3


@pytest.mark.parametrize("name", [QUICK[0], slow(QUICK[1])])
def test_places_of_pieces(tokenizers, name):
    graph = GraphTokenizer(tokenizers[name])
    check(tokenizers[name], graph, ["", *TEXTS])
    check_any(functools.partial(check, tokenizers[name], graph), 5, 30)
    # Bytes that are not UTF-8 count as a character.
    _, spans = graph.encode_with_offsets([b"\xff\xea\xb0\x80"])
    assert spans.to_list()[0][0] == [1, 2]


# Conjoining jamo and marks, which change nothing or compose, beside what one form or both change.
MIXED = (
    *"\u1100\u1112\u1161\u1175\u11a8\u11c2\uac00\uac01\ub098\u3131\u314f",
    *"\u8c48\uf900\uf986\u212b\u2126\u00e9\u1e69\u0344\u0958\u09cb",
    *"e\u0301\u0323\u0338\u0f71\u0f72\u09be= a.\u200b",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [QUICK[0], "full-True", "word-##--word-False"])
def test_places_of_jamo_beside_characters_that_change(tokenizers, name):
    """The graph changes single characters on a fast path; the places are the same."""
    tokenizer, rng = tokenizers[name], random.Random(1)
    texts = ["\u8c48\u1100\u1161\u11a8\uf986", "\uf986\u1161\u11a8"]
    texts += ["".join(rng.choices(MIXED, k=rng.randint(1, 9))) for _ in range(600)]
    check(tokenizer, GraphTokenizer(tokenizer), texts)
    for text in texts:
        check_offsets(tokenizer, text)


@pytest.mark.slow
def test_every_switch_on_any_text(tokenizers):
    for tokenizer in tokenizers.values():
        graph = GraphTokenizer(tokenizer)
        for check_texts in (
            functools.partial(check, tokenizer, graph), functools.partial(check_graph, tokenizer),
            functools.partial(check_alone, tokenizer),
        ):  # fmt: skip
            check_texts(TEXTS)
            check_any(check_texts, 20, 50)
        check_graph(tokenizer, list(every_code_point(53)))


def check_alone(tokenizer, texts):
    for text in texts:
        check_offsets(tokenizer, text)
        check_round_trip(tokenizer, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*QUICK, "full-False"])
def test_every_code_point(tokenizers, name):
    texts = list(every_code_point(1))
    for first in range(0, len(texts), 5000):
        check_graph(tokenizers[name], texts[first : first + 5000])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with numbers that end in commas, which are cut again."""
    lines = [*(t for t in TEXTS if t.isprintable() and t), *NUMBERS * 30]
    lines += ["good film 3, 12, 2019, 나는 영화를 보았다 9,"] * 30
    return train(tmp_path_factory.mktemp("model") / "m.model", lines, vocab_size=150, **NAMES)


LOWER = pytest.mark.parametrize("lower", (True, slow(False), slow(None)))


@pytest.mark.parametrize("variant", ("google", slow("huggingface")))
@LOWER
def test_sentencepiece(model, lower, variant):
    tokenizer = SentencePieceTokenizer(model, lower, variant=variant)
    graph = GraphSentencePiece(tokenizer)
    texts = [*QUOTED, *TEXTS, *NUMBERS]
    ids = check(tokenizer, graph, texts)
    assert graph.encode_batch(list(map(without_surrogates, texts))).to_list() == ids
    same = [tokenizer.encode(text) == found for text, found in zip(texts, ids, strict=True)]
    assert sum(same) > 0.9 * len(texts)
    cut = [i for i in range(tokenizer.vocab_size) if graph._parts[i].shape[0] > 1]
    assert cut, "no piece of the model is cut again"
    check_any(functools.partial(check, tokenizer, graph), 5, 30)
    assert graph.encode_batch([""]).to_list() == [[]]


@pytest.fixture(scope="module")
def byte_model(tmp_path_factory):
    """A model that spells characters which it lacks with their bytes."""
    lines = ["a b 1 2 3, 4 km ab 가나 12 kg"] * 30
    options = {"vocab_size": 290, "byte_fallback": True, "character_coverage": 1.0, **NAMES}
    return train(tmp_path_factory.mktemp("bytes") / "m.model", lines, **options)


@LOWER
def test_bytes_of_characters_that_were_expanded(byte_model, lower):
    """ "½" becomes "1⁄2", whose "⁄" the model lacks: no piece begins before the one before it."""
    rng, tokenizer = random.Random(2), SentencePieceTokenizer(byte_model, lower)
    several = [c for c in map(chr, range(0x3400)) if len(unicodedata.normalize("NFKD", c)) > 1]
    texts = ["½", "a½b", "½½", "1½ 뷁", "㎏㍿", "뷁½"]
    for _ in range(400):
        texts.append("".join(rng.choices([*"½ab1 ,뷁😀가㍿…", rng.choice(several)], k=6)))
    check(tokenizer, GraphSentencePiece(tokenizer), texts)
    for text in texts:
        check_offsets(tokenizer, text)
        check_round_trip(tokenizer, text)
    assert tokenizer.unk_id not in tokenizer.encode("½뷁😀")
    assert tokenizer.decode(iter(tokenizer.encode("뷁 a😀"))) == "뷁 a😀"
    assert tokenizer.decode([tokenizer.vocab["<0xF0>"]]) == "\ufffd"


def test_model_without_a_comma(tmp_path):
    path = train(tmp_path / "m.model", ["a b"] * 9, vocab_size=20)
    with refused("must have a token ','. Received: none"):
        GraphSentencePiece(SentencePieceTokenizer(path, True))
