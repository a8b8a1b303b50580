"""The graph form against the Python tokenizers, piece for piece."""

import functools
import pickle

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")

import tensorflow as tf  # noqa: E402

from tests.support.crosses import slow  # noqa: E402
from tests.support.tokenizer_cases import (  # noqa: E402
    TEXTS,
    check_any,
    check_graph,
    full_tokenizers,
    korean_tokenizers,
)
from tests.support.vocabularies import write_lines  # noqa: E402
from tokenization import FullTokenizer, InputError  # noqa: E402
from tokenization.tf_graph.graph import GraphTokenizer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*was made for decomposed text")

# The widest of the graph's branches; all others are in test_all_text.py.
QUICK = ("character-##-\u2581-eojeol-True", "full-True")


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    return dict([*korean_tokenizers(folder), *full_tokenizers(folder)])


def every_code_point(step):
    """Each in the middle of a word, at an end, alone, between marks."""
    for code in range(0, 0x110000, step):
        character = chr(code)
        yield f"a{character}가 {character}\u0301 E\u0323{character}\u0316\u0301{character}"


# The first is in the quick run with its places, in test_graph_offsets.py.
@pytest.mark.parametrize("name", [slow(QUICK[0]), QUICK[1]])
def test_equal_to_python(tokenizers, name):
    check_graph(tokenizers[name], TEXTS)
    check_graph(tokenizers[name], list(every_code_point(1021)))
    check_any(functools.partial(check_graph, tokenizers[name]), 10, 20)


def test_batches(tokenizers):
    tokenizer = tokenizers[QUICK[0]]
    assert tokenizer.encode_batch(TEXTS).to_list() == [tokenizer.encode(text) for text in TEXTS]
    assert tokenizer.encode_batch([]).to_list() == []
    assert tokenizer.encode_words([]).to_list() == []
    assert tokenizer.encode_batch([""]).to_list() == [[]]
    assert tokenizer.encode_batch(tf.constant(["가"])).dtype == tf.int32


@pytest.mark.parametrize("name", QUICK)
def test_the_first_call_may_be_traced(tokenizers, name):
    tokenizer = pickle.loads(pickle.dumps(tokenizers[name]))  # without a graph
    texts, expected = ["가 나", "e"], [tokenizer.encode("가 나"), tokenizer.encode("e")]
    data = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(tokenizer.encode_batch)
    assert [batch.to_list() for batch in data] == [expected]
    assert tokenizer.encode_batch(texts).to_list() == expected


def test_arrays_of_texts(tokenizers):
    texts, tokenizer = np.array(["가", "가\ud800나"], object), tokenizers[QUICK[0]]
    assert tokenizer.encode_batch(texts).to_list() == [tokenizer.encode(text) for text in texts]


def test_bytes_that_are_not_utf8(tokenizers):
    tokenizer = tokenizers[QUICK[0]]
    found = tokenizer.encode_batch(tf.constant([b"\xea\xb0\x80\xff", b"\xed\xa0\x80"])).to_list()
    assert found == [tokenizer.encode("가"), []]


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


def test_refused(tmp_path):
    for lines, message in (
        (["a", "b"], "must hold .UNK. for the graph form"),
        (["[UNK]", "가" * 100], "at most 256 bytes .* Received: '가+', 300 bytes"),
    ):
        tokenizer = FullTokenizer(write_lines(tmp_path / "vocab.txt", lines), False)
        with pytest.raises(InputError, match=message):
            GraphTokenizer(tokenizer)
