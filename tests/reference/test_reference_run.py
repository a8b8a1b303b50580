"""Tests of the reference run: its text, its stages, that it goes on wherever it was stopped."""

import glob
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import PYTHONPATH, ROOT
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from bert_common.errors import InputError
from create_pretraining_data.records.tfrecord import frame
from run_scripts.create_data import CreateDataFlags, choose_objective
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags, check_flags
from run_scripts.flags.training import choose_model_type, read_config
from run_scripts.reference import curves, measure, text
from run_scripts.reference.held_out import bits_per_character, characters_of
from run_scripts.reference.ledger import read_runs
from run_scripts.reference.program import ReferenceFlags, main, resolve, run_stages
from run_scripts.reference.sizes import FOLDER, SIZES
from run_scripts.reference.stages import make_stages
from tokenization import load_tokenizer

# === text ===


def divide(tmp_path, **flags):
    given = [f"--{name}={value}" for name, value in flags.items()]
    status = text.main(["text", *given, f"--output_dir={tmp_path / 'out'}"])
    if status:
        return status
    out = tmp_path / "out"
    report = json.loads((out / "report.json").read_text())
    return (out / "train.txt").read_text(), (out / "heldout.txt").read_text(), report


def test_text_is_divided(tmp_path):
    """Files end documents; a held-out document is not trained on; reviews are documents."""
    (tmp_path / "a.txt").write_text("가.\n나.\n\n다.\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("라.\n\n\n마.\n바.\n")
    (tmp_path / "held.txt").write_text("다.\n\n사.\n")
    reviews = "id\tdocument\tlabel\n1\t재밌다\t1\n2\t\t0\n3\t별로 \t0\n"
    (tmp_path / "ratings_train.txt").write_text(reviews)
    train, held_out, report = divide(
        tmp_path,
        corpus=f"{tmp_path}/a.txt,{tmp_path}/b.txt.gz",
        held_out=f"{tmp_path}/held.txt",
        reviews=f"{tmp_path}/ratings_train.txt",
        repeat_reviews=2,
    )
    assert train == "가.\n나.\n\n라.\n\n마.\n바.\n\n" + 2 * "재밌다\n\n별로\n\n"
    assert held_out == "다.\n\n사.\n\n"
    counted = {"documents": 3, "reviews": 4, "held_out_documents": 2, "left_out_documents": 1}
    assert {name: report[name] for name in counted} == counted
    assert report["megabytes"] == len(train.encode()) / 1e6


def test_every_hundredth_document_is_held_out(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{i}\n\n" for i in range(1, 251)))
    (tmp_path / "reviews.txt").write_text("좋다\n\n나쁘다\n")
    train, held_out, report = divide(
        tmp_path, corpus=f"{tmp_path}/a.txt", reviews=f"{tmp_path}/reviews.txt"
    )
    assert held_out == "100\n\n200\n\n"
    assert "\n100\n" not in train and train.endswith("250\n\n좋다\n\n나쁘다\n\n")
    assert (report["documents"], report["reviews"]) == (248, 2)


BAD_TEXT = {
    "too few documents": (b"a\n\nb\n", "one to hold out .* Received: 2 and 0"),
    "no UTF-8": (b"\xff\n", "line 1, must be UTF-8"),
    "a damaged gzip file": (gzip.compress(b"a\n" * 99)[:-9], "must be a complete gzip file"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text(case, tmp_path, capsys):
    content, message = BAD_TEXT[case]
    (tmp_path / "a.txt").write_bytes(content)
    assert divide(tmp_path, corpus=f"{tmp_path}/a.txt") == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1
    assert not (tmp_path / "out" / "report.json").exists()


# === sizes ===


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_flag_files_of_a_size(size, monkeypatch):
    """They parse, fit the configuration, and train every position."""
    monkeypatch.chdir(ROOT)
    assert sum(phase.share for phase in size.phases) == pytest.approx(1)
    given = ["--input_file=a", "--output_dir=b", "--do_train"]
    tokens = set()
    for phase in size.phases:
        values = parse(PretrainFlags, ["x", f"--flagfile={size.flagfile(phase)}", *given])
        model_type = choose_model_type(values)
        assert model_type == size.model_type
        assert getattr(values, f"{model_type}_config_file").endswith(size.config_file)
        check_flags(resolve_model_defaults(values, model_type))
        config = read_config(values, model_type)
        assert config.vocab_size == size.vocabulary_size
        assert values.max_seq_length == phase.length
        tokens.add(values.train_batch_size * phase.length)
    assert phase.length == config.max_position_embeddings >= size.held_out_length
    assert len(tokens) == 1  # an update of every phase sees as much text


def test_flag_files_of_the_records(monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, static in (("reference_data", False), ("reference_heldout", True)):
        given = [f"--flagfile={FOLDER}/{name}.flags", "--input_file=a", "--tokenizer_dir=b"]
        values = parse(CreateDataFlags, ["x", *given])
        assert choose_objective(values).objective == "sop"
        assert (values.masking, values.packing) == (("dynamic", "static")[static], not static)


# === stages ===

# Stands for every program: writes what the next stages read of its results, and notes its command.
# The file "die" lists the outputs of the commands that are killed at their first start.
FAKE = """
import json, os, shutil, signal, sys
from pathlib import Path

words = sys.argv[1:]
flags = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
with open("commands", "a") as file:
    file.write(" ".join(words) + chr(10))
out = Path(flags.get("output_dir") or flags["output_file"])
(out if "output_dir" in flags else out.parent).mkdir(parents=True, exist_ok=True)
die = Path("die").read_text().split()
if str(out) in die:
    Path("die").write_text(" ".join(name for name in die if name != str(out)))
    os.kill(os.getpid(), signal.SIGKILL)
if words[0] == "build_vocab.py":
    (out / "vocab.txt").write_text("[PAD]" + chr(10) + "a" + chr(10))
    (out / "report.json").write_text("{}")
elif words[0] == "create_pretraining_data.py":
    from create_pretraining_data.records.metadata import KIND

    out.write_bytes(b"1234")
    shard = {"file": out.name, "size": 4, "records": 7}
    out.with_suffix(".json").write_text(
        json.dumps({"kind": KIND, "shards": [shard], "records": 7, "padding_share": 0.1})
    )
elif words[0] == "export_model.py":
    (out / "model.safetensors").write_bytes(bytes(1000))
elif words[1] == "run_scripts.reference.text":
    (out / "report.json").write_text(json.dumps({"documents": 3}))
else:
    if words[0] == "run_pretraining.py":
        (out / "model.ckpt-1.index").touch()
        shutil.copy("events", out / "events.out.tfevents.1")
        (out / "eval").mkdir()
        shutil.copy("events", out / "eval" / "events.out.tfevents.1")
    (out / "eval_results.txt").write_text("eval_accuracy = 0.5" + chr(10))
"""


def write_events(path, seconds):
    """Event files as TensorBoard's writers make them: a scalar every ten updates."""
    with open(path, "wb") as file:
        for i, value in enumerate(seconds, 1):
            summary = Summary(
                value=[
                    Summary.Value(tag="throughput/step_seconds", simple_value=value),
                    Summary.Value(tag="loss/masked_lm", simple_value=value * 10),
                ]
            )
            file.write(frame(Event(step=10 * i, summary=summary).SerializeToString()))


def write_nsmc(folder):
    (folder / "nsmc").mkdir(parents=True)
    for split in ("train", "test"):
        (folder / "nsmc" / f"ratings_{split}.txt").write_text("id\tdocument\tlabel\n1\t가\t1\n")


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Runs the stages of the mini model with `FAKE`, in a folder; returns a function for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setattr(measure, "POLL_INTERVAL", 0.01)
    (tmp_path / "fake.py").write_text(FAKE)
    (tmp_path / "die").touch()
    (tmp_path / "corpus.txt").write_text("가\n")
    write_events(tmp_path / "events", [0.5, 0.25, 0.125])
    write_nsmc(tmp_path / "tasks")
    flags = ReferenceFlags(
        corpus="corpus.txt", size="mini", hours=1.0, tasks_dir="tasks", seeds=2, output_dir="out"
    )

    def run():
        def faked(stage):
            return stage._replace(
                command=lambda found: ["python", "fake.py", *stage.command(found)[1:]]
            )

        run_stages([faked(stage) for stage in make_stages(flags)], flags, "docs/runs.jsonl")
        return read_runs("docs/runs.jsonl")

    return SimpleNamespace(run=run, folder=tmp_path, flags=flags)


MINI_STAGES = (
    "text", "vocabulary", "records/64", "records/128", "records/512", "records/heldout-128",
    "records/heldout-512", "trial/64", "trial/128", "trial/512", "pretraining/64",
    "pretraining/128", "pretraining/512", "heldout/128", "heldout/512", "export",
    "model/nsmc/seed1", "model/nsmc/seed2", "random_weights/nsmc/seed1",
    "random_weights/nsmc/seed2",
)  # fmt: skip


def test_stages(fake, capsys):
    runs = fake.run()
    assert tuple(runs) == tuple(f"reference/{name}" for name in MINI_STAGES)
    assert runs["reference/records/64"].scores == {
        "records": 7, "padding_share": 0.1, "megabytes": 4e-6,
    }  # fmt: skip
    assert runs["reference/trial/64"].scores == {"seconds_per_update": 0.25}  # the median
    # An hour at 0.25 s an update, in shares of 0.6, 0.3 and 0.1.
    assert flags_of(runs["reference/pretraining/64"])["num_train_steps"] == "8640"
    second, third = (flags_of(runs[f"reference/pretraining/{n}"]) for n in (128, 512))
    assert (second["num_train_steps"], second["num_warmup_steps"]) == ("4320", "216")
    assert second["init_checkpoint"] == "out/pretraining/64"
    assert third["init_checkpoint"] == "out/pretraining/128"
    assert third["input_file"] == "out/records/train_512.tfrecord"
    model, random = (runs[f"reference/{n}/nsmc/seed2"] for n in ("model", "random_weights"))
    assert flags_of(model)["model_dir"] == "out/pretraining/512"
    assert "model_dir" not in flags_of(random) and "init_checkpoint" not in flags_of(random)
    shared = set(flags_of(model).items()) & set(flags_of(random).items())
    assert {("task_name", "nsmc"), ("random_seed", "2"), ("data_dir", "tasks/nsmc")} <= shared
    shown = capsys.readouterr().out
    assert "== 3 of 20: text to records: rows of 64 pieces" in shown
    assert not glob.glob("out/trials/*/model.ckpt*") and glob.glob("out/pretraining/64/model.ckpt*")
    kept = curves.read_curves("docs/curves/reference+pretraining+64.json")
    assert kept["loss/masked_lm"] == curves.Curve([10, 20, 30], [5.0, 2.5, 1.25])


def flags_of(run):
    words = shlex.split(run.command)
    return dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))


KILLED = (
    "out/text", "out/records/train_128.tfrecord", "out/trials/64", "out/pretraining/128",
    "out/heldout/128", "out/tasks/random_weights/nsmc/seed1",
)  # fmt: skip


def test_a_killed_stage_is_all_that_is_repeated(fake):
    """Each stage that is killed once runs twice, every other once; then nothing is left to do."""
    (fake.folder / "die").write_text(" ".join(KILLED))
    for _ in KILLED:
        with pytest.raises(InputError, match="exit status 0. Received: -9"):
            fake.run()
    runs = fake.run()
    assert tuple(runs) == tuple(f"reference/{name}" for name in MINI_STAGES)
    commands = (fake.folder / "commands").read_text().splitlines()
    assert len(commands) == len(MINI_STAGES) + len(KILLED)
    repeated = [line for line in dict.fromkeys(commands) if commands.count(line) == 2]
    outputs = [re.search(r"--output_(?:dir|file)=(\S+)", line)[1] for line in repeated]
    assert tuple(outputs) == KILLED
    write_events(fake.folder / "events", [9.0])  # another speed of the machine changes nothing
    assert fake.run() == runs
    assert (fake.folder / "commands").read_text().splitlines() == commands
    fake.flags.__dict__["hours"] = 2.0  # frozen for everybody else
    with pytest.raises(InputError, match="stand for one command.*reference/pretraining/64"):
        fake.run()


def test_without_tasks(monkeypatch):
    monkeypatch.chdir(ROOT)
    stages = make_stages(resolve(ReferenceFlags()))
    assert [stage.name for stage in stages] == list(MINI_STAGES[:16])
    command = stages[0].command({})
    assert "--held_out=sample_corpus/heldout.txt" in command


BAD_FLAGS = {
    "no corpus": (["--corpus=none.txt"], "--corpus must match a file"),
    "no tasks": (["--tasks_dir=docs"], "--tasks_dir must hold a folder of a task"),
    "an unknown size": (["--size=huge"], "size"),
    "an unknown flag": (["--colour=red"], "colour"),
    "no time": (["--hours=0"], "--hours must be above 0"),
}


@pytest.mark.parametrize("case", BAD_FLAGS)
def test_bad_flags(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    given, message = BAD_FLAGS[case]
    assert main(["reference", *given, f"--output_dir={tmp_path}"]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_another_folder_than_the_projects(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reference"]) == 1
    assert "the present folder must be the project's" in capsys.readouterr().err


# === curves, held-out text ===


def test_curves_are_thinned_out(tmp_path):
    (tmp_path / "eval").mkdir()
    write_events(tmp_path / "eval" / "events.out.tfevents.1", np.arange(150.0))
    curve = curves.held_out_curves(str(tmp_path))["throughput/step_seconds"]
    assert curve.steps == [*range(10, 1510, 30), 1500]
    assert curve.values[:2] == [0.0, 3.0] and curve.values[-1] == 149.0
    assert curves.held_out_curves(str(tmp_path / "none")) == {}
    assert curves.seconds_per_update(str(tmp_path)) is None


def test_bits_per_character():
    """Two pieces of three characters each cost 3 nats; 1.5 bits are one nat and a little."""
    assert bits_per_character(3.0, 2, 6) == pytest.approx(1 / np.log(2))
    tokenizer = load_tokenizer(ROOT / "tests" / "data" / "sample_tokenizer")
    lengths = characters_of(tokenizer)
    assert lengths[tokenizer.mask_id] == lengths[tokenizer.unk_id] == 1
    for piece, number in tokenizer.vocab.items():
        if piece.startswith("##"):
            assert lengths[number] == len(piece) - 2
    assert len(lengths) == tokenizer.vocab_size


# === all of it ===


@pytest.mark.slow
def test_from_text_to_pages(tmp_path):
    """The tiny model, every program for real, killed while it pre-trains; then once more."""
    write_real_nsmc(tmp_path / "tasks")
    flags = [
        "--size=tiny", "--hours=0.005", "--seeds=1", f"--output_dir={tmp_path / 'out'}",
        f"--tasks_dir={tmp_path / 'tasks'}", "--device=cpu",
    ]  # fmt: skip
    command = ["bash", str(ROOT / "run_scripts" / "reference_run.sh"), *flags]
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "pre-training with rows of 128" in line:
                process.kill()
    ledger = tmp_path / "out" / "docs" / "results" / "runs.jsonl"
    before = read_runs(ledger)
    assert "reference/pretraining/32" in before and "reference/pretraining/128" not in before
    subprocess.run(command, env=environment, check=True)
    runs = read_runs(ledger)
    assert list(runs)[: len(before)] == list(before)
    assert list(runs)[-2:] == ["reference/model/nsmc/seed1", "reference/random_weights/nsmc/seed1"]
    held_out = runs["reference/heldout/128"].scores
    pieces = held_out["bits_per_character"] / held_out["masked_lm_loss"] * np.log(2)
    assert 0.4 < pieces < 1  # pieces a character: most have one or two
    for name in ("results.md", "results.ko.md", "results/reference.png"):
        assert (tmp_path / "out" / "docs" / name).stat().st_size > 1000
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()


def write_real_nsmc(folder):
    """Reviews of which a word tells the label."""
    (folder / "nsmc").mkdir(parents=True)
    for split, count in (("train", 64), ("test", 16)):
        rows = [f"{i}\t{('재미없다', '재미있다')[i % 2]} 정말 {i}\t{i % 2}\n" for i in range(count)]
        text = "id\tdocument\tlabel\n" + "".join(rows)
        (folder / "nsmc" / f"ratings_{split}.txt").write_text(text)
