"""The size that is announced is nearly what is written."""

import collections
import json
import os
import random
import re

import pytest

from create_pretraining_data.engine import chunk_file, passes, size_estimate, splitting, work_plan
from run_scripts.create_data import main
from tests.support.create_data_runs import arguments
from tests.support.crosses import quick_by_pairs
from tests.support.paths import ROOT

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


def check_size(capsys, folder, name, *flags):
    files = f"--input_file={folder / name}", f"--output_file={folder}/out.tfrecord"
    assert main(["p", *files, "--dupe_factor=2", "--num_workers=1", *flags]) == 0
    written = (folder / "out.tfrecord").stat().st_size
    assert announced(capsys.readouterr().out) == pytest.approx(written, rel=0.25)


@pytest.mark.parametrize(
    ("kind", "form", "objective"), quick_by_pairs(KINDS, FORMS, ("sop", "nsp", "none"))
)
def test_the_size_is_nearly_that_announced(
    corpus, tmp_path, capsys, monkeypatch, kind, form, objective
):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 20_000)
    monkeypatch.setattr(size_estimate, "CHARACTERS", 20_000)
    is_json, documents = objective == "none", text_of(kind)
    name = "text.jsonl" if is_json else "text.txt"
    lines = [json.dumps({"id": k, "text": d}) for k, d in enumerate(documents)]
    text = "\n".join(lines) if is_json else "\n\n".join(documents) + "\n"
    (tmp_path / name).write_text(text)
    length = 64 if kind == "posts" else 128
    check_size(
        capsys, tmp_path, name, "--tokenizer=korean", f"--vocab_file={corpus}/vocab.txt",
        f"--objective={objective}", f"--max_seq_length={length}", "--max_predictions_per_seq=20",
        *FORMS[form],
    )  # fmt: skip


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
    documents = (document.replace("\n", " ") for document in sample[:40])
    (tmp_path / "text.txt").write_text("\n\n".join(documents) + "\n")
    check_size(
        capsys, tmp_path, "text.txt", "--split_sentences", "--objective=nsp",
        f"--tokenizer_dir={ROOT}/reference_model",
    )  # fmt: skip
