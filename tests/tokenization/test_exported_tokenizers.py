"""Tokenizers in exported Hugging Face folders, as far as they can be tried without transformers."""

import json
import re

import pytest

from model_formats.huggingface.exported.korean_wordpiece import KoreanWordPiece
from model_formats.huggingface.tokenizer_files import write_tokenizer
from model_formats.huggingface.tokenizer_json import describe, is_expressible
from tests.support.paths import TEST_DATA
from tests.support.tokenizer_cases import (
    TEXTS,
    full_tokenizers,
    korean_tokenizers,
    write_vocabulary,
)
from tests.support.vocabularies import write_pieces
from tokenization import (
    FullTokenizer,
    HuggingFaceTokenizer,
    InputError,
    KoreanTokenizer,
    SentencePieceTokenizer,
    load_tokenizer,
)
from tokenization.characters import is_chinese, is_punctuation

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*was made for decomposed text"),
    pytest.mark.filterwarnings("ignore:.*lower-casing here decomposes Hangul"),
]

SPIECE = TEST_DATA / "tokenization" / "spm_small.model"


def written(tokenizer, folder, max_length=64):
    """What was said, the file names, and tokenizer_config.json."""
    said = write_tokenizer(tokenizer, folder, max_length)
    names = sorted(path.name for path in folder.iterdir())
    return said, names, json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))


# === The Python tokenizer ===


def test_the_exported_code_equals_every_tokenizer(tmp_path):
    tokenizers = korean_tokenizers(tmp_path)
    assert len(tokenizers) > 20
    for name, tokenizer in tokenizers:
        core = KoreanWordPiece(tokenizer.vocab, tokenizer.config())
        for text in TEXTS:
            assert core.tokenize(text) == tokenizer.tokenize(text), (name, text)


def test_the_exported_code_joins_pieces(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", "\u2581")
    options = {"unknown": "character", "jamo_fallback": True}
    marked = {"word_end_marker": "\u2581", "word_end_marker_at": "eojeol"}
    for more, joined in (({}, "뷁 재미있다 !"), (marked, "뷁 재미있다!")):
        tokenizer = KoreanTokenizer(path, **options, **more)
        core = KoreanWordPiece(tokenizer.vocab, tokenizer.config())
        assert core.join(core.tokenize("뷁 재미있다!")) == joined


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unknown", "character"), ("jamo_fallback", True), ("word_end_marker", "_"),
        ("fold_width", True), ("shorten_runs", 3), ("split_punctuation", False),
    ],
)  # fmt: skip
def test_python_files_are_written_for_jamo_and_markers(tmp_path, name, value):
    path = write_vocabulary(tmp_path / "vocab.txt", "_")
    tokenizer = KoreanTokenizer(path, **{name: value})
    said, names, config = written(tokenizer, tmp_path / "out")
    assert "trust_remote_code=True" in said and "\n" not in said
    assert names == [
        "korean_wordpiece.py", "special_tokens_map.json", "tokenization_korean.py",
        "tokenizer_config.json", "vocab.txt",
    ]  # fmt: skip
    tokenizer_class = "tokenization_korean.KoreanWordPieceTokenizer"
    assert config["auto_map"] == {"AutoTokenizer": [tokenizer_class, None]}
    assert load_tokenizer(tmp_path / "out").fingerprint() == tokenizer.fingerprint()


def test_the_python_files_import_nothing_of_this_project(tmp_path):
    written(KoreanTokenizer(write_vocabulary(tmp_path / "v", ""), shorten_runs=2), tmp_path / "a")
    written(SentencePieceTokenizer(SPIECE), tmp_path / "b")
    for path in (*tmp_path.glob("a/*.py"), *tmp_path.glob("b/*.py")):
        source = path.read_text(encoding="utf-8")
        imported = set(re.findall(r"^(?:from|import) (\S+)", source, re.MULTILINE))
        assert imported <= {
            "collections.abc", "functools", "os", "re", "typing", "unicodedata", "transformers",
            "sentencepiece", ".korean_wordpiece",
        }  # fmt: skip
    assert (tmp_path / "a" / "korean_wordpiece.py").exists()


# === tokenizer.json ===


def test_what_tokenizer_json_expresses(tmp_path):
    expressed = [n for n, t in korean_tokenizers(tmp_path) if is_expressible(t)]
    assert expressed == [
        "word-##--word-False", "word---word-False", "default-split_chinese_characters", "as it is",
    ]  # fmt: skip
    assert all(is_expressible(tokenizer) for _, tokenizer in full_tokenizers(tmp_path))
    assert not is_expressible(SentencePieceTokenizer(SPIECE))


def as_python(pattern):
    return re.compile(re.sub(r"\\x\{(\w+)\}", lambda m: f"\\U{int(m[1], 16):08x}", pattern))


def test_character_classes_are_ours(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", "")
    parts = describe(KoreanTokenizer(path, drop_invisible=True))
    dropped, spaces, unassigned, *_ = [
        as_python(step["pattern"]["Regex"])
        for step in parts["normalizer"]["normalizers"]
        if step["type"] == "Replace"
    ]
    alone = as_python(parts["pre_tokenizer"]["pretokenizers"][1]["pattern"]["Regex"])
    for character in map(chr, range(0x3300)):
        is_alone = is_punctuation(character) or is_chinese(character)
        assert bool(alone.fullmatch(character)) == is_alone
    for pattern, matching, others in (
        (dropped, "\x00\u200b\ufffd\u3164\ufe0f", "가\n"),
        (spaces, "\n\u2028", "\x1c"),
        (unassigned, "\u0378", "\ue000"),
    ):
        assert all(map(pattern.fullmatch, matching)) and not any(map(pattern.fullmatch, others))


def test_a_vocabulary_of_a_later_unicode(tmp_path):
    """A character that Python does not know yet, such as a new emoji, has a token."""
    library = pytest.importorskip("tokenizers")
    new = "\U000e0fff"  # in no version of Unicode
    path = write_pieces(tmp_path, ["a", f"##{new}", new])
    for tokenizer in (FullTokenizer(path), KoreanTokenizer(path)):
        write_tokenizer(tokenizer, tmp_path / "out", 64)
        theirs = library.Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
        for text in (f"a{new} {new}", "a\u0378", "\u0378"):
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert ids == tokenizer.encode(text), (tokenizer.kind, text)


def test_tokenizer_json(tmp_path):
    tokenizer = FullTokenizer(write_vocabulary(tmp_path / "vocab.txt", ""))
    said, names, config = written(tokenizer, tmp_path / "out", 128)
    kind = "a tokenizer.json (PreTrainedTokenizerFast)"
    assert said == f"the tokenizer is {kind} that gives the same ids"
    assert names == [
        "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    ]  # fmt: skip
    assert config["model_max_length"] == 128 and config["mask_token"] == "[MASK]"
    content = json.loads((tmp_path / "out" / "tokenizer.json").read_text(encoding="utf-8"))
    assert content["model"]["vocab"] == tokenizer.vocab
    assert content["model"]["max_input_chars_per_word"] == 200
    assert [token["id"] for token in content["added_tokens"]] == [0, 1, 2, 3, 4]
    assert load_tokenizer(tmp_path / "out").fingerprint() == tokenizer.fingerprint()


def test_bert_tokenizer(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", "")
    tokenizer = HuggingFaceTokenizer(path, do_lower_case=True, strip_accents=False)
    said, _, config = written(tokenizer, tmp_path / "out")
    assert said == "the tokenizer is a BertTokenizer of transformers"
    assert (config["tokenizer_class"], config["strip_accents"]) == ("BertTokenizer", False)
    # The same tokenizer, read as a folder that transformers wrote.
    del config["source_tokenizer"]
    (tmp_path / "out" / "tokenizer_config.json").write_text(json.dumps(config))
    assert load_tokenizer(tmp_path / "out").fingerprint() == tokenizer.fingerprint()
    tokenizer = HuggingFaceTokenizer(path, max_input_chars_per_word=9)
    said, _, config = written(tokenizer, tmp_path / "b")
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast" in said


# === Folders ===


def test_a_folder_that_save_pretrained_wrote_loads(tmp_path):
    """It has no vocab.txt: the tokens are those of tokenizer.json."""
    tokenizer = FullTokenizer(write_vocabulary(tmp_path / "vocab.txt", ""))
    written(tokenizer, tmp_path / "out")
    (tmp_path / "out" / "vocab.txt").unlink()
    assert load_tokenizer(tmp_path / "out").fingerprint() == tokenizer.fingerprint()
    path = tmp_path / "out" / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["added_tokens"].append({"id": 999, "content": "<new>", "special": False})
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="'<new>', id 999, not special"):
        load_tokenizer(tmp_path / "out")


def test_another_tokenizer_leaves_no_file_of_the_first(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", "")
    for tokenizer in (
        KoreanTokenizer(path, shorten_runs=2), FullTokenizer(path), SentencePieceTokenizer(SPIECE)
    ):  # fmt: skip
        _, names, _ = written(tokenizer, tmp_path / "out")
    assert names == [
        "special_tokens_map.json", "spiece.model", "tokenization_sentencepiece.py",
        "tokenizer_config.json",
    ]  # fmt: skip


def test_special_tokens(tmp_path):
    _, _, config = written(SentencePieceTokenizer(SPIECE), tmp_path / "a")
    assert (config["pad_token"], config["unk_token"]) == ("<pad>", "<unk>")
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    said, _, config = written(FullTokenizer(path), tmp_path / "b")
    assert config["pad_token"] is None
    path.write_text("[PAD]\n[UNK]\n[CLS]\na\n")
    with pytest.raises(InputError, match="Received: no sep_token, mask_token"):
        write_tokenizer(FullTokenizer(path), tmp_path / "c", 64)


def test_a_broken_source_is_refused(tmp_path):
    written(FullTokenizer(write_vocabulary(tmp_path / "vocab.txt", "")), tmp_path / "out")
    path = tmp_path / "out" / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for source, message in (
        ("full", "source_tokenizer must be an object"),
        ({"kind": "half"}, "source_tokenizer: kind must be one of"),
        ({"kind": "full", "x": 1}, "source_tokenizer: an option must be one of"),
    ):
        path.write_text(json.dumps(config | {"source_tokenizer": source}))
        with pytest.raises(InputError, match=message):
            load_tokenizer(tmp_path / "out")
