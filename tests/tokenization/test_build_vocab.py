"""The program build_vocab: learns, compares, refuses bad input in one line."""

import gzip
import json
import shutil
import signal
import subprocess
import sys

import pytest

from create_pretraining_data.engine.plain_lines import open_texts
from run_scripts import build_vocab
from run_scripts.build_vocab import SENTENCES, main
from tests.support.paths import ROOT
from tokenization import load_tokenizer
from tokenization.vocab_learning import learn as learning

CORPUS = ROOT / "sample_corpus" / "train.txt"
SAMPLE = ROOT / "tests" / "data" / "sample_tokenizer"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(CORPUS.read_text(encoding="utf-8")[:8000], encoding="utf-8")
    return path


def run(*flags):
    return main(["build_vocab.py", *map(str, flags)])


def to_learn(text, folder, *flags):
    """The flags of a small vocabulary."""
    given = f"--input_file={text}", f"--output_dir={folder}", "--analyser=none"
    return *given, "--vocab_size=2000", *flags


def learn(text, folder, *flags):
    return run(*to_learn(text, folder, *flags))


def test_learns_a_tokenizer(corpus, tmp_path, capsys):
    folder = tmp_path / "new" / "vocab"
    assert learn(corpus, folder, "--num_unused=2", "--user_symbols=뷁뷁, ##읿") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[-1] == f"written: {folder}"
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines[4:9] == ["[MASK]", "[unused0]", "[unused1]", "뷁뷁", "##읿"]
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["user_symbols"] == ["뷁뷁", "##읿"]
    assert f"{report['vocabulary']['lines']:,} tokens" in out
    assert load_tokenizer(folder).vocab_size == len(lines)


def test_says_when_fewer_pieces_would_do(corpus, tmp_path, capsys, monkeypatch):
    advice = "consider --vocab_size=16000 (docs/tokenizers.md)"
    for pieces, size, expected in (
        (32_000, 37_000_000, True), (16_001, 1_000_000, True),
        (16_000, 1_000_000, False), (32_000, 37_000_001, False),
    ):  # fmt: skip
        report = {"vocabulary": {"lines": pieces}, "text": {"bytes": size}}
        assert build_vocab.has_too_many_pieces(report) == expected
    for is_advised in (False, True):
        monkeypatch.setattr(build_vocab, "has_too_many_pieces", lambda report: is_advised)  # noqa: B023
        assert learn(corpus, tmp_path / str(is_advised), "--vocab_size=30000") == 0
        out = capsys.readouterr().out
        assert (advice in out) == is_advised and "(of 30,000: the text has no more)" in out


@pytest.mark.parametrize("form", ["text", "gzip", "json"])
def test_the_size_of_text_is_that_of_what_is_read(tmp_path, capsys, form):
    """Learning takes an even share of a corpus that is larger than it needs."""
    plain, path = "나는 학교에 갔다.\n" * 99, tmp_path / f"a.{form}"
    # A null is left out and counted, half a surrogate pair is replaced.
    lines = [{"text": None}, {"id": "q" * 99, "text": plain.strip()}, {"text": "\ud83d"}]
    contents = {"text": plain.encode(), "gzip": gzip.compress(plain.encode())}
    contents["json"] = "\n".join(map(json.dumps, lines)).encode()
    path.write_bytes(contents[form])
    (text,) = open_texts([str(path)])
    read = b"".join(text.read_lines()).decode()
    assert read.startswith(plain) and len(read.encode()) == text.size
    if form == "json":
        assert capsys.readouterr().out == f"{path}: rows without a text, left out: 1\n"
        assert read.removeprefix(plain) == "\ufffd\n"


BAD = {
    "--input_file must be given": [],
    "--output_dir must be given": ["--input_file={corpus}"],
    "--input_file must match a file": ["--input_file={folder}/none", "--output_dir={folder}"],
    "at least one word": ["--input_file={folder}/empty.txt", "--output_dir={folder}/out"],
    "vocab_size must be at least": [
        "--input_file={corpus}", "--output_dir={folder}/out", "--vocab_size=20",
    ],
    "num_unused must be at least 0": [
        "--input_file={corpus}", "--output_dir={folder}/out", "--num_unused=-1",
    ],
    "a folder that can be created": ["--input_file={corpus}", "--output_dir={corpus}/out"],
    "must not hold the text": ["--input_file={folder}/vocab.txt", "--output_dir={folder}"],
    "--compare must name a vocabulary": ["--compare=,"],
    "a vocabulary must be a folder": ["--compare={folder}"],
    "file must exist": ["--compare={folder}/none.txt"],
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line(message, corpus, tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "vocab.txt").write_text("가 나 다\n", encoding="utf-8")
    arguments = [argument.format(corpus=corpus, folder=tmp_path) for argument in BAD[message]]
    assert run("--analyser=none", *arguments) == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and message in err and "Received: " in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_without_kiwi_the_other_learner_is_chosen_and_named(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arguments = [f"--input_file={corpus}", f"--output_dir={tmp_path / 'out'}"]
    assert run(*arguments, "--vocab_size=2000") == 0
    assert "analyser: none, because kiwipiepy is not installed" in capsys.readouterr().out
    assert run(*arguments, "--analyser=kiwi", "--overwrite") == 1
    assert "pip install -e '.[korean]'" in capsys.readouterr().err


def test_compares_side_by_side(tmp_path, capsys):
    assert run(f"--compare={SAMPLE},{SAMPLE / 'vocab.txt'}", "--text=나는 학교에 | 바다") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "나는 학교에" and lines[4] == "바다"
    assert lines[1].startswith("  sample_tokenizer (WordPiece, 2,758)")
    assert lines[2].startswith("  vocab.txt (WordPiece, 2,758)")
    count, *pieces = lines[1].split("2,758)")[1].split()
    assert int(count) == len(pieces)
    assert "".join(pieces).replace("##", "") == "나는학교에"
    # Files of one name; default sentences.
    shutil.copytree(SAMPLE, tmp_path / "copy")
    paths = [str(folder / "vocab.txt") for folder in (SAMPLE, tmp_path / "copy")]
    assert run(f"--compare={','.join(paths)}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == paths
    assert set(SENTENCES) <= set(lines)


def test_bytes_and_normalization(corpus, tmp_path, capsys):
    """Stored with the tokenizer; the default writes what it wrote before."""
    assert learn(corpus, tmp_path / "plain") == 0
    assert learn(corpus, tmp_path / "bytes", "--unknown=bytes", "--normalization=NFKC") == 0
    plain, made = (load_tokenizer(tmp_path / name) for name in ("plain", "bytes"))
    assert (plain.options.unknown, plain.options.normalization) == ("character", "NFC")
    assert (made.options.unknown, made.options.normalization) == ("bytes", "NFKC")
    config = json.loads((tmp_path / "plain" / "tokenizer_config.json").read_text())
    assert "normalization" not in config and config["unknown"] == "character"
    assert (
        made.decode(made.encode("ｋｏｒｅａ ① 👨\u200d👩\u200d👧")) == "korea 1 👨\u200d👩\u200d👧"
    )
    assert plain.unk_id in plain.encode("ｋｏｒｅａ")
    report = json.loads((tmp_path / "bytes" / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["unknown"] == "bytes" and report["without_a_piece"] < 0.01
    capsys.readouterr()
    assert run(f"--compare={tmp_path / 'bytes'}", "--text=책😀") == 0
    assert "##<0xF0> <0x9F>" in capsys.readouterr().out
    assert learn(corpus, tmp_path / "x", "--unknown=word") == 1


FEW_WORDS = "나는 학교에 갔다.\n비가 온다.\n" * 20
FILES = "vocab.txt, tokenizer_config.json, report.json"
REFUSED = (
    "error: --output_dir must hold no other vocabulary, unless --overwrite is given. Received: {}, "
    "which holds {} of other text, settings or versions\n"
)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(FEW_WORDS)
    return path


@pytest.fixture
def folder(text, tmp_path):
    """A folder with a vocabulary of the text."""
    assert learn(text, tmp_path / "vocab") == 0
    return tmp_path / "vocab"


def contents(folder):
    """Without the hidden folder that a killed run leaves."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "."}


def test_the_same_again_is_up_to_date(text, folder, monkeypatch, capsys):
    before = contents(folder)
    monkeypatch.setattr(learning, "learn_vocabulary", lambda *_: pytest.fail("learned again"))
    for flags in ((), ("--num_threads=1",), ("--strict_utf8",)):
        assert learn(text, folder, *flags) == 0
        said = f"up to date, learned from this text with these settings: {folder}"
        assert said in capsys.readouterr().out
    assert contents(folder) == before


def change(name, text, folder):
    """Makes what is in the folder another vocabulary; returns flags, and which files it has."""
    report = folder / "report.json"
    if name == "other text":
        text.write_text(FEW_WORDS * 2)
    elif name == "other settings":
        return ["--vocab_size=2001"], FILES
    elif name == "of another program":
        report.unlink()
        return [], "vocab.txt, tokenizer_config.json"
    elif name == "damaged":
        report.write_text("{")
    else:
        content = json.loads(report.read_text())
        del content["made_from"]
        report.write_text(json.dumps(content))
    return [], FILES


CHANGES = ("other text", "other settings", "of another program", "damaged", "of an older release")


@pytest.mark.parametrize("name", CHANGES)
def test_another_vocabulary_is_replaced_only_when_asked(text, folder, capsys, name):
    flags, files = change(name, text, folder)
    before = contents(folder)
    assert learn(text, folder, *flags) == 1
    assert capsys.readouterr().err == REFUSED.format(folder, files)
    assert contents(folder) == before
    assert learn(text, folder, *flags, "--overwrite") == 0
    assert contents(folder) != before
    assert learn(text, folder, *flags) == 0  # up to date
    assert "up to date" in capsys.readouterr().out


KILLED = """
import os, signal, sys
import tokenization.vocab_learning.learn as learning
from run_scripts.build_vocab import main
replace, calls = os.replace, []
def counted(*paths):
    calls.append(paths)
    if len(calls) == {}:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*paths)
learning.os.replace = counted
main(sys.argv)
"""


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_killed_run_is_completed_by_the_same_command(text, folder, tmp_path, call, replaces):
    killed = tmp_path / "killed"
    if replaces:
        assert learn(text, killed, "--num_unused=2") == 0
    flags = to_learn(text, killed, "--overwrite")
    command = [sys.executable, "-c", KILLED.format(call), *flags]
    assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
    assert learn(text, killed) == 0
    made = contents(killed)
    assert made == contents(folder)
    assert load_tokenizer(killed).vocab_size == len(made["vocab.txt"].splitlines())
