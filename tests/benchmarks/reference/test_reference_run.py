"""Tests of the stages of the reference run: it goes on wherever it was stopped."""

import glob
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from benchmarks.common import parser_of
from benchmarks.reference import measure, program
from benchmarks.reference.ledger import read_runs
from benchmarks.reference.program import run_stages
from benchmarks.reference.stages import make_stages
from create_pretraining_data.records.tfrecord import frame
from tests.support.paths import PYTHONPATH, ROOT
from tests.support.task_data import write_published

# Stands for every program: writes what the next stages read of its results.
FAKE = """
import json, shutil, sys
from pathlib import Path

words = sys.argv[1:]
flags = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
out = Path(flags.get("output_dir") or flags["output_file"])
(out if "output_dir" in flags else out.parent).mkdir(parents=True, exist_ok=True)
if words[0] == "build_vocab.py":
    (out / "vocab.txt").write_text("[PAD]" + chr(10) + "a" + chr(10))
    (out / "tokenizer_config.json").write_text("{}")
elif words[0] == "create_pretraining_data.py":
    from create_pretraining_data.records.metadata import KIND

    out.write_bytes(b"1234")
    shard = {"file": out.name, "size": 4, "records": 7}
    out.with_suffix(".json").write_text(
        json.dumps({"kind": KIND, "shards": [shard], "pieces": 90, "pieces_per_word": 2.5,
                    "unknown_share": 0.0, "padding_share": 0.1})
    )
elif words[0] == "adapt_checkpoint.py":
    positions = {"new": int(flags["max_position_embeddings"]), "trained": 64}
    (out / "adaptation.json").write_text(json.dumps({"positions": positions}))
    (out / "model.ckpt.index").touch()
elif words[0] == "export_model.py":
    (out / "model.safetensors").write_bytes(bytes(1000))
elif words[1] == "benchmarks.reference.text":
    (out / "report.json").write_text(json.dumps({"documents": 3}))
else:
    if words[0] == "run_pretraining.py":
        (out / "model.ckpt-1.index").touch()
        shutil.copy("events", out / "events.out.tfevents.1")
        (out / "eval").mkdir()
        shutil.copy("events", out / "eval" / "events.out.tfevents.1")
    (out / "eval_results.txt").write_text("eval_accuracy = 0.5" + chr(10))
"""


FAKED = ["python", "-c", FAKE]


def flags(**given):
    """The parsed command line of a reference run."""
    typed = [f"--{name}={value}" for name, value in given.items()]
    return parser_of(program.__doc__, program.FLAGS).parse_args(typed)


def write_events(path, seconds):
    """Event files as TensorFlow 2 writes them: scalars every ten updates, beside a text."""
    with open(path, "wb") as file:
        for i, value in enumerate(seconds, 1):
            summary = Summary()
            for tag, number in (("throughput/step_seconds", value), ("loss/masked_lm", value * 10)):
                tensor = TensorProto(dtype=1, tensor_content=np.float32(number).tobytes())
                point = summary.value.add(tag=tag, tensor=tensor)
                point.metadata.plugin_data.plugin_name = "scalars"
            tensor = TensorProto(dtype=7, string_val=[b"guesses"])
            summary.value.add(tag="a", tensor=tensor).metadata.plugin_data.plugin_name = "text"
            file.write(frame(Event(step=10 * i, summary=summary).SerializeToString()))


@pytest.fixture
def faked_runs(tmp_path, monkeypatch):
    """The runs of the stages of the mini model, each with `FAKE`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PYTHONPATH)
    monkeypatch.setattr(measure, "POLL_INTERVAL", 0.01)
    (tmp_path / "corpus.txt").write_text("가\n")
    write_events(tmp_path / "events", [0.5, 0.25, 0.125])
    write_published(tmp_path / "tasks" / "nsmc", "nsmc", train=[("나", 1)], test=[("가", 1)])
    tasks = {"tasks_dir": "tasks", "seeds": 2}
    given = flags(corpus="corpus.txt", size="mini", hours=1.0, **tasks, output_dir="out")

    def faked(stage):
        return stage._replace(command=lambda found: [*FAKED, *stage.arguments(found)[1:]])

    run_stages([faked(stage) for stage in make_stages(given)], given, "docs/runs.jsonl")
    return read_runs("docs/runs.jsonl")


MINI_STAGES = (
    "text", "vocabulary", "records/64", "records/128", "records/512", "records/heldout-64",
    "records/heldout-128", "records/heldout-512", "trial/64", "trial/128", "trial/512",
    "pretraining/64", "positions/128", "pretraining/128", "positions/512", "pretraining/512",
    "heldout/64", "heldout/128", "heldout/512", "export", "model/nsmc/seed1",
    "random_weights/nsmc/seed1", "model/nsmc/seed2", "random_weights/nsmc/seed2",
)  # fmt: skip


@pytest.mark.slow
def test_stages(capsys, faked_runs):  # in this order: it captures what the stages print
    runs = faked_runs
    assert tuple(runs) == tuple(f"reference/{name}" for name in MINI_STAGES)
    assert runs["reference/records/64"].scores == {
        "records": 7, "pieces": 90, "pieces_per_word": 2.5, "unknown_share": 0.0,
        "padding_share": 0.1, "megabytes": 4e-6,
    }  # fmt: skip
    assert runs["reference/trial/64"].scores == {"seconds_per_update": 0.25}  # the median
    # An hour at 0.25 s an update, in shares of 0.3, 0.6 and 0.1.
    assert flags_of(runs["reference/pretraining/64"])["num_train_steps"] == "4320"
    second, third = (flags_of(runs[f"reference/pretraining/{n}"]) for n in (128, 512))
    assert (second["num_train_steps"], second["num_warmup_steps"]) == ("8640", "432")
    # The second phase and the third have longer rows than the one before.
    for flags, before, length in ((second, 64, 128), (third, 128, 512)):
        assert flags["init_checkpoint"] == f"out/positions/{length}"
        adapted = runs[f"reference/positions/{length}"]
        assert adapted.scores == {"positions": 512, "trained_positions": 64}
        assert flags_of(adapted)["model_dir"] == f"out/pretraining/{before}"
        assert flags_of(adapted)["max_position_embeddings"] == "512"
    assert third["eval_input_file"] == "out/records/heldout_512.tfrecord"
    assert third["input_file"] == "out/records/train_512.tfrecord"
    for length, masks in ((64, "10"), (128, "19"), (512, "77")):  # 15 % of each row
        records = flags_of(runs[f"reference/records/heldout-{length}"])
        assert records["max_predictions_per_seq"] == masks
    model, random = (runs[f"reference/{n}/nsmc/seed2"] for n in ("model", "random_weights"))
    assert flags_of(model)["model_dir"] == "out/pretraining/512"
    assert "model_dir" not in flags_of(random) and "init_checkpoint" not in flags_of(random)
    shared = set(flags_of(model).items()) & set(flags_of(random).items())
    assert {("task_name", "nsmc"), ("random_seed", "2"), ("data_dir", "tasks/nsmc")} <= shared
    shown = capsys.readouterr().out
    assert "== 3 of 24: text to records: rows of 64 tokens" in shown
    assert not glob.glob("out/trials/*/model.ckpt*") and glob.glob("out/pretraining/64/model.ckpt*")
    kept = json.loads(Path("docs/curves/reference+pretraining+64.json").read_text())
    assert kept["loss/masked_lm"] == {"steps": [10, 20, 30], "values": [5.0, 2.5, 1.25]}


def flags_of(run):
    words = shlex.split(run.command)
    return dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))


def test_going_on_from_a_model(tmp_path):
    """Its vocabulary and its weights are used; the time is divided among the phases chosen."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.ckpt-1.index").touch()
    (model / "pretraining.json").write_text('{"trained_positions": 128}')
    given = flags(size="mini", hours=1.0, begin_with=model, lengths="128,512")
    stages = {stage.name: stage for stage in make_stages(given)}
    not_run = ("vocabulary", "records/64", "trial/64", "pretraining/64", "positions/128")
    assert list(stages) == [name for name in MINI_STAGES[:-4] if name not in not_run]
    found = {f"trial/{length}": {"seconds_per_update": 0.25} for length in (128, 512)}
    commands = {name: " ".join(stage.arguments(found)) for name, stage in stages.items()}
    out = "output/reference"
    for stage, flag in (
        ("records/128", f"--tokenizer_dir={model} "),
        ("pretraining/128", f"--init_checkpoint={model} "),
        ("pretraining/128", "--num_train_steps=12343 "),  # shares of 0.6 and 0.1
        ("positions/512", f"--model_dir={out}/pretraining/128 "),
        ("pretraining/512", f"--init_checkpoint={out}/positions/512 "),
        ("heldout/128", f"--model_dir={out}/pretraining/512 "),
    ):
        assert flag in commands[stage] + " "


@pytest.mark.slow
def test_from_text_to_tables(tmp_path):
    """The tiny model, every program for real, killed while it pre-trains; then once more."""
    # A word of a review tells its label.
    rows = [(f"{('재미없다', '재미있다')[i % 2]} 정말 {i}", i % 2) for i in range(64)]
    write_published(tmp_path / "tasks" / "nsmc", "nsmc", train=rows, test=rows[:16])
    given = [
        "--size=tiny", "--hours=0.005", "--seeds=1", f"--output_dir={tmp_path / 'out'}",
        f"--tasks_dir={tmp_path / 'tasks'}", "--device=cpu",
    ]  # fmt: skip
    command = ["bash", str(ROOT / "benchmarks" / "reference" / "run.sh"), *given]
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "pre-training with rows of 128" in line:
                process.kill()
    ledger = tmp_path / "out" / "docs" / "results" / "runs.jsonl"
    before = read_runs(ledger)
    assert "reference/pretraining/32" in before and "reference/pretraining/128" not in before
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    runs = read_runs(ledger)
    assert list(runs)[: len(before)] == list(before)
    assert list(runs)[-2:] == ["reference/model/nsmc/seed1", "reference/random_weights/nsmc/seed1"]
    held_out = runs["reference/heldout/128"].scores
    pieces = held_out["bits_per_character"] / held_out["masked_lm_loss"] * np.log(2)
    assert 0.4 < pieces < 1  # pieces a character: most have one or two
    assert "| nsmc | eval_accuracy |" in done.stdout
    weights = load_file(tmp_path / "out" / "model" / "model.safetensors")
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float16)}
