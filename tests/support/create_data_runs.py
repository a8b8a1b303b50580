"""Runs of create_pretraining_data on random text that is cut into many small chunks."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import tensorflow as tf

from create_pretraining_data.engine import splitting, work_plan
from create_pretraining_data.records.reader import open_records
from run_scripts.build_vocab import main as build_vocab
from run_scripts.create_data import main
from tests.support.paths import ROOT
from tests.support.vocabularies import write_pieces

SYLLABLES = "가나다라마바사아자차카타파하"
CHUNK_BYTES, BUCKET_BYTES, SHARDS = 3000, 20_000, 3
# What the program is run with: sizes that make many chunks and buckets of little text.
SMALL = f"""
import os, signal, sys
from create_pretraining_data.engine import (
    chunk_file, passes, shards, splitting, work_plan
)
from run_scripts.create_data import main
splitting.CHUNK_BYTES, work_plan.BUCKET_BYTES = {CHUNK_BYTES}, {BUCKET_BYTES}

def die_at(module, name, call):
    function, calls = getattr(module, name), []
    def counted(*args):
        calls.append(None)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args)
    setattr(module, name, counted)

{{}}
sys.exit(main(sys.argv))
"""

# Calls of a function in the one process, at which it kills itself.
KILLS = {
    "in the first chunk": 'die_at(chunk_file, "frame", 40)',
    "in pass 1": 'die_at(chunk_file, "frame", 700)',
    "before a chunk's JSON": 'die_at(chunk_file, "write_json", 5)',
    "between": 'import run_scripts.create_data as p; die_at(p, "read_summaries", 1)',
    "in pass 2": 'die_at(shards, "split_frames", 300)',
    "before the JSON": 'import run_scripts.create_data as p; die_at(p, "write_sidecars", 1)',
    "before the end": 'import run_scripts.create_data as p; die_at(p, "remove_work_folder", 1)',
}


def make_corpus(folder):
    """Writes text.txt, in some twenty chunks, the same in other forms, and its vocabulary."""
    rng = random.Random(0)

    def sentence():
        return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(6))

    documents = ["\n".join(sentence() for _ in range(rng.randint(1, 9))) for _ in range(200)]
    documents += ["가", "뷁"]  # too short
    text = "\n\n".join(documents)
    (folder / "text.txt").write_text(text)
    (folder / "text.txt.gz").write_bytes(gzip.compress(text.encode()))
    lines = [json.dumps({"text": document}) for document in documents]
    (folder / "text.jsonl").write_text("\n".join(lines))
    write_pieces(folder, [*SYLLABLES[1:], *(f"##{c}" for c in SYLLABLES)])
    return folder


def make_small(patch):
    """Makes the program cut little text into many chunks, in this process."""
    patch.setattr(splitting, "CHUNK_BYTES", CHUNK_BYTES)
    patch.setattr(work_plan, "BUCKET_BYTES", BUCKET_BYTES)


def arguments(corpus, output, *flags):
    given = {
        "input_file": corpus / "text.txt", "output_file": f"{output}/ko.tfrecord@{SHARDS}",
        "vocab_file": corpus / "vocab.txt", "tokenizer": "korean", "max_seq_length": 32,
        "max_predictions_per_seq": 5, "dupe_factor": 2, "num_workers": 1,
    }  # fmt: skip
    given.update(flag.lstrip("-").split("=", 1) for flag in flags)
    if "engine" in given:
        del given["num_workers"]  # Spark has its own
    return ["create_pretraining_data.py", *(f"--{name}={v}" for name, v in given.items())]


def run(corpus, output, *flags):
    assert main(arguments(corpus, output, *flags)) == 0
    return contents(output)


def run_small(corpus, output, *flags):
    """As `run`, of little text in many chunks: for fixtures that several tests share."""
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return run(corpus, output, *flags)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The folder of `make_corpus`."""
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def small(monkeypatch):
    """As `make_small`, for one test."""
    make_small(monkeypatch)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The output of one process that is not disturbed."""
    return run_small(corpus, tmp_path_factory.mktemp("whole"))


class RunOutput(NamedTuple):
    """What a run writes."""

    records: list[bytes]  # of each record file
    description: bytes  # the JSON file


def contents(output):
    """Reads the files that a run wrote, and asserts that there are no others."""
    names = sorted(os.listdir(output))
    expected = [f"ko-{shard:05d}-of-{SHARDS:05d}.tfrecord" for shard in range(SHARDS)]
    assert names == [*expected, "ko.json", "ko.tokenizer"]
    assert sorted(os.listdir(output / "ko.tokenizer")) == ["tokenizer_config.json", "vocab.txt"]
    files = [(output / name).read_bytes() for name in expected]
    return RunOutput(files, (output / "ko.json").read_bytes())


def start(corpus, output, *flags, preparation="", **options):
    command = [sys.executable, "-c", SMALL.format(preparation)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    argv = [*command, *arguments(corpus, output, *flags)[1:]]
    return subprocess.Popen(argv, cwd=ROOT, **{**pipes, **options})


def chunks_in(output):
    """The JSON files of the chunks that a run under way has made."""
    return list((output / ".ko.tfrecord.work").glob("chunk-*.json"))


def run_and_die(corpus, output, *flags, preparation):
    """A run that kills itself where `preparation` says."""
    program = start(corpus, output, *flags, preparation=preparation)
    _, errors = program.communicate()
    assert program.returncode == -signal.SIGKILL, errors


def run_tasks(corpus, output, *flags):
    """Three tasks, one after the other, the first one in the middle."""
    for index in (2, 0, 1):
        task = "--num_tasks=3", f"--task_index={index}"
        assert main(arguments(corpus, output, *flags, *task)) == 0
    return contents(output)


def learn(path, folder, *flags):
    """The vocabulary that build_vocab makes of a text."""
    given = [f"--input_file={path}", f"--output_dir={folder}", "--analyser=none"]
    assert build_vocab(["build_vocab.py", *given, "--vocab_size=600", *flags]) == 0
    return (folder / "vocab.txt").read_bytes()


def records(output):
    files = [str(path) for path in sorted(output.glob("*.tfrecord"))]
    return [
        tf.train.Example.FromString(record).features.feature
        for record in open_records(files).as_numpy_iterator()
    ]


def one_line(text):
    (line,) = text.splitlines()
    assert line.startswith("error: ")
    return line


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_alive(pid):
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def descendants(pid):
    try:
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        found = [int(child) for task in tasks for child in task.read_text().split()]
    except FileNotFoundError:
        return []
    return [*found, *(d for child in found for d in descendants(child))]
