"""Ids of transformers equal those of this project in both directions; slow, with transformers."""

import itertools
import json
import pickle
import unicodedata
import warnings

import pytest

transformers = pytest.importorskip("transformers", reason="transformers (bench) is not installed")

from create_pretraining_data.engine.plain_lines import open_texts  # noqa: E402
from model_formats.huggingface.tokenizer_files import write_tokenizer  # noqa: E402
from model_formats.huggingface.tokenizer_json import is_expressible  # noqa: E402
from tests.support.paths import ROOT, SHARED, TEST_DATA  # noqa: E402
from tests.support.sentencepiece_models import NAMES, train  # noqa: E402
from tests.support.tokenizer_cases import TEXTS, full_tokenizers, korean_tokenizers  # noqa: E402
from tests.support.vocabularies import write_pieces  # noqa: E402
from tokenization import (  # noqa: E402
    FullTokenizer,
    HuggingFaceTokenizer,
    KoreanTokenizer,
    SentencePieceTokenizer,
    load_tokenizer,
)
from tokenization.characters import is_chinese  # noqa: E402
from tokenization.vocab_learning.learn import (  # noqa: E402
    LearningSettings,
    learn_vocabulary,
    write_vocabulary,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

GOLDEN, VOCABS = TEST_DATA / "tokenization", SHARED / "data" / "vocabs"
ALL_GOLDEN = SHARED / "golden" / "tokenization"  # the tests' own are a part of these
NSMC = SHARED / "data" / "nsmc" / "ratings_test.txt"
NSMC_LINES = 20_000

needs_shared = pytest.mark.skipif(not NSMC.exists(), reason="the shared data is absent")


def golden_lines():
    records = (
        json.loads(line)
        for path in sorted((ALL_GOLDEN if ALL_GOLDEN.exists() else GOLDEN).glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    )
    return list(dict.fromkeys(record["text"] for record in records))


def nsmc_lines():
    lines = NSMC.read_text(encoding="utf-8").split("\n")[1 : NSMC_LINES + 1]
    return [line.split("\t")[1] for line in lines]


def open_theirs(folder, **options):
    """What AutoTokenizer makes of a folder; special tokens in a text are text, as for us."""
    options = {"trust_remote_code": True, "split_special_tokens": True} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoTokenizer.from_pretrained(folder, **options)


def export(tokenizer, folder, model_type="bert"):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    return write_tokenizer(tokenizer, folder, 512)


def check_same(name, theirs, ours, texts):
    """Compares ids, and prints how many texts differ."""
    ids = theirs(texts, add_special_tokens=False)["input_ids"]
    wrong = [text for text, row in zip(texts, ids, strict=True) if ours.encode(text) != row]
    print(f"{name}: {len(texts)} lines, {len(wrong)} mismatches")
    assert not wrong, ascii(wrong[0])


# === In: what transformers writes ===


@needs_shared
@pytest.mark.parametrize(
    ("vocabulary", "lower", "accents", "chinese"),
    [
        ("kcbert.txt", False, None, True),  # klue/bert-base is alike
        ("koelectra.txt", True, False, True),
        ("bert_uncased_en.txt", True, None, True),
        ("krbert_char.txt", False, True, False),
    ],
)
def test_folders_of_transformers(vocabulary, lower, accents, chinese, tmp_path):
    options = {"do_lower_case": lower, "strip_accents": accents, "tokenize_chinese_chars": chinese}
    transformers.BertTokenizer(str(VOCABS / vocabulary), **options).save_pretrained(tmp_path)
    ours, theirs = load_tokenizer(tmp_path), open_theirs(tmp_path)
    check_same(f"{vocabulary}, NSMC", theirs, ours, nsmc_lines())
    check_same(f"{vocabulary}, golden", theirs, ours, golden_lines())


def every_character(without=""):
    """Texts with each character between letters, alone, after a capital and before a sigma.

    Of planes 4 to 13, where nothing is assigned, and of private use, only the first ones.
    """
    parts = ((0, 0xD800), (0xE000, 0x40100), (0xE0000, 0xE1000), (0xF0000, 0xF0100))
    characters = (chr(code) for first, end in parts for code in range(first, end))
    characters = (character for character in characters if character not in without)
    while group := list(itertools.islice(characters, 64)):  # a call for each takes too long
        yield "\n".join(f"a{c}b {c} A{c}\u03a3 \u03a3{c}" for c in group)


@pytest.mark.parametrize(
    ("lower", "accents", "chinese"),
    [(True, True, True), (False, False, False), (True, False, True)],
)
def test_words_of_every_character(lower, accents, chinese, tmp_path):
    path = write_pieces(tmp_path, [])
    options = {"do_lower_case": lower, "strip_accents": accents, "tokenize_chinese_chars": chinese}
    ours = HuggingFaceTokenizer(path, **options)
    theirs = transformers.BertTokenizer(str(path), **options).backend_tokenizer
    for text in every_character("\U00011938" if accents else ""):  # as its documentation says
        normalized = theirs.normalizer.normalize_str(text)
        words = [word for word, _ in theirs.pre_tokenizer.pre_tokenize_str(normalized)]
        assert ours.basic_tokens(text) == words, ascii(text)


# === Out: what transformers reads ===


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A vocabulary learned from the sample corpus: jamo, [UNK] by character."""
    folder = tmp_path_factory.mktemp("learned")
    texts = open_texts([str(ROOT / "sample_corpus" / "train.txt")], "text")
    settings = LearningSettings(vocab_size=4000, analyser="none")
    write_vocabulary(learn_vocabulary(texts, settings), folder)
    return load_tokenizer(folder)


@needs_shared
@pytest.mark.parametrize("kind", ["plain", "full", "bert", "learned", "markers", "albert"])
def test_exported_tokenizers(kind, learned, tmp_path):
    tokenizer = {
        "plain": lambda: KoreanTokenizer(VOCABS / "kcbert.txt"),
        "full": lambda: FullTokenizer(VOCABS / "bert_uncased_en.txt"),
        "bert": lambda: HuggingFaceTokenizer(
            VOCABS / "kcbert.txt", do_lower_case=False, strip_accents=False
        ),
        "learned": lambda: learned,
        "markers": lambda: KoreanTokenizer(
            VOCABS / "end_marker_nsmc.txt",
            word_end_marker="_",
            continuation_prefix="",
            split_punctuation=False,
            mark_final_word=False,
            normalization=None,
            strict_vocabulary=False,
        ),
        "albert": lambda: SentencePieceTokenizer(GOLDEN / "spm_small.model"),
    }[kind]()
    said = export(tokenizer, tmp_path, "albert" if kind == "albert" else "bert")
    theirs = open_theirs(tmp_path)
    print(f"{kind}: {said} ({type(theirs).__name__})")
    check_same(f"{kind}, NSMC", theirs, tokenizer, nsmc_lines())
    check_same(f"{kind}, golden", theirs, tokenizer, golden_lines())


def test_every_switch(tmp_path):
    texts = [*TEXTS, *golden_lines()[:200]]
    texts = [text for text in texts if not any("\ud800" <= c <= "\udfff" for c in text)]
    for number, (name, tokenizer) in enumerate(
        [*korean_tokenizers(tmp_path), *full_tokenizers(tmp_path)]
    ):
        folder = tmp_path / f"out{number}"
        export(tokenizer, folder)
        theirs = open_theirs(folder)
        assert theirs.is_fast == is_expressible(tokenizer)
        check_same(name, theirs, tokenizer, texts)


def test_bytes_in_a_sentencepiece_model(tmp_path):
    """What they spell is decoded, as by this project's tokenizer."""
    path = train(
        tmp_path / "m.model", ["a b km 가나"] * 30, vocab_size=275, byte_fallback=True, **NAMES
    )
    tokenizer = SentencePieceTokenizer(path)
    export(tokenizer, tmp_path / "out", "albert")
    theirs, ids = open_theirs(tmp_path / "out"), tokenizer.encode("가뷁 a😀")
    assert theirs.decode(ids) == tokenizer.decode(ids) == "가뷁 a😀"
    broken = [tokenizer.vocab["<0xF0>"], tokenizer.vocab["a"]]
    assert theirs.decode(broken) == tokenizer.decode(broken) == "\ufffda"


def test_tokenizer_json_has_the_words_of_every_character(tmp_path):
    cases = [*korean_tokenizers(tmp_path), *full_tokenizers(tmp_path)]
    cases = [(name, tokenizer) for name, tokenizer in cases if is_expressible(tokenizer)]
    characters = map(chr, range(0x110000))
    unassigned = [c for c in characters if unicodedata.category(c) == "Cn" and not is_chinese(c)]
    for number, (name, tokenizer) in enumerate(cases):
        folder = tmp_path / f"out{number}"
        export(tokenizer, folder)
        theirs = open_theirs(folder).backend_tokenizer
        written = str.maketrans(dict.fromkeys(unassigned, tokenizer.written_unknown))
        for text in every_character():
            normalized = theirs.normalizer.normalize_str(text)
            words = [word for word, _ in theirs.pre_tokenizer.pre_tokenize_str(normalized)]
            expected = [word.translate(written) for word in tokenizer.basic_tokens(text)]
            assert words == expected, (name, ascii(text))


@pytest.mark.parametrize("kind", ["learned", "bert", "full"])
def test_use_in_transformers(kind, learned, tmp_path):
    """Pairs, padding, truncation, the mask, saving and loading again, pickling."""
    path = tmp_path / "vocab.txt"
    path.write_bytes(learned.vocabulary_bytes)
    tokenizer = {
        "learned": lambda: learned,
        "bert": lambda: HuggingFaceTokenizer(path, do_lower_case=False, strip_accents=False),
        "full": lambda: FullTokenizer(path, do_lower_case=False),
    }[kind]()
    export(tokenizer, tmp_path / "a")
    theirs = open_theirs(tmp_path / "a", split_special_tokens=False)
    first, second = "영화가 재미있다", "정말 좋다!"
    a, b = tokenizer.encode(first), tokenizer.encode(second)
    cls, sep, mask, pad = tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, tokenizer.pad_id
    pair = theirs(first, second)
    assert pair["input_ids"] == [cls, *a, sep, *b, sep]
    assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    assert theirs(f"{first} [MASK]")["input_ids"] == [cls, *a, mask, sep]
    padded = theirs([first, ""], padding=True)
    assert padded["input_ids"][1] == [cls, sep] + [pad] * len(a)
    assert padded["attention_mask"][1] == [1, 1] + [0] * len(a)
    cut = theirs(first, truncation=True, max_length=4)["input_ids"]
    assert cut == [cls, *a[:2], sep]
    assert theirs.model_max_length == 512 and theirs.mask_token == "[MASK]"
    assert len(theirs) == tokenizer.vocab_size
    theirs.save_pretrained(tmp_path / "b")
    again = open_theirs(tmp_path / "b", split_special_tokens=False)
    for other in (again, pickle.loads(pickle.dumps(theirs))):
        assert other(first, second)["input_ids"] == pair["input_ids"]
    assert load_tokenizer(tmp_path / "b").encode(first) == a
