"""Signals end training after the current step: first, repeated, ignored, of a closed terminal."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert_tf.training.interruptions.signals import SIGNALS, StopRequest
from tests.support.paths import ROOT


@pytest.fixture
def interruptible():
    """Sets the usual handler: a shell's job in the background is started with SIGINT ignored."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", SIGNALS)
def test_signal_is_noted_and_handlers_come_back(number):
    handlers = [signal.getsignal(n) for n in SIGNALS]
    with StopRequest() as stop:
        assert (stop.requested, stop.signal_name) == (False, None)
        os.kill(os.getpid(), number)
        assert (stop.requested, stop.signal_name) == (True, number.name)
    assert stop.requested
    assert [signal.getsignal(n) for n in SIGNALS] == handlers


@pytest.mark.usefixtures("interruptible")
def test_five_interrupts_are_one_way_out(capfd):
    """The first announces what it does and what a second would do; later ones do nothing."""
    with StopRequest() as stop:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
    assert stop.signal_name == "SIGTERM"
    (line,) = capfd.readouterr().err.split("\n")[1:-1]
    assert "training saves after the step" in line and "Ctrl-C again" in line


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_ignored_signal_stays_ignored(number):
    """Above all SIGHUP under nohup."""
    kept = signal.signal(number, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), number)
            assert not stop.requested
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, kept)


# A program on a terminal, which writes to it once its StopRequest has been told.
ON_A_TERMINAL = """
import fcntl, sys, termios, time
from bert_common.startup import begin
from bert_tf.training.interruptions.signals import StopRequest
begin()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
with StopRequest() as stop:
    print("ready", flush=True)
    while not stop.requested:
        time.sleep(0.01)
    print("to the terminal", flush=True)
    print("to the pipe", file=sys.stderr, flush=True)
    with open(sys.argv[1], "w") as file:
        file.write(stop.signal_name)
"""


def test_terminal_that_closes(tmp_path):
    """The kernel sends SIGHUP; nothing that is written later fails: neither there nor to `tee`."""
    ours, theirs = pty.openpty()
    reading, writing = os.pipe()
    saved = tmp_path / "saved"
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, saved],
        cwd=ROOT, stdin=theirs, stdout=theirs, stderr=writing, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.close(writing)
    assert os.read(ours, 100).startswith(b"ready")
    os.close(reading)
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert saved.read_text() == "SIGHUP"


def test_outside_the_main_thread_no_handler_is_set():
    handlers = [signal.getsignal(n) for n in SIGNALS]
    seen = []

    def enter():
        with StopRequest() as stop:
            seen.append([signal.getsignal(n) for n in SIGNALS])
            seen.append(stop.requested)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [handlers, False]


# A program whose main thread is in C, as it is while XLA compiles: Python's handlers do not run.
OUTSIDE_OF_PYTHON = """
import ctypes, signal, sys
from bert_common.startup import begin
from bert_tf.training.interruptions.signals import SIGNALS, StopRequest
begin()
with StopRequest() as stop:
    stop.nothing_to_save = sys.argv[1] == "True"
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # else poll, unlike XLA, would return
    print("ready", flush=True)
    ctypes.CDLL(None).poll(None, 0, int(sys.argv[2]))
    print(stop.signal_name)
"""


@pytest.fixture
def outside_of_python():
    """Starts that program, for so many milliseconds; ends it."""
    started = []

    def start(nothing_to_save, milliseconds):
        process = subprocess.Popen(
            [sys.executable, "-c", OUTSIDE_OF_PYTHON, str(nothing_to_save), str(milliseconds)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_is_heard_at_once_where_there_is_nothing_to_save(number, outside_of_python):
    process = outside_of_python(True, 600_000)
    process.send_signal(number)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    (line,) = error.strip().splitlines()
    assert line.startswith(f"error: stopped by {number.name} before a new step was finished")


def test_signal_waits_where_there_is_something_to_save(outside_of_python):
    process = outside_of_python(False, 500)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20) == ("SIGTERM\n", "")
    assert process.returncode == 0


def test_second_interrupt_ends_at_once_outside_of_python(outside_of_python):
    process = outside_of_python(False, 600_000)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)  # two signals that are not delivered yet are one
    _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the steps since the newest checkpoint are not saved" in error.splitlines()[-1]


def test_wakeup_descriptor_comes_back():
    before = threading.active_count()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    kept = signal.set_wakeup_fd(writing)
    try:
        with StopRequest():
            assert threading.active_count() == before + 1
        assert signal.set_wakeup_fd(writing) == writing
    finally:
        signal.set_wakeup_fd(kept)
        os.close(reading)
        os.close(writing)
    assert threading.active_count() == before
