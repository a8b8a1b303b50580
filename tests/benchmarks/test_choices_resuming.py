"""The benchmark of choices with fake programs: it resumes, shares work, reports failures."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from paths import ROOT

from run_scripts.reference.ledger import read_runs

# Stands for every program: notes its call, then writes what the real one would, in brief.
FAKE = """
import json, os, sys, time
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
name = os.path.basename(sys.argv[0])
with open("calls.log", "a") as log:
    log.write(json.dumps({"program": name, **flags}) + "\\n")
while os.path.exists("wait-for-" + name):
    time.sleep(0.05)
if os.path.exists("fail-" + name):
    sys.exit("error: as the test wants")
folder = flags.get("output_dir") or os.path.dirname(flags["output_file"])
def write(name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
if name == "create_pretraining_data.py":
    write("records.tfrecord", "12345")
    write("records.json", json.dumps({
        "kind": "pre-training records", "pieces": 900, "pieces_per_word": 2.0,
        "unknown_share": 0, "padding_share": 0, "record_format": {}, "tokenizer": {},
        "shards": [{"file": "records.tfrecord", "size": 5, "records": 640}],
    }))
elif name == "text.py":
    write("report.json", '{"documents": 3}')
elif name in ("build_vocab.py", "usual_vocabulary.py"):
    write("vocab.txt", "a\\nb\\n")
    write("tokenizer_config.json", "{}")
else:
    seed = int(flags.get("random_seed", 1))
    write("model.ckpt-1.index", "")
    write("eval_results.txt", f"eval_accuracy = {0.5 + seed / 100}\\nmasked_lm_accuracy = 0.25\\n"
          "next_sentence_accuracy = 0.75\\neval_entity_f1 = 0.4\\n")
"""
PROGRAMS = (
    "build_vocab.py", "create_pretraining_data.py", "run_pretraining.py", "run_classifier.py",
    "run_ner.py", "benchmarks/vocabulary_models/usual_vocabulary.py",
    "benchmarks/choices/cut_tasks.py", "benchmarks/choices/bits.py",
    "benchmarks/choices/linear.py", "run_scripts/reference/text.py",
)  # fmt: skip


# In the benchmark: it is stopped while the third program, which learns a vocabulary, ends.
STOPPED_AT_THE_END = """
import os, signal, sys
if any(argument.endswith("choices") for argument in sys.orig_argv):
    wait, found = os.wait4, []
    def wait4(*arguments):
        process, *others = wait(*arguments)
        if process > 0:
            found.append(process)
            if len(found) == 3:
                os.kill(os.getpid(), signal.SIGTERM)
        return process, *others
    os.wait4 = wait4
"""


def stop_at_the_end(folder):
    """Has the next benchmark stopped by `STOPPED_AT_THE_END`, until the returned file is gone."""
    path = folder / "site" / "sitecustomize.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(STOPPED_AT_THE_END)
    return path


@pytest.fixture
def project(tmp_path):
    """A folder with fake programs, and a function that starts the benchmark in it."""
    for name in PROGRAMS:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FAKE)
    for package in ("run_scripts", "run_scripts/reference"):  # found before the project's own
        (tmp_path / package / "__init__.py").touch()
    command = [
        sys.executable, str(ROOT / "benchmarks" / "choices"), "--wiki=w", "--held_out=h",
        "--reviews=r", "--tasks_dir=t", "--work_dir=work", "--ledger=runs.jsonl", "--seeds=1,2",
        "--questions=spread", "--variants=seed-1,seed-2", "--tasks=klue-ner",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}/site:{ROOT}"}

    def start(*flags):
        return subprocess.Popen(
            [*command, *flags], cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return tmp_path, start


def calls(folder):
    """The programs that were started, in order, with their flags."""
    log = folder / "calls.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def wait_for_call(folder, program, after=0):
    """Waits until a program has been started, other than by the first calls."""
    for _ in range(600):
        if any(call["program"] == program for call in calls(folder)[after:]):
            return
        time.sleep(0.05)
    raise AssertionError(calls(folder))


ALL = [
    "text.py", "cut_tasks.py", "build_vocab.py", "create_pretraining_data.py",
    "create_pretraining_data.py", "run_pretraining.py", "run_ner.py", "run_ner.py",
    "run_pretraining.py", "run_ner.py", "run_ner.py",
]  # fmt: skip


def finish(process, status=0):
    """The end of a process: its standard output and error."""
    output, error = process.communicate(timeout=60)
    assert process.returncode == status, error
    return output, error


def test_the_same_command_goes_on(project):
    folder, start = project
    expected = list(ALL)
    for number, program in ((signal.SIGTERM, "build_vocab.py"), (signal.SIGKILL, "run_ner.py")):
        place = ALL.index(program)
        (folder / f"wait-for-{program}").touch()
        process = start()
        wait_for_call(folder, program)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == (-number if number == signal.SIGKILL else 130)
        os.remove(folder / f"wait-for-{program}")
        expected.insert(place + len(expected) - len(ALL), program)
    output, _ = finish(start())
    # Only what was interrupted has run twice.
    assert [call["program"] for call in calls(folder)] == expected
    assert len(read_runs(folder / "runs.jsonl")) == len(ALL)
    # The vocabulary is that of both, so it is no column.
    assert "| seed-1 | 25.00 | 40.00 ± 0.00 |" in output


def test_folders_that_are_gone_are_made_again(project):
    """The ledger goes on, on a new machine too; what nothing needs is not made."""
    folder, start = project
    finish(start("--variants=seed-1", "--seeds=1"))
    before = (folder / "runs.jsonl").read_text()
    done = len(calls(folder))
    shutil.rmtree(folder / "work")
    (folder / "wait-for-build_vocab.py").touch()
    process = start("--variants=seed-1")
    wait_for_call(folder, "build_vocab.py", after=done)
    process.kill()  # a folder that is half made again is not whole
    process.communicate(timeout=60)
    os.remove(folder / "wait-for-build_vocab.py")
    output, _ = finish(start("--variants=seed-1"))
    programs = [call["program"] for call in calls(folder)][done:]
    assert programs == [*ALL[1::-1], "build_vocab.py", *ALL[2:7]]
    assert (folder / "runs.jsonl").read_text().startswith(before)
    assert len(read_runs(folder / "runs.jsonl")) == done + 1
    assert output.count("is gone, made again") == 4


def test_what_another_machine_has_finished_is_not_whole_here(project):
    """Killed within a training whose run then comes with the other machine's ledger."""
    folder, start = project
    ledger, flags = folder / "runs.jsonl", ("--variants=seed-1", "--seeds=1")
    finish(start(*flags))
    everything = ledger.read_text()
    shutil.rmtree(folder / "work")
    ledger.unlink()
    (folder / "wait-for-run_pretraining.py").touch()
    done = len(calls(folder))
    process = start(*flags)
    wait_for_call(folder, "run_pretraining.py", after=done)
    process.kill()
    process.communicate(timeout=60)
    os.remove(folder / "wait-for-run_pretraining.py")
    ledger.write_text(everything)
    done = len(calls(folder))
    finish(start("--variants=seed-1"))
    programs = [call["program"] for call in calls(folder)][done:]
    assert programs == ["run_pretraining.py", "run_ner.py"]


def test_two_processes_share_the_work(project):
    folder, start = project
    for process in [start("--variants=seed-1"), start("--variants=seed-1,seed-2")]:
        finish(process)
    assert sorted(call["program"] for call in calls(folder)) == sorted(ALL)
    assert len(read_runs(folder / "runs.jsonl")) == len(ALL)


def test_what_the_programs_are_told(project):
    folder, start = project
    finish(start("--passes=5", "--updates=50", "--scale=0.5"))
    vocabulary, records, _, pretraining, *_ = calls(folder)[2:]
    assert vocabulary["vocab_size"] == "16000" and vocabulary["analyser"] == "kiwi"
    assert vocabulary["input_file"].endswith("/train.txt")
    assert records["objective"] == "sop" and records["masking"] == "dynamic"
    assert records["tokenizer_dir"] == vocabulary["output_dir"]
    assert pretraining["input_file"] == records["output_file"]
    assert pretraining["train_batch_size"] == "64"  # 5 passes over 640 rows in 50 updates
    assert pretraining["num_train_steps"] == "50" and pretraining["random_seed"] == "1"
    config = json.loads((folder / pretraining["bert_config_file"]).read_text())
    assert config["vocab_size"] == 16000 and config["num_hidden_layers"] == 4
    tasks = [call for call in calls(folder) if call["program"] == "run_ner.py"]
    assert [call["random_seed"] for call in tasks] == ["1", "2", "1", "2"]
    assert tasks[0]["init_checkpoint"] == pretraining["output_dir"]
    assert tasks[2]["init_checkpoint"] != tasks[0]["init_checkpoint"]
    assert float(tasks[0]["num_train_epochs"]) == 3  # half of 6
    # Checkpoints are kept where they are needed.
    assert (folder / pretraining["output_dir"] / "model.ckpt-1.index").exists()
    assert not (folder / tasks[0]["output_dir"] / "model.ckpt-1.index").exists()


def test_another_precision_is_that_of_new_models(project):
    folder, start = project
    finish(start("--seeds=1", "--variants=seed-1"))
    ledger = folder / "runs.jsonl"
    before, done = ledger.read_text(), len(calls(folder))
    shutil.rmtree(folder / "work")
    finish(start("--variants=seed-1", "--precision=float32"))
    told = [(call["program"], call.get("precision")) for call in calls(folder)[done:]]
    # What is made again is made as it was, and a new seed as the others.
    assert [each for each in told if each[1]] == [
        ("run_pretraining.py", "bfloat16"), ("run_ner.py", "bfloat16"),
    ]  # fmt: skip
    assert ledger.read_text().startswith(before)
    assert len(read_runs(ledger)) == len(before.splitlines()) + 1
    finish(start("--seeds=1", "--variants=seed-2", "--precision=float32"))
    told = [(call["program"], call.get("precision")) for call in calls(folder)[done + len(told) :]]
    assert told == [("run_pretraining.py", "float32"), ("run_ner.py", "float32")]


def test_what_differs_from_the_ledger_is_said(project):
    """A text that is not the ledger's ends it; a vocabulary is noted."""
    folder, start = project
    flags = ("--variants=seed-1", "--seeds=1")
    finish(start(*flags))
    ledger = folder / "runs.jsonl"
    right = ledger.read_text()
    shutil.rmtree(folder / "work")
    ledger.write_text(right.replace('"documents": 3', '"documents": 4'))
    for _ in range(2):
        output, _ = finish(start("--variants=seed-1"), 1)
        assert "text must be the ledger's. Received: documents 3 instead of 4" in output
    assert "run_ner.py" not in [call["program"] for call in calls(folder)[7:]]
    ledger.write_text(right.replace('"records": 640', '"records": 641'))
    output, _ = finish(start("--variants=seed-1"))
    assert output.count("differs from the ledger: records 640 instead of 641") == 2


def test_a_stop_as_a_program_ends_leaves_its_folder_whole(project):
    """The piece is in the ledger, so nothing is made again."""
    folder, start = project
    stopping = stop_at_the_end(folder)
    flags = ("--variants=seed-1", "--seeds=1")
    process = start(*flags)
    process.communicate(timeout=60)
    assert process.returncode == 130
    stopping.unlink()
    done = [call["program"] for call in calls(folder)]
    assert done == ALL[:3]
    assert len(read_runs(folder / "runs.jsonl")) == 3
    finish(start(*flags))
    assert [call["program"] for call in calls(folder)] == ALL[:7]


def test_a_folder_that_was_made_again_and_removed_is_made_again(project):
    folder, start = project
    flags = ("--variants=seed-1", "--seeds=1")
    finish(start(*flags))
    shutil.rmtree(folder / "work")
    stopping = stop_at_the_end(folder)
    process = start("--variants=seed-1")
    process.communicate(timeout=60)
    assert process.returncode == 130
    stopping.unlink()
    done = len(calls(folder))
    for path in (folder / "work").iterdir():  # to free the disk; ledgers and locks are small
        if path.is_dir():
            shutil.rmtree(path)
    finish(start("--variants=seed-1"))
    programs = [call["program"] for call in calls(folder)[done:]]
    assert sorted(programs) == sorted(ALL[:7])


def test_a_failure_stops_only_what_needs_it(project):
    folder, start = project
    (folder / "fail-create_pretraining_data.py").touch()
    output, error = finish(start("--seeds=1", "--variants=seed-1,random-weights"), 1)
    programs = [call["program"] for call in calls(folder)]
    assert programs == [*ALL[:5], "run_ner.py"]  # random weights need no records
    assert "4 pieces failed" in error and "seed1 left out: no choices/" in output
    os.remove(folder / "fail-create_pretraining_data.py")
    finish(start("--seeds=1", "--variants=seed-1,random-weights"))
    again = [call["program"] for call in calls(folder)][len(programs) :]
    assert again == [*ALL[3:6], "run_ner.py"]


def test_the_plan_runs_nothing(project):
    folder, start = project
    output, _ = finish(start("--plan"))
    assert "estimated choices/text\n" in output and f"| all | {len(ALL)} | 0 |" in output
    assert not calls(folder) and not (folder / "runs.jsonl").exists()


def test_bad_input_is_one_line(project):
    folder, start = project
    (folder / "work").mkdir()
    (folder / "work" / "ledger.txt").write_text("other.jsonl")
    for flags, message in (
        ([], "the work of another ledger must be in a new folder"),
        (["--wiki="], "--wiki must be given"),
        (["--variants=x"], "--variants must be of"),
        (["--work_dir=w"], "--work_dir must be a folder"),
    ):
        (folder / "w").touch()
        _, error = finish(start(*flags), 1)
        assert error.startswith("error: ") and message in error and error.count("\n") == 1
    for flag in ("--updates=0", "--passes=-1", "--scale=inf"):
        _, error = finish(start(flag), 2)
        assert "above 0 value: " in error
    assert not calls(folder)


def test_the_tables_have_every_seed_that_was_measured(project):
    folder, start = project
    finish(start("--variants=seed-1"))
    finish(start("--report", "--seeds=1,1"))
    text = (folder / "questions.json").read_text()
    assert "klue-ner/seed2" in text and "klue-ner/seed3" not in text
