"""The plan equals numbers worked out by hand."""

import dataclasses
import itertools
import json
import math
import re

import pytest

from bert_tf.costs.cards import CARDS
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import GIB, count_weights, estimate_bytes
from run_scripts import plan
from run_scripts.planning.corpus import Layout, TextStatistics, plan_records, plan_text
from run_scripts.planning.measured import KOREAN_WIKIPEDIA, TWO_CORES_FLOPS
from run_scripts.planning.table import disk, hours, number
from run_scripts.planning.training import (
    Phase,
    checkpoint_bytes,
    passes_of,
    phase_flops,
    plan_devices,
    with_passes,
)
from tests.support.paths import ROOT

LAYOUT = Layout(
    rows_per_megabyte=2000.0, row_bytes=500.0, gzip_row_bytes=250.0, fill=0.98,
    core_seconds_per_megabyte=3.6, core_seconds_per_further_pass=0.4,
)  # fmt: skip
TEXT = TextStatistics(
    sentences_per_megabyte=7000.0, bytes_per_piece=4.0, vocabulary_core_seconds_per_megabyte=18.0,
    vocabulary_megabytes=32.0, layouts={},
)  # fmt: skip


def test_text():
    text = plan_text(TEXT, 1e9)
    assert (text.sentences, text.pieces) == (7_000_000, 250_000_000)
    # A sample of 32 MB, 18 s each; of 16 MB, all of it.
    assert text.vocabulary_hours == pytest.approx(0.16)
    assert plan_text(TEXT, 16e6).vocabulary_hours == pytest.approx(0.08)


def test_records():
    one = plan_records(LAYOUT, 1e9, 1, cores=10)
    assert (one.rows, one.disk_bytes) == (2e6, 1e9)
    assert one.hours == pytest.approx(0.1)
    ten = plan_records(LAYOUT, 1e9, 10, cores=10, compressed=True)
    assert (ten.rows, ten.disk_bytes) == (2e7, 5e9)
    assert ten.hours == pytest.approx(0.2)


PHASES = [Phase(128, 24, 8, 4096, 900.0), Phase(512, 80, 8, 4096, 100.0)]


def test_passes():
    rows = [4096 * 300, 4096 * 50]
    assert passes_of(PHASES, rows) == 5
    longer = with_passes(PHASES, rows, 20)
    assert [phase.updates for phase in longer] == [3600, 400]
    assert [phase.length for phase in longer] == [128, 512]


def test_hours_follow_from_operations():
    config, _ = plan.read_job("bert_base")
    card = CARDS["a100-80gb"]
    found = plan_devices(config, PHASES, card, 8, 0.35)
    operations = sum(phase_flops(config, phase) for phase in PHASES)
    assert found.hours == pytest.approx(operations / (8 * 312e12 * 0.35) / 3600)
    # Each phase reads as many rows as its operations allow.
    pairs = zip(PHASES, found.rows_per_second, strict=True)
    seconds = sum(phase.updates * phase.batch / rows for phase, rows in pairs)
    assert seconds == pytest.approx(found.hours * 3600)


def test_the_fewest_microbatches_that_fit():
    config, _ = plan.read_job("bert_base")
    small, large = (CARDS[name] for name in ("l4", "a100-80gb"))
    for card in (small, large):
        found = plan_devices(config, PHASES, card, 8, 0.35)
        rows = zip(PHASES, found.accumulation, found.memory_bytes, strict=True)
        for phase, count, memory in rows:
            sizes = (phase.length, phase.predictions, "bfloat16")
            rows = 512 // count
            assert memory == estimate_bytes(config, rows, *sizes)
            assert memory <= 0.9 * card.memory_gib * GIB
            if count > 1:
                assert estimate_bytes(config, rows * 2, *sizes) > 0.9 * card.memory_gib * GIB
    tiny = small._replace(memory_gib=1)
    assert plan_devices(config, PHASES, tiny, 8, 0.35).accumulation == ()


@pytest.mark.parametrize("model", plan.JOBS)
def test_jobs(model):
    config, phases = plan.read_job(model)
    assert checkpoint_bytes(config) == 12 * count_weights(config)  # and moments
    assert config.hidden_size == {"bert_large": 1024, "bert_mini": 256}.get(model, 768)
    if model == "bert_mini":
        (phase,) = phases
        assert (phase.length, phase.batch, phase.updates) == (128, 32, 20_000)
    else:
        assert [phase.length for phase in phases] == [128, 512]
        assert phases[0].updates == 9 * phases[1].updates


def printed(capsys, *arguments):
    status = plan.main(["plan", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_what_is_printed(capsys):
    status, out, err = printed(capsys, "--corpus_gb=1,10,100", "--model=bert_base", "--gpus=8")
    assert (status, err) == (0, "")
    header = out.splitlines()[0].split()
    assert header == ["1", "GB", "10", "GB", "100", "GB"]
    rows = {re.split(r" {2,}", line.strip())[0]: line for line in out.splitlines()}
    disks = re.findall(r"([\d.]+) ([GT]B)", rows["disk (twice that while they are made)"])
    sizes = [float(value) * {"GB": 1, "TB": 1000}[unit] for value, unit in disks]
    assert sizes[1] == pytest.approx(10 * sizes[0], rel=0.01)
    assert sizes[2] == pytest.approx(100 * sizes[0], rel=0.01)
    for card in CARDS.values():
        assert f"8 x {card.name}, 62,500 updates, assumed" in rows
    assert "utilisation of 35%" in out and "assumption, not a measurement" in out


def test_hours_on_a_cpu_are_those_of_the_training_that_was_measured(capsys):
    """Its updates, in the plan's batches, take what they took."""
    lines = (ROOT / "docs" / "results" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    runs = {run["name"]: run for run in map(json.loads, lines)}
    seconds = runs["reference-1/pretraining/64"]["scores"]["seconds_per_update"]
    config, _ = plan.read_job("bert_mini")
    config = dataclasses.replace(config, vocab_size=16_000)
    operations = training_flops(config, 64, 12, 8) * 64
    assert TWO_CORES_FLOPS["bert_mini"] == pytest.approx(operations / seconds, rel=0.01)
    of_the_size = ("--model=bert_mini", "--gpus=1", "--vocab_size=16000")
    _, out, _ = printed(capsys, "--corpus_gb=0.1", *of_the_size)
    cards = [line for line in out.splitlines() if line.startswith("1 x ")]
    assert cards and all(line.endswith("launch-bound, unknown") for line in cards)
    (line,) = (line for line in out.splitlines() if line.startswith("2 CPU cores"))
    rows = 40 * 100 * KOREAN_WIKIPEDIA.layouts["nsp", "packed", 128].rows_per_megabyte
    hours = rows * training_flops(config, 128, 20, 8) / TWO_CORES_FLOPS["bert_mini"] / 3600
    assert line.split("  ")[-1].strip() == f"{hours:.3g} h"
    _, out, _ = printed(capsys, "--corpus_gb=0.1", "--model=bert_base")
    assert "CPU cores with AMX" not in out and "launch-bound" not in out


# bert_mini is trained as its job trains it.
STATIC = ("--masking=static", "--dupe_factor=5")
# The text of a row of the guide's table -> the plan that has its figures.
SMALL_PLANS = {
    "10 MB": ("--corpus_gb=0.01", "--vocab_size=8000", "--model=bert_mini", *STATIC),
    "100 MB": ("--corpus_gb=0.1", "--vocab_size=16000", "--model=bert_mini", *STATIC),
    "1 GB": ("--corpus_gb=1", "--vocab_size=32000", "--model=bert_base"),
}


@pytest.mark.parametrize("name", ("planning.md", "planning.ko.md"))
def test_the_table_of_sizes_holds_what_its_plans_print(capsys, name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for size, given in SMALL_PLANS.items():
        (row,) = re.findall(rf"^\| {size} \|.*", text, re.MULTILINE)
        _, out, _ = printed(capsys, *given, "--gpus=1", "--gpu=rtx4090")
        hours = next(line for line in out.splitlines() if ", 40 passes, a" in line)
        weights = re.search(r"^([\d,]+) weights", out, re.MULTILINE)[1]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        vocab_size, model = (flag.split("=")[1] for flag in given[1:3])
        assert re.sub(r"\D", "", cells[1]) == vocab_size and cells[2].startswith(f"`{model}`")
        million = round(int(weights.replace(",", "")) / 1e6, 1)
        units = {"million": 1e6, "억": 1e8, "만": 1e4}
        numbers = re.findall(r"([\d.,]+) ?(million|억|만)", cells[3])
        shown = sum(float(digits.replace(",", "")) * units[unit] for digits, unit in numbers)
        assert round(shown / 1e6, 1) == million
        assert re.match(r"[\d.]+", cells[4])[0] == re.split(" {2,}", hours)[-1].split()[0]


@pytest.mark.parametrize("name", ("planning.md", "planning.ko.md"))
def test_the_guide_shows_what_is_printed(capsys, name):
    shown = ("--corpus_gb=1,100", "--model=bert_base", "--gpus=8", "--gpu=a100-80gb")
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    _, out, _ = printed(capsys, *shown)
    assert f"run_scripts.plan {' '.join(shown)}\n```" in text
    assert f"```\n{out}```\n" in text


def test_large_numbers_have_no_exponents():
    assert [number(n) for n in (99.7, 1e9 - 1, 2e15)] == ["100", "1,000 million", "2,000 trillion"]
    assert [disk(n) for n in (999.9e6, 1.19e15)] == ["1,000 MB", "1,190 TB"]
    assert [hours(24 * days) for days in (436, 4361)] == ["436 days", "4,361 days"]


def test_masks_that_are_stored_take_the_disk_of_their_passes(capsys):
    def first_disk(*arguments):
        _, out, _ = printed(capsys, "--corpus_gb=10", "--gpu=a100-80gb", *arguments)
        line = next(line for line in out.splitlines() if "disk" in line)
        assert line.endswith(" GB")
        return float(line.split()[-2])

    one = first_disk("--masking=static", "--dupe_factor=1")
    ten = first_disk("--masking=static", "--dupe_factor=10")
    assert ten == pytest.approx(10 * one, rel=0.01)
    assert first_disk() < one
    assert first_disk("--compression=GZIP") < first_disk()


@pytest.mark.parametrize(
    "arguments, message",
    (
        (("--corpus_gb=0",), "--corpus_gb must be one to 6 numbers above 0"),
        (("--corpus_gb=1,,2",), "--corpus_gb must be one to 6 numbers"),
        (("--corpus_gb=nan",), "--corpus_gb must be one to 6 numbers"),
        (("--corpus_gb=1", "--gpus=7"), "--gpus must divide the batch of the shipped job"),
    ),
)
def test_bad_input(capsys, arguments, message):
    status, out, err = printed(capsys, *arguments)
    assert (status, out) == (1, "")
    assert message in err and err.count("\n") == 1


def test_what_was_measured_is_whole():
    combinations = itertools.product(("nsp", "sop"), ("packed", "single"), (128, 512))
    assert set(KOREAN_WIKIPEDIA.layouts) == set(combinations)
    for (objective, packing, length), layout in KOREAN_WIKIPEDIA.layouts.items():
        values = dataclasses.astuple(layout)
        assert all(math.isfinite(value) and value >= 0 for value in values)
        assert layout.gzip_row_bytes < layout.row_bytes
        # The pieces of the text, with [CLS] and [SEP], are in the rows, of random next sentences
        # some twice.
        held = layout.rows_per_megabyte * length * layout.fill
        pieces = 1e6 / KOREAN_WIKIPEDIA.bytes_per_piece
        # With sentence order a few are cut off pairs that are too long.
        lowest, highest = {"nsp": (1.2, 1.5), "sop": (0.9, 1.1)}[objective]
        assert lowest < held / pieces < highest
        assert (layout.core_seconds_per_further_pass > 0) == (packing == "single")


def test_dropped_tokens_take_fewer_operations():
    config, phases = plan.read_job("bert_base")
    dropping = [dataclasses.replace(phase, token_dropping=0.5) for phase in phases]
    for whole, less in zip(phases, dropping, strict=True):
        sizes = less.length, less.predictions, less.sequences
        assert less.row_flops(config) == training_flops(config, *sizes, 0.5)
        assert 0.7 < phase_flops(config, less) / phase_flops(config, whole) < 0.85
