"""The size that is announced is nearly what is written."""

import collections
import json
import os
import random
import re

import pytest

from bert_common.progress import format_bytes
from create_pretraining_data.engine import (
    chunk_file,
    passes,
    size_estimate,
    splitting,
    work_plan,
)
from run_scripts.create_data import main
from tests.support.create_data_runs import arguments, corpus
from tests.support.crosses import quick_by_pairs
from tests.support.paths import ROOT

__all__ = ["corpus"]

UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

KINDS = {
    "reviews": lambda rng: [_words(rng, rng.randint(1, 12))],
    "posts": lambda rng: [_words(rng, rng.randint(3, 15)) for _ in range(rng.randint(1, 5))],
    "articles": lambda rng: [_words(rng, rng.randint(3, 25)) for _ in range(rng.randint(20, 90))],
    "paragraphs": lambda rng: [_words(rng, rng.randint(30, 200)) for _ in range(rng.randint(1, 6))],
}

FORMS = {
    "plain": (),
    "packed": ("--packing",),
    "dynamic": ("--masking=dynamic",),
    "packed dynamic": ("--packing", "--masking=dynamic"),
    "compressed": ("--compression=GZIP",),
}


def _words(rng, count):
    return " ".join(
        "".join(rng.choices("나다라마바사아", k=rng.randint(1, 4))) for _ in range(count)
    )


def announced(text):
    number, unit = re.search(r"records: about ([\d.]+) (\w+) in ", text).groups()
    return float(number) * UNITS[unit]


def text_of(kind, size=150_000):
    rng, documents, length = random.Random(7), [], 0
    while length < size:
        documents.append("\n".join(KINDS[kind](rng)))
        length += len(documents[-1].encode())
    return documents


@pytest.mark.parametrize(
    ("kind", "form", "objective"), quick_by_pairs(KINDS, FORMS, ("sop", "nsp", "none"))
)
def test_the_size_is_nearly_that_announced(
    corpus, tmp_path, capsys, monkeypatch, kind, form, objective
):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(size_estimate, "CHARACTERS", 20_000)
    is_json = objective == "none"
    text, documents = tmp_path / ("text.jsonl" if is_json else "text.txt"), text_of(kind)
    lines = [json.dumps({"id": k, "text": d}) for k, d in enumerate(documents)]
    text.write_text("\n".join(lines) if is_json else "\n\n".join(documents) + "\n")
    length = 64 if kind == "posts" else 128
    flags = (
        f"--input_file={text}", f"--output_file={tmp_path}/out.tfrecord", "--tokenizer=korean",
        f"--vocab_file={corpus}/vocab.txt", f"--objective={objective}", "--num_workers=1",
        f"--max_seq_length={length}", "--max_predictions_per_seq=20", "--dupe_factor=2",
        *FORMS[form],
    )  # fmt: skip
    assert main(["create_pretraining_data.py", *flags]) == 0
    written = (tmp_path / "out.tfrecord").stat().st_size
    assert announced(capsys.readouterr().out) == pytest.approx(written, rel=0.25)


@pytest.mark.parametrize("bucket_bytes", [500, 20_000])
def test_the_room_asked_for_is_that_of_all_files(
    corpus, tmp_path, capsys, monkeypatch, bucket_bytes
):
    """With small buckets, as with much text, a large part is the indices of the chunks."""
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 3000)
    monkeypatch.setattr(work_plan, "BUCKET_BYTES", bucket_bytes)
    write, sizes = chunk_file.write_chunk_file, []

    def measured(path, *args):
        summary = write(path, *args)
        sizes.extend(map(os.path.getsize, chunk_file.chunk_files(path)))
        return summary

    monkeypatch.setattr(passes, "write_chunk_file", measured)
    given = arguments(corpus, tmp_path, "--dupe_factor=10")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: collections.namedtuple("U", "free")(0))
        assert main(given) == 1
    number, unit = re.search(r"room for about ([\d.]+) (\w+),", capsys.readouterr().err).groups()
    assert main(given) == 0
    written = sum(sizes) + sum(path.stat().st_size for path in tmp_path.glob("*.tfrecord"))
    assert float(number) * UNITS[unit] == pytest.approx(written, rel=0.1)


def test_sentences_that_are_to_be_split(tmp_path, capsys):
    pytest.importorskip("kiwipiepy")
    sample = (ROOT / "sample_corpus" / "train.txt").read_text().split("\n\n")
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(" ".join(document.split("\n")) for document in sample[:40]) + "\n")
    flags = (
        f"--input_file={text}", f"--output_file={tmp_path}/out.tfrecord", "--split_sentences",
        f"--tokenizer_dir={ROOT}/reference_model", "--objective=nsp", "--dupe_factor=2",
    )  # fmt: skip
    assert main(["create_pretraining_data.py", *flags]) == 0
    written = (tmp_path / "out.tfrecord").stat().st_size
    assert announced(capsys.readouterr().out) == pytest.approx(written, rel=0.25)


def test_units_are_those_of_the_program():
    assert {format_bytes(5 * size).split()[1] for size in UNITS.values()} == set(UNITS)
