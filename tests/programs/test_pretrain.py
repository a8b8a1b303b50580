"""The program run_pretraining: trains, resumes, evaluates, and reports bad input in one line."""

import json

import numpy as np
import pytest

from bert_tf.checkpoint import google_variables, write_arrays
from bert_tf.checkpoint_files import list_checkpoints
from model_formats.model_folder import ModelFolder
from run_scripts.flags.declaration import INT32_MAX
from tests.support.crosses import slow
from tests.support.paths import TEST_DATA
from tests.support.programs import (
    NO_DROPOUT,
    SENTENCE,
    PretrainingJob,
    arrays,
    assert_same,
    curves,
    results,
    texts,
)
from tests.support.record_files import FORMAT, PACKED, make_files
from tests.support.tiny_models import ONE_LAYER, tiny_model
from tests.support.vocabularies import SPECIAL, write_tokenizer

WORDS = [*SPECIAL, *(f"word{i}" for i in range(5, 60))]


@pytest.fixture
def job(tmp_path):
    """Records, configurations, and a function that runs the program on them."""
    return PretrainingJob(tmp_path, **NO_DROPOUT)


@pytest.mark.parametrize("kind, xla", (("bert", "auto"), slow("albert", "off")))
def test_trains_evaluates_and_continues(job, kind, xla, prints):
    out = prints(job.run, kind=kind, do_eval=True, xla=xla)
    assert "note: there is no tokenizer beside the records" in out
    assert "starting from new weights" in out
    assert f"\nmodel: {kind.upper()}, " in out and " layers of " in out
    assert "\nsteps 1 to 6, 1.2 passes over 40 examples" in out
    assert ("compiling the training step with XLA" in out) == (xla == "auto")
    assert ("compiling the evaluation with XLA" in out) == (xla == "auto")
    assert "evaluating on 40 records of the training files\n" in out
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

    out = prints(job.run, kind=kind, num_train_steps=8)
    assert f"resuming from {job.output}/model.ckpt-6" in out and "steps 7 to 8" in out
    assert list_checkpoints(job.output) == [4, 6, 8]
    assert [step for step, _ in curves(job.output)["loss/total"]] == [2, 4, 6, 8]
    assert "already at step 8 of 8" in prints(job.run, kind=kind, num_train_steps=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", (0, INT32_MAX))
def test_the_least_and_the_largest_seed(job, seed):
    """TensorFlow takes both for 0, which is no seed; they decide weights and order like others."""
    flags = {"random_seed": seed, "num_train_steps": 1}
    outputs = [job.folder / name for name in ("one", "two")]
    for output in outputs:
        assert job.run(**flags, output_dir=output) == 0
    assert_same(*(arrays(output, 1) for output in outputs))


@pytest.mark.slow
def test_starts_from_google_s_checkpoint(job, prints):
    toy = TEST_DATA / "checkpoints" / "keras_bert_toy"

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
    assert "starting from --init_checkpoint" in prints(job.run, **flags)
    gone = {**flags, "init_checkpoint": job.folder / "gone"}  # not needed any more
    assert "was for its first step" in prints(job.run, **gone, num_train_steps=8)


@pytest.mark.slow
def test_evaluates_a_checkpoint_alone(job, prints, fails):
    train, evaluate = {"kind": "albert"}, {"kind": "albert", "do_train": False, "do_eval": True}
    ends = f"\ntrained to step 6, saved in {job.output}\n"
    assert prints(job.run, **train).endswith(ends)
    assert "nothing to train" in (out := prints(job.run, **train)) and not out.endswith(ends)
    assert job.run(**evaluate) == 0
    first = results(job.output)
    # The files may be held-out ones, which no training has read.
    assert "\nevaluating on 40 records\n" in prints(job.run, **evaluate, eval_batch_size=7)
    assert results(job.output) == pytest.approx(first, rel=1e-4)
    none = {"output_dir": job.folder / "none"}
    fails(job.run, "to evaluate there must be a checkpoint", **evaluate, **none)


@pytest.mark.usefixtures("eagerly")
def test_an_evaluation_names_the_step_of_its_checkpoint(job):
    """By which the card of an export finds its results; a renamed checkpoint still holds it."""
    assert job.run(num_train_steps=1, num_warmup_steps=0) == 0
    alone = {"do_train": False, "do_eval": True}
    for name in ("model.ckpt-1", "bert_model.ckpt"):
        for path in job.output.glob("model.ckpt-1.*"):
            path.rename(str(path).replace("model.ckpt-1", name))
        flags = {**alone, "init_checkpoint": job.output / name, "output_dir": job.folder / name}
        assert job.run(**flags) == 0
        assert results(job.folder / name)["global_step"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("record_format", (FORMAT, PACKED))
def test_guesses_are_shown_at_every_evaluation(job, record_format):
    write_tokenizer(job.folder, WORDS, "full")

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


@pytest.mark.usefixtures("eagerly")
def test_what_an_evaluation_prints_is_what_is_drawn(job):
    """Also if the training had ended before, or does not begin; with guesses each time."""
    write_tokenizer(job.folder, WORDS, "full")
    flags = {"num_train_steps": 1, "num_warmup_steps": 0, "tokenizer_dir": job.folder}
    flags |= {"do_eval": True, "eval_input_file": job.files[0]}
    losses = []
    for more in ({}, {"eval_input_file": job.files[1]}, {"do_train": False}):
        assert job.run(**flags | more) == 0
        ((step, loss),) = curves(job.output / "eval")["loss/masked_lm"]
        assert step == 1 and loss == pytest.approx(results(job.output)["masked_lm_loss"])
        assert [step for step, _ in texts(job.output / "eval", "guesses")] == [1]
        losses.append(loss)
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("name", ("best/model.ckpt-1", "model.ckpt-best"))
def test_a_best_checkpoint_that_the_training_cannot_replace(job, capsys, name):
    best = job.output / name
    best.parent.mkdir(parents=True)
    best.with_name(f"{best.name}.index").touch()
    assert job.run(num_train_steps=1, num_warmup_steps=0) == 0
    assert ModelFolder(str(job.output)).checkpoint == str(best)
    shown = capsys.readouterr().err
    assert f"warning: {best} stays what programs take from {job.output}" in shown
    # A released ALBERT has this name too, without any evaluation.
    assert "it is named as the best, and this training, which makes no evaluation" in shown


TWO, PARTS = {"distribution_strategy": "mirrored"}, {"gradient_accumulation_steps": 4}
# flags, what the line must hold
BAD_FLAGS = (
    ({"albert_config_file": "albert.json"}, ("--bert_config_file and --albert_config_file",)),
    ({"bert_config_file": None}, ("must be given", "none")),
    ({"input_file": "nothing-*.tfrecord"}, ("--input_file", "nothing-*.tfrecord")),
    ({"do_train": False}, ("--do_train or --do_eval",)),
    ({"max_predictions_per_seq": 5}, ("--max_predictions_per_seq=5", "has 4")),
    ({"max_seq_length": 8}, ("--max_seq_length=8", "has 16")),
    ({"init_checkpoint": "gone/model.ckpt"}, ("gone/model.ckpt.index",)),
    ({"export_dir": "/proc/nothing"}, ("--export_dir", "/proc/nothing")),
    ({"gradient_accumulation_steps": 3}, ("--train_batch_size=8", "_accumulation_steps=3")),
    ({"profile_steps": "5"}, ("--profile_steps must be FROM,TO", "5")),
    ({"profile_steps": "3,2"}, ("--profile_steps", "3,2")),
    ({"profile_steps": "0,2"}, ("--profile_steps", "0,2")),
    ({"num_gpus": 1}, ("--num_gpus=1, 0 GPUs",)),
    ({"train_batch_size": 7, **TWO}, ("--train_batch_size=7", "2 devices")),
    ({"eval_batch_size": 5, "eval_input_file": "part-0.tfrecord", **TWO}, ("=5, 2 devices",)),
    ({"train_batch_size": 12, **PARTS, **TWO}, ("batch_size=12", "_accumulation_steps=4")),
    ({"vocab_file": "vocab.txt"}, ("vocab_size=60", "61 entries")),
    ({"output_dir": "vocab.txt/output"}, ("--output_dir must be a directory that can be written",)),
)


@pytest.mark.parametrize("flags, words", BAD_FLAGS)
def test_bad_flags(job, fails, monkeypatch, flags, words):
    monkeypatch.chdir(job.folder)
    (job.folder / "vocab.txt").write_text("".join(f"piece{i}\n" for i in range(61)))
    fails(job.run, *words, **flags)


def test_ids_that_the_model_does_not_have(job, fails):
    def change(number, row):
        row["input_ids"][3] = 77 if number == 4 else 1

    (path,) = make_files(job.folder, (10,), change=change)
    fails(job.run, path, "record 5", "77", "0..59", input_file=path)


@pytest.mark.usefixtures("eagerly")
def test_packed_rows_train(tmp_path, fails):
    """Sequences as long as the model has positions, in rows that are longer."""
    job = PretrainingJob(tmp_path, PACKED, **NO_DROPOUT, max_position_embeddings=8)
    assert job.run(do_eval=True, num_train_steps=1) == 0
    found = results(job.output)
    assert np.isfinite(found["loss"]) and found["examples"] > 40  # sequences, not rows
    # Of rows that are not packed the same model has no last positions.
    (path,) = make_files(tmp_path, (20,))
    fails(job.run, "unless rows are packed. Received: 16 and 8", input_file=path)


def test_everything_that_saves_memory_at_once(job, prints):
    """Parts of a batch in bfloat16 with recomputation, a trace, milestones, an export."""
    export = job.folder / "export"
    flags = {
        "precision": "bfloat16", "recompute": "block", "gradient_accumulation_steps": 2,
        "num_train_steps": 7, "save_checkpoints_steps": 2, "keep_checkpoint_max": 1,
        "keep_checkpoint_every_steps": 3, "steps_per_loop": 4, "profile_steps": "2,3",
        "export_dir": export,
    }  # fmt: skip
    out = prints(job.run, kind="albert", **flags)
    assert "in bfloat16, XLA off, 8 examples per update (8 per device, in 2 microbatches)" in out
    assert "without --recompute=block" in out and f"exported to {export}" in out
    assert list_checkpoints(job.output) == [3, 6, 7]
    (trace,) = job.output.glob("plugins/profile/*/*.xplane.pb")
    assert trace.stat().st_size > 1000
    state = arrays(job.output, 7)
    for name, value in arrays(export).items():
        assert value.dtype == np.float32 and np.isfinite(value).all()
        np.testing.assert_array_equal(value, state[name], err_msg=name)


def test_bad_input_is_found_before_tensorflow_is_imported(job):
    nobody = json.dumps({"cluster": {"worker": []}, "task": {"type": "worker", "index": 0}})
    cases = (
        ({"input_file": "nothing"}, {}, "--input_file"),
        ({}, {"TF_CONFIG": nobody}, "TF_CONFIG must be JSON that names the workers"),
    )
    program = "import os, sys; from run_scripts.pretrain import main\n"
    for flags, environment, _ in cases:
        program += f"os.environ.update({environment})\n"
        program += f"print(main({job.argv(**flags)}), 'tensorflow' in sys.modules)\n"
    run = job.run_apart("-c", program)
    said = [line for line in run.stdout.splitlines() if not line.startswith("note: ")]
    assert said == ["1 False"] * len(cases)
    for line, (_, _, word) in zip(run.stderr.splitlines(), cases, strict=True):
        assert line.startswith("error: ") and word in line


@pytest.mark.usefixtures("eagerly")
def test_the_folder_of_a_fine_tuned_model(job, fails):
    """--allow_missing, which begins new heads elsewhere, is not for what a folder resumes from."""
    encoder = google_variables(tiny_model(**ONE_LAYER).encoder)
    weights = {name: variable.numpy() for name, variable in encoder.items()}
    job.output.mkdir()
    write_arrays(str(job.output / "model.ckpt-1"), {**weights, "global_step": np.int64(1)})
    said = "--output_dir must be a new folder, or the folder of a run of this model: the "
    said += f"checkpoint {job.output}/model.ckpt-1 must fit the model. Received: - cls/"
    fails(job.run, said, allow_missing="cls/")
