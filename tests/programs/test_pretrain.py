"""The program run_pretraining: trains, resumes, evaluates, answers bad input with one line."""

import dataclasses
import json
import types

import numpy as np
import pytest
import tensorflow as tf
from jobs import SENTENCE, Job, arrays, curves, one_line, results, spoken_lines, texts
from made_records import FORMAT, PACKED, flip_a_byte, make_files
from paths import TEST_DATA

from bert_tf import pretraining
from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.input.data_order import sizes_of
from bert_tf.training import mixed_precision
from bert_tf.training.interruptions.nonfinite_steps import SKIPPED_FILE, SkippedSteps
from run_scripts.flags.limits import MAX_SEED

DATA = TEST_DATA


@pytest.fixture
def job(tmp_path):
    """Records, configurations, and a function that runs the program on them."""
    return Job(tmp_path)


@pytest.mark.parametrize("kind, xla", (("bert", "auto"), ("albert", "off")))
def test_trains_evaluates_and_goes_on(job, kind, xla, capsys):
    assert job.run(kind, do_eval=True, xla=xla) == 0
    out = capsys.readouterr().out
    assert "note: there is no tokenizer beside the records" in out
    assert "starting from new weights" in out
    assert "steps 1 to 6" in out and "1.2 passes over 40 examples" in out
    assert ("compiling the training step with XLA" in out) == (xla == "auto")
    assert ("evaluating on 40 records; XLA compiles" in out) == (xla == "auto")
    assert list_checkpoints(job.output) == [4, 6]
    name = SENTENCE[kind]
    assert set(results(job.output)) == {
        "examples", "global_step", "loss", "masked_lm_accuracy", "masked_lm_loss",
        f"{name}_accuracy", f"{name}_loss",
    }  # fmt: skip
    assert results(job.output)["global_step"] == 6 and results(job.output)["examples"] == 40
    found = curves(job.output)
    assert set(found) == {
        "loss/total", "loss/masked_lm", f"loss/{name}", "accuracy/masked_lm", f"accuracy/{name}",
        "learning_rate", "gradient_norm", "weight_norm", "data/padding_share",
        "health/skipped_steps", "throughput/examples_per_second", "throughput/tokens_per_second",
        "throughput/step_seconds", "throughput/input_wait_seconds", "memory/process_gib",
        "memory/process_peak_gib",
    }  # fmt: skip
    assert [step for step, _ in found["loss/total"]] == [2, 4, 6]
    assert all(value > 0 for _, value in found["gradient_norm"])
    # The rate of the last update before each point: 6 steps, of which 2 warm up.
    assert found["learning_rate"][0][1] == pytest.approx(0.005)

    assert job.run(kind, num_train_steps=8) == 0
    out = capsys.readouterr().out
    assert f"resuming from {job.output}/model.ckpt-6" in out and "steps 7 to 8" in out
    assert list_checkpoints(job.output) == [4, 6, 8]
    assert [step for step, _ in curves(job.output)["loss/total"]] == [2, 4, 6, 8]
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", (0, MAX_SEED))
def test_the_least_and_the_largest_seed(job, seed):
    """TensorFlow takes both for 0, which is no seed; they decide weights and order like others."""
    flags = {"random_seed": seed, "num_train_steps": 1}
    outputs = [job.folder / name for name in ("one", "two")]
    for output in outputs:
        assert job.run(**flags, output_dir=output) == 0
    one, two = (arrays(output, 1) for output in outputs)
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name


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
    gone = {**flags, "init_checkpoint": job.folder / "gone"}  # not needed any more
    assert job.run(**gone, num_train_steps=8) == 0
    assert "was for its first step" in capsys.readouterr().out


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
        "examples", "global_step", "loss", "masked_lm_accuracy", "masked_lm_loss",
    }  # fmt: skip
    # Neither updated nor decayed, as Google's optimizer leaves what has no gradient.
    state = arrays(job.output, 6)
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


def vocabulary(job, size):
    path = job.folder / "vocab.txt"
    path.write_text("".join(f"piece{i}\n" for i in range(size)))
    return path


@pytest.mark.parametrize("record_format", (FORMAT, pytest.param(PACKED, marks=pytest.mark.slow)))
def test_guesses_are_shown_at_every_evaluation(job, record_format):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(5, 60))]
    (job.folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (job.folder / "tokenizer_config.json").write_text('{"kind": "full"}')

    def masked_word(number, row):
        row["masked_lm_ids"] = [number + 5] * len(row["masked_lm_ids"])

    folder = job.folder / "held_out"
    folder.mkdir()
    (held_out,) = make_files(folder, (16,), record_format, change=masked_word)
    flags = {"eval_input_file": held_out, "eval_every_steps": 2, "num_train_steps": 5}
    assert job.run(**flags, tokenizer_dir=job.folder) == 0
    shown = texts(job.output / "eval", "guesses")
    assert [step for step, _ in shown] == [2, 4, 5]
    for _, text in shown:
        assert text.count("| true | guesses |") == 4
        assert "&#91;**word5**&#93;" in text and "\n| word5 | " in text
    assert len({text for _, text in shown}) == 3  # the model has learnt in between


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
    ({"gradient_accumulation_steps": 3}, ("--train_batch_size=8", "_accumulation_steps=3")),
    ({"eval_every_steps": 2}, ("--eval_every_steps needs --eval_input_file",)),
    ({"profile_steps": "5"}, ("--profile_steps must be FROM,TO", "5")),
    ({"profile_steps": "3,2"}, ("--profile_steps", "3,2")),
    ({"profile_steps": "0,2"}, ("--profile_steps", "0,2")),
    ({"num_gpus": 1}, ("--num_gpus=1, 0 GPUs",)),
    ({"precision": "float8"}, ("precision", "float8")),
    ({"steps_per_loop": 0}, ("--steps_per_loop", "0")),
    ({"max_bad_steps": -1}, ("--max_bad_steps", "-1")),
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
    job.configure(hidden_size=64)
    capsys.readouterr()
    assert job.run("bert") == 1
    line = one_line(capsys)
    assert "model.ckpt-2" in line and "the model has [60, 64], the file [60, 32]" in line


def with_loss(monkeypatch, change):
    """Lets `change(loss, batch)` alter the masked words' loss of every training step."""
    sums = pretraining.loss_sums

    def changed(outputs, batch):
        result = sums(outputs, batch)
        return {**result, "masked_lm_loss": change(result["masked_lm_loss"], batch)}

    monkeypatch.setattr(pretraining, "loss_sums", changed)


def test_a_step_whose_loss_is_no_number_is_left_out(job, capsys, monkeypatch):
    """Record 8 of the first file is to blame, once in every pass of five steps.

    The gradient does not know of it: `tf.where` hands none on.
    """

    def change(loss, batch):
        return tf.where(tf.reduce_any(batch["input_ids"][:, 0] == 7), np.nan, loss)

    with_loss(monkeypatch, change)
    flags = {"num_train_steps": 10, "save_checkpoints_steps": 5, "max_bad_steps": 1}
    flags |= {"save_summary_steps": 5, "xla": "off"}
    assert job.run(**flags) == 0
    warned = [line for line in spoken_lines(capsys.readouterr().err) if "changed no weight" in line]
    log = (job.output / SKIPPED_FILE).read_text()
    rows = [json.loads(line) for line in log.splitlines()]
    first, second = (row["step"] for row in rows)
    assert 1 <= first <= 5 < second <= 10
    assert len(warned) == 2 and f"warning: step {first} changed" in warned[0]
    for row in rows:
        assert len(row["records"]) == 8 and f"{job.files[0]}:8" in row["records"]
        assert row["loss"] == "nan" and np.isfinite(float(row["gradient_norm"]))
        assert 0 < float(row["learning_rate"]) <= 0.01
    assert [value for _, value in curves(job.output)["health/skipped_steps"]] == [1, 2]
    assert arrays(job.output, 10)["skipped_steps"] == 2
    assert all(np.isfinite(value).all() for value in arrays(job.output, 10).values())
    # A run that goes on from step 5 writes the second of them anew, and counts on.
    for path in job.output.glob("model.ckpt-10.*"):
        path.unlink()
    with open(job.output / SKIPPED_FILE, "a") as file:
        file.write('{"step": 9, "lo')  # cut off by a kill
    assert job.run(**flags) == 0
    assert (job.output / SKIPPED_FILE).read_text() == log
    assert arrays(job.output, 10)["skipped_steps"] == 2


def test_damaged_lines_of_skipped_steps_stay(tmp_path):
    """Whole lines of steps that will come again go, as does a line that was cut off."""
    lines = ['{"step": 3, "loss: "nan"}\n', '{"step": 5}\n', '{"step": 6}\n', '{"step": 2, "lo']
    (tmp_path / SKIPPED_FILE).write_text("".join(lines))
    config = types.SimpleNamespace(output_dir=str(tmp_path))
    SkippedSteps(types.SimpleNamespace(step=5), None, config, writes=True)
    assert (tmp_path / SKIPPED_FILE).read_text() == "".join(lines[:2])


def test_too_many_steps_without_a_number_stop_the_run(job, capsys, monkeypatch):
    assert job.run(num_train_steps=4, xla="off") == 0
    good = arrays(job.output, 4)
    capsys.readouterr()
    with_loss(monkeypatch, lambda loss, batch: loss * np.nan)
    flags = {"num_train_steps": 40, "keep_checkpoint_max": 1, "max_bad_steps": 3, "xla": "off"}
    assert job.run(**flags) == 1
    *warned, line = spoken_lines(capsys.readouterr().err)
    assert all(" changed no weight" in text for text in warned) and len(warned) == 4
    assert line.startswith("error: ") and "--max_bad_steps=3" in line and "loss nan" in line
    assert "at step 8" in line
    assert list_checkpoints(job.output) == [4]
    for name, value in arrays(job.output, 4).items():
        np.testing.assert_array_equal(value, good[name])


def test_a_loss_scale_of_nothing_left_stops_the_run(job, capsys, monkeypatch):
    """The loss is fine, its gradient is infinite at every scale."""

    @tf.custom_gradient
    def steep(x):
        return x, lambda gradient: gradient * np.inf

    with_loss(monkeypatch, lambda loss, batch: steep(loss))
    monkeypatch.setattr(mixed_precision, "INITIAL_SCALE", 4.0)
    assert job.run(precision="float16", max_bad_steps=0, xla="off") == 1
    *warned, line = spoken_lines(capsys.readouterr().err)
    assert len(warned) == 3  # at the scales 4, 2 and 1
    assert line.startswith("error: float16 needs gradients") and "loss scale 1, step 3" in line


def test_packed_rows_train(tmp_path, capsys):
    """Sequences as long as the model has positions, in rows that are longer."""
    job = Job(tmp_path, record_format=PACKED, max_position_embeddings=8)
    assert job.run(do_eval=True, xla="off") == 0
    found = results(job.output)
    assert np.isfinite(found["loss"]) and found["examples"] > 40  # sequences, not rows
    capsys.readouterr()
    # Of rows that are not packed the same model has no last positions.
    assert job.run(input_file=make_files(tmp_path, (20,))[0]) == 1
    assert "unless rows are packed. Received: 16 and 8" in one_line(capsys)


def test_everything_that_saves_memory_at_once(job, capsys):
    """Parts of a batch in bfloat16 with recomputation, a trace, milestones, an export."""
    export = job.folder / "export"
    flags = {
        "precision": "bfloat16", "recompute": "block", "gradient_accumulation_steps": 2,
        "num_train_steps": 7, "save_checkpoints_steps": 2, "keep_checkpoint_max": 1,
        "keep_checkpoint_every_steps": 3, "steps_per_loop": 4, "profile_steps": "2,3",
        "export_dir": export,
    }  # fmt: skip
    assert job.run("albert", **flags) == 0
    out = capsys.readouterr().out
    assert "in bfloat16, XLA off, 8 examples an update (8 a device, in 2 parts)" in out
    assert "without --recompute=block" in out and f"exported to {export}" in out
    assert list_checkpoints(job.output) == [3, 6, 7]
    (trace,) = job.output.glob("plugins/profile/*/*.xplane.pb")
    assert trace.stat().st_size > 1000
    state = arrays(job.output, 7)
    for name, value in arrays(export).items():
        assert value.dtype == np.float32 and np.isfinite(value).all()
        np.testing.assert_array_equal(value, state[name], err_msg=name)


def test_an_output_directory_that_cannot_be_written(job, capsys):
    (job.folder / "file").write_text("")
    assert job.run(output_dir=job.folder / "file" / "output") == 1
    assert "--output_dir must be a directory that can be written" in one_line(capsys)


def test_bad_input_is_found_before_tensorflow_is_imported(job):
    program = "import sys; from run_scripts.pretrain import main; code = main(sys.argv)\n"
    program += "print(code, 'tensorflow' in sys.modules)"
    nobody = json.dumps({"cluster": {"worker": []}, "task": {"type": "worker", "index": 0}})
    for flags, environment, word in (
        ({"vocab_file": vocabulary(job, 61)}, {}, "61 entries"),
        ({"input_file": "nothing"}, {}, "--input_file"),
        ({}, {"TF_CONFIG": nobody}, "TF_CONFIG must list the addresses of worker"),
    ):
        run = job.run_apart("-c", program, *job.argv(**flags)[1:], environment=environment)
        assert run.stdout.split() == ["1", "False"]
        (line,) = run.stderr.splitlines()
        assert line.startswith("error: ") and word in line


def test_where_xla_cannot_compile_the_run_goes_on_without(job, capsys, monkeypatch):
    sums = pretraining.loss_sums

    def with_text(outputs, batch):
        """Loss sums by way of text, which XLA does not know."""
        result = sums(outputs, batch)
        lengths = tf.strings.length(tf.strings.as_string(batch["input_ids"]))
        return {**result, "characters": tf.reduce_sum(tf.cast(lengths, tf.float32))}

    monkeypatch.setattr(pretraining, "loss_sums", with_text)
    held_out = {"eval_input_file": job.files[0], "eval_every_steps": 2}
    assert job.run(num_train_steps=3, xla="auto", **held_out) == 0
    shown = capsys.readouterr().err.replace("\r", "\n").splitlines()
    warned = [line for line in shown if line.startswith("warning")]
    assert len(warned) == 2 and all("AsString" in line for line in warned)
    assert "XLA cannot compile the step here, so it runs without" in warned[0]
    assert "XLA cannot compile the evaluation here, so it runs without" in warned[1]
    assert list_checkpoints(job.output) == [2, 3]  # before the first evaluation, and at the end
    assert [step for step, _ in curves(job.output / "eval")["loss/masked_lm"]] == [2, 3]
    # The attempt that failed did not count: neither in the learning rate nor in anything else.
    off = job.folder / "off"
    assert job.run(num_train_steps=3, output_dir=off, **held_out) == 0
    one, two = arrays(job.output, 3), arrays(off, 3)
    assert {n: v.tobytes() for n, v in one.items()} == {n: v.tobytes() for n, v in two.items()}
    capsys.readouterr()
    for flags, what in (
        ({"num_train_steps": 4}, "the step"),
        ({"do_train": False, "do_eval": True}, "the evaluation"),
    ):
        assert job.run(**flags, xla="on") == 1
        assert f"--xla=on needs what XLA can compile, {what} too" in one_line(capsys)


def test_a_batch_that_the_devices_do_not_divide(job, capsys):
    two_devices = {"distribution_strategy": "mirrored"}
    assert job.run(train_batch_size=7, **two_devices) == 1
    line = one_line(capsys)
    assert "--train_batch_size=7" in line and "2 devices" in line
    one_device = {"eval_input_file": job.files[0], "eval_batch_size": 5, "num_train_steps": 1}
    assert job.run(train_batch_size=8, **one_device) == 0
    capsys.readouterr()
    flags = {"eval_input_file": job.files[0], "eval_batch_size": 5, **two_devices}
    assert job.run(train_batch_size=8, **flags) == 1
    assert "--eval_batch_size=5, 2 devices" in one_line(capsys)
    assert job.run(train_batch_size=12, gradient_accumulation_steps=4, **two_devices) == 1
    line = one_line(capsys)
    assert "--train_batch_size=12" in line and "--gradient_accumulation_steps=4" in line


def test_workers_tell_record_files_apart(tmp_path):
    """By names and sizes; not by the folder, which each machine may call otherwise."""
    files = make_files(tmp_path, (4, 4))
    (tmp_path / "other").mkdir()
    assert sizes_of(files) != sizes_of(make_files(tmp_path / "other", (4, 5)))
    same = make_files(tmp_path / "other", (4, 4))
    assert sizes_of(files) == sizes_of(same) != sizes_of(files[:1])
