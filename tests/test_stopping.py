"""Signals end training after the step under way: noted, ignored, repeated, of a closed terminal."""

import os
import pty
import signal
import subprocess
import sys
import threading

import pytest
from jobs import ROOT

from bert_tf.stopping import SIGNALS, StopRequest


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
def test_second_interrupt_ends_at_once():
    handler = signal.getsignal(signal.SIGINT)
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.signal_name == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == handler


@pytest.mark.usefixtures("interruptible")
def test_five_interrupts_are_one_way_out(capfd):
    """The first says what it does and what a second would; those after the second do nothing."""
    with StopRequest():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
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
from bert_tf.startup import begin
from bert_tf.stopping import StopRequest
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
