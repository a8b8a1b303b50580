"""TensorBoard's event files: curves continue after a kill, damaged files are repaired."""

import math
import os

import pytest
import tensorflow as tf

from bert_tf.summaries.event_files import drop_later_events
from bert_tf.summaries.reporter import Illustrations, write_evaluation
from create_pretraining_data.records import tfrecord
from tests.support.programs import curves, texts
from tests.support.reporters import make_reporter, metrics


def run_until(directory, start_step, last_step, loop=2, checkpoints=6):
    """A run with a checkpoint and an evaluation every `checkpoints` steps; not closed."""
    reporter = make_reporter(directory, start_step)
    for step in range(start_step + loop, last_step + 1, loop):
        reporter.steps(step, metrics([step] * loop))
        if step % checkpoints == 0:
            reporter.flush(step)
            shown = Illustrations({"guesses": f"after {step}"}, {})
            reporter.evaluation(step, {"loss": float(step)}, shown)
    return reporter


def event_files(directory):
    return sorted(directory.rglob("events.out.tfevents.*"))


def age(directory):
    """Makes the event files so far old: TensorBoard reads them by the second in their names."""
    for path in event_files(directory):
        path.rename(path.with_name(path.name.replace("tfevents.1", "tfevents.0", 1)))


@pytest.mark.parametrize("torn", (0, 3, 60))
def test_a_killed_run_s_curves_continue_without_a_gap_or_an_overlap(tmp_path, torn):
    """Points every 4 steps and at checkpoints (every 6): killed after 10, again from 6."""
    killed = run_until(tmp_path, 0, 10)
    # After what is resumed from.
    killed.evaluation(10, {"loss": 10.0}, Illustrations({"guesses": "later"}, {}))
    killed.texts({"configuration": "first"}, 0)
    assert [step for step, _ in curves(tmp_path)["loss/total"]] == [4, 6, 8]
    assert [step for step, _ in curves(tmp_path / "eval")["loss/total"]] == [6, 10]
    path = next(tmp_path.glob("events.*"))
    os.truncate(path, path.stat().st_size - torn)  # within the text, or the last point
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


def test_an_evaluation_takes_the_place_of_the_same_step_s(tmp_path):
    """By a run that was killed after the first, or by another program."""
    run_until(tmp_path, 0, 12).__exit__()
    age(tmp_path)
    with make_reporter(tmp_path, 12) as reporter:
        reporter.evaluation(12, {"loss": 0.5})
        reporter.evaluation(18, {"loss": 0.25})
        shown = Illustrations({"guesses": "**a**"}, {})
        for loss in (1.0, 0.125):
            write_evaluation(str(tmp_path), {"loss": loss}, 18, shown)
        reporter.evaluation(24, {"loss": 2.0})
    expected = [(6, 6.0), (12, 0.5), (18, 0.125), (24, 2.0)]
    assert curves(tmp_path / "eval")["loss/total"] == expected
    assert texts(tmp_path / "eval", "guesses") == [(6, "after 6"), (18, "**a**")]


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


@pytest.mark.parametrize("where", ("length", "event", "last event"))
def test_a_flipped_bit_costs_one_event(tmp_path, where):
    """TensorBoard would show nothing after it."""
    run_until(tmp_path, 0, 16, checkpoints=100).__exit__()
    (path,) = event_files(tmp_path)
    whole = path.read_bytes()
    starts = [start for start, _, _ in tfrecord.find_frames(whole)]
    byte = {"length": starts[9], "event": starts[9] + 20, "last event": starts[-1] + 20}[where]
    path.write_bytes(whole[:byte] + bytes([whole[byte] ^ 4]) + whole[byte + 1 :])
    before = sum(map(len, curves(tmp_path).values()))
    drop_later_events(str(tmp_path), 16)
    frames = [whole[start:end] for start, end, _ in tfrecord.find_frames(whole)]
    frames.pop(-1 if where == "last event" else 9)
    assert path.read_bytes() == b"".join(frames)
    after = sum(map(len, curves(tmp_path).values()))
    assert after == before if where == "last event" else after > before


def test_an_evaluation_has_the_training_s_names_in_a_separate_run(tmp_path):
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
    assert found.pop("loss/total") == [(8, 3.0), (16, 2.0)]
    same = {
        "loss/masked_lm": 2.0, "accuracy/masked_lm": 0.25, "loss/sentence_order": 1.0,
        "accuracy/sentence_order": 0.5, "data/examples": 40.0,
    }  # fmt: skip
    assert found == {name: [(8, value), (16, value)] for name, value in same.items()}
    assert set(found) - {"data/examples"} <= set(curves(tmp_path))
