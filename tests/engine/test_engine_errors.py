"""A user's mistake is one line of error, and leaves nothing half done."""

import collections
import itertools
import os
import re
import resource

import pytest

from run_scripts.create_data import main
from tests.support.create_data_runs import arguments, one_line, run, start
from tests.support.crosses import slow

pytestmark = pytest.mark.usefixtures("small")


def test_one_process_at_a_time(corpus, tmp_path, capsys):
    import fcntl

    work = tmp_path / ".ko.tfrecord.work"
    work.mkdir()
    with open(work / "task-0.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(arguments(corpus, tmp_path)) == 1
    assert "another process is running" in one_line(capsys.readouterr().err)
    assert (work / "task-0.lock").exists()


@pytest.mark.parametrize("limit, workers", ((3000, 2), (60_000, 1), slow(3000, 1), slow(60_000, 2)))
def test_a_full_disk_is_one_line(corpus, whole, tmp_path, limit, workers):
    """In a chunk's file, in a shard."""
    full = start(
        corpus, tmp_path, f"--num_workers={workers}",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    _, errors = full.communicate()
    assert full.returncode == 1
    assert one_line(errors).startswith(f"error: File too large: {tmp_path}/")
    assert not list(tmp_path.glob("*.tfrecord")) and not list(tmp_path.rglob("*.partial"))
    assert run(corpus, tmp_path) == whole


def test_too_little_space_is_said_before(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: collections.namedtuple("U", "free")(1000))
    assert main(arguments(corpus, tmp_path)) == 1
    line = one_line(capsys.readouterr().err)
    assert "must have room for about" in line and "Received: 1 kB free" in line
    assert os.listdir(tmp_path) == []


def test_no_other_json_is_written_over(corpus, tmp_path, capsys):
    for content in ('{"text": "a"}', "", "[]"):
        (tmp_path / "ko.json").write_text(content)
        assert main(arguments(corpus, tmp_path)) == 1
        assert "must not conflict with other JSON files" in one_line(capsys.readouterr().err)
        assert (tmp_path / "ko.json").read_text() == content
    text = tmp_path / "ko.json"
    text.write_text('{"text": "가 나\\n다 라"}\n')
    flags = [f"--input_file={text}", "--input_format=jsonl"]
    assert main(arguments(corpus, tmp_path, *flags)) == 1
    assert "a file that is read" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize("length", [228, 250])
def test_a_long_name_is_refused_before_the_work(corpus, tmp_path, capsys, length):
    name = f"{'k' * length}.x"
    assert main(arguments(corpus, tmp_path, f"--output_file={tmp_path}/{name}")) == 1
    line = one_line(capsys.readouterr().err)
    assert "--output_file must be short enough" in line and "File name too long" in line
    assert not os.listdir(tmp_path)


def test_bad_text_leaves_nothing_to_resume_from(corpus, tmp_path):
    text, output = tmp_path / "text.txt", tmp_path / "out"
    text.write_bytes(b"\xff")
    assert main(arguments(corpus, output, f"--input_file={text}")) == 1
    assert os.listdir(output) == []
    text.write_text("가 나\n다 라\n\n" * 99)
    run(corpus, output, f"--input_file={text}")


def test_warnings_come_early(corpus, tmp_path, capsys):
    text = tmp_path / "text.txt"
    lines = map(" ".join, itertools.product("나다라마바사아", repeat=4))
    text.write_text("\n\n".join(itertools.islice(lines, 2000)) + "\n")
    run(corpus, tmp_path / "out", f"--input_file={text}", "--dupe_factor=1")
    # The text has no piece in the vocabulary, which is said too.
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    found = [line for line in lines if "[UNK]" not in line]
    lost = r"[\d.]+% of the tokens are in no row \("
    patterns = (
        "warning: so far every one of the", f"warning: so far {lost}",
        "warning: every one of the 2,000 documents has a single sentence", f"warning: {lost}",
    )  # fmt: skip
    assert all(map(re.match, patterns, found)) and len(found) == 4
