"""build_vocab replaces no other vocabulary unasked, and learns the same one once."""

import json
import os
import signal
import subprocess
import sys

import pytest

from run_scripts.build_vocab import main
from tests.support.paths import ROOT
from tokenization import load_tokenizer
from tokenization.vocab_learning import learn as learning

SENTENCES = "나는 학교에 갔다.\n비가 온다.\n" * 20
REFUSED = (
    "error: --output_dir must hold no other vocabulary, unless --overwrite is given. Received: {}, "
    "which holds {} of other text, settings or versions\n"
)
FILES = "vocab.txt, tokenizer_config.json, report.json"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(SENTENCES)
    return path


@pytest.fixture
def folder(text, tmp_path):
    """A folder with a vocabulary of the text."""
    assert learn(text, tmp_path / "vocab") == 0
    return tmp_path / "vocab"


def arguments(text, folder, *flags):
    given = f"--input_file={text}", f"--output_dir={folder}", "--analyser=none"
    return ["build_vocab.py", *given, "--vocab_size=600", *flags]


def learn(text, folder, *flags):
    return main(arguments(text, folder, *flags))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_again_is_up_to_date(text, folder, monkeypatch, capsys):
    before = contents(folder)
    monkeypatch.setattr(learning, "learn_vocabulary", lambda *_: pytest.fail("learned again"))
    for flags in ((), ("--num_threads=1",), ("--strict_utf8",)):
        assert learn(text, folder, *flags) == 0
        assert f"up to date, learned from this text with these settings: {folder}" in (
            capsys.readouterr().out
        )
    assert contents(folder) == before


def change_text(text, folder):
    text.write_text(SENTENCES * 2)
    return (), FILES


def other_settings(text, folder):
    return ("--vocab_size=601",), FILES


def foreign(text, folder):
    (folder / "report.json").unlink()
    return (), "vocab.txt, tokenizer_config.json"


def damaged(text, folder):
    (folder / "report.json").write_text("{")
    return (), FILES


def older(text, folder):
    report = json.loads((folder / "report.json").read_text())
    del report["made_from"]
    (folder / "report.json").write_text(json.dumps(report))
    return (), FILES


@pytest.mark.parametrize("change", [change_text, other_settings, foreign, damaged, older])
def test_another_vocabulary_is_replaced_only_when_asked(text, folder, capsys, change):
    flags, files = change(text, folder)
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
    flags = arguments(text, killed, "--overwrite")[1:]
    command = [sys.executable, "-c", KILLED.format(call), *flags]
    assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
    assert learn(text, killed) == 0
    made = contents_of_files(killed)
    assert made == contents(folder)
    assert load_tokenizer(killed).vocab_size == len(made["vocab.txt"].splitlines())


def contents_of_files(folder):
    """Without the hidden folder that a killed run leaves."""
    names = [name for name in os.listdir(folder) if not name.startswith(".")]
    return {name: (folder / name).read_bytes() for name in names}
