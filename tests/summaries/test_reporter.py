"""Curves on TensorBoard: their points and rates; texts; a profile."""

import html
import math
import time

import numpy as np
import pytest
import tensorflow as tf
import tqdm.std
from tensorboard import plugin_util

from bert_tf.summaries import reporter as reporting
from bert_tf.summaries.markdown import as_markdown_table, escape_markdown
from bert_tf.summaries.profile import Profile
from tests.support.programs import curves, texts
from tests.support.reporters import BATCH, make_reporter, metrics


@pytest.fixture
def now(monkeypatch):
    """The time, in a list, of clocks that stand still."""
    now = [0.0]
    for place, name in ((time, "perf_counter"), (tqdm.std, "time")):
        monkeypatch.setattr(place, name, lambda: now[0])
    return now


def run(reporter, now, last_step, count, seconds, **changes):
    """Reports updates with a loss of 3 each that took these seconds."""
    now[0] += seconds
    reporter.steps(last_step, metrics([3] * count, **changes))


def test_a_point_is_about_all_updates_since_the_last_one(tmp_path):
    with make_reporter(tmp_path, weight_norm=lambda: tf.constant(7.0)) as reporter:
        reporter.steps(2, metrics([4, 3]))
        reporter.steps(4, metrics([2, 1]))
        reporter.steps(8, metrics([1, 1, 1, 5]))
    found = curves(tmp_path)
    measured = {
        "throughput/examples_per_second", "throughput/tokens_per_second",
        "throughput/step_seconds", "throughput/input_wait_seconds",
        "memory/process_gib", "memory/process_peak_gib",
    }  # fmt: skip
    values = {
        "loss/total": (2.5, 2.0), "loss/masked_lm": (100 / 48, 80 / 48),
        "loss/sentence_order": (1.25, 1.0), "accuracy/masked_lm": (0.25, 0.25),
        "accuracy/sentence_order": (0.75, 0.75), "learning_rate": (0.001, 0.005),
        "gradient_norm": (1.25, 1.0), "weight_norm": (7.0, 7.0),
        "data/padding_share": (0.25, 0.25), "health/skipped_steps": (0.0, 0.0),
    }  # fmt: skip
    for name, (first, second) in values.items():
        assert found[name] == [(4, pytest.approx(first)), (8, pytest.approx(second))], name
    assert set(found) == {*values, *measured}
    for kind in ("process", "process_peak"):
        assert 0.01 < found[f"memory/{kind}_gib"][0][1] < 1000


def test_rates_are_of_the_updates_that_the_clock_saw(tmp_path, now):
    with make_reporter(tmp_path) as reporter:
        run(reporter, now, 2, 2, 100, input_seconds=np.float32([50, 5]))  # compiles
        waits = np.float32([0.25, 0.5])
        run(reporter, now, 4, 2, 1.5, tokens=np.float32([64, 96]), input_seconds=waits)
        now[0] += 1000  # a checkpoint
        reporter.restart_clock()
        run(reporter, now, 8, 4, 0.5)
    found = curves(tmp_path)
    assert found["throughput/examples_per_second"] == [
        (4, pytest.approx(2 * BATCH / 1.5)), (8, pytest.approx(4 * BATCH / 0.5)),
    ]  # fmt: skip
    assert found["throughput/tokens_per_second"][0] == (4, pytest.approx(160 / 1.5))
    assert found["throughput/step_seconds"] == [(4, 0.75), (8, 0.125)]
    assert found["throughput/input_wait_seconds"][0] == (4, 0.375)


def test_skipped_updates_count_but_say_nothing(tmp_path):
    nan = math.nan
    with make_reporter(tmp_path, skipped_before=5) as reporter:
        rates = np.float32([1, 2, 3, 4])
        reporter.steps(4, metrics([2, nan, 4, nan], [0, 1, 0, 1], learning_rate=rates))
        reporter.steps(8, metrics([nan] * 4, skipped=[1] * 4))
        assert reporter.skipped == 11
    found = curves(tmp_path)
    assert found["health/skipped_steps"] == [(4, 7.0), (8, 11.0)]
    assert found["loss/total"] == [(4, 3.0)]
    assert found["loss/masked_lm"] == [(4, 2.5)]
    assert found["gradient_norm"] == [(4, 1.5)]
    assert found["learning_rate"][0] == (4, 4.0)
    assert found["data/padding_share"] == [(4, 0.25), (8, 0.25)]


def test_a_line_a_minute_where_there_is_no_terminal(tmp_path, now, capsys):
    """Its rate and the time left do not follow from the calls that compile."""
    with make_reporter(tmp_path, num_train_steps=1000, summary_steps=100) as reporter:
        run(reporter, now, 2, 2, 1200)  # compiles
        assert capsys.readouterr().err == ""
        for step in range(4, 126, 2):
            run(reporter, now, step, 2, 2, skipped=[step == 10, 0])
        lines = capsys.readouterr().err.splitlines()
        run(reporter, now, 128, 4, 4)
    values = "loss=3.000, lr=3.00e-03, examples_s=8.0, skipped=1"
    assert lines == [
        f"training: 6%, 62 of 1,000 steps, 1.0 steps/s, 16 min left, {values}",
        f"training: 12%, 122 of 1,000 steps, 1.0 steps/s, 15 min left, {values}",
    ]
    (last,) = capsys.readouterr().err.splitlines()
    assert last.startswith("training: 13%, 128 of 1,000 steps, 1.0 steps/s, ended after 2 min, ")


def test_what_a_run_does_not_have_has_no_curve(tmp_path):
    """Neither sentence labels nor float16; with it its loss scale."""
    without = {k: v for k, v in metrics([1] * 4).items() if not k.startswith("next_sentence")}
    with make_reporter(tmp_path / "without") as reporter:
        reporter.steps(4, without)
    found = curves(tmp_path / "without")
    assert "loss/masked_lm" in found
    assert not {"loss/sentence_order", "accuracy/sentence_order", "weight_norm"} & set(found)
    assert "loss_scale" not in found
    with make_reporter(tmp_path / "float16") as reporter:
        reporter.steps(4, metrics([1] * 4, loss_scale=np.float32([8, 8, 4, 4])))
    assert curves(tmp_path / "float16")["loss_scale"] == [(4, 4.0)]


class OnTheDevice:
    """Stands in for a tensor that is not computed yet, and counts how often it is fetched."""

    fetched = 0

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        OnTheDevice.fetched += 1
        return np.array(self.values, dtype)


def test_waits_for_the_device_only_for_a_point_or_a_line(tmp_path, now):
    names = list(metrics([1]))
    idle = {name: OnTheDevice([float(name == "positions")]) for name in names}
    with make_reporter(tmp_path, summary_steps=100) as reporter:
        reporter.steps(1, idle)  # the clock starts after it
        before = OnTheDevice.fetched
        for step in range(2, 50):
            now[0] += 0.9 * reporting.LOOK_INTERVAL / 48
            reporter.steps(step, idle)
        assert OnTheDevice.fetched == before
        now[0] += 0.2 * reporting.LOOK_INTERVAL
        reporter.steps(50, idle)
        fetched = before + 49 * len(names)
        assert OnTheDevice.fetched == fetched
        reporter.flush(50)
        assert OnTheDevice.fetched == fetched
    assert [step for step, _ in curves(tmp_path)["loss/total"]] == [50]


def test_texts(tmp_path):
    table = as_markdown_table([("learning_rate", 1e-3), ("input_file", "a|b*.tfrecord")])
    with make_reporter(tmp_path) as reporter:
        reporter.texts({"configuration": table}, 0)
    assert texts(tmp_path, "configuration") == [(0, table)]
    page = plugin_util.markdown_to_safe_html(table)
    assert page.count("<tr>") == 3 and page.count("<td>") == 4
    assert "a|b*.tfrecord" in html.unescape(page)


NASTY = ("**a**", "a_b_c", "`a`", "<b>a</b>", "a | b", "# a", "1. a", "- a", "[a](b)", "&lt;",
         "http://a.b", "a\\*b", "a\nb", "~a~")  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
def test_escaped_text_is_shown_as_it_is(text):
    page = plugin_util.markdown_to_safe_html(escape_markdown(text))
    assert page.startswith("<p>") and page.endswith("</p>")
    assert "<" not in page[3:-4]
    assert " ".join(html.unescape(page[3:-4]).split()) == " ".join(text.split())


def test_profile_of_some_updates(tmp_path):
    started = []
    for first, last in ((3, 6), (0, 0)):
        directory = tmp_path / f"{first}-{last}"
        with Profile(directory, first, last) as profile:
            for step in range(1, 11, 2):
                profile.before(step)
                tf.linalg.matmul(tf.ones([8, 8]), tf.ones([8, 8]))
                started.append(profile.running)
                profile.after(step + 1)
                assert profile.running == (first == 3 and step == 3 and last > 4)
    assert started == [False, True, True, False, False] + [False] * 5
    assert list((tmp_path / "3-6" / "plugins" / "profile").rglob("*.xplane.pb"))
    assert not (tmp_path / "0-0").exists()


def test_a_profile_ends_with_the_run(tmp_path):
    with pytest.raises(ZeroDivisionError), Profile(tmp_path, 1, 10) as profile:
        profile.before(1)
        raise ZeroDivisionError
    assert list((tmp_path / "plugins" / "profile").rglob("*.xplane.pb"))
    Profile(tmp_path, 1, 10).before(11)  # a run that resumes after that
