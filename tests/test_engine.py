"""Any number of workers, of tasks, of kills writes the same files, and says what they are."""

import collections
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tensorflow as tf

from create_pretraining_data import engine, input_chunks, work_plan
from create_pretraining_data.records import find_corruption, open_records
from create_pretraining_data.tfrecord import split
from run_scripts.create_data import main
from tokenization import KoreanTokenizer

ROOT = Path(__file__).parents[1]
SYLLABLES = "가나다라마바사아자차카타파하"
CHUNK_BYTES, BUCKET_BYTES, SHARDS = 3000, 20_000, 3
# What the program is run with: sizes that make many chunks and buckets of little text.
SMALL = f"""
import os, signal, sys
from create_pretraining_data import chunk_file, engine, input_chunks, shards, work_plan
from run_scripts.create_data import main
input_chunks.CHUNK_BYTES, work_plan.BUCKET_BYTES = {CHUNK_BYTES}, {BUCKET_BYTES}

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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with text.txt in some twenty chunks, and its vocabulary."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(0)
    documents = [
        [
            " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(6))
            for _ in range(rng.randint(1, 9))
        ]
        for _ in range(200)
    ]
    documents += [["가"], ["뷁"]]  # too short
    text = "\n\n".join("\n".join(document) for document in documents)
    (folder / "text.txt").write_text(text)
    (folder / "text.txt.gz").write_bytes(gzip.compress(text.encode()))
    lines = [json.dumps({"text": "\n".join(document)}) for document in documents]
    (folder / "text.jsonl").write_text("\n".join(lines))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *SYLLABLES[1:], *(f"##{c}" for c in SYLLABLES)]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(input_chunks, "CHUNK_BYTES", CHUNK_BYTES)
    monkeypatch.setattr(work_plan, "BUCKET_BYTES", BUCKET_BYTES)


def arguments(corpus, output, *flags):
    given = {
        "input_file": corpus / "text.txt",
        "output_file": f"{output}/ko.tfrecord@{SHARDS}",
        "vocab_file": corpus / "vocab.txt",
        "tokenizer": "korean",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "num_workers": 1,
    }
    given.update(flag.lstrip("-").split("=") for flag in flags)
    return ["create_pretraining_data.py", *(f"--{name}={v}" for name, v in given.items())]


def run(corpus, output, *flags):
    assert main(arguments(corpus, output, *flags)) == 0
    return contents(output)


def contents(output):
    """The record files, all of them; nothing but the JSON file lies beside them."""
    names = sorted(os.listdir(output))
    expected = [f"ko-{shard:05d}-of-{SHARDS:05d}.tfrecord" for shard in range(SHARDS)]
    assert names == [*expected, "ko.json"]
    return [(output / name).read_bytes() for name in expected]


def start(corpus, output, *flags, preparation="", **options):
    command = [sys.executable, "-c", SMALL.format(preparation)]
    return subprocess.Popen(
        [*command, *arguments(corpus, output, *flags)[1:]],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The record files of a run that nothing happened to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_chunks, "CHUNK_BYTES", CHUNK_BYTES)
        patch.setattr(work_plan, "BUCKET_BYTES", BUCKET_BYTES)
        return run(corpus, tmp_path_factory.mktemp("whole"))


def records(output):
    files = [str(path) for path in sorted(output.glob("*.tfrecord"))]
    assert find_corruption(files) is None
    return [
        tf.train.Example.FromString(record).features.feature
        for record in open_records(files).as_numpy_iterator()
    ]


def one_line(text):
    (line,) = text.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("workers", [2, 3])
def test_any_number_of_workers_writes_the_same_bytes(corpus, whole, tmp_path, workers):
    assert run(corpus, tmp_path, f"--num_workers={workers}") == whole


def test_another_seed_writes_other_bytes(corpus, whole, tmp_path):
    assert run(corpus, tmp_path, "--random_seed=1") != whole


@pytest.mark.parametrize("name", ["text.txt.gz", "text.jsonl"])
def test_the_form_of_the_input_does_not_matter(corpus, whole, tmp_path, monkeypatch, name):
    flags = [f"--input_file={corpus / name}"]
    if name.endswith("jsonl"):  # more bytes, which are cut elsewhere
        monkeypatch.setattr(input_chunks, "CHUNK_BYTES", 10**9)
        monkeypatch.setattr(work_plan, "BUCKET_BYTES", 10**9)
        flags.append("--input_format=jsonl")
        whole = run(corpus, tmp_path)
    assert run(corpus, tmp_path, *flags) == whole


def test_shards_are_even_and_whole(whole, corpus, tmp_path):
    run(corpus, tmp_path)
    sizes = [len(content) for content in whole]
    assert max(sizes) - min(sizes) < 0.1 * sum(sizes) / SHARDS
    assert len({bytes(c[a:b]) for c in whole for a, b in split(c)}) > 0.99 * len(records(tmp_path))


def test_a_shard_holds_records_of_every_chunk_in_random_order(corpus, tmp_path, monkeypatch):
    """The place of a record says nothing of where its text stood."""
    documents = [[f"가 {'나' * (1 + i // 20)} 다"] * 2 for i in range(400)]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(d) for d in documents))
    output = tmp_path / "out"
    run(corpus, output, f"--input_file={tmp_path}/text.txt", "--max_seq_length=64")
    lengths = [sum(f["input_mask"].int64_list.value) for f in records(output)]
    n = len(lengths)
    half = sum(lengths[: n // 2]) / (n // 2), sum(lengths[n // 2 :]) / (n - n // 2)
    assert abs(half[0] - half[1]) < 3
    neighbours = sum(abs(a - b) for a, b in zip(lengths, lengths[1:], strict=False)) / (n - 1)
    assert neighbours > 8  # in the order of the text: below 2


def test_the_json_says_what_the_records_are(corpus, tmp_path):
    run(corpus, tmp_path)
    found = json.loads((tmp_path / "ko.json").read_text())
    made = records(tmp_path)
    lengths = collections.Counter(sum(f["input_mask"].int64_list.value) for f in made)
    ones = sum(f["next_sentence_labels"].int64_list.value[0] for f in made)
    words = (corpus / "text.txt").read_text().split()
    tokenizer = KoreanTokenizer(corpus / "vocab.txt")
    pieces = [piece for word in words for piece in tokenizer.encode(word)]
    assert found["examples"] == len(made) == sum(s["records"] for s in found["shards"])
    assert found["lengths"] == {str(k): v for k, v in sorted(lengths.items())}
    assert (found["label_ones"], found["documents"]) == (ones, 202)
    assert found["label_1_share"] == pytest.approx(ones / len(made), abs=1e-5)
    assert found["padding_share"] == pytest.approx(
        1 - sum(k * v for k, v in lengths.items()) / 32 / len(made), abs=1e-5
    )
    assert found["documents_left_out"] == {"one word": 2}
    assert found["words"] == len(words) and found["sentences"] > 800
    assert found["pieces"] == len(pieces)
    assert found["unknown_pieces"] == pieces.count(tokenizer.unk_id) > 0
    assert found["unknown_share"] == pytest.approx(pieces.count(1) / len(pieces), abs=1e-5)
    assert found["pieces_per_word"] == pytest.approx(len(pieces) / len(words), abs=1e-5)
    assert [tmp_path / s["file"] for s in found["shards"]] == sorted(tmp_path.glob("*.tfrecord"))
    assert [(tmp_path / s["file"]).stat().st_size for s in found["shards"]] == [
        s["size"] for s in found["shards"]
    ]


def test_gzip_holds_the_same_records(corpus, whole, tmp_path, monkeypatch):
    packed = run(corpus, tmp_path, "--compression=GZIP")
    with monkeypatch.context() as patch:  # another day
        patch.setattr("gzip.time.time", lambda: 1.0)
        assert run(corpus, tmp_path / "later", "--compression=GZIP") == packed
    shutil.rmtree(tmp_path / "later")
    assert [gzip.decompress(content) for content in packed] == whole
    assert all(len(a) < len(b) / 2 for a, b in zip(packed, whole, strict=True))
    assert len(records(tmp_path)) > 100


# Calls of a function in the one process, at which it kills itself.
KILLS = {
    "in the first chunk": 'die_at(chunk_file, "frame", 40)',
    "in pass 1": 'die_at(chunk_file, "frame", 700)',
    "between": 'import run_scripts.create_data as p; die_at(p, "read_summaries", 1)',
    "in pass 2": 'die_at(shards, "split", 200)',
    "before the JSON": 'import run_scripts.create_data as p; die_at(p, "write_sidecars", 1)',
    "before the end": 'import run_scripts.create_data as p; die_at(p, "clear", 1)',
}


@pytest.mark.parametrize("moment", KILLS)
def test_killed_and_started_again(corpus, whole, tmp_path, moment):
    killed = start(corpus, tmp_path, preparation=KILLS[moment])
    _, errors = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, errors
    chunks = list((tmp_path / ".ko.tfrecord.work").glob("chunk-??????"))
    assert (len(chunks) > 3) == (moment != "in the first chunk")
    assert (tmp_path / "ko.json").exists() == (moment == "before the end")
    assert run(corpus, tmp_path) == whole


def test_what_is_whole_is_not_made_again(corpus, whole, tmp_path, monkeypatch):
    start(corpus, tmp_path, preparation=KILLS["in pass 2"]).communicate()
    made = []
    for name in ("make_chunk_file", "make_shard_file"):
        function = getattr(engine, name)
        monkeypatch.setattr(
            engine, name, lambda *a, f=function, name=name: (made.append(name), f(*a))[1]
        )
    assert run(corpus, tmp_path) == whole
    assert 1 <= len(made) <= SHARDS and "make_chunk_file" not in made


def test_workers_end_with_the_program(corpus, whole, tmp_path):
    flags = "--num_workers=2", "--dupe_factor=12"
    program = start(corpus, tmp_path, *flags)
    work = tmp_path / ".ko.tfrecord.work"
    until(lambda: len(list(work.glob("chunk-0000??"))) >= 2)
    workers = descendants(program.pid)
    assert len(workers) >= 2
    program.kill()
    program.communicate()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    kept = {path.name: path.read_bytes() for path in work.glob("chunk-0000??")}
    assert 2 <= len(kept) < os.path.getsize(corpus / "text.txt") / CHUNK_BYTES - 1
    run(corpus, tmp_path, *flags)


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def descendants(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        found = [
            int(child)
            for task in tasks
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []
    return [*found, *(d for child in found for d in descendants(child))]


def test_a_worker_that_dies_is_one_line(corpus, whole, tmp_path):
    program = start(corpus, tmp_path, "--num_workers=2", "--dupe_factor=40")
    work = tmp_path / ".ko.tfrecord.work"
    until(lambda: len(list(work.glob("chunk-0000??"))) >= 1)
    workers = descendants(program.pid)
    os.kill(workers[-1], signal.SIGKILL)
    _, errors = program.communicate()
    assert program.returncode == 1
    assert "worker processes must stay alive" in one_line(errors)


def test_other_settings_are_refused(corpus, whole, tmp_path, capsys):
    start(corpus, tmp_path, preparation=KILLS["in pass 1"]).communicate()
    capsys.readouterr()
    for flag, part in (
        ("--dupe_factor=3", "--dupe_factor was 2, is now 3"),
        ("--random_seed=3", "--random_seed was 12345, is now 3"),
        (f"--input_file={corpus}/text.txt.gz", "text.txt was "),
        ("--tokenizer=full", "tokenizer was "),
    ):
        assert main(arguments(corpus, tmp_path, flag)) == 1
        line = one_line("\n".join(
            line for line in capsys.readouterr().err.splitlines() if line[:7] != "warning"
        ))  # fmt: skip
        assert part in line and "delete that folder to start anew" in line
        assert str(tmp_path / ".ko.tfrecord.work") in line
    assert run(corpus, tmp_path, "--num_workers=2") == whole


def test_nothing_is_made_twice(corpus, whole, tmp_path, capsys):
    run(corpus, tmp_path)
    capsys.readouterr()
    assert run(corpus, tmp_path) == whole
    assert "already there" in capsys.readouterr().out
    assert run(corpus, tmp_path, "--random_seed=3") != whole
    (tmp_path / "ko-00001-of-00003.tfrecord").write_bytes(b"")
    assert run(corpus, tmp_path) == whole


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_tasks_share_the_work(corpus, whole, tmp_path, capsys, order):
    for task in order[:2]:
        assert main(arguments(corpus, tmp_path, "--num_tasks=3", f"--task_index={task}")) == 0
        assert "the last task makes the record files" in capsys.readouterr().out
        assert not list(tmp_path.glob("*.tfrecord"))
    assert run(corpus, tmp_path, "--num_tasks=3", f"--task_index={order[2]}") == whole
    # A scheduler may start a task again.
    assert run(corpus, tmp_path, "--num_tasks=3", "--task_index=1") == whole


def test_tasks_at_once(corpus, whole, tmp_path):
    tasks = [start(corpus, tmp_path, "--num_tasks=2", f"--task_index={i}") for i in range(2)]
    for task in tasks:
        assert task.communicate()[1] == "" and task.returncode == 0
    assert contents(tmp_path) == whole


def test_one_process_at_a_time(corpus, tmp_path, capsys):
    import fcntl

    work = tmp_path / ".ko.tfrecord.work"
    work.mkdir()
    with open(work / "task-0.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(arguments(corpus, tmp_path)) == 1
    assert "another one is at work" in one_line(capsys.readouterr().err)
    assert (work / "task-0.lock").exists()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [3000, 60_000])
def test_a_full_disk_is_one_line(corpus, whole, tmp_path, limit, workers):
    """In a chunk's file, in a shard."""
    full = start(
        corpus, tmp_path, f"--num_workers={workers}",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    _, errors = full.communicate()
    assert full.returncode == 1
    assert "must be writable. Received: File too large" in one_line(errors)
    assert not list(tmp_path.glob("*.tfrecord")) and not list(tmp_path.rglob("*.partial"))
    assert run(corpus, tmp_path) == whole


def test_too_little_space_is_said_before(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: collections.namedtuple("U", "free")(1000))
    assert main(arguments(corpus, tmp_path)) == 1
    assert "must have room for about" in (line := one_line(capsys.readouterr().err))
    assert "Received: 1 kB free" in line
    assert os.listdir(tmp_path) == []


def test_no_other_json_is_written_over(corpus, tmp_path, capsys):
    for content in ('{"text": "a"}', "", "[]"):
        (tmp_path / "ko.json").write_text(content)
        assert main(arguments(corpus, tmp_path)) == 1
        assert "must leave other JSON files alone" in one_line(capsys.readouterr().err)
        assert (tmp_path / "ko.json").read_text() == content
    text = tmp_path / "ko.json"
    text.write_text('{"text": "가 나\\n다 라"}\n')
    flags = [f"--input_file={text}", "--input_format=jsonl"]
    assert main(arguments(corpus, tmp_path, *flags)) == 1
    assert "a file that is read" in one_line(capsys.readouterr().err)


def test_bad_text_leaves_nothing_to_go_on_from(corpus, tmp_path, capsys):
    text = tmp_path / "text.txt"
    output = tmp_path / "out"
    text.write_bytes(b"\xff")
    assert main(arguments(corpus, output, f"--input_file={text}")) == 1
    assert os.listdir(output) == []
    text.write_text("가 나\n다 라\n\n" * 99)
    run(corpus, output, f"--input_file={text}")


def test_warnings_come_early(corpus, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("가 나 다 라\n\n" * 2000)
    run(corpus, tmp_path / "out", f"--input_file={text}", "--dupe_factor=1")
    lines = capsys.readouterr().err.splitlines()
    assert [line.startswith("warning: so far every one of the") for line in lines] == [True, False]
    assert "every one of the 2000 documents has a single sentence" in lines[1]
