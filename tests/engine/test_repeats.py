"""Text that occurs more than once is counted and, if asked, left out: the same bytes however."""

import dataclasses
import json
import random
import unicodedata

import pytest

from create_pretraining_data.engine import line_hashes, repeats, splitting
from create_pretraining_data.engine.repeat_report import describe_repeats, find_repeat_problems
from create_pretraining_data.engine.repeats import count_repeats, read_kept_text
from create_pretraining_data.engine.splitting import InputFile, cut_into_chunks
from create_pretraining_data.engine.work_plan import WorkPlan
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    arguments,
    contents,
    records,
    run,
    run_and_die,
    run_small,
    run_tasks,
    start,
    until,
)
from tests.support.crosses import but_slow

pytestmark = pytest.mark.usefixtures("small")

CHOICES = ("none", "documents", "lines")
BOILERPLATE = "무단 전재와 재배포를 금지합니다"


def some_documents(seed, count=600):
    """Documents of short and of long lines, many of which occur again."""
    rng = random.Random(seed)
    lines = [f"{'가나다라마바사'[k % 7] * rng.randint(1, 25)} {k // 3}" for k in range(700)]
    lines += ["네", "네.", "알겠어요", BOILERPLATE, "사진을 누르면 크게 볼 수 있습니다"] * 20
    documents = []
    for _ in range(count):
        document = rng.choices(lines, k=rng.randint(1, 6))
        documents.append(rng.choice(documents) if documents and rng.random() < 0.2 else document)
    return documents


def without_repeats(documents, choice):
    """What `read_kept_text` does, for a text that fits into memory."""
    if choice == "none":
        return documents
    seen, seen_lines, kept = set(), set(), []
    for document in documents:
        if tuple(document) in seen:
            continue
        seen.add(tuple(document))
        lines = []
        for line in document:
            if choice == "documents" or len(line) < 10 or line not in seen_lines:
                lines.append(line)
                seen_lines.add(line)
        kept += [lines] if lines else []
    return kept


def write(path, documents):
    path.write_text("\n\n".join("\n".join(document) for document in documents) + "\n")
    return path


def plan_for(path, folder, choice):
    folder.mkdir(exist_ok=True)
    chunks, continued = cut_into_chunks([InputFile(str(path), str(path), path.stat().st_size)])
    values = dict.fromkeys(field.name for field in dataclasses.fields(WorkPlan))
    return WorkPlan(
        **{**values, "chunks": chunks, "continued": continued, "folder": str(folder),
           "drop_duplicates": choice}
    )  # fmt: skip


def in_this_process(plan):
    return lambda task, numbers: ((number, task(plan, number)) for number in numbers)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", [40, 10**6])
def test_the_first_of_equals_is_kept(tmp_path, monkeypatch, choice, seed, size):
    """As a text that fits into memory: whatever is compared at a time."""
    monkeypatch.setattr(repeats, "HASHES_OF_PART", size)
    documents = some_documents(seed)
    plan = plan_for(write(tmp_path / "text.txt", documents), tmp_path / "work", choice)
    assert len(plan.chunks) > 8
    numbers = range(len(plan.chunks))
    found = describe_repeats(count_repeats(plan, in_this_process(plan), numbers))
    read = [read_kept_text(plan, number) for number in numbers]
    kept = [document for texts, _ in read for document in texts if document]
    assert kept == without_repeats(documents, choice)
    lost = sum(map(len, documents)) - sum(map(len, kept))
    assert sum(dropped.lines for _, dropped in read) == lost
    assert sum(dropped.documents for _, dropped in read) == len(documents) - len(kept)
    lines = [line for document in documents for line in document]
    long = [line for line in lines if len(line) >= 10]
    for kind, values in (
        ("documents", list(map(tuple, documents))), ("all_lines", lines), ("lines", long)
    ):  # fmt: skip
        again = len(values) - len(set(values))
        assert found[kind] == {
            "count": len(values), "repeats": again, "share": round(again / len(values), 6)
        }  # fmt: skip


def test_a_line_of_every_chunk_takes_no_memory(tmp_path, monkeypatch):
    """A hash that is everywhere is in a chunk's file once."""
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 50_000)
    path = write(tmp_path / "text.txt", [[BOILERPLATE] * 5] * 3000)
    plan = plan_for(path, tmp_path / "work", "lines")
    for number in range(len(plan.chunks)):
        line_hashes.make_hash_file(plan, number)
        path = line_hashes.hashes_path(plan, number)
        assert [len(hashes) for hashes, _ in line_hashes.read_part(path, 0, 1)] == [1, 1, 0]
    found = count_repeats(plan, in_this_process(plan), range(len(plan.chunks)))
    assert found["lines"]["count"] == 15_000 and found["lines"]["distinct"] == 1
    assert found["lines"]["most_frequent"][0][::2] == [15_000, 0]


def test_lines_are_equal_whatever_their_form():
    forms = [
        BOILERPLATE,
        unicodedata.normalize("NFD", BOILERPLATE),
        BOILERPLATE.replace(" ", "\u3000  "),
        BOILERPLATE.replace(" ", "\t"),
    ]
    assert len({line_hashes.hash_document([form]).document for form in forms}) == 1
    kinds = ["short_lines", None, "lines"]
    # The first as JSON may have it, the second without anything to see.
    hashed = line_hashes.hash_document(["\ud800 가", "\u200b", BOILERPLATE + "\u200b"])
    assert hashed.kinds == kinds and hashed.lines[2] == line_hashes.hash_document(forms).lines[0]


@pytest.fixture(scope="module")
def repeated(corpus, tmp_path_factory):
    """The corpus with text that occurs again, and its records without, by choice."""
    folder = tmp_path_factory.mktemp("repeated")
    documents = [d.split("\n") for d in (corpus / "text.txt").read_text().split("\n\n")]
    rng = random.Random(3)
    documents += [rng.choice(documents) for _ in range(60)]
    documents = [[*document, "나다라 마바사 다라마 바사"] for document in documents]
    write(folder / "text.txt", documents)
    (folder / "vocab.txt").write_bytes((corpus / "vocab.txt").read_bytes())
    found = {
        choice: run_small(folder, tmp_path_factory.mktemp(choice), f"--drop_duplicates={choice}")
        for choice in CHOICES
    }
    assert len(set(map(repr, found.values()))) == 3
    return folder, found


def run_at_once(folder, output, *flags):
    """Three tasks at once."""
    flags = *flags, "--num_tasks=3"
    tasks = [start(folder, output, *flags, f"--task_index={index}") for index in range(3)]
    for task in tasks:
        assert task.communicate()[1] == "" and task.returncode == 0
    return contents(output)


# One after the other, none waits for the hashes of one that has not begun.
@pytest.mark.parametrize(
    ("choice", "run_all"),
    [("documents", run), ("lines", run), ("lines", run_tasks), ("lines", run_at_once)],
)
def test_workers_and_tasks_write_the_same_bytes(repeated, tmp_path, monkeypatch, choice, run_all):
    folder, found = repeated
    flags = [f"--drop_duplicates={choice}"]
    if run_all is run:
        flags.append("--num_workers=3")
        monkeypatch.setattr(repeats, "HASHES_OF_PART", HASHES_OF_PART)
    assert run_all(folder, tmp_path, *flags) == found[choice]


HASHES_OF_PART = 100  # so that there are several parts
MODULES = f"""
from create_pretraining_data.engine import line_hashes, repeats
repeats.HASHES_OF_PART = {HASHES_OF_PART}
"""

MOMENTS = {
    "in the first hashes": 'die_at(line_hashes, "hash_document", 5)',
    "in the hashes": 'die_at(line_hashes, "hash_document", 130)',
    "before comparing": 'die_at(repeats, "read_part", 1)',
    "while comparing": 'die_at(repeats, "read_part", 60)',
    "before a part's JSON": 'die_at(repeats, "write_json", 2)',
    "before the counts": 'die_at(repeats, "_add_up", 1)',
    "while files are removed": 'import os; die_at(repeats.os, "remove", 12)',
    "in a chunk": 'die_at(repeats, "_read_repeated", 9)',
}


QUICK = ("in the hashes", "while comparing", "in a chunk")


@pytest.mark.parametrize("moment", but_slow(MOMENTS, QUICK))
def test_killed_and_started_again(repeated, tmp_path, monkeypatch, moment):
    """In each pass of its own; `test_engine_kills` has those that it shares."""
    monkeypatch.setattr(repeats, "HASHES_OF_PART", HASHES_OF_PART)
    folder, found = repeated
    flag = "--drop_duplicates=lines"
    run_and_die(folder, tmp_path, flag, preparation=MODULES + MOMENTS[moment])
    assert run(folder, tmp_path, flag) == found["lines"]


@pytest.mark.slow
def test_killed_at_any_time(repeated, tmp_path, monkeypatch):
    """Several workers, killed again and again."""
    monkeypatch.setattr(repeats, "HASHES_OF_PART", HASHES_OF_PART)
    folder, found = repeated
    work = tmp_path / ".ko.tfrecord.work"
    flags = "--drop_duplicates=lines", "--num_workers=2"
    for prefix in ("hashes-*", "repeats-*", "chunk-*"):
        killed = start(folder, tmp_path, *flags, preparation=MODULES)
        until(lambda p=prefix, k=killed: list(work.glob(p)) or k.poll() is not None)
        killed.kill()
        killed.communicate()
    assert run(folder, tmp_path, *flags) == found["lines"]


def test_no_repeat_is_a_random_next_sentence(corpus, tmp_path):
    """A chunk of one document takes excerpts of others, without what is left out there."""
    common = " ".join(["나다라마"] * 5)
    books = [
        [common, *(f"{'나다라마바사아자차카타파하'[k]} " * 8 + "나" * (n % 5) for n in range(150))]
        for k in range(8)
    ]
    write(tmp_path / "text.txt", books)
    flags = (
        f"--input_file={tmp_path}/text.txt", "--objective=nsp", "--masking=dynamic",
        "--drop_duplicates=lines", "--dupe_factor=20",
    )  # fmt: skip
    output = tmp_path / "out"
    assert main(arguments(corpus, output, *flags)) == 0
    found = json.loads((output / "ko.json").read_text())
    # Lines of the first book, and of each book its own: five different ones and the spaces.
    assert found["sentences"] == 1 + 8 * 5 and found["repeated_lines"] == 7 + 8 * 145
    pieces = (corpus / "vocab.txt").read_text().split("\n")
    phrase = [pieces.index(p) for p in ("나", "##다", "##라", "##마")] * 5
    rows = [features["input_ids"].int64_list.value for features in records(output)]
    holding = [row for row in rows if any(list(row[k : k + 4]) == phrase[:4] for k in range(28))]
    assert 0 < len(holding) < len(rows) / 4


def warned(tmp_path, documents, choice="none"):
    plan = plan_for(write(tmp_path / "text.txt", documents), tmp_path / "work", choice)
    found = count_repeats(plan, in_this_process(plan), range(len(plan.chunks)))
    return find_repeat_problems(found, plan)


def different(count):
    return [
        [f"문서 {k}의 첫째 문장은 다릅니다", f"그리고 {k}번째로 이어집니다"] for k in range(count)
    ]


def with_short_lines(count):
    """These may repeat more often."""
    documents = different(250)
    for number in range(count):
        documents[number % 250].append("네, 알겠어요")
    return documents


def test_short_lines_are_named(tmp_path):
    (line,) = warned(tmp_path, with_short_lines(900))
    assert "lines (899 of 1,400)" in line and "shorter than 10 characters" in line


def test_boilerplate_is_named(tmp_path):
    documents = different(189)
    for number in range(6000):
        documents[number % 189].append(BOILERPLATE)
    (line,) = warned(tmp_path, documents)
    assert line.startswith("94% of the lines of 10 characters or more (5,999 of 6,378) repeat")
    assert f"one of them occurs 6,000 times ('{BOILERPLATE}')" in line
    assert line.endswith("--drop_duplicates=lines leaves them out")


def test_repeated_documents_are_named(tmp_path):
    documents, lines = warned(tmp_path, different(100) * 2)
    assert documents.startswith("50% of the documents (100 of 200) repeat earlier ones")
    assert "occurs 2 times ('문서" in documents
    assert documents.endswith("--drop_duplicates=documents leaves them out")
    assert lines.startswith("50% of the lines")


@pytest.mark.parametrize(
    ("documents", "choice"),
    [
        (different(100) * 2, "documents"),  # what is left out
        (different(100) * 2, "lines"),
        (different(200) + different(10), "none"),
        (with_short_lines(300), "none"),
    ],
)
def test_what_is_no_problem(tmp_path, documents, choice):
    assert not warned(tmp_path, documents, choice)


def test_the_program_says_what_it_left_out(repeated, tmp_path, capsys):
    folder, _ = repeated
    run(folder, tmp_path, "--drop_duplicates=lines")
    captured = capsys.readouterr()
    summary = "\n".join(captured.out.splitlines()[-4:-1])
    found = json.loads((tmp_path / "ko.json").read_text())
    assert found["documents_left_out"]["repeated text"] == 60
    assert "60 of repeated text" in summary
    assert f"{found['repeated_lines']:,} repeated lines left out" in summary
    share = found["repeats"]["documents"]["share"]
    assert f"{share:.1%} of the documents and " in summary and "repeat earlier ones" in summary
    assert "repeat earlier" not in captured.err
    again = json.loads(run(folder, tmp_path / "again").description)
    assert "--drop_duplicates=documents leaves them out" in capsys.readouterr().err
    assert again["repeats"] == found["repeats"]
