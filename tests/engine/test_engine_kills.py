"""A killed run resumes where it was, and writes the same files."""

import contextlib
import errno
import multiprocessing
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from create_pretraining_data.engine import line_hashes, plain_text, repeats
from create_pretraining_data.engine import passes as engine
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    CHUNK_BYTES,
    KILLS,
    SHARDS,
    arguments,
    chunks_in,
    contents,
    descendants,
    is_alive,
    one_line,
    run,
    run_and_die,
    run_small,
    start,
    until,
)
from tests.support.crosses import but_slow

pytestmark = pytest.mark.usefixtures("small")


QUICK = ("in pass 1", "in pass 2", "before the end")


@pytest.mark.parametrize("moment", but_slow(KILLS, QUICK))
def test_killed_and_started_again(corpus, whole, tmp_path, moment):
    run_and_die(corpus, tmp_path, preparation=KILLS[moment])
    assert (len(chunks_in(tmp_path)) > 3) == (moment != "in the first chunk")
    assert (tmp_path / "ko.json").exists() == (moment == "before the end")
    assert run(corpus, tmp_path) == whole


def test_what_is_whole_is_not_made_again(corpus, whole, tmp_path, monkeypatch, capsys):
    run_and_die(corpus, tmp_path, preparation=KILLS["in pass 2"])
    made = []
    for name in ("make_chunk_file", "make_shard_file"):
        function = getattr(engine, name)
        monkeypatch.setattr(
            engine, name, lambda *a, f=function, name=name: (made.append(name), f(*a))[1]
        )
    assert run(corpus, tmp_path) == whole
    assert 1 <= len(made) < SHARDS and "make_chunk_file" not in made
    assert "examples/s" not in capsys.readouterr().out  # most were made before


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_shard_that_was_removed_or_replaced_is_made_again(corpus, whole, tmp_path, change):
    run_and_die(corpus, tmp_path, preparation=KILLS["before the JSON"])
    made = list(tmp_path.glob("*.tfrecord"))
    assert made
    for path in made:
        change(path)
    assert run(corpus, tmp_path) == whole


def test_no_json_describes_records_that_are_being_replaced(corpus, tmp_path):
    run(corpus, tmp_path)
    run_and_die(corpus, tmp_path, "--random_seed=1", preparation=KILLS["in pass 2"])
    assert not (tmp_path / "ko.json").exists()


def test_workers_end_with_the_program(corpus, whole, tmp_path):
    flags = "--num_workers=2", "--dupe_factor=12"
    program = start(corpus, tmp_path, *flags)
    until(lambda: len(chunks_in(tmp_path)) >= 2)
    workers = descendants(program.pid)
    assert len(workers) >= 2
    program.kill()
    program.communicate()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    assert 2 <= len(chunks_in(tmp_path)) < os.path.getsize(corpus / "text.txt") / CHUNK_BYTES - 1
    run(corpus, tmp_path, *flags)


SIGNALS = {
    "Ctrl-C": ["SIGINT"], "Ctrl-C twice": ["SIGINT"] * 2, "Ctrl-C five times": ["SIGINT"] * 5,
    "SIGTERM": ["SIGTERM"], "SIGHUP, then SIGTERM": ["SIGHUP", "SIGTERM"],
}  # fmt: skip


@pytest.fixture(scope="module")
def whole_of_40(corpus, tmp_path_factory):
    """What enough passes make for signals to come in the middle."""
    return run_small(corpus, tmp_path_factory.mktemp("whole"), "--dupe_factor=40")


@pytest.mark.parametrize(
    ("name", "workers"),
    but_slow(
        [*((name, 2) for name in SIGNALS), ("Ctrl-C twice", 1), ("SIGTERM", 1)],
        [("Ctrl-C twice", 2)],
    ),
)
def test_signals_end_all_processes_at_once(corpus, whole_of_40, tmp_path, name, workers):
    """As a terminal and a scheduler send them: to every process of the program."""
    flags = "--dupe_factor=40", f"--num_workers={workers}"
    program = start(corpus, tmp_path, *flags, start_new_session=True)
    until(lambda: len(chunks_in(tmp_path)) >= 2)
    processes = descendants(program.pid)
    assert len(processes) >= workers * (workers > 1)
    for sent in SIGNALS[name]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.Signals[sent])
        time.sleep(0.02)
    _, errors = program.communicate(timeout=20)
    assert program.returncode == 1
    expected = f"error: stopped by {SIGNALS[name][0]}: the same command resumes from here"
    assert one_line(errors) == expected
    until(lambda: not any(map(is_alive, processes)), seconds=10)
    assert len(chunks_in(tmp_path)) >= 2 and not list(tmp_path.rglob("*.partial"))
    assert run(corpus, tmp_path, "--dupe_factor=40") == whole_of_40


def test_a_signal_that_is_ignored_changes_nothing(corpus, tmp_path):
    """A program under nohup continues when its terminal is closed."""
    program = start(
        corpus, tmp_path, "--num_workers=2", "--dupe_factor=12", start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    until((tmp_path / ".ko.tfrecord.work").exists)
    os.killpg(program.pid, signal.SIGHUP)
    assert program.communicate()[1] == "" and program.returncode == 0


@pytest.mark.parametrize("victim", ["server", "starting", "working"])
def test_a_process_that_is_killed_is_one_line(corpus, tmp_path, victim):
    """The server that starts workers, a worker while it starts or works."""
    program = start(corpus, tmp_path, "--num_workers=2", "--dupe_factor=40")
    found = []
    if victim == "working":
        until(lambda: chunks_in(tmp_path))
        found = descendants(program.pid)
    else:
        until(lambda: found.extend(filter(is_server, descendants(program.pid))) or found)
    if victim == "starting":
        until(lambda: found.extend(descendants(found[0])) or len(found) > 1)
    os.kill(found[0 if victim == "server" else -1], signal.SIGKILL)
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 1
    assert re.search("2 worker processes must (start|stay alive)", one_line(errors))
    assert "fewer --num_workers" in errors


def is_server(pid):
    with contextlib.suppress(OSError):
        return b"multiprocessing.forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_worker_that_cannot_start_is_one_line(corpus, whole, tmp_path, capsys, monkeypatch):
    process = multiprocessing.context.ForkServerProcess
    begin, calls = process.start, []

    def start_one(self):
        calls.append(self)
        if len(calls) == 2:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        begin(self)

    monkeypatch.setattr(process, "start", start_one)
    assert main(arguments(corpus, tmp_path, "--num_workers=2")) == 1
    line = one_line(capsys.readouterr().err)
    assert line.startswith("error: 2 worker processes must start. Received: ")
    assert "Resource temporarily unavailable" in line and "fewer --num_workers" in line
    assert not multiprocessing.active_children()
    assert run(corpus, tmp_path, "--num_workers=3") == whole


def test_what_precedes_the_first_chunk_is_kept_if_memory_runs_out(
    corpus, whole, tmp_path, capsys, monkeypatch
):
    """The line says that the same command resumes: what was unpacked and hashed took hours."""
    text, hashed = f"--input_file={corpus / 'text.txt.gz'}", []

    def make_hash_file(*args):
        hashed.append(args)
        if len(hashed) == 5:
            raise MemoryError("Unable to allocate 1.20 MiB for an array")
        line_hashes.make_hash_file(*args)

    monkeypatch.setattr(repeats, "make_hash_file", make_hash_file)
    assert main(arguments(corpus, tmp_path, text)) == 1
    line = one_line(capsys.readouterr().err)
    assert "every worker must have enough memory. Received: Unable to allocate 1.20 MiB" in line
    assert "the same command resumes from here" in line
    monkeypatch.setattr(plain_text, "open_plain", lambda _: pytest.fail("unpacked again"))
    assert run(corpus, tmp_path, text).records == whole.records
    numbers = [number for _, number in hashed]
    assert numbers.count(4) == 2 and len(numbers) == len(set(numbers)) + 1


def test_damaged_records_are_one_line(corpus, whole, tmp_path, capsys):
    run_and_die(corpus, tmp_path, preparation=KILLS["between"])
    path = tmp_path / ".ko.tfrecord.work" / "chunk-000003"
    content = bytearray(path.read_bytes())
    content[1000] ^= 4
    path.write_bytes(content)
    assert main(arguments(corpus, tmp_path)) == 1
    line = one_line(capsys.readouterr().err)
    assert f"{path} must be unchanged" in line and f"delete {path}.json and start again" in line
    path.with_suffix(".json").unlink()
    assert run(corpus, tmp_path) == whole


def test_other_settings_are_refused(corpus, whole, tmp_path, capsys):
    run_and_die(corpus, tmp_path, preparation=KILLS["in pass 1"])
    capsys.readouterr()
    for flag, part in (
        ("--dupe_factor=3", "--dupe_factor was 2, is now 3"),
        ("--random_seed=3", "--random_seed was 12345, is now 3"),
        (f"--input_file={corpus}/text.txt.gz", "text.txt was "),
        ("--tokenizer=full", "tokenizer was "),
    ):
        assert main(arguments(corpus, tmp_path, flag)) == 1
        line = one_line("\n".join(
            line for line in capsys.readouterr().err.splitlines() if line[:7] != "warning"
        ))  # fmt: skip
        assert part in line and "delete that folder to start over" in line
        assert str(tmp_path / ".ko.tfrecord.work") in line
    assert run(corpus, tmp_path, "--num_workers=2") == whole


def test_another_order_of_the_files_is_refused(corpus, tmp_path, capsys):
    text = (corpus / "text.txt").read_text()
    for name, part in (("a.txt", text[: len(text) // 3]), ("b.txt", text[len(text) // 3 :])):
        (tmp_path / name).write_text(part)

    def flag(names):
        return "--input_file=" + ",".join(f"{tmp_path}/{name}" for name in names)

    output = tmp_path / "out"
    run_and_die(corpus, output, flag(["a.txt", "b.txt"]), preparation=KILLS["in pass 1"])
    for other in (["b.txt", "a.txt"], ["a.txt", "b.txt", "a.txt"]):
        assert main(arguments(corpus, output, flag(other))) == 1
        line = one_line(capsys.readouterr().err)
        assert re.search(r"number [13] of the input files was .*, is now .*/[ab]\.txt", line), line
    made = run(corpus, output, flag(["a.txt", "b.txt"]))
    assert run(corpus, output, flag(["a.txt", "b.txt"])) == made
    assert "up to date" in capsys.readouterr().out
    assert run(corpus, output, flag(["b.txt", "a.txt"])).records != made.records


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_three_times_at_random(corpus, tmp_path, seed, workers):
    """All its processes at once, as when a machine loses its power."""
    flags = "--dupe_factor=40", f"--num_workers={workers}"
    output, rng = tmp_path / "killed", random.Random(seed)
    chunks = len(range(0, (corpus / "text.txt").stat().st_size, CHUNK_BYTES))
    for made in sorted(rng.sample(range(chunks - 3), 3)):
        program = start(corpus, output, *flags, start_new_session=True)
        until(lambda made=made: len(chunks_in(output)) > made)
        time.sleep(rng.uniform(0, 0.05))
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        assert program.returncode == -signal.SIGKILL
    assert run(corpus, output, *flags) == run(corpus, tmp_path / "whole", "--dupe_factor=40")


@pytest.mark.slow
def test_tasks_that_are_killed(corpus, tmp_path):
    """Three tasks run one by one, each killed once."""
    output = tmp_path / "killed"
    for task in range(3):
        flags = "--dupe_factor=40", "--num_tasks=3", f"--task_index={task}"
        before = len(chunks_in(output))
        program = start(corpus, output, *flags)
        until(lambda least=before + 2: len(chunks_in(output)) >= least)
        program.kill()
        program.communicate()
        assert program.returncode == -signal.SIGKILL
        assert main(arguments(corpus, output, *flags)) == 0
    assert contents(output) == run(corpus, tmp_path / "whole", "--dupe_factor=40")
