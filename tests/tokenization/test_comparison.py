"""Vocabularies of every kind, opened to be compared."""

import json

import pytest

from tests.support.paths import ROOT, TEST_DATA
from tests.support.vocabularies import JAMO, SPECIAL, write_lines
from tokenization import InputError, SentencePieceTokenizer, save_tokenizer
from tokenization.comparison import open_vocabularies, open_vocabulary

DATA = TEST_DATA / "tokenization"
CORPUS = ROOT / "sample_corpus" / "train.txt"
SAMPLE = TEST_DATA / "sample_tokenizer"
WORDS = ["학교에서", "공부했다", "나는", "바다를", "GPU", "꿀잼ㅋㅋ"]


def hugging_face(path, kind):
    """A tokenizer.json made on the spot from the sample corpus."""
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not here")
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]"))
    options = {"vocab_size": 1200, "special_tokens": ["[UNK]"], "show_progress": False}
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    if kind == "byte-level BPE":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    lines = CORPUS.read_text(encoding="utf-8").splitlines()
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(**options))
    tokenizer.enable_truncation(4)  # as sentence-transformers leaves its models
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(path))


@pytest.mark.parametrize("kind", ["byte-level BPE", "BPE"])
def test_a_tokenizer_json(tmp_path, kind):
    path, older = tmp_path / "tokenizer.json", tmp_path / "older.json"
    hugging_face(path, kind)
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["model"]["type"]  # as before 2021
    older.write_text(json.dumps(content), encoding="utf-8")
    cutter = open_vocabulary(path)
    assert open_vocabulary(older)[1:3] == cutter[1:3] == (kind, 1200)
    pieces = cutter.pieces("나는 바다를 보았다")
    if not any(piece.startswith("<") for piece in pieces):
        assert "".join(map(cutter.plain, pieces)) == "나는바다를보았다"
    if kind == "byte-level BPE":  # no piece for the syllable: its three bytes are shown
        shown = cutter.pieces("뷁")
        assert "".join(piece.strip("<>") for piece in shown) == "뷁".encode().hex().upper()


def test_a_bpe_model_of_sentencepiece(tmp_path):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=str(CORPUS), model_prefix=str(tmp_path / "bpe"), model_type="bpe",
        vocab_size=1500, minloglevel=2,
    )  # fmt: skip
    assert open_vocabulary(tmp_path / "bpe.model").kind == "BPE"
    save_tokenizer(SentencePieceTokenizer(tmp_path / "bpe.model"), tmp_path / "folder")
    assert open_vocabulary(tmp_path / "folder").kind == "BPE"


def test_a_sentencepiece_model():
    cutter = open_vocabulary(DATA / "spm_small.model")
    assert cutter.kind == "unigram"
    pieces = cutter.pieces("hello world")
    assert "".join(map(cutter.plain, pieces)) == "helloworld"


@pytest.mark.parametrize("path", [SAMPLE, SAMPLE / "vocab.txt"])
def test_wordpiece(path):
    cutter = open_vocabulary(path)
    assert (cutter.kind, cutter.size) == ("WordPiece", 2758)
    for word in WORDS[:4]:
        assert "".join(map(cutter.plain, cutter.pieces(word))) == word


@pytest.mark.parametrize(
    "file, config, pieces",
    (
        ("vocab.txt", {"kind": "korean", "jamo_fallback": True}, ["ᄀ", "##ᅡ"]),
        ("vocab.txt", {"kind": "sentencepiece"}, ["[UNK]"]),  # of another file
        ("vocab.txt", {"tokenizer_class": "BertTokenizer"}, ["[UNK]"]),
        ("other.txt", {"kind": "korean", "jamo_fallback": True}, ["[UNK]"]),
    ),
)
def test_the_vocabulary_of_a_folder_cuts_as_the_folder_does(tmp_path, file, config, pieces):
    write_lines(tmp_path / file, [*SPECIAL, *JAMO])
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    opened = open_vocabulary(tmp_path / file)
    assert (opened.name, opened.pieces("가")) == (file, pieces)


def test_vocabularies_of_one_name_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        write_lines(tmp_path / folder / "vocab.txt", SPECIAL)
    paths = [f"{tmp_path}/{folder}/vocab.txt" for folder in ("one", "other")]
    opened = open_vocabularies([*paths, str(SAMPLE)])
    assert [each.name for each in opened] == [*paths, SAMPLE.name]
    monkeypatch.chdir(SAMPLE)
    assert open_vocabulary(".").name == SAMPLE.name


BAD_FILES = {
    "vocabulary.bin": "a vocabulary must be",
    "broken.model": "must be a SentencePiece model",
    "broken.json": "must be a tokenizer.json",
    "empty.txt": "must not be empty",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_of_no_kind_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("" if name == "empty.txt" else json.dumps({"model": {}}))
    if name.endswith(".json"):
        pytest.importorskip("tokenizers", reason="the package tokenizers is not here")
    with pytest.raises(InputError, match=BAD_FILES[name]):
        open_vocabulary(path)
