"""The program run_pretraining: trains, resumes, evaluates, answers bad input with one line."""

import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from made_records import FORMAT, flip_a_byte, make_files
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny import SIZES, two_devices

from bert_tf import training
from bert_tf.checkpoint_files import list_checkpoints
from run_scripts.pretrain import main

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
SENTENCE = {"bert": "next_sentence", "albert": "sentence_order"}


@pytest.fixture
def job(tmp_path):
    """Records, configurations, and a function that runs the program on them."""
    return Job(tmp_path)


class Job:
    def __init__(self, folder):
        self.folder = folder
        self.files = make_files(folder, (20, 20))
        self.output = folder / "output"
        for kind, extra in (("bert", {}), ("albert", {"embedding_size": 16})):
            config = {**SIZES, **extra}
            (folder / f"{kind}.json").write_text(json.dumps(config))

    def argv(self, kind="bert", **flags):
        values = {
            f"{kind}_config_file": self.folder / f"{kind}.json",
            "input_file": self.folder / "part-*.tfrecord",
            "output_dir": self.output,
            "max_seq_length": 16,
            "max_predictions_per_seq": 4,
            "train_batch_size": 8,
            "eval_batch_size": 16,
            "num_train_steps": 6,
            "num_warmup_steps": 2,
            "save_checkpoints_steps": 4,
            "save_summary_steps": 2,
            "learning_rate": 0.01,
            "do_train": True,
            **flags,
        }
        return ["run_pretraining.py"] + [f"--{k}={v}" for k, v in values.items() if v is not None]

    def run(self, *args, **flags):
        return main(self.argv(*args, **flags))


def curves(directory):
    """TensorBoard's scalars: name -> [(step, value)]."""
    events = EventAccumulator(str(directory), size_guidance={"tensors": 0})
    events.Reload()
    return {
        name: [(e.step, float(tf.make_ndarray(e.tensor_proto))) for e in events.Tensors(name)]
        for name in events.Tags()["tensors"]
    }


def results(directory):
    """The lines of eval_results.txt."""
    lines = (directory / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_trains_evaluates_and_goes_on(job, kind, capsys):
    assert job.run(kind, do_eval=True) == 0
    out = capsys.readouterr().out
    assert "starting from new weights" in out
    assert "steps 1 to 6" in out and "1.2 passes over 40 examples" in out
    assert list_checkpoints(job.output) == [4, 6]
    name = SENTENCE[kind]
    assert set(results(job.output)) == {
        "global_step", "loss", "masked_lm_accuracy", "masked_lm_loss",
        f"{name}_accuracy", f"{name}_loss",
    }  # fmt: skip
    assert results(job.output)["global_step"] == 6
    found = curves(job.output)
    assert set(found) == {
        "loss/total", "loss/masked_lm", f"loss/{name}", "accuracy/masked_lm", f"accuracy/{name}",
        "learning_rate", "gradient_norm", "throughput/examples_per_second",
    }  # fmt: skip
    assert [step for step, _ in found["loss/total"]] == [2, 4, 6]
    assert all(value > 0 for _, value in found["gradient_norm"])
    # The rate of the last update before each point: 6 steps, of which 2 warm up.
    assert found["learning_rate"][0][1] == pytest.approx(0.005)

    assert job.run(kind, num_train_steps=8) == 0
    out = capsys.readouterr().out
    assert f"resuming from {job.output}/model.ckpt-6" in out and "steps 7 to 8" in out
    assert list_checkpoints(job.output) == [4, 6, 8]
    assert job.run(kind, num_train_steps=8) == 0
    assert "already at step 8 of 8" in capsys.readouterr().out


def test_the_loss_falls(job):
    """Twelve records by heart: the model's two losses fall well below where they began."""
    files = make_files(job.folder, (12,))
    job.run(
        input_file=files[0], num_train_steps=150, train_batch_size=12, save_checkpoints_steps=150,
        save_summary_steps=10, learning_rate=0.003,
    )  # fmt: skip
    found = curves(job.output)
    assert found["loss/masked_lm"][-1][1] < 0.7 * found["loss/masked_lm"][0][1]
    assert found["loss/next_sentence"][-1][1] < 0.5 * found["loss/next_sentence"][0][1]


def weights(directory, step):
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_a_killed_run_ends_as_one_that_was_never_stopped(job):
    """kill -9 between two checkpoints, dropout and shuffling on: equal to the last bit."""
    config = {**SIZES, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    (job.folder / "bert.json").write_text(json.dumps(config))
    long = {"num_train_steps": 10_000, "save_checkpoints_steps": 5, "keep_checkpoint_max": 0}
    process = subprocess.Popen(
        [sys.executable, *job.argv(**long)], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(list_checkpoints(job.output)) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stopped_at = list_checkpoints(job.output)[-1]
    ends_at = stopped_at + 10
    # The rate depends on num_train_steps, which therefore stays: the runs are stopped by hand.
    again = subprocess.Popen(
        [sys.executable, *job.argv(**long)], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    whole = job.folder / "whole"
    never_stopped = subprocess.Popen(
        [sys.executable, *job.argv(**{**long, "output_dir": whole})], cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for directory in (job.output, whole):
            while ends_at not in list_checkpoints(directory):
                assert again.poll() is None and never_stopped.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
    finally:
        again.kill()
        never_stopped.kill()
    assert f"resuming from {job.output}/model.ckpt-{stopped_at}," in again.stdout.read()
    one, two = weights(job.output, ends_at), weights(whole, ends_at)
    assert set(one) == set(two)
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name], err_msg=name)


def test_starts_from_google_s_checkpoint(job, capsys):
    toy = DATA / "checkpoints" / "keras_bert_toy"

    def small_ids(number, row):
        row["input_ids"] = [i % 15 for i in row["input_ids"]]
        row["masked_lm_ids"] = [i % 15 for i in row["masked_lm_ids"]]

    files = make_files(job.folder, (20,), change=small_ids)
    flags = {
        "bert_config_file": toy / "bert_config.json",
        "init_checkpoint": toy / "bert_model.ckpt",
        "input_file": files[0],
        "vocab_file": toy / "vocab.txt",
    }
    assert job.run(**flags) == 0
    assert "starting from --init_checkpoint" in capsys.readouterr().out
    assert job.run(**flags, num_train_steps=8) == 0
    assert "was for its first step" in capsys.readouterr().out
    gone = {**flags, "init_checkpoint": job.folder / "gone"}  # not needed any more
    assert job.run(**gone, num_train_steps=9) == 0


def test_evaluates_a_checkpoint_alone(job, capsys):
    assert job.run("albert") == 0
    assert job.run("albert", do_train=False, do_eval=True) == 0
    first = results(job.output)
    assert job.run("albert", do_train=False, do_eval=True, eval_batch_size=7) == 0
    assert results(job.output) == pytest.approx(first, rel=1e-4)
    capsys.readouterr()
    assert job.run("albert", do_train=False, do_eval=True, output_dir=job.folder / "none") == 1
    assert "to evaluate there must be a checkpoint" in capsys.readouterr().err


def test_records_without_sentence_labels_leave_the_sentence_loss_out(job):
    without = dataclasses.replace(FORMAT, sentence_label=False)
    files = make_files(job.folder, (20,), without)
    assert job.run(input_file=files[0], do_eval=True) == 0
    assert set(results(job.output)) == {
        "global_step", "loss", "masked_lm_accuracy", "masked_lm_loss",
    }  # fmt: skip
    # Neither updated nor decayed, as Google's optimizer leaves what has no gradient.
    state = weights(job.output, 6)
    for name in ("bert/pooler/dense/kernel", "cls/seq_relationship/output_weights"):
        assert not state[f"{name}/adam_m"].any() and state[name].any()


def test_export_is_a_release(job):
    export = job.folder / "export"
    assert job.run("albert", export_dir=export) == 0
    reader = tf.train.load_checkpoint(str(export / "model.ckpt"))
    names = set(reader.get_variable_to_shape_map())
    assert "bert/pooler/dense/kernel" in names
    assert not any("adam" in name for name in names)
    # Started from, it is a checkpoint like any other; by its directory's name it is not.
    again = {"output_dir": job.folder / "again", "num_train_steps": 1}
    assert job.run("albert", init_checkpoint=export / "model.ckpt", **again) == 0
    again["output_dir"] = job.folder / "third"
    assert job.run("albert", init_checkpoint=export, **again) == 1
    assert json.loads((export / "albert_config.json").read_text())["embedding_size"] == 16


def one_line(capsys):
    """What the program complained about, which is one line on standard error."""
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line and not line.startswith(("training", "\r"))
    ]
    assert len(lines) == 1 and lines[0].startswith("error: "), lines
    return lines[0]


def vocabulary(job, size):
    path = job.folder / "vocab.txt"
    path.write_text("".join(f"piece{i}\n" for i in range(size)))
    return path


# flags, what the line must hold
BAD_FLAGS = (
    ({"albert_config_file": "albert.json"}, ("both",)),
    ({"bert_config_file": None}, ("neither",)),
    ({"bert_config_file": "no.json"}, ("no.json", "No such file")),
    ({"input_file": "nothing-*.tfrecord"}, ("--input_file", "nothing-*.tfrecord")),
    ({"input_file": None}, ("--input_file must be given",)),
    ({"do_train": False}, ("--do_train or --do_eval",)),
    ({"use_tpu": True}, ("--use_tpu must be off",)),
    ({"masked_lm_budget": 0.15}, ("--masked_lm_budget must be 0", "0.15")),
    ({"init_from_group0": True}, ("--init_from_group0 must be off",)),
    ({"max_seq_length": 64}, ("64", "max_position_embeddings", "32")),
    ({"train_batch_size": 0}, ("--train_batch_size", "0")),
    ({"train_batch_size": "many"}, ("train_batch_size", "many")),
    ({"learning_rate": -1}, ("--learning_rate", "-1")),
    ({"learning_rate": "nan"}, ("--learning_rate", "nan")),
    ({"poly_power": "inf"}, ("--poly_power", "inf")),
    ({"learning_rat": 1}, ("learning_rat", "Did you mean: learning_rate")),
    ({"max_predictions_per_seq": 5}, ("--max_predictions_per_seq=5", "has 4")),
    ({"max_seq_length": 8}, ("--max_seq_length=8", "has 16")),
    ({"init_checkpoint": "gone/model.ckpt"}, ("gone/model.ckpt.index",)),
    ({"random_seed": 2**31}, ("--random_seed", "2147483648")),
    ({"export_dir": "/proc/nothing"}, ("--export_dir", "/proc/nothing")),
)


@pytest.mark.parametrize("flags, words", BAD_FLAGS)
def test_bad_flags(job, capsys, monkeypatch, flags, words):
    monkeypatch.chdir(job.folder)
    assert job.run(**flags) == 1
    line = one_line(capsys)
    assert all(word in line for word in words), line


def test_a_vocabulary_larger_than_the_model(job, capsys):
    assert job.run(vocab_file=vocabulary(job, 61)) == 1
    line = one_line(capsys)
    assert "vocab_size=60" in line and "61 entries" in line
    assert job.run(vocab_file=vocabulary(job, 60), num_train_steps=1) == 0


def test_ids_that_the_model_does_not_have(job, capsys):
    def change(number, row):
        row["input_ids"][3] = 77 if number == 4 else 1

    files = make_files(job.folder, (10,), change=change)
    assert job.run(input_file=files[0]) == 1
    line = one_line(capsys)
    assert files[0] in line and "record 5" in line and "77" in line and "0..59" in line


def test_a_damaged_record_stops_the_run_with_its_name(job, capsys):
    files = make_files(job.folder, (60, 60))
    flip_a_byte(files[0], 60, damaged=50)
    assert job.run(num_train_steps=100) == 1
    line = one_line(capsys)
    assert files[0] in line and "after 50 good ones" in line


def test_a_checkpoint_of_another_shape(job, capsys):
    assert job.run("bert", num_train_steps=2) == 0
    config = {**SIZES, "hidden_size": 64}
    (job.folder / "bert.json").write_text(json.dumps(config))
    capsys.readouterr()
    assert job.run("bert") == 1
    line = one_line(capsys)
    assert "model.ckpt-2" in line and "the model has [60, 64], the file [60, 32]" in line


def test_a_loss_that_is_no_number_stops_the_run(job, capsys):
    assert job.run(num_train_steps=4) == 0
    capsys.readouterr()
    assert job.run(num_train_steps=40, learning_rate=1e30, keep_checkpoint_max=1) == 1
    line = one_line(capsys)
    assert "must stay finite" in line and "nan" in line
    assert 4 in list_checkpoints(job.output)
    state = weights(job.output, list_checkpoints(job.output)[-1])
    assert all(np.isfinite(value).all() for value in state.values())


def test_a_disk_that_is_full_at_a_checkpoint(job):
    """The limit on a file's size stands in for the disk: one line, nothing half-written."""
    assert job.run(num_train_steps=2) == 0
    before = list_checkpoints(job.output)
    size = max(path.stat().st_size for path in job.output.glob("model.ckpt-*.data-*"))
    argv = job.argv(num_train_steps=4)
    run = subprocess.run(
        [sys.executable, *argv], cwd=ROOT, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2)),
    )  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert run.stderr.strip().splitlines()[-1].startswith("error: cannot write the checkpoint")
    assert list_checkpoints(job.output) == before
    assert not list(job.output.glob("*.tmp-*"))


def test_an_output_directory_that_cannot_be_written(job, capsys):
    (job.folder / "file").write_text("")
    assert job.run(output_dir=job.folder / "file" / "output") == 1
    assert "--output_dir must be a directory that can be written" in one_line(capsys)


def test_bad_input_is_found_before_tensorflow_is_imported(job):
    program = "import sys; from run_scripts.pretrain import main; code = main(sys.argv)\n"
    program += "print(code, 'tensorflow' in sys.modules)"
    for flags in ({"vocab_file": vocabulary(job, 61)}, {"input_file": "nothing"}):
        out = subprocess.run(
            [sys.executable, "-c", program, *job.argv(**flags)[1:]],
            cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert out.stdout.split() == ["1", "False"]


def test_where_xla_cannot_compile_the_run_goes_on_without(job, capsys, monkeypatch):
    from bert_tf import step

    sums = step.loss_sums

    def with_text(outputs, batch):
        """Loss sums by way of text, which XLA does not know."""
        result = sums(outputs, batch)
        lengths = tf.strings.length(tf.strings.as_string(batch["input_ids"]))
        return {**result, "characters": tf.reduce_sum(tf.cast(lengths, tf.float32))}

    monkeypatch.setattr(step, "loss_sums", with_text)
    assert job.run(num_train_steps=3) == 0
    shown = capsys.readouterr().err.replace("\r", "\n").splitlines()
    warned = [line for line in shown if line.startswith("warning")]
    assert len(warned) == 1 and "XLA cannot compile the step here" in warned[0]
    assert "AsString" in warned[0]
    assert list_checkpoints(job.output) == [3]
    assert job.run(num_train_steps=4, xla="on") == 1
    assert "--xla=on needs a step that XLA can compile" in one_line(capsys)


def test_a_batch_that_the_devices_do_not_divide(job, capsys, monkeypatch):
    monkeypatch.setattr(training, "choose_strategy", two_devices)
    assert job.run(train_batch_size=7) == 1
    line = one_line(capsys)
    assert "--train_batch_size=7" in line and "2 devices" in line
    assert job.run(train_batch_size=8, do_eval=True, eval_batch_size=16) == 0


def test_two_devices_resume_as_one(job, monkeypatch):
    """Six steps on two devices, two more on one: equal to eight on two."""
    config = {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (job.folder / "bert.json").write_text(json.dumps(config))
    whole = job.folder / "whole"
    one_device = training.choose_strategy
    monkeypatch.setattr(training, "choose_strategy", two_devices)
    assert job.run(num_train_steps=8, save_checkpoints_steps=6, output_dir=whole) == 0
    assert job.run(num_train_steps=8, save_checkpoints_steps=6) == 0
    for path in job.output.glob("model.ckpt-8.*"):
        path.unlink()
    monkeypatch.setattr(training, "choose_strategy", one_device)
    export = job.folder / "export"
    assert job.run(num_train_steps=8, export_dir=export) == 0
    one, two = weights(job.output, 8), weights(whole, 8)
    for name, value in one.items():
        np.testing.assert_allclose(value, two[name], atol=1e-5, err_msg=name)
    exported = tf.train.load_checkpoint(str(export / "model.ckpt"))
    for name in exported.get_variable_to_shape_map():
        np.testing.assert_array_equal(exported.get_tensor(name), one[name])
