"""Progress: a bar on a terminal, plain lines elsewhere."""

import io
import sys

import pytest
import tqdm.std

from bert_common import progress as module
from bert_common.progress import format_bytes, format_duration, progress


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(tqdm.std, "time", clock)
    return clock


def open_terminal(monkeypatch):
    """A standard error that claims to be a terminal."""
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_log_has_a_line_a_minute_and_a_last_one(clock, capsys):
    with progress("making", 10_000, "examples") as bar:
        for _ in range(100):
            clock.now += 1.5
            bar.update(100)
    err = capsys.readouterr().err
    assert err.splitlines() == [
        "making: 40%, 4,000 of 10,000 examples, 66.7 examples/s, 2 min left",
        "making: 80%, 8,000 of 10,000 examples, 66.7 examples/s, 30 s left",
        "making: 100%, 10,000 of 10,000 examples, 66.7 examples/s, ended after 2 min",
    ]
    assert err.endswith("\n") and "\r" not in err


def test_other_output_adds_no_line(clock, capsys):
    with progress("making", 10, "examples") as bar:
        clock.now += 61
        bar.update(5)
        before = capsys.readouterr().err
        with tqdm.std.tqdm.external_write_mode(file=sys.stderr):
            print("warning: a", file=sys.stderr)
    assert before.count("\n") == 1
    warned, last = capsys.readouterr().err.splitlines()
    assert warned == "warning: a" and "ended after" in last


def test_short_work_leaves_no_line(clock, capsys):
    with progress("making", 10, "examples") as bar:
        clock.now += 59
        bar.update(10)
    assert capsys.readouterr().err == ""


def test_what_an_earlier_run_did_is_not_in_the_rate(clock, capsys):
    with progress("making", 2_000_000_000, "B", done=1_900_000_000) as bar:
        clock.now += 60
        bar.update(600_000)
    line, last = capsys.readouterr().err.splitlines()
    assert line == "making: 95%, 1.9 GB of 2 GB, 10 kB/s, 2 h 46 min left"
    assert last == "making: 95%, 1.9 GB of 2 GB, 10 kB/s, ended after 1 min"


def test_a_slow_beginning_is_forgotten(clock, capsys):
    bar = progress("training", 10_000, "steps")
    clock.now += 3600
    bar.update()
    for _ in range(30):
        clock.now += 60
        bar.update(120)
    bar.set_postfix({"loss": "3.210"}, refresh=False)
    clock.now += 60
    bar.update(120)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "training: 37%, 3,721 of 10,000 steps, 2.0 steps/s, 52 min left, loss=3.210"


def test_the_rate_of_slow_steps_is_the_time_of_one(clock, capsys):
    bar = progress("training", 100, "steps")
    clock.now += 80
    bar.update()
    assert "1 of 100 steps, 80.0 s each, 2 h 12 min left" in capsys.readouterr().err


def test_a_terminal_has_a_bar_with_the_same_words(monkeypatch):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(module, "BAR_DELAY", 0)
    with progress("training", 1000, "steps", done=500) as bar:
        bar.start_t -= 10
        bar.update(100)
        bar.set_postfix({"loss": "3.210"})
    shown = terminal.getvalue()
    assert "\n" not in shown
    assert "training:  60%|" in shown
    assert "| 600 of 1,000 steps, " in shown and " s left, loss=3.210" in shown


def test_the_bar_says_the_time_left_in_words(monkeypatch):
    open_terminal(monkeypatch)
    with progress("training", 1000, "steps", done=500) as bar:
        bar.n, bar.start_t = 600, bar.start_t - 1000
        assert "600 of 1,000 steps, 10.0 s each, 1 h 7 min left" in str(bar)


def test_nothing_is_shown_by_other_workers(clock, capsys):
    with progress("training", 10, "steps", shown=False) as bar:
        clock.now += 100
        bar.update()
    assert capsys.readouterr() == ("", "")


def test_a_log_that_takes_no_more_does_not_end_the_work(clock, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    with progress("making", 10, "examples") as bar:
        clock.now += 100
        bar.update(10)


def test_times_and_sizes_are_written_for_people():
    seconds = 0.2, 59.4, 59.6, 90, 3599, 3600, 4800, 86_399, 90_000, 273_600
    assert [format_duration(each) for each in seconds] == [
        "0 s", "59 s", "1 min", "2 min", "1 h 0 min", "1 h 0 min", "1 h 20 min", "1 day 0 h",
        "1 day 1 h", "3 days 4 h",
    ]  # fmt: skip
    assert [format_bytes(n) for n in (5, 12_345, 999_600, 1.5e12)] == [
        "5 B", "12.3 kB", "1 MB", "1.5 TB",
    ]  # fmt: skip
