"""A task at a time in the background: in order, waited for, its errors raised."""

import threading

import pytest

from bert_common.background import Background


def test_tasks_run_one_after_the_other_beside_the_caller():
    events, go_on = [], threading.Event()

    def first():
        assert go_on.wait(60)
        events.append("first")

    with Background() as background:
        background.start(first)
        events.append("caller")
        go_on.set()
        background.start(lambda: events.append("second"))
    assert events == ["caller", "first", "second"]


def fail():
    raise OSError("disk full")


def test_an_error_is_raised_at_the_next_wait_once():
    for after in (Background.wait, lambda background: background.start(lambda: None)):
        background = Background()
        assert not background.failed
        background.start(fail)
        background._thread.join()
        assert background.failed
        with pytest.raises(OSError, match="disk full"):
            after(background)
        background.wait()
        assert not background.failed
    with pytest.raises(OSError, match="disk full"), Background() as background:
        background.start(fail)


def test_the_error_that_ends_the_work_comes_first():
    ended = threading.Event()
    with pytest.raises(ValueError, match="mine"), Background() as background:
        background.start(lambda: (ended.wait(0.1), ended.set(), fail()))
        raise ValueError("mine")
    assert ended.is_set(), "the task has ended"
