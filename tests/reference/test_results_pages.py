"""Tests of the pages of results: statistics, tables, sentences, freshness."""

import dataclasses
import json
from pathlib import Path

import pytest
from measured_runs import make_run
from paths import ROOT

from bert_common.errors import InputError
from run_scripts.reference.curves import Curve, curves_path, read_curves, write_curves
from run_scripts.reference.ledger import Machine, append_run
from run_scripts.reference.pages import __main__ as pages_program
from run_scripts.reference.pages.english import ENGLISH
from run_scripts.reference.pages.korean import KOREAN
from run_scripts.reference.pages.page import PAGES, read_everything, render, write_pages
from run_scripts.reference.pages.questions import (
    QUESTIONS_FILE,
    Cell,
    Question,
    read_questions,
    write_questions,
)
from run_scripts.reference.pages.reference_model import SHOWN_SCORES
from run_scripts.reference.pages.tables import (
    duration,
    number,
    question_sentences,
    score_text,
    shown_sample,
)

TWO = Machine("CPU two", 16, 128.0, ("H100", "H100"))


def test_numbers_as_text():
    halves = [make_run("a", {"eval_f1": value, "loss": 2.34567}) for value in (0.5, 0.52)]
    squad = make_run("a", {"eval_f1": 71.5}, command="python run_squad.py --output_dir=o")
    texts = {
        "51.00 ± 1.41": ("eval_f1", halves),
        "50.00": ("eval_f1", halves[:1]),
        "2.346": ("loss", halves[:1]),
        "71.50": ("eval_f1", [squad]),
        "–": ("eval_accuracy", halves),
    }
    for text, (score, runs) in texts.items():
        assert score_text(score, shown_sample(score, runs), ENGLISH) == text
    assert [number(n) for n in (12345, 12345.6, 0.123456, 3.0)] == [
        "12,345",
        "12,346",
        "0.1235",
        "3",
    ]
    assert [duration(s, ENGLISH) for s in (5, 90, 3700)] == ["5 s", "2 min", "1 h 2 min"]
    assert [duration(s, KOREAN) for s in (5, 90, 3700)] == ["5초", "2분", "1시간 2분"]


def cells(variant, task, score, count):
    names = tuple(f"choices/q/{variant}/{task}/seed{seed}" for seed in range(1, count + 1))
    return Cell(variant=variant, task=task, score=score, runs=names)


QUESTION = Question(
    name="q",
    title="Which vocabulary",
    title_ko="어떤 어휘",
    cells=(
        cells("ours", "nsmc", "eval_accuracy", 3),
        cells("common", "nsmc", "eval_accuracy", 3),
        cells("small", "nsmc", "eval_accuracy", 3),
        cells("ours", "bits", "bits", 1),
        cells("common", "bits", "bits", 1),
        # Nothing to compare: on one task a single variant is measured, on the other both are the
        # same run.
        cells("ours", "half", "bits", 1),
        cells("common", "half", "bits", 1),
        *(
            Cell(variant=name, task="same", score="bits", runs=("choices/q/ours/bits/seed1",))
            for name in ("ours", "common")
        ),
        cells("missing", "nsmc", "eval_accuracy", 3),
    ),
)
LINEAR = Question(
    name="linear",
    title="Linear models",
    title_ko="선형 모델",
    cells=(Cell(variant="words", task="nsmc", score="test_accuracy", runs=("linear/nsmc/words",)),),
)


def write_ledger(folder):
    """A ledger with a question, a reference run, linear models, curves; returns its path."""
    path = folder / "results" / "runs.jsonl"
    accuracies = {
        "ours": (0.86, 0.862, 0.864),
        "common": (0.8625, 0.8635, 0.8615),
        "small": (0.8,) * 3,
    }
    runs = [
        make_run(f"choices/q/{variant}/nsmc/seed{seed}", {"eval_accuracy": value})
        for variant, values in accuracies.items()
        for seed, value in enumerate(values, 1)
    ]
    runs += [
        make_run("choices/q/ours/bits/seed1", {"bits": 2.5}),
        make_run("choices/q/common/bits/seed1", {"bits": 2.75}),
        make_run("choices/q/ours/half/seed1", {"bits": 2.5}),
        make_run("reference/text", {"documents": 117, "megabytes": 0.1}),
        make_run("reference/trial/64", {"seconds_per_update": 0.25}),
        make_run("reference/pretraining/64", {"global_step": 1000.0}, TWO, 3600.0),
        make_run("reference/pretraining/128", {"global_step": 500.0}, TWO, 1800.0),
        make_run("reference/heldout/128", {"masked_lm_accuracy": 0.4, "examples": 12.0}),
        make_run("reference/order/128", {"examples": 12.0, "rule_accuracy_others": 0.655}),
        make_run("reference/model/nsmc/seed1", {"eval_accuracy": 0.875}),
        make_run("reference/model/nsmc/seed2", {"eval_accuracy": 0.885}),
        make_run("reference/random_weights/nsmc/seed1", {"eval_accuracy": 0.83}),
        make_run("reference/random_weights/nsmc/seed2", {"eval_accuracy": 0.84}),
        make_run("linear/nsmc/words", {"test_accuracy": 0.819}),
    ]
    for run in runs:
        append_run(path, run)
    write_questions(path.parent / QUESTIONS_FILE, [QUESTION, LINEAR])
    for length in (64, 128):
        curve = Curve([100, 200], [5.0, 4.0])
        target = curves_path(str(path), f"reference/pretraining/{length}")
        write_curves(target, {"loss/masked_lm": curve, "accuracy/masked_lm": curve})
    return str(path)


def rows_of(text):
    """The cells of the tables of a page."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_page(tmp_path):
    path = write_ledger(tmp_path)
    text = render(read_everything(path), ENGLISH)
    rows = rows_of(text)
    assert ["variant", "nsmc", "bits"] in rows
    assert ["ours", "86.20 ± 0.20", "2.5"] in rows
    assert ["common", "86.25 ± 0.10", "2.75"] in rows
    assert ["small", "80.00 ± 0.00", "–"] in rows
    assert "missing" not in text
    assert "### Which vocabulary" in text
    assert ["nsmc", "test accuracy", "88.00 ± 0.71", "83.50 ± 0.71", "81.90"] in rows
    assert "- nsmc, accuracy: best is the reference model; worse: random weights." in text
    assert ["reference", "128", "12", *6 * ["–"], "65.50"] in rows  # sentence order
    assert ENGLISH.tasks_note in text
    assert "- A: CPU one, 2 cores, 8 GiB" in text
    assert "- B: CPU two, 16 cores, 128 GiB, 2 x H100" in text
    assert next(r for r in rows if "rows of" in r)[:3] == ["run", "rows of", "updates"]
    assert ["reference", "64", "1,000", "1 h 0 min", "2 h 0 min", "1.25 GiB", "B", "1"] in rows
    assert "Together: 1 h 30 min, 3 h 0 min of CPU time." in text
    assert ["reference", "128", "40.00", "12"] in rows
    trained = next(row for row in rows if row[0] == "pre-training 64")
    assert trained == [
        "pre-training 64", "updates 1,000", "1 h 0 min", "2 h 0 min", "1.25 GiB", "B", "1",
        "0123456789ab",
    ]  # fmt: skip
    assert "Together: 1 h 34 min, 3 h 8 min of CPU time." in text
    assert "python run_classifier.py --output_dir=output/reference/text" in text
    assert "# reference/model/nsmc, seeds 1, 2" in text
    assert "- `reference/model/nsmc`, seeds 1, 2: 2 min (4 min of CPU time), 1.25 GiB, A" in text
    assert "- `choices/q/ours/nsmc`, seeds 1, 2, 3: 3 min (6 min of CPU time), 1.25 GiB, A" in text


def test_sentences_say_what_the_numbers_allow(tmp_path):
    text = render(read_everything(write_ledger(tmp_path)), ENGLISH)
    # 86.20 ± 0.20 and 86.25 ± 0.10 are alike; 80.00 is not.
    assert "- nsmc: best is common; cannot be told apart from it: ours; worse: small." in text
    assert "- bits: fewer than two variants were run several times, so no order." in text


def test_a_variant_that_was_run_once_is_named(tmp_path):
    """Whatever its score, it has no place in the order."""
    results = read_everything(write_ledger(tmp_path))
    once = dataclasses.replace(
        QUESTION, cells=(*QUESTION.cells, cells("once", "nsmc", "eval_accuracy", 1))
    )
    runs = {"choices/q/once/nsmc/seed1": make_run("x", {"eval_accuracy": 0.99}), **results.runs}
    (sentence,) = (s for s in question_sentences(once, runs, ENGLISH) if "nsmc" in s)
    assert sentence.endswith("worse: small. Not compared, one run alone: once.")


def test_korean_page_has_the_same_numbers(tmp_path):
    results = read_everything(write_ledger(tmp_path))
    english, korean = (render(results, wording) for wording in (ENGLISH, KOREAN))
    assert "### 어떤 어휘" in korean and "Which vocabulary" not in korean
    assert "1시간 34분" in korean
    digits = [
        [[c for c in row if c.replace(".", "").replace(" ± ", "").isdigit()] for row in rows_of(t)]
        for t in (english, korean)
    ]
    assert digits[0] == digits[1] and sum(map(len, digits[0])) > 10
    assert set(ENGLISH.labels) <= set(KOREAN.labels)
    assert set(KOREAN.stages) == set(SHOWN_SCORES)


def test_notes(tmp_path):
    path = write_ledger(tmp_path)
    assert "## Notes" not in render(read_everything(path), ENGLISH)
    (tmp_path / "results" / "notes.md").write_text("- One half of a task.\n")
    assert "\n## Notes\n\n- One half of a task.\n\n## " in render(read_everything(path), ENGLISH)
    assert "One half" not in render(read_everything(path), KOREAN)
    (tmp_path / "results" / "notes.ko.md").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"notes\.ko\.md must be UTF-8"):
        read_everything(path)


def test_an_empty_ledger_says_so(tmp_path):
    (tmp_path / "runs.jsonl").touch()
    write_pages(str(tmp_path / "runs.jsonl"), str(tmp_path))
    for name, wording in PAGES.items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert wording.empty in text and "|" not in text


GPUS = '["H100", "H100"]'  # of TWO, in a ledger


@pytest.mark.parametrize(
    ("gpus", "files"),
    [(True, ["pretraining_gpu.png"]), (False, ["pretraining.png"]),
     (None, ["pretraining.png", "pretraining_gpu.png"])],
    ids=["on GPUs", "on CPUs", "on both"],
)  # fmt: skip
def test_pictures(tmp_path, gpus, files):
    """Hours of a CPU and minutes of a GPU have a picture each."""
    pytest.importorskip("matplotlib", reason="the curves are drawn with it")
    path = Path(write_ledger(tmp_path))
    if not gpus:  # None: the first of two phases
        path.write_text(path.read_text().replace(GPUS, "[]", -1 if gpus is False else 1))
    assert pages_program.main(["pages", f"--ledger={path}"]) == 0
    pictures = sorted((tmp_path / "results").glob("*.png"))
    assert [picture.name for picture in pictures] == files
    contents = [picture.read_bytes() for picture in pictures]
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    for name, content in zip(files, contents, strict=True):
        assert content.startswith(b"\x89PNG") and 5_000 < len(content) < 60_000
        assert f"](results/{name})" in page
    assert "![](" not in page and page.count(".png)") == len(files)
    write_pages(str(path), str(tmp_path))
    assert [picture.read_bytes() for picture in pictures] == contents


def test_costs_that_nobody_noted_are_dashes(tmp_path):
    """Those of the other runs are added up."""
    path = write_ledger(tmp_path)
    known = make_run("x", {"global_step": 4.0}, TWO, 60.0)
    unknown = {"cpu_seconds": None, "memory_gib": None}
    append_run(path, dataclasses.replace(known, name="lent/pretraining/64", **unknown))
    append_run(path, dataclasses.replace(known, name="lent/model/nsmc/seed1", **unknown))
    text = render(read_everything(path), ENGLISH)
    assert ["lent", "64", "4", "1 min", "–", "–"] in [row[:6] for row in rows_of(text)]
    assert "Together: 1 h 31 min, 3 h 0 min of CPU time." in text
    assert "`lent/model/nsmc`, seeds 1: 1 min (– of CPU time), –, B" in text


def test_a_phase_without_curves_takes_its_time(tmp_path):
    """The one after it stands at the hours when it was trained: the first one's time moves it."""
    pytest.importorskip("matplotlib", reason="the curves are drawn with it")
    pictures = []
    for folder, seconds in (("hour", "3600.0"), ("day", "86400.0")):
        path = Path(write_ledger(tmp_path / folder))
        Path(curves_path(str(path), "reference/pretraining/64")).unlink()
        path.write_text(path.read_text().replace('"seconds": 3600.0', f'"seconds": {seconds}'))
        write_pages(str(path), str(tmp_path / folder))
        pictures.append((tmp_path / folder / "results" / "pretraining_gpu.png").read_bytes())
    assert pictures[0] != pictures[1]


def test_runs_on_gpus_start_at_zero(tmp_path):
    """Those on CPUs follow each other: an earlier run of another name moves them."""
    pytest.importorskip("matplotlib", reason="the curves are drawn with it")
    pictures = []
    for folder, seconds in (("hour", "3600.0"), ("day", "86400.0")):
        path = Path(write_ledger(tmp_path / folder))
        text = path.read_text().replace('"seconds": 3600.0', f'"seconds": {seconds}')
        text = text.replace("reference/pretraining/64", "other/pretraining/64")
        for gpus in (GPUS, "[]"):
            path.write_text(text.replace(GPUS, gpus))
            write_pages(str(path), str(tmp_path / folder))
        pictures.append([p.read_bytes() for p in sorted(path.parent.glob("*.png"))])
    (cpu, gpu), (cpu_moved, gpu_moved) = pictures
    assert cpu != cpu_moved and gpu == gpu_moved


def test_a_model_that_was_only_measured_is_shown(tmp_path):
    """As --hours=0 does: no pre-training, but held-out text, stages, commands."""
    path = tmp_path / "results" / "runs.jsonl"
    append_run(path, make_run("given/heldout/64", {"masked_lm_accuracy": 0.4, "examples": 12.0}))
    append_run(path, make_run("given/model/nsmc/seed1", {"eval_accuracy": 0.875}))
    text = render(read_everything(str(path)), ENGLISH)
    assert ENGLISH.tasks_title.format(name="given") in text
    assert "<summary>given</summary>" in text and "# given/heldout/64" in text
    assert ENGLISH.tasks_note not in text and "\n\n\n" not in text  # no random weights beside it


def test_a_model_that_was_only_fine_tuned_is_shown(tmp_path):
    path = tmp_path / "results" / "runs.jsonl"
    append_run(path, make_run("tuned/model/nsmc/seed1", {"eval_accuracy": 0.875}))
    append_run(path, make_run("choices/model/small/pretraining", {"masked_lm_accuracy": 0.4}))
    text = render(read_everything(str(path)), ENGLISH)
    assert ["nsmc", "test accuracy", "87.50", "–"] in rows_of(text)
    assert "# tuned/model/nsmc, seeds 1" in text and "<summary>tuned</summary>" not in text
    assert ENGLISH.tasks_title.format(name="choices") not in text


def test_pages_of_a_missing_ledger(tmp_path, capsys):
    assert pages_program.main(["pages", f"--ledger={tmp_path}/none"]) == 1
    assert "--ledger must name a file" in capsys.readouterr().err


@pytest.mark.parametrize("name", PAGES)
def test_the_projects_pages_are_fresh(name):
    """python -m run_scripts.reference.pages was run after the last change of the ledger."""
    path = ROOT / "docs" / "results" / "runs.jsonl"
    expected = render(read_everything(str(path)), PAGES[name])
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == expected


def test_questions_round_trip(tmp_path):
    path = tmp_path / QUESTIONS_FILE
    assert read_questions(path) == []
    names = ("ours", "common")
    other = dataclasses.replace(QUESTION, replicates=names, paired={"one": names, "other": names})
    write_questions(path, [other, LINEAR])
    assert read_questions(path) == [other, LINEAR]
    values = json.loads(path.read_text())
    values[0]["cells"][0]["colour"] = "red"
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="question 1, cell must have exactly the keys"):
        read_questions(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="must hold a list of questions"):
        read_questions(path)


def test_curves_round_trip(tmp_path):
    path = str(tmp_path / "new" / "a.json")
    assert read_curves(path) == {}
    curves = {"loss": Curve([1, 2], [0.5, 0.25])}
    write_curves(path, curves)
    assert read_curves(path) == curves
    (tmp_path / "new" / "a.json").write_text('{"loss": {"x": 1}}')
    with pytest.raises(InputError, match="must hold curves"):
        read_curves(path)
