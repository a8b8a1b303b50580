"""Tokenizers of Hugging Face folders: ids as transformers gave them, refusals in one line."""

import json
import shutil
import warnings

import pytest

from tests.support.paths import TEST_DATA
from tests.support.refusals import refused
from tests.support.tokenizer_cases import TEXTS, check_offsets, check_round_trip, write_vocabulary
from tests.support.vocabularies import write_lines
from tokenization import (
    HuggingFaceTokenizer,
    InputError,
    SentencePieceTokenizer,
    load_tokenizer,
    save_tokenizer,
)
from tokenization.huggingface import characters

KEPT = TEST_DATA / "huggingface_tokenizers"
EXPECTED = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))


def open_kept(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_tokenizer(KEPT / name)


# === Ids ===


@pytest.mark.parametrize("name", EXPECTED)
def test_ids_are_those_of_transformers(name, tmp_path):
    tokenizer = open_kept(name)
    save_tokenizer(tokenizer, tmp_path)
    again = load_tokenizer(tmp_path)
    assert again.fingerprint() == tokenizer.fingerprint()
    for text, ids in EXPECTED[name]["ids"]:
        assert tokenizer.encode(text) == again.encode(text) == ids, text
    for text in [*TEXTS, *(text for text, _ in EXPECTED[name]["ids"])]:
        check_offsets(tokenizer, text)
        check_round_trip(tokenizer, text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("do_lower_case", None), ("strip_accents", None), ("tokenize_chinese_chars", None),
        ("max_input_chars_per_word", 200), ("continuing_subword_prefix", ""),
    ],
)  # fmt: skip
def test_the_kept_texts_tell_the_options_apart(name, value):
    """Each option, changed (None: to its opposite), gives other ids somewhere: none is ignored."""
    options = vars(open_kept("version_4_both").options)
    changed = options | {name: not options[name] if value is None else value}
    other = HuggingFaceTokenizer(KEPT / "version_4_both" / "vocab.txt", **changed)
    assert any(other.encode(text) != ids for text, ids in EXPECTED["version_4_both"]["ids"])


def test_written_unknown_is_kept_by_every_step(tmp_path):
    """Private use characters, which decode writes elsewhere, would be dropped."""
    path = write_lines(tmp_path / "vocab.txt", ["[UNK]", "\u22a0", "\u22a1", "a"])
    tokenizer = HuggingFaceTokenizer(path)
    assert tokenizer.encode(tokenizer.decode([0, 3])) == [0, 3]


@pytest.mark.slow
def test_graph_gives_the_same_ids(tmp_path):
    pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")
    from tests.support.tokenizer_cases import check_graph

    path = write_vocabulary(tmp_path / "vocab.txt", "")
    texts = [*TEXTS, *(text for text, _ in EXPECTED["version_4_both"]["ids"]), "\U00010d50 Ɤ\ua7cb"]
    for lower, strip, chinese in ((True, True, True), (True, False, False)):
        options = {"do_lower_case": lower, "strip_accents": strip}
        tokenizer = HuggingFaceTokenizer(path, tokenize_chinese_chars=chinese, **options)
        check_graph(tokenizer, texts)


def test_character_classes():
    for change, text, expected in (
        (characters.clean, "\ue000\x00\uf8ff\uf900\u3000\n", ["", "", "", "\uf900", " ", " "]),
        (characters.lower, "Σ\U00010d65", ["σ", "\U00010d85"]),
        (characters.strip_accent, "\u036f\u0370", ["", "\u0370"]),
        (characters.is_punctuation, "$\u2e43", [True, False]),
        (characters.is_chinese, "韓\U0002b820", [True, False]),
    ):
        assert list(map(change, text)) == expected


# === Folders ===


def copy_kept(name, folder, **changes):
    """A kept folder with other entries in tokenizer_config.json; None removes one."""
    shutil.copytree(KEPT / name, folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_generic_classes_follow_tokenizer_json(tmp_path):
    folder = copy_kept("version_5_cased", tmp_path / "a", tokenizer_class="TokenizersBackend")
    change_json(folder / "tokenizer.json", lambda c: c["model"].update(max_input_chars_per_word=7))
    options = load_tokenizer(folder).options
    assert (options.max_input_chars_per_word, options.do_lower_case) == (7, False)
    (folder / "tokenizer_config.json").unlink()
    assert load_tokenizer(folder).options == options


def test_electra_and_a_vocabulary_alone(tmp_path):
    folder = copy_kept("version_4_vocabulary", tmp_path / "a", tokenizer_class="ElectraTokenizer")
    assert load_tokenizer(folder).options.do_lower_case is False
    (folder / "tokenizer_config.json").unlink()
    (folder / "special_tokens_map.json").unlink()
    with pytest.raises(InputError, match="tokenizer_config.json"):
        load_tokenizer(folder)
    # The second is a file of 2019.
    for config in ('{"model_type": "bert"}', '{"architectures": ["BertForMaskedLM"]}'):
        (folder / "tokenizer_config.json").unlink(missing_ok=True)
        (folder / "config.json").write_text(config)
        assert load_tokenizer(folder).options.do_lower_case is True  # as transformers would
        (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        assert load_tokenizer(folder).options.do_lower_case is False


def test_albert(tmp_path):
    shutil.copy(TEST_DATA / "tokenization" / "spm_small.model", tmp_path / "spiece.model")
    path = tmp_path / "tokenizer_config.json"
    path.write_text('{"tokenizer_class": "AlbertTokenizer", "do_lower_case": true}')
    tokenizer = load_tokenizer(tmp_path)
    # What transformers 4.57.6 does and Google does not.
    assert tokenizer.encode("``영화'' ΑΣ") == tokenizer.encode('"영화" ασ')
    google = SentencePieceTokenizer(tmp_path / "spiece.model")
    assert google.encode("ΑΣ ``") != tokenizer.encode("ΑΣ ``")
    assert "variant" not in google.config()  # so that fingerprints stay
    for text in ("``영화'' ΑΣ", "'''' 가\u0301``"):
        check_offsets(tokenizer, text)
    save_tokenizer(tokenizer, tmp_path / "ours")
    assert load_tokenizer(tmp_path / "ours").fingerprint() == tokenizer.fingerprint()
    for entry, value in (("keep_accents", True), ("do_lower_case", None)):
        path.write_text(json.dumps({"tokenizer_class": "AlbertTokenizerFast", entry: value}))
        with pytest.raises(InputError, match=f"{entry} must be .*Received"):
            load_tokenizer(tmp_path)
    path.unlink()
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    assert load_tokenizer(tmp_path).fingerprint() == tokenizer.fingerprint()
    path.write_text('{"tokenizer_class": "AlbertTokenizer"}')
    (tmp_path / "spiece.model").unlink()
    with pytest.raises(InputError, match=r"must be spiece\.model"):
        load_tokenizer(tmp_path)


# === Refusals ===

UNIGRAM = {"type": "Unigram", "vocab": [["<unk>", 0.0]]}
ADDED = {"id": 5000, "content": "<new>", "special": False}

REFUSED_CONFIGS = {
    "class": ({"tokenizer_class": "RobertaTokenizer"}, "tokenizer_class must be one of"),
    "class type": ({"tokenizer_class": 3}, "tokenizer_class must be a string"),
    "case": ({"do_lower_case": True}, "do_lower_case is True by the class"),
    "default case": ({"do_lower_case": None}, "do_lower_case is True by the class"),
    "words": ({"do_basic_tokenize": False}, "do_basic_tokenize must be true"),
    "never_split": ({"never_split": ["[X]"]}, "never_split must be null"),
    "option": ({"strip_accents": "no"}, "strip_accents must be one of true, false"),
    "name": ({"mask_token": "<mask>"}, "mask_token must be [MASK]. Received: '<mask>'"),
    "name object": ({"pad_token": {"content": "<pad>"}}, "pad_token must be [PAD]"),
    "added": ({"added_tokens_decoder": {"5000": ADDED}}, "'<new>', id 5000, not special"),
}


@pytest.mark.parametrize("case", REFUSED_CONFIGS)
def test_refused_configurations(case, tmp_path):
    changes, message = REFUSED_CONFIGS[case]
    check_refusal(copy_kept("version_5_cased", tmp_path / "a", **changes), message)


REFUSED_JSON = {
    "unigram": (lambda c: c.update(model=UNIGRAM), "must be a WordPiece model"),
    "normalizer": (lambda c: c.update(normalizer={"type": "NFC"}), "normalizer NFC"),
    "cleaning": (lambda c: c["normalizer"].update(clean_text=False), "clean_text true"),
    "pre-tokenizer": (lambda c: c.update(pre_tokenizer=None), "pre_tokenizer None"),
    "unknown": (lambda c: c["model"].update(unk_token="<unk>"), "unk_token '<unk>'"),
    "length": (lambda c: c["model"].update(max_input_chars_per_word=200), "200 in tokenizer.json"),
    "gap": (lambda c: c["model"]["vocab"].update(x=500), "the ids 0, 1, 2, ..., each once"),
    "ids": (lambda c: c["model"].update(vocab={"a": "0"}), "the ids 0, 1, 2, ..., each once"),
    "space": (lambda c: c["model"]["vocab"].update({"x ": len(c["model"]["vocab"])}), "one word"),
    "no specials": (lambda c: c["model"].update(vocab={"a": 0}), "a vocabulary must hold [PAD]"),
    "added": (lambda c: c["added_tokens"].append(ADDED), "'<new>', id 5000, not special"),
}


@pytest.mark.parametrize("case", REFUSED_JSON)
def test_refused_tokenizer_json(case, tmp_path):
    change, message = REFUSED_JSON[case]
    folder = copy_kept("version_5_cased", tmp_path / "a")
    change_json(folder / "tokenizer.json", change)
    check_refusal(folder, message)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.txt", "[PAD]\n[UNK]\n가 \n", "vocab.txt line 3: '가 '"),
        ("vocab.txt", "[PAD]\n[UNK]\n가\n", "must hold the same vocabulary"),
        ("vocab.txt", b"\xb0\xa1\n", "a vocabulary must be UTF-8"),
        ("added_tokens.json", '{"<new>": 90}', "'<new>', id 90, not special"),
        ("special_tokens_map.json", '{"cls_token": "<s>"}', "cls_token must be [CLS]"),
        ("tokenizer.json", "[1]", "must hold a JSON object"),
        ("tokenizer.json", '{"model": ', "must hold JSON"),
    ],
)
def test_refused_files(name, content, message, tmp_path):
    folder = copy_kept("version_4_both", tmp_path / "a")
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refusal(folder, message)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"added_tokens_decoder": {"5000": ADDED}}),
        ("tokenizer.json", {"added_tokens": [ADDED]}),
        ("added_tokens.json", {"<new>": 5000}),
    ],
)
def test_tokens_added_to_an_albert(name, content, tmp_path):
    shutil.copy(TEST_DATA / "tokenization" / "spm_small.model", tmp_path / "spiece.model")
    mask = {"4": {"content": "[MASK]", "special": True}}
    config = {"tokenizer_class": "AlbertTokenizer", "added_tokens_decoder": mask}
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(config))
    assert load_tokenizer(tmp_path).mask_id == 4
    kept = config if name == path.name else {}
    (tmp_path / name).write_text(json.dumps(kept | content))
    check_refusal(tmp_path, "'<new>', id 5000, not special")


def test_refused_without_files(tmp_path):
    folder = copy_kept("version_5_cased", tmp_path / "a")
    (folder / "tokenizer.json").unlink()
    check_refusal(folder, "must hold vocab.txt, tokenizer.json or spiece.model")
    path = folder / "tokenizer_config.json"
    path.write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    check_refusal(folder, "must hold tokenizer.json")


def check_refusal(folder, message):
    with refused(message, folder, "Received: "):
        load_tokenizer(folder)
