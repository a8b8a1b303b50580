"""Mixtures of natural and spliced rows of sentence order: their shares, their clear rows."""

import subprocess
import sys

import pytest
from paths import ROOT
from sentence_order.rule import OverlapRule

from bert_tf.input.record_checks import check_records
from create_pretraining_data.records.metadata import described_objective, tokenizer_beside
from create_pretraining_data.records.reader import open_records, parsing_spec, read_format
from korean_bert import load_model
from tokenization import load_tokenizer

TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"
LENGTH, ROWS, SHORTEST, LEAST = 64, 200, 40, 1.0


def run(program, *flags):
    command = [sys.executable, str(ROOT / program), *map(str, flags)]
    return subprocess.run(command, capture_output=True, text=True)


def make(program, path, *flags):
    done = run(
        program, f"--input_file={TEXT}", f"--tokenizer_dir={MODEL}", f"--output_file={path}",
        f"--max_seq_length={LENGTH}", "--max_predictions_per_seq=10", *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


def natural_records(path, *flags):
    return make("create_pretraining_data.py", path, "--dupe_factor=5", *flags)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixture")
    make(
        "benchmarks/sentence_order/splice.py", folder / "spliced.tfrecord",
        "--boundary=anywhere", "--rows=70",
    )  # fmt: skip
    # Masked, so that the rule must see the pieces as they were.
    natural_records(folder / "natural.tfrecord", "--objective=sop")
    return folder


def mix(folder, output, *flags):
    return run(
        "benchmarks/sentence_order/mixture.py", f"--natural={folder / 'natural.tfrecord'}",
        f"--spliced={folder / 'spliced.tfrecord'}", f"--rows={ROWS}", "--clear=0.5",
        "--spliced_share=0.2", f"--least_score={LEAST}", f"--shortest={SHORTEST}",
        f"--output_file={output}", *flags,
    )  # fmt: skip


def rows_of(path):
    """The parsed records of a file, without token_boundary."""
    import tensorflow as tf

    spec = parsing_spec(read_format(str(path)))
    spec.pop("token_boundary", None)
    parsed = open_records(str(path)).map(lambda record: tf.io.parse_single_example(record, spec))
    return list(parsed.as_numpy_iterator())


def key(row):
    return tuple((name, row[name].tobytes()) for name in sorted(row))


def true_pair(row, tokenizer):
    """The segments of a row in their order in the text, without masks and [UNK]."""
    ids = row["input_ids"].tolist()
    for place, original, weight in zip(
        row["masked_lm_positions"], row["masked_lm_ids"], row["masked_lm_weights"], strict=True
    ):
        if weight:
            ids[place] = int(original)
    ends = [place for place, piece in enumerate(ids) if piece == tokenizer.sep_id]
    segments = ids[1 : ends[0]], ids[ends[0] + 1 : ends[1]]
    segments = [[piece for piece in each if piece != tokenizer.unk_id] for each in segments]
    return segments[::-1] if row["next_sentence_labels"][0] else segments


def test_shares_and_clear_rows(inputs, tmp_path):
    done = mix(inputs, tmp_path / "mixture.tfrecord")
    assert done.returncode == 0, done.stderr
    tokenizer, rows = load_tokenizer(MODEL), rows_of(tmp_path / "mixture.tfrecord")
    assert len(rows) == ROWS
    long = [
        r for r in rows_of(inputs / "natural.tfrecord") if r["input_mask"].sum() - 3 >= SHORTEST
    ]
    rule = OverlapRule([true_pair(row, tokenizer) for row in long])
    natural = {key(row): rule.score(*true_pair(row, tokenizer)) for row in long}
    clear = {each for each, score in natural.items() if score >= LEAST}
    assert 20 < len(clear) < len(natural) / 2
    spliced = {key(row) for row in rows_of(inputs / "spliced.tfrecord")}
    found = [key(row) for row in rows]
    assert sum(each in spliced for each in found) == 40
    assert all(each in natural or each in spliced for each in found)
    # Of the 60 drawn from all natural rows fewer than half are clear, but some.
    assert 100 < sum(each in clear for each in found) < 100 + 40
    # Each clear row comes as often as the others, give or take one; the 60 may add to that.
    counts = [found.count(each) for each in clear]
    assert min(counts) >= 100 // len(clear)
    first = [each in spliced for each in found[: ROWS // 2]]
    assert 8 <= sum(first) <= 32  # shuffled: 20 expected, standard deviation 2.8


def test_they_are_records_of_sentence_order(inputs, tmp_path):
    path = tmp_path / "mixture.tfrecord"
    assert mix(inputs, path).returncode == 0
    assert described_objective(str(path)) == "sop"
    folder = tokenizer_beside(str(path))
    assert load_tokenizer(folder).fingerprint() == load_tokenizer(MODEL).fingerprint()
    _, count = check_records([str(path)], LENGTH, 10, load_model(MODEL).loaded.config)
    assert count == ROWS


def test_a_seed_gives_the_same_rows(inputs, tmp_path):
    contents = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        path = tmp_path / f"{name}.tfrecord"
        assert mix(inputs, path, f"--random_seed={seed}").returncode == 0
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_a_mixture_may_lack_a_kind(inputs, tmp_path):
    path = tmp_path / "mixture.tfrecord"
    assert mix(inputs, path, "--clear=0", "--spliced_share=1").returncode == 0
    spliced = {key(row) for row in rows_of(inputs / "spliced.tfrecord")}
    assert {key(row) for row in rows_of(path)} == spliced  # 200 of 70 rows


def test_refusals(inputs, tmp_path):
    output = tmp_path / "mixture.tfrecord"

    def refused(message, *flags):
        done = mix(inputs, output, *flags)
        assert done.returncode == 1 and done.stderr.startswith("error: "), done.stderr
        assert message in done.stderr and "Traceback" not in done.stderr
        assert not list(tmp_path.glob("mixture*"))

    refused("rows with a score of 1000 or more", "--least_score=1000")
    refused("rows of 63 pieces", "--shortest=63")
    refused("none.tfrecord must exist", f"--natural={tmp_path / 'none.tfrecord'}")
    packed = natural_records(tmp_path / "packed.tfrecord", "--objective=sop", "--packing=true")
    refused("--packing=true", f"--natural={packed}")
    other = make(
        "benchmarks/sentence_order/splice.py", tmp_path / "other.tfrecord", "--boundary=middle",
        "--rows=5", "--max_predictions_per_seq=8",
    )  # fmt: skip
    refused("must have one --max_predictions_per_seq. Received: 10 in", f"--spliced={other}")
    whole = (inputs / "natural.tfrecord").read_bytes()
    truncated = tmp_path / "truncated.tfrecord"
    truncated.write_bytes(whole[:-7])
    truncated.with_suffix(".json").write_text(
        (inputs / "natural.json").read_text().replace("natural.tfrecord", "truncated.tfrecord")
        .replace(str(len(whole)), str(len(whole) - 7)),
        encoding="utf-8",
    )  # fmt: skip
    refused("must be a complete TFRecord file", f"--natural={truncated}")
    for flags in (["--rows=0"], ["--clear=0.9"], ["--clear=-0.1"]):
        assert mix(inputs, output, *flags).returncode == 2
