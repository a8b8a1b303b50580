"""Programs tolerate readers that have exited, and Ctrl-C at any moment."""

import io
import os
import random
import shlex
import signal
import subprocess
import sys
import time

import pytest

from bert_common import startup
from run_scripts import programs
from tests.support.paths import ROOT, declared, run_python
from tests.support.programs import PretrainingJob, spoken_lines

INTERRUPTED = "error: interrupted\n"
SAMPLE = ROOT / "tests" / "data" / "sample_tokenizer"
COMPARE = ("build_vocab.py", f"--compare={SAMPLE}")
MODULES = (
    "run_scripts.plan", "run_scripts.sizes", "run_scripts.tools.check_devices",
    "run_scripts.tools.average_models", "run_scripts.tools.search",
)  # fmt: skip

# Output goes out when a buffer is full or the program ends, as people have it.
ENVIRONMENT = {name: it for name, it in os.environ.items() if name != "PYTHONUNBUFFERED"}


def shell(command, folder=ROOT):
    """Runs a line of bash in which PYTHON is this Python."""
    line = command.replace("PYTHON ", f"{shlex.quote(sys.executable)} ")
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize(
    "command, lost, kept, status",
    (
        (COMPARE, "stdout", "stderr", 0),
        (("run_pretraining.py", "--help"), "stdout", "stderr", 0),
        (("-m", MODULES[0], "--help"), "stdout", "stderr", 0),
        (("run_squad.py",), "stderr", "stdout", 1),
    ),
    ids=str,
)
def test_what_nobody_reads_is_no_error(command, lost, kept, status):
    """A pipe whose reader has gone adds nothing to the other stream, nor to the exit status."""
    reader, writer = os.pipe()
    os.close(reader)
    words, streams = [sys.executable, *command], {lost: writer, kept: subprocess.PIPE}
    run = subprocess.run(words, cwd=ROOT, text=True, env=ENVIRONMENT, **streams)
    os.close(writer)
    assert (run.returncode, getattr(run, kept)) == (status, "")


def test_stream_lasts_longer_than_its_reader():
    reader, writer = os.pipe()
    stream = io.TextIOWrapper(
        io.BufferedWriter(startup._Output(writer, "w")), encoding="utf-8", line_buffering=True
    )
    print("read", file=stream)
    assert os.read(reader, 100) == b"read\n"
    os.close(reader)
    for _ in range(3):
        print("discarded", file=stream)
    stream.close()


def test_full_disk_is_an_error_still():
    run = shell("PYTHON -m run_scripts.plan --help > /dev/full; echo status $?")
    assert run.stdout == "status 1\n"
    assert run.stderr.startswith("error: No space left on device") and run.stderr.count("\n") == 1


def test_what_an_encoding_lacks_is_shown_with_backslashes():
    run = shell(f"PYTHONIOENCODING=ascii PYTHON {shlex.join(COMPARE)} --text=가")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("\\uac00\n")


# Found by the interpreter when it starts; sends it Ctrl-C when a module is looked for.
SITE = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            for _ in range(5):
                os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


def python(*arguments, path=""):
    """Runs a fresh interpreter."""
    return run_python(*arguments, env={**ENVIRONMENT, "PYTHONPATH": f"{path}:{ROOT}"})


IMPORT_TENSORFLOW = """
from bert_common.import_tensorflow import import_tensorflow
from bert_common.startup import begin, interruptible
begin()
with interruptible():
    import_tensorflow()
"""


@pytest.mark.parametrize(
    "command, module",
    (
        (("run_pretraining.py",), "run_scripts.pretrain"),
        (("create_pretraining_data.py",), "numpy"),
        (("run_race.py",), "absl"),
        (("run_squad_v2.py",), "tokenization.korean"),
        (("-m", "run_scripts.tools.fill_masks"), "albert_tf"),
        *((("-m", module), "tempfile") for module in MODULES),
        (("-c", IMPORT_TENSORFLOW), "tensorflow.python"),
    ),
    ids=str,
)
def test_ctrl_c_while_modules_are_imported(command, module, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SITE.format(module=module))
    run = python(*command, path=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", INTERRUPTED)


KILL = """
import atexit, os, signal, sys
from bert_common.startup import begin
def kill():
    os.kill(os.getpid(), signal.SIGINT)
begin()
"""


# In the program, while it cleans up, in a destructor, after the message, while it ends.
FIVE_TIMES = """
import dataclasses
from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import run_program
@dataclasses.dataclass(frozen=True)
class CopyFlags:
    source: str = flag("a", "File to copy.")
class Thing:
    def __del__(self): kill()
def program(values):
    try:
        kill()
    finally:
        try:
            kill()
        finally:
            kill()
atexit.register(kill)
status = run_program(program, CopyFlags, ["copy", "--source=a"])
kill()
sys.exit(status)"""
IN_A_DESTRUCTOR = """
from bert_common.startup import interruptible
class Thing:
    def __del__(self): kill()
with interruptible():
    Thing()"""
# So late that Python runs no handlers any more.
TOO_LATE = """
class Late:
    def __del__(self, kill=kill, os=os, signal=signal): kill()
sys.late = Late()
print('done')"""
CTRL_C = {
    "while the interpreter ends": ("print('done')\natexit.register(kill)", 1, "done\n"),
    "too late": (TOO_LATE, 0, "done\n"),
    "five times": (FIVE_TIMES, 1, ""),
    "in a destructor": (IN_A_DESTRUCTOR, 1, ""),
    "to Python's handler": (
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nkill()", 1, ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("code, status, out", CTRL_C.values(), ids=CTRL_C)
def test_ctrl_c_is_one_line(code, status, out):
    run = python("-c", KILL + code)
    assert (run.returncode, run.stdout, run.stderr) == (status, out, INTERRUPTED * status)


def test_ignored_ctrl_c_stays_ignored():
    run = shell(f"trap '' INT; PYTHON -c '{KILL}kill()\nprint(1)'")
    assert (run.returncode, run.stdout, run.stderr) == (0, "1\n", "")


def test_python_programs_that_use_the_packages_keep_their_ctrl_c():
    run = python(
        "-c",
        "import os, signal, sys\nfrom bert_common.startup import exit_on_interrupt, interruptible\n"
        "try:\n    with interruptible(), exit_on_interrupt():\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print('theirs')",
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "theirs\n", "")


def test_launchers_and_commands_import_no_program_before_ctrl_c_is_handled():
    code = "import sys, run_scripts.programs; print({'numpy', 'absl'} & set(sys.modules))"
    assert python("-c", code).stdout == "set()\n"
    launchers = [path for path in ROOT.glob("*.py") if path.stem != "setup"]
    assert len(launchers) == 14
    for path in launchers:
        name = path.stem.removesuffix("_v1").removesuffix("_v2")
        imports = [line for line in path.read_text().splitlines() if "import" in line]
        assert imports == ["import sys", f"from run_scripts.programs import {name}"]
        assert callable(getattr(programs, name))
    for line in declared("COMMANDS") + declared("PREFIXED"):
        command, place = line.split(" = ")
        name = command.replace("-", "_")
        assert place == f"run_scripts.programs:{name}" and callable(getattr(programs, name))


def has_begun(process):
    """Whether a program has its own copy of its standard error, which it takes first of all."""
    folder = f"/proc/{process.pid}/fd"
    try:
        ends = {int(name): os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    except OSError:  # a descriptor that was closed meanwhile
        return False
    return any(end == ends.get(2) for number, end in ends.items() if number > 2)


@pytest.mark.slow
@pytest.mark.parametrize("times", (1, 5))
def test_ctrl_c_at_any_moment(tmp_path, times):
    """Of a training run: its imports, its first steps, its end."""
    job = PretrainingJob(tmp_path)
    command = [sys.executable, *job.argv(num_train_steps=3, num_warmup_steps=1)]
    moments = random.Random(times)
    for _ in range(20):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        while not has_begun(process) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 12))
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(moments.uniform(0, 0.1))
        _, errors = process.communicate(timeout=120)
        *notes, last = spoken_lines(errors) or [""]
        assert all("training saves after the step under way" in note for note in notes), errors
        if process.returncode == 0:  # finished, or stopped and saved
            assert last == "" or "training saves after the step under way" in last
        elif process.returncode == 128 + signal.SIGINT:
            assert "stopped by SIGINT before a new step was finished" in last
        else:
            assert process.returncode == 1 and last.startswith("error: interrupted"), errors


@pytest.mark.slow
@pytest.mark.parametrize("reader", ("| head -1", "2>&1 | true"))
def test_training_continues_without_a_reader(tmp_path, reader):
    job = PretrainingJob(tmp_path)
    command = shlex.join(["PYTHON", *job.argv()])
    shell(f"({command}; echo status $? > {tmp_path}/status) {reader}")
    deadline = time.monotonic() + 600  # a machine may be busy
    while not (tmp_path / "status").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (tmp_path / "status").read_text() == "status 0\n"
    assert (job.output / "model.ckpt-6.index").exists()


@pytest.mark.parametrize("name", ("tokenization", "create_pretraining_data"))
@pytest.mark.parametrize(
    "command, kind",
    (
        ("-m run_scripts.pretrain --help", "error"),
        ("-m run_scripts.tools.check_devices --help", "error"),
        ("-c 'from run_scripts.programs import run_race; run_race()'", "error"),
        ("-c 'from bert_tf import BertConfig'", "ImportError"),
        ("-c 'from albert_tf import AlbertConfig'", "ImportError"),
    ),
)
def test_file_that_hides_a_package_is_named(tmp_path, command, kind, name):
    """As in a checkout of a reference repository, where such a file needs TensorFlow 1."""
    (tmp_path / f"{name}.py").write_text("raise AttributeError('imported')")
    run = shell(f"PYTHON {command}", tmp_path)
    assert (run.returncode, run.stdout) == (1, "")
    *trace, line = run.stderr.splitlines()
    assert line.startswith(f"{kind}: {tmp_path}/{name}.py hides this project's package {name}: ")
    assert kind == "ImportError" or not trace
