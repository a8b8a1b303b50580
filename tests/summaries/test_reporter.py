"""Curves on TensorBoard: what they say, how they go on after a kill, a profile, texts."""

import html
import math
import time

import numpy as np
import pytest
import tensorflow as tf
from jobs import curves, texts
from tensorboard import plugin_util

from bert_common import progress
from bert_tf.pretraining import pretraining_objective
from bert_tf.summaries import reporter as reporting
from bert_tf.summaries.event_files import drop_later_events
from bert_tf.summaries.markdown import as_markdown_table, escape_markdown
from bert_tf.summaries.profile import Profile
from bert_tf.summaries.reporter import Illustrations, Reporter, write_evaluation
from create_pretraining_data.records import tfrecord

BATCH = 8


def make_reporter(directory, start_step=0, **changes):
    arguments = {
        "num_train_steps": 100,
        "batch_size": BATCH,
        "summary_steps": 4,
        **changes,
    }
    return Reporter(directory, pretraining_objective("sentence_order"), start_step, **arguments)


def metrics(losses, skipped=None, **changes):
    """What a loop of so many updates returns, on the device; its numbers follow from the losses."""
    losses = np.array(losses, np.float32)  # [n]
    values = {
        "masked_lm_loss": losses * 10,
        "masked_lm_correct": np.full_like(losses, 3),
        "masked_lm_weight": np.full_like(losses, 12),
        "next_sentence_loss": losses * 4,
        "next_sentence_correct": np.full_like(losses, 6),
        "next_sentence_weight": np.full_like(losses, 8),
        "loss": losses,
        "gradient_norm": losses / 2,
        "learning_rate": losses / 1000,
        "tokens": np.full_like(losses, 96),
        "positions": np.full_like(losses, 8 * 16),
        "skipped": np.zeros_like(losses) if skipped is None else np.array(skipped, np.float32),
        "input_seconds": np.full_like(losses, 1e-4),
        **changes,
    }
    return {name: tf.constant(value) for name, value in values.items()}


def test_a_point_is_about_all_updates_since_the_last_one(tmp_path):
    with make_reporter(tmp_path, weight_norm=lambda: tf.constant(7.0)) as reporter:
        reporter.steps(2, metrics([4, 3]))
        reporter.steps(4, metrics([2, 1]))
        reporter.steps(8, metrics([1, 1, 1, 5]))
    found = curves(tmp_path)
    assert set(found) == {
        "loss/total", "loss/masked_lm", "loss/sentence_order",
        "accuracy/masked_lm", "accuracy/sentence_order",
        "learning_rate", "gradient_norm", "weight_norm",
        "throughput/examples_per_second", "throughput/tokens_per_second",
        "throughput/step_seconds", "throughput/input_wait_seconds",
        "data/padding_share", "health/skipped_steps",
        "memory/process_gib", "memory/process_peak_gib",
    }  # fmt: skip
    assert found["loss/total"] == [(4, 2.5), (8, 2.0)]
    assert found["loss/masked_lm"] == [(4, pytest.approx(100 / 48)), (8, pytest.approx(80 / 48))]
    assert found["loss/sentence_order"] == [(4, 1.25), (8, 1.0)]
    assert found["accuracy/masked_lm"] == [(4, 0.25), (8, 0.25)]
    assert found["accuracy/sentence_order"] == [(4, 0.75), (8, 0.75)]
    assert found["learning_rate"] == [(4, pytest.approx(0.001)), (8, pytest.approx(0.005))]
    assert found["gradient_norm"] == [(4, 1.25), (8, 1.0)]
    assert found["weight_norm"] == [(4, 7.0), (8, 7.0)]
    assert found["data/padding_share"] == [(4, 0.25), (8, 0.25)]
    assert found["health/skipped_steps"] == [(4, 0.0), (8, 0.0)]
    for kind in ("process", "process_peak"):
        assert 0.01 < found[f"memory/{kind}_gib"][0][1] < 1000


def test_rates_are_of_the_updates_that_the_clock_saw(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with make_reporter(tmp_path) as reporter:

        def run(last_step, count, seconds, **changes):
            now[0] += seconds
            reporter.steps(last_step, metrics([1] * count, **changes))

        run(2, 2, 100, input_seconds=np.float32([50, 5]))  # compiles
        run(4, 2, 1.5, tokens=np.float32([64, 96]), input_seconds=np.float32([0.25, 0.5]))
        now[0] += 1000  # a checkpoint
        reporter.restart_clock()
        run(8, 4, 0.5)
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
        reporter.steps(
            4,
            metrics([2, nan, 4, nan], skipped=[0, 1, 0, 1], learning_rate=np.float32([1, 2, 3, 4])),
        )
        reporter.steps(8, metrics([nan] * 4, skipped=[1] * 4))
        assert reporter.skipped == 11
    found = curves(tmp_path)
    assert found["health/skipped_steps"] == [(4, 7.0), (8, 11.0)]
    assert found["loss/total"] == [(4, 3.0)]
    assert found["loss/masked_lm"] == [(4, 2.5)]
    assert found["gradient_norm"] == [(4, 1.5)]
    assert found["learning_rate"][0] == (4, 4.0)
    assert found["data/padding_share"] == [(4, 0.25), (8, 0.25)]


def test_a_line_a_minute_where_there_is_no_terminal(tmp_path, monkeypatch, capsys):
    """Its rate and the time left do not follow from the calls that compile."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    with make_reporter(tmp_path, num_train_steps=1000, summary_steps=100) as reporter:

        def run(last_step, count, seconds, **changes):
            now[0] += seconds
            reporter.steps(last_step, metrics([3] * count, **changes))

        run(2, 2, 1200)  # compiles
        assert capsys.readouterr().err == ""
        for step in range(4, 126, 2):
            run(step, 2, 2, skipped=[step == 10, 0])
        lines = capsys.readouterr().err.splitlines()
        run(128, 4, 4)
    assert lines == [
        "training: 6%, 62 of 1,000 steps, 1.0 steps/s, 16 min left, loss=3.000, lr=3.00e-03, "
        "examples_s=8.0, skipped=1",
        "training: 12%, 122 of 1,000 steps, 1.0 steps/s, 15 min left, loss=3.000, lr=3.00e-03, "
        "examples_s=8.0, skipped=1",
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
    """Stands in for a tensor that is not computed yet, notes whether somebody wanted it."""

    fetched = 0

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        OnTheDevice.fetched += 1
        return np.array(self.values, dtype)


def test_waits_for_the_device_only_for_a_point_or_a_line(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    names = list(metrics([1]))
    idle = {name: OnTheDevice([float(name == "positions")]) for name in names}
    with make_reporter(tmp_path, summary_steps=100) as reporter:
        for step in range(1, reporting.UNTIMED_CALLS + 1):  # the clock starts after these
            reporter.steps(step, idle)
        before = OnTheDevice.fetched
        for step in range(reporting.UNTIMED_CALLS + 1, 50):
            now[0] += 0.9 * reporting.LOOK_INTERVAL / 48
            reporter.steps(step, idle)
        assert OnTheDevice.fetched == before
        now[0] += 0.2 * reporting.LOOK_INTERVAL
        reporter.steps(50, idle)
        fetched = before + (50 - reporting.UNTIMED_CALLS) * len(names)
        assert OnTheDevice.fetched == fetched
        reporter.flush(50)
        assert OnTheDevice.fetched == fetched
    assert [step for step, _ in curves(tmp_path)["loss/total"]] == [50]


def run_until(directory, start_step, last_step, loop=2, checkpoints=6):
    """A run that writes a checkpoint, with an evaluation, every so many steps; not closed."""
    reporter = make_reporter(directory, start_step)
    for step in range(start_step + loop, last_step + 1, loop):
        reporter.steps(step, metrics([step] * loop))
        if step % checkpoints == 0:
            reporter.flush(step)
            shown = Illustrations({"guesses": f"after {step}"}, {})
            reporter.evaluation(step, {"loss": float(step)}, shown)
    return reporter


def cut(path, count):
    """Takes some bytes away from the end of a file."""
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - count)


def event_files(directory):
    return sorted(directory.rglob("events.out.tfevents.*"))


def age(directory):
    """Makes the event files so far old: TensorBoard reads them by the second in their names."""
    for path in event_files(directory):
        path.rename(path.with_name(path.name.replace("tfevents.1", "tfevents.0", 1)))


@pytest.mark.parametrize("torn", (0, 3, 60))
def test_a_killed_run_s_curves_go_on_without_a_gap_or_an_overlap(tmp_path, torn):
    """Points every 4 steps and at checkpoints (every 6): killed after 10, again from 6."""
    killed = run_until(tmp_path, 0, 10)
    # After what is resumed from.
    killed.evaluation(10, {"loss": 10.0}, Illustrations({"guesses": "later"}, {}))
    killed.texts({"configuration": "first"}, 0)
    assert [step for step, _ in curves(tmp_path)["loss/total"]] == [4, 6, 8]
    assert [step for step, _ in curves(tmp_path / "eval")["loss/total"]] == [6, 10]
    if torn:
        cut(next(tmp_path.glob("events.*")), torn)  # within the text, or the last point
    age(tmp_path)
    resumed = run_until(tmp_path, 6, 16)
    resumed.__exit__()
    found = curves(tmp_path)
    # Every point is the mean of the losses since the last one: none counts twice, none lacks.
    expected = [(4, 3.0), (6, 6.0), (8, 8.0), (12, 11.0), (16, 15.0)]
    assert found["loss/total"] == expected
    for name, points in found.items():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps)), name
    assert curves(tmp_path / "eval")["loss/total"] == [(6, 6.0), (12, 12.0)]
    assert texts(tmp_path / "eval", "guesses") == [(6, "after 6"), (12, "after 12")]
    assert not list(tmp_path.rglob("*.tmp"))
    killed.__exit__()


def test_an_evaluation_done_again_takes_the_place_of_the_first(tmp_path):
    """The run was killed after the evaluation, before the next checkpoint."""
    run_until(tmp_path, 0, 12).__exit__()
    age(tmp_path)
    with make_reporter(tmp_path, 12) as reporter:
        reporter.evaluation(12, {"loss": 0.5})
        reporter.evaluation(18, {"loss": 0.25})
    assert curves(tmp_path / "eval")["loss/total"] == [(6, 6.0), (12, 0.5), (18, 0.25)]


def test_other_workers_write_nothing(tmp_path, capsys):
    run_until(tmp_path, 0, 8).__exit__()
    before = {path: path.read_bytes() for path in event_files(tmp_path)}
    capsys.readouterr()
    with make_reporter(tmp_path, 4, writes=False) as reporter:
        reporter.steps(8, metrics([math.nan] * 4, skipped=[1] * 4))
        reporter.texts({"configuration": "text"}, 8)
        reporter.evaluation(6, {"loss": 1.0})
        assert reporter.skipped == 4
    assert {path: path.read_bytes() for path in event_files(tmp_path)} == before
    assert capsys.readouterr().err == ""


def test_a_run_begun_anew_has_new_curves(tmp_path):
    run_until(tmp_path, 0, 8).__exit__()
    age(tmp_path)
    run_until(tmp_path, 0, 6).__exit__()
    assert [step for step, _ in curves(tmp_path)["loss/total"]] == [4, 6]


def test_only_what_comes_later_is_dropped(tmp_path):
    run_until(tmp_path, 0, 8, checkpoints=100).__exit__()
    (path,) = event_files(tmp_path)
    before, inode = path.read_bytes(), path.stat().st_ino
    drop_later_events(str(tmp_path), 8)
    assert path.stat().st_ino == inode, "a file with nothing to drop is not written again"
    drop_later_events(str(tmp_path), 7)
    after = path.read_bytes()
    assert path.stat().st_ino != inode
    assert before.startswith(after) and 0 < len(after) < len(before)
    drop_later_events(str(tmp_path), -1)
    (event,) = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    assert tf.compat.v1.Event.FromString(event).file_version


@pytest.mark.parametrize("tail", ("zeros", "beginning of an event", "half a length"))
def test_what_is_no_whole_event_is_cut(tmp_path, tail):
    """As a kill or a loss of power may leave it at the end of a file."""
    run_until(tmp_path, 0, 8, checkpoints=100).__exit__()
    (path,) = event_files(tmp_path)
    whole = path.read_bytes()
    first = 12 + int.from_bytes(whole[:8], "little") + 4
    # The first field of an event, its time, is 9 bytes: by itself an event too.
    tails = {"zeros": bytes(100), "beginning of an event": whole[first:][: 12 + 9 + 4]}
    path.write_bytes(whole + tails.get(tail, whole[first : first + 5]))
    drop_later_events(str(tmp_path), 8)
    assert path.read_bytes() == whole


def flip(path, byte):
    """Flips a bit of a file."""
    content = bytearray(path.read_bytes())
    content[byte] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("where", ("length", "event", "last event"))
def test_a_flipped_bit_costs_one_event(tmp_path, where, recwarn):
    """TensorBoard would show nothing after it; what was there stays under another name."""
    run_until(tmp_path, 0, 16, checkpoints=100).__exit__()
    (path,) = event_files(tmp_path)
    whole = path.read_bytes()
    starts = [start for start, _, _ in tfrecord.find_frames(whole)]
    byte = {"length": starts[9], "event": starts[9] + 20, "last event": starts[-1] + 20}[where]
    flip(path, byte)
    damaged = path.read_bytes()
    before = sum(map(len, curves(tmp_path).values()))
    drop_later_events(str(tmp_path), 16)
    frames = [whole[start:end] for start, end, _ in tfrecord.find_frames(whole)]
    frames.pop(-1 if where == "last event" else 9)
    assert path.read_bytes() == b"".join(frames)
    (aside,) = tmp_path.glob("events.out.damaged.*")
    assert aside.read_bytes() == damaged
    (warning,) = recwarn
    assert f"{path} is damaged" in str(warning.message) and str(aside) in str(warning.message)
    after = sum(map(len, curves(tmp_path).values()))
    assert after == before if where == "last event" else after > before
    drop_later_events(str(tmp_path), 16)
    assert len(recwarn) == 1, "it is whole now"


def test_an_evaluation_has_the_training_s_names_in_a_run_of_its_own(tmp_path):
    results = {
        "loss": 3.0, "masked_lm_loss": 2.0, "masked_lm_accuracy": 0.25,
        "sentence_order_loss": 1.0, "sentence_order_accuracy": 0.5,
        "examples": 40, "global_step": 8,
    }  # fmt: skip
    with make_reporter(tmp_path) as reporter:
        reporter.steps(8, metrics([1] * 8))
        reporter.evaluation(8, results)
        reporter.evaluation(16, {**results, "loss": 2.0})
    found = curves(tmp_path / "eval")
    assert found == {
        "loss/total": [(8, 3.0), (16, 2.0)],
        "loss/masked_lm": [(8, 2.0), (16, 2.0)],
        "accuracy/masked_lm": [(8, 0.25), (16, 0.25)],
        "loss/sentence_order": [(8, 1.0), (16, 1.0)],
        "accuracy/sentence_order": [(8, 0.5), (16, 0.5)],
        "data/examples": [(8, 40.0), (16, 40.0)],
    }
    assert set(found) - {"data/examples"} <= set(curves(tmp_path))
    # An evaluation alone takes the place of the same step's.
    for _ in range(2):
        age(tmp_path)
        write_evaluation(str(tmp_path), {"loss": 2.5}, 16, Illustrations({"guesses": "**a**"}, {}))
    assert curves(tmp_path / "eval")["loss/total"] == [(8, 3.0), (16, 2.5)]
    assert texts(tmp_path / "eval", "guesses") == [(16, "**a**")]


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
    Profile(tmp_path, 1, 10).before(11)  # a run that goes on later than that
