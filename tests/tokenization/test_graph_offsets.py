"""Where the graph forms find pieces, against the Python tokenizers; SentencePiece's ids too."""

import functools
import random
import unicodedata

import pytest

pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")
pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from tests.support.crosses import slow  # noqa: E402
from tests.support.sentencepiece_models import NAMES, train  # noqa: E402
from tests.support.tokenizer_cases import (  # noqa: E402
    TEXTS,
    check_any,
    check_offsets,
    check_round_trip,
    full_tokenizers,
    korean_tokenizers,
    write_vocabulary,
)
from tokenization import InputError, SentencePieceTokenizer  # noqa: E402
from tokenization.huggingface.tokenizer import HuggingFaceTokenizer  # noqa: E402
from tokenization.tf_graph.graph import GraphTokenizer  # noqa: E402
from tokenization.tf_graph.sentencepiece import GraphSentencePiece  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*was made for decomposed text")

# Markers at eojeols with jamo; words that are limited, decomposed.
QUICK = ("character-##-\u2581-eojeol-True", "full-True")
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


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    path = write_vocabulary(folder / "huggingface.txt", "")
    lower = {"do_lower_case": True, "strip_accents": True}
    cased = {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False}
    return {
        **dict([*korean_tokenizers(folder), *full_tokenizers(folder)]),
        "huggingface-True": HuggingFaceTokenizer(path, **lower),
        "huggingface-False": HuggingFaceTokenizer(path, **cased),
    }


@pytest.mark.parametrize("name", [QUICK[0], slow(QUICK[1])])
def test_places_of_pieces(tokenizers, name):
    graph = GraphTokenizer(tokenizers[name])
    check(tokenizers[name], graph, TEXTS)
    check_any(functools.partial(check, tokenizers[name], graph), 5, 30)
    assert check(tokenizers[name], graph, [""]) == [[]]


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
def test_places_with_every_switch(tokenizers):
    for tokenizer in tokenizers.values():
        graph = GraphTokenizer(tokenizer)
        check(tokenizer, graph, TEXTS)
        check_any(functools.partial(check, tokenizer, graph), 10, 30)


@pytest.mark.slow
def test_bytes_that_are_not_utf8_count_as_a_character(tokenizers):
    graph = GraphTokenizer(tokenizers[QUICK[0]])
    _, spans = graph.encode_with_offsets([b"\xff\xea\xb0\x80"])
    assert spans.to_list()[0][0] == [1, 2]


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
    with pytest.raises(InputError, match="must have a token ','. Received: none"):
        GraphSentencePiece(SentencePieceTokenizer(path, True))
