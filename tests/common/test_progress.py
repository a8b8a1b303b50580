"""Progress: a bar on a terminal, plain lines elsewhere."""

import io
import sys
from types import SimpleNamespace

import pytest
import tqdm.std

from bert_common import progress as module
from bert_common.progress import format_bytes, format_duration, progress


@pytest.fixture
def clock(monkeypatch):
    """Seconds, `now`, that pass when a test says so."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(tqdm.std, "time", lambda: clock.now)
    return clock


# What `progress` is given, how many are done after how many more seconds, the lines of a log.
LOGS = {
    "a line a minute and a last one": (
        {"what": "making", "total": 10_000, "unit": "examples"},
        [(1.5, 100)] * 100,
        "making: 40%, 4,000 of 10,000 examples, 66.7 examples/s, 2 min left\n"
        "making: 80%, 8,000 of 10,000 examples, 66.7 examples/s, 30 s left\n"
        "making: 100%, 10,000 of 10,000 examples, 66.7 examples/s, ended after 2 min\n",
    ),
    "short work": ({"what": "making", "total": 10, "unit": "examples"}, [(59, 10)], ""),
    "another worker": ({"what": "a", "total": 10, "unit": "b", "shown": False}, [(100, 1)], ""),
    "what an earlier run did is not in the rate": (
        {"what": "making", "total": 2_000_000_000, "unit": "B", "done": 1_900_000_000},
        [(60, 600_000)],
        "making: 95%, 1.9 GB of 2 GB, 10 kB/s, 2 h 46 min left\n"
        "making: 95%, 1.9 GB of 2 GB, 10 kB/s, ended after 1 min\n",
    ),
    "the rate of slow steps is the time of one": (
        {"what": "training", "total": 100, "unit": "steps"},
        [(80, 1)],
        "training: 1%, 1 of 100 steps, 80.0 s each, 2 h 12 min left\n"
        "training: 1%, 1 of 100 steps, 80.0 s each, ended after 1 min\n",
    ),
}


@pytest.mark.parametrize("given, updates, lines", LOGS.values(), ids=LOGS)
def test_lines_of_a_log(clock, capsys, given, updates, lines):
    with progress(**given) as bar:
        for seconds, count in updates:
            clock.now += seconds
            bar.update(count)
    assert capsys.readouterr() == ("", lines)


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


def test_a_terminal_has_a_bar_with_the_same_words(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "BAR_DELAY", 0)
    with progress("training", 1000, "steps", done=500) as bar:
        bar.start_t -= 1000
        bar.update(100)
        bar.set_postfix({"loss": "3.210"})
    shown = terminal.getvalue()
    assert "\n" not in shown and "training:  60%|" in shown
    assert "| 600 of 1,000 steps, 10.0 s each, 1 h 7 min left, loss=3.210" in shown


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
