"""Any number of workers and of tasks writes the same files, and describes them."""

import collections
import gzip
import json
import os
import random
import shutil

import pytest

from bert_common import progress
from create_pretraining_data.records.tfrecord import split_frames
from run_scripts import create_data
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    BUCKET_BYTES,
    SHARDS,
    arguments,
    contents,
    records,
    run,
    start,
    until,
)
from tokenization import KoreanTokenizer

pytestmark = pytest.mark.usefixtures("small")


def test_several_workers_write_the_same_bytes(corpus, whole, tmp_path):
    assert run(corpus, tmp_path, "--num_workers=3") == whole


def test_shards_are_even_and_whole(whole):
    sizes = [len(content) for content in whole.records]
    assert max(sizes) - min(sizes) < 0.1 * sum(sizes) / SHARDS
    made = [bytes(c[a:b]) for c in whole.records for a, b in split_frames(c)]
    assert len(set(made)) > 0.99 * len(made)


def test_a_shard_holds_records_of_every_chunk_in_random_order(corpus, tmp_path):
    """A record's place does not depend on where its text was."""
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


@pytest.mark.parametrize("compression", ["none", "GZIP"])
def test_buckets_of_short_texts_are_no_larger(corpus, tmp_path, monkeypatch, compression):
    """Comments of one line make rows of padding, thirty times as large as the text."""
    comments = [f"{'나다라마바사아'[k % 7]} 다" for k in range(2000)]
    (tmp_path / "text.txt").write_text("\n\n".join(comments))
    shuffle, sizes = random.Random.shuffle, []

    def measured(self, items):
        if isinstance(items[0], bytes):
            sizes.append(sum(map(len, items)))
        shuffle(self, items)

    monkeypatch.setattr(random.Random, "shuffle", measured)
    flags = f"--input_file={tmp_path}/text.txt", "--objective=none", "--max_seq_length=512"
    run(corpus, tmp_path / "out", *flags, f"--compression={compression}")
    assert len(sizes) > 10 * SHARDS and max(sizes) < 1.5 * BUCKET_BYTES


def test_the_json_says_what_the_records_are(corpus, tmp_path):
    run(corpus, tmp_path)
    found = json.loads((tmp_path / "ko.json").read_text())
    made = records(tmp_path)
    lengths = collections.Counter(sum(f["input_mask"].int64_list.value) for f in made)
    ones = sum(f["next_sentence_labels"].int64_list.value[0] for f in made)
    words = (corpus / "text.txt").read_text().split()
    tokenizer = KoreanTokenizer(corpus / "vocab.txt")
    pieces = [piece for word in words for piece in tokenizer.encode(word)]
    unknown = pieces.count(tokenizer.unk_id)
    expected = {
        "examples": len(made),
        "lengths": {str(k): v for k, v in sorted(lengths.items())},
        "label_ones": ones,
        "label_1_share": ones / len(made),
        "padding_share": 1 - sum(k * v for k, v in lengths.items()) / 32 / len(made),
        "documents": 202,
        "documents_left_out": {"one word": 2},
        "words": len(words),
        "pieces": len(pieces),
        "unknown_pieces": unknown,
        "unknown_share": unknown / len(pieces),
        "pieces_per_word": len(pieces) / len(words),
    }
    for name, value in expected.items():
        is_share = isinstance(value, float)
        assert found[name] == (pytest.approx(value, abs=1e-5) if is_share else value), name
    assert found["sentences"] > 800 and unknown > 0
    files = sorted(tmp_path.glob("*.tfrecord"))
    assert sum(shard["records"] for shard in found["shards"]) == len(made)
    assert [(shard["file"], shard["size"]) for shard in found["shards"]] == [
        (path.name, path.stat().st_size) for path in files
    ]


def test_gzip_holds_the_same_records(corpus, whole, tmp_path, monkeypatch):
    packed = run(corpus, tmp_path, "--compression=GZIP")
    with monkeypatch.context() as patch:  # another day
        patch.setattr("gzip.time.time", lambda: 1.0)
        assert run(corpus, tmp_path / "later", "--compression=GZIP") == packed
    shutil.rmtree(tmp_path / "later")
    assert [gzip.decompress(content) for content in packed.records] == whole.records
    assert all(len(a) < len(b) / 2 for a, b in zip(packed.records, whole.records, strict=True))
    assert len(records(tmp_path)) > 100


def test_nothing_is_made_twice(corpus, whole, tmp_path, capsys):
    run(corpus, tmp_path)
    folder = tmp_path / "ko.tokenizer"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    for is_gone in (False, True):  # a tokenizer that is gone is written again
        if is_gone:
            shutil.rmtree(folder)
        assert run(corpus, tmp_path) == whole
        assert "up to date" in capsys.readouterr().out
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert run(corpus, tmp_path, "--random_seed=3").records != whole.records
    (tmp_path / "ko-00001-of-00003.tfrecord").write_bytes(b"")
    assert run(corpus, tmp_path) == whole


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_tasks_share_the_work(corpus, whole, tmp_path, capsys, order):
    for task in order[:2]:
        assert main(arguments(corpus, tmp_path, "--num_tasks=3", f"--task_index={task}")) == 0
        assert "the last task writes the record files" in capsys.readouterr().out
        assert not list(tmp_path.glob("*.tfrecord"))
    assert run(corpus, tmp_path, "--num_tasks=3", f"--task_index={order[2]}") == whole
    # A scheduler may start a task again.
    assert run(corpus, tmp_path, "--num_tasks=3", "--task_index=1") == whole


def test_a_log_says_how_far_it_is(corpus, tmp_path, capsys, monkeypatch):
    """Without a terminal, where a batch system keeps what is written."""
    monkeypatch.setattr(progress, "LINE_INTERVAL", 1e-6)
    run(corpus, tmp_path)
    lines = capsys.readouterr().err.splitlines()
    size = progress.format_bytes((corpus / "text.txt").stat().st_size)
    assert lines[0].startswith("looking for repeated lines: ") and f" of {size}, " in lines[0]
    first = next(line for line in lines if line.startswith("making examples: "))
    assert f" of {size}, " in first and first.endswith(" left")
    (last,) = (line for line in lines if line.startswith("making") and "ended after" in line)
    assert last.startswith(f"making examples: 100%, {size} of {size}, ")
    assert lines[-1].startswith("shuffling records: 100%, ") and "ended after" in lines[-1]


# Says that it found a lock taken.
SAY_SO = """
import fcntl
flock = fcntl.flock
def saying(file, operation):
    try:
        flock(file, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        open({path!r}, "w").close()
        flock(file, operation)
fcntl.flock = saying
"""


def test_two_tasks_that_end_at_once(corpus, whole, tmp_path, monkeypatch):
    """One has looked and seen a chunk missing when the other, with that chunk made, comes."""
    output, here, others = tmp_path / "out", tmp_path / "here", []
    look = create_data.read_summaries

    def look_slowly(plan):
        found = look(plan)
        preparation = SAY_SO.format(path=str(here))
        flags = "--num_tasks=2", "--task_index=1"
        others.append(start(corpus, output, *flags, preparation=preparation))
        until(here.exists)
        return found

    monkeypatch.setattr(create_data, "read_summaries", look_slowly)
    assert main(arguments(corpus, output, "--num_tasks=2", "--task_index=0")) == 0
    (other,) = others
    assert other.communicate()[1] == "" and other.returncode == 0
    assert contents(output) == whole


def test_no_file_is_asked_for_before_it_is_there(corpus, whole, tmp_path, monkeypatch):
    """A network file system would remember that it was not there."""
    exists = os.path.exists

    def is_there(path):
        is_of_work = ".ko.tfrecord.work" in path and not path.endswith(".partial")
        assert exists(path) or not is_of_work
        return exists(path)

    monkeypatch.setattr(os.path, "exists", is_there)
    assert run(corpus, tmp_path) == whole
