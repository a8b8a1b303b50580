"""Rows of passages of three documents: their origin, and what must not show their order."""

import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

from bert_tf.input.record_checks import check_records
from create_pretraining_data.records.metadata import described_objective, tokenizer_beside
from create_pretraining_data.records.reader import (
    count_records,
    open_records,
    parsing_spec,
    read_format,
)
from korean_bert import load_model
from tokenization import load_tokenizer

PROGRAM = ROOT / "benchmarks" / "sentence_order" / "splice.py"
TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"
LENGTH, ROWS = 64, 200
ROOM = 60  # an even number of pieces


def run(*flags):
    command = [sys.executable, str(PROGRAM), f"--tokenizer_dir={MODEL}", *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True)


def make(path, boundary, *flags):
    done = run(
        f"--input_file={TEXT}", f"--boundary={boundary}", f"--max_seq_length={LENGTH}",
        f"--rows={ROWS}", f"--output_file={path}", *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(path)


@pytest.fixture(scope="module", params=("middle", "anywhere"))
def records(request, tmp_path_factory):
    return request.param, make(tmp_path_factory.mktemp("splice") / "a.tfrecord", request.param)


def rows_of(path):
    import tensorflow as tf

    spec = parsing_spec(read_format(path))
    parsed = open_records(path).map(lambda record: tf.io.parse_single_example(record, spec))
    return list(parsed.as_numpy_iterator())


def segments_of(row, tokenizer):
    ids, mask, second = (row[name] for name in ("input_ids", "input_mask", "segment_ids"))
    assert mask.tolist() == [1] * (ROOM + 3) + [0] * (LENGTH - ROOM - 3)
    assert not ids[ROOM + 3 :].any() and not second[ROOM + 3 :].any()
    start = int(np.argmax(second))
    assert second[: ROOM + 3].tolist() == [0] * start + [1] * (ROOM + 3 - start)
    assert ids[0] == tokenizer.cls_id
    assert ids[start - 1] == ids[ROOM + 2] == tokenizer.sep_id
    return ids[1 : start - 1].tolist(), ids[start : ROOM + 2].tolist()


def documents_with(ids, offset, documents):
    """The documents with these pieces in a run, a sentence starting or ending at the offset."""
    found = set()
    for number, (pieces, places) in enumerate(documents):
        starts = (place - offset for place in places if place >= offset)
        if any(pieces[start : start + len(ids)] == ids for start in starts):
            found.add(number)
    return found


def test_passages_beside_the_boundary_are_of_one_document(records):
    boundary, path = records
    tokenizer = load_tokenizer(MODEL)
    documents = []  # ids, and where sentences start and end
    for text in TEXT.read_text(encoding="utf-8").strip().split("\n\n"):
        sentences = [tokenizer.tokenize(line) for line in text.split("\n")]
        ids = tokenizer.convert_tokens_to_ids([piece for each in sentences for piece in each])
        documents.append((ids, [0, *np.cumsum([len(each) for each in sentences])]))
    rows = rows_of(path)
    labels = [int(row["next_sentence_labels"][0]) for row in rows]
    assert len(rows) == ROWS
    assert 65 <= sum(labels) <= 135  # five standard deviations of 200 fair draws
    firsts = []
    for row, label in zip(rows, labels, strict=True):
        assert not row["masked_lm_weights"].any()
        segments = segments_of(row, tokenizer)
        firsts.append(len(segments[0]))
        before, after = reversed(segments) if label else segments
        end, beginning = len(before) // 2, len(after) // 2
        y = [*before[-end:], *after[:beginning]]
        x, z = before[:-end], after[beginning:]
        of_x = documents_with(x, 0, documents)
        of_y = documents_with(y, end, documents)
        of_z = documents_with(z, len(z), documents)
        # A passage as short as three pieces may be in several documents.
        assert any(len({a, b, c}) == 3 for a in of_x for b in of_y for c in of_z)
    if boundary == "middle":
        assert set(firsts) == {ROOM // 2}
    else:
        assert min(firsts) >= 12 and max(firsts) <= 48 and len(set(firsts)) > 20
        swapped = np.array(labels, bool)
        # The lengths show nothing: the mean is 30, its standard deviation 10.7 / 10 of 100 rows.
        for group in (swapped, ~swapped):
            assert abs(np.mean(np.array(firsts)[group]) - ROOM / 2) < 5


def test_they_are_records_of_sentence_order(records):
    _, path = records
    assert described_objective(path) == "sop" and count_records(path) == ROWS
    folder = tokenizer_beside(path)
    assert load_tokenizer(folder).fingerprint() == load_tokenizer(MODEL).fingerprint()
    check_records([path], LENGTH, 8, load_model(MODEL).loaded.config)


def test_a_seed_gives_the_same_rows(tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.tfrecord"
        make(path, "anywhere", f"--random_seed={seed}")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_refusals(tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("한 문장이다.\n두 문장이다.\n\n또 있다.\n", encoding="utf-8")
    flags = ["--boundary=middle", "--rows=5", f"--output_file={tmp_path / 'a.tfrecord'}"]
    done = run(f"--input_file={text}", "--max_seq_length=64", *flags)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: --input_file must hold three documents of 60 pieces. Received: {text}, with 0\n",
    )
    done = run(f"--input_file={tmp_path / 'none.txt'}", "--max_seq_length=64", *flags)
    assert done.returncode == 1 and "none.txt" in done.stderr and "Traceback" not in done.stderr
    done = run(f"--input_file={TEXT}", "--max_seq_length=8", *flags)
    assert done.returncode == 2 and "--max_seq_length must be at least 16" in done.stderr
    text.write_text(f"{'가 ' * 70}\n\n{'나 ' * 70}\n\n{'다 ' * 70}\n", encoding="utf-8")
    done = run(f"--input_file={text}", "--max_seq_length=64", *flags)
    assert done.returncode == 1 and "a sentence that ends after 15 pieces" in done.stderr
    assert not list(tmp_path.glob("a.*"))
