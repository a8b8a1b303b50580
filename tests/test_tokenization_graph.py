"""The graph form against the Python tokenizers, piece for piece."""

import unicodedata

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")

import tensorflow as tf  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from made_tokenizers import (  # noqa: E402
    ANY_TEXT,
    INITIALS,
    LATER_JAMO,
    TEXTS,
    full_tokenizers,
    korean_tokenizers,
)
from shared import SHARED  # noqa: E402

from tokenization import FullTokenizer, InputError, KoreanTokenizer  # noqa: E402
from tokenization.graph import GraphTokenizer  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The text holds"),
    pytest.mark.filterwarnings("ignore:.*was made for decomposed text"),
]

# The widest of the graph's branches; all others are in the slow tests.
QUICK = ("character-##-\u2581-eojeol-True", "full-True")
EVERY_SWITCH = {
    "do_lower_case": True,
    "unknown": "character",
    "jamo_fallback": True,
    "fold_width": True,
    "drop_invisible": True,
    "shorten_runs": 3,
    "word_end_marker": "\u2581",
    "word_end_marker_at": "eojeol",
}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    return dict([*korean_tokenizers(folder), *full_tokenizers(folder)])


def check(tokenizer, texts):
    """Compares words of pieces; names the text that differs."""
    words = tokenizer.encode_words(texts).to_list()
    assert len(words) == len(texts)
    for text, found in zip(texts, words, strict=True):
        expected = [tokenizer.convert_tokens_to_ids(w) for w in tokenizer.tokenize_words(text)]
        assert found == expected, (tokenizer.config(), text)


def check_many(tokenizer, examples, at_once):
    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    @given(st.lists(ANY_TEXT, min_size=at_once, max_size=at_once))
    def any_texts(texts):
        check(tokenizer, texts)

    any_texts()


def every_code_point(step):
    """Each in the middle of a word, at an end, alone, between marks."""
    for code in range(0, 0x110000, step):
        character = chr(code)
        yield f"a{character}가 {character}\u0301 E\u0323{character}\u0316\u0301{character}"


@pytest.mark.parametrize("name", QUICK)
def test_equal_to_python(tokenizers, name):
    check(tokenizers[name], TEXTS)
    check(tokenizers[name], list(every_code_point(1021)))
    check_many(tokenizers[name], 10, 20)


@pytest.mark.slow
def test_every_tokenizer_is_equal_to_python(tokenizers):
    for tokenizer in tokenizers.values():
        check(tokenizer, TEXTS)
        check(tokenizer, list(every_code_point(53)))
        check_many(tokenizer, 30, 50)  # 50,000 strings over all


@pytest.mark.slow
@pytest.mark.parametrize("name", ["character-##-\u2581-eojeol-True", "full-True", "full-False"])
def test_every_code_point(tokenizers, name):
    check(tokenizers[name], list(every_code_point(1)))


def test_batches(tokenizers):
    tokenizer = tokenizers[QUICK[0]]
    assert tokenizer.encode_batch(TEXTS).to_list() == [tokenizer.encode(text) for text in TEXTS]
    assert tokenizer.encode_batch([]).to_list() == []
    assert tokenizer.encode_words([]).to_list() == []
    assert tokenizer.encode_batch([""]).to_list() == [[]]
    assert tokenizer.encode_batch(tf.constant(["가"])).dtype == tf.int32


def test_bytes_that_are_not_utf8(tokenizers):
    tokenizer = tokenizers[QUICK[0]]
    found = tokenizer.encode_batch(tf.constant([b"\xea\xb0\x80\xff", b"\xed\xa0\x80"])).to_list()
    assert found == [tokenizer.encode("가"), []]


@pytest.mark.parametrize("name", [pytest.param(QUICK[0], marks=pytest.mark.slow), "full-True"])
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
    ["가" * 350_000, "😁" * 30_000, "뷁" * 30_000, "e" + "\u0301" * 30_000, "가 " * 30_000],
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
    path = tmp_path / "vocab.txt"
    path.write_text("a\nb\n")
    with pytest.raises(InputError, match="must hold .UNK. for the graph form"):
        GraphTokenizer(FullTokenizer(path, False))
    path.write_text("[UNK]\n" + "가" * 100)
    with pytest.raises(InputError, match="at most 256 bytes .* Received: '가+', 300 bytes"):
        GraphTokenizer(FullTokenizer(path, False))


# === Real text ===


@pytest.fixture(scope="module")
def real_tokenizers(tmp_path_factory):
    source = SHARED / "data" / "vocabs" / "koelectra.txt"
    if not source.is_file():
        pytest.skip("the real vocabularies are not on this machine")
    path = tmp_path_factory.mktemp("real") / "vocab.txt"
    lines = source.read_text(encoding="utf-8").splitlines()
    jamo = [*INITIALS, *("##" + jamo for jamo in (*INITIALS, *LATER_JAMO))]
    lines = dict.fromkeys([*lines, *jamo, "\u2581", "##\u2581", "##다\u2581"])
    path.write_text("\n".join(lines), encoding="utf-8")
    return [KoreanTokenizer(path, **EVERY_SWITCH), KoreanTokenizer(path), FullTokenizer(path)]


def real_texts(name):
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip("the real text is not on this machine")
    return path.read_text(encoding="utf-8").split("\n")


def check_real(tokenizers, texts):
    for tokenizer in tokenizers:
        for first in range(0, len(texts), 5000):
            part = texts[first : first + 5000]
            assert tokenizer.encode_batch(part).to_list() == [tokenizer.encode(t) for t in part]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nsmc/ratings_test.txt", "nsmc/ratings_train.txt", "kowiki/kowiki_2MB.txt"]
)
def test_all_real_text(real_tokenizers, name):
    texts = real_texts(name)
    check_real(real_tokenizers, texts)
    tokenizer = real_tokenizers[0]
    for text in texts:
        ids = tokenizer.encode(text)
        decoded = tokenizer.decode(ids)
        assert tokenizer.encode(decoded) == ids
        if tokenizer.unk_id not in ids:
            assert decoded == " ".join(tokenizer.normalize(text).split())
            assert unicodedata.is_normalized("NFC", decoded)
