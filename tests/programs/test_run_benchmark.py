"""Whole benchmarks: the tasks that are run, their flags, the table at the end."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import save_google_checkpoint
from model_formats.encoders import ENCODERS
from run_scripts import benchmark as program
from run_scripts.flags.parser import parse
from run_scripts.squad import SquadFlags
from run_scripts.tools.glue_plan import BENCHMARKS, find_flagfile, model_flags, plan_tasks
from run_scripts.tools.glue_table import read_results, show_table
from tests.support.paths import ROOT
from tests.support.refusals import refused
from tests.support.task_data import write_published
from tests.support.tiny_models import tiny_model, write_config


def write_results(folder, **results):
    folder.mkdir(parents=True)
    text = "".join(f"{name} = {value}\n" for name, value in sorted(results.items()))
    (folder / "eval_results.txt").write_text(text)


COLA = [("바다를 보고 싶었다.", 1), ("싶었다 보고 바다를.", 0)]
RTE = [("비가 왔다.", "땅이 젖었다.", label) for label in ("entailment", "not_entailment")]


def write_glue(data, times=1):
    """CoLA and RTE, with two examples `times` times to train on."""
    write_published(data / "CoLA", "cola", train=COLA * times, dev=COLA * 2)
    write_published(data / "RTE", "rte", train=RTE * times, dev=RTE * 2)


def write_model(folder, model_type="bert", *files):
    """What a plan looks at of a model's folder."""
    folder.mkdir()
    for name in (f"{model_type}_config.json", *files):
        (folder / name).write_text("{}")
    return folder


def test_plan(tmp_path, capsys):
    model = write_model(tmp_path / "m", "albert", "model.ckpt-best.index", "30k-clean.model")
    data = tmp_path / "glue"
    write_glue(data)
    commands = plan_tasks("glue", str(model), str(data), "out")
    assert list(commands) == ["cola", "rte"]
    name, flagfile, *flags = commands["cola"]
    assert name == "run_classifier"
    assert flagfile.endswith("run_scripts/flagfiles/glue_albert_cola.flags")
    folders = [f"--data_dir={data}/CoLA", "--output_dir=out/cola", f"--model_dir={model}"]
    assert flags == ["--task_name=cola", *folders]
    shown = capsys.readouterr().err
    assert shown.startswith(f"left out, no data in {data}: sst-2 (folder SST-2), mrpc (folder")
    assert "cola" not in shown and "rte" not in shown


# Folder -> what the names of its files begin with.
QUESTION_FILES = {
    "korquad": "KorQuAD_v1.0", "klue-mrc-v1.1": "klue-mrc-v1.1", "klue-re-v1.1": "klue-re-v1.1",
}  # fmt: skip


def test_plan_of_korean_tasks_with_their_programs(tmp_path):
    model = write_model(tmp_path / "m", "albert", "model.ckpt-5.index", "30k-clean.model")
    for folder, name in QUESTION_FILES.items():
        (tmp_path / folder).mkdir()
        for split in ("train", "dev"):
            (tmp_path / folder / f"{name}_{split}.json").touch()
    commands = plan_tasks("korean", str(model), str(tmp_path), "out")
    assert [(name, command[0]) for name, command in commands.items()] == [
        ("klue-re", "run_classifier"), ("korquad", "run_squad"), ("klue-mrc", "run_squad"),
    ]  # fmt: skip
    folders = ("klue-re-v1.1", "korquad", "klue-mrc-v1.1")
    for (name, (_, flagfile, *flags)), folder in zip(commands.items(), folders, strict=True):
        assert flagfile.endswith(f"/korean_{name}.flags")
        assert f"--task_name={name}" in flags and f"--data_dir={tmp_path}/{folder}" in flags
        if name != "klue-re":  # what the flag file names is there
            values = parse(SquadFlags, ["squad", flagfile, *flags])
            names = [f"{QUESTION_FILES[folder]}_{split}.json" for split in ("train", "dev")]
            assert [values.train_file, values.predict_file] == names
    # An archive that was unpacked inside a folder of its name.
    outer = tmp_path / "korquad"
    outer.rename(tmp_path / "inner")
    outer.mkdir()
    (tmp_path / "inner").rename(outer / "korquad")
    commands = plan_tasks("korean", str(model), str(tmp_path), "out")
    assert f"--data_dir={tmp_path}/korquad/korquad" in commands["korquad"]
    (outer / "korquad" / "KorQuAD_v1.0_train.json").unlink()
    with refused(f"needs a file {outer}/KorQuAD_v1.0_train.json"):
        plan_tasks("korean", str(model), str(tmp_path), "out")


def test_plan_of_broken_data(tmp_path, capsys):
    model = write_model(tmp_path / "m", "bert", "bert_model.ckpt.index", "vocab.txt")
    data = tmp_path / "glue"
    data.mkdir()
    command = ["run_glue", str(model), str(data), "out"]
    assert program.run_glue(command) == 1
    assert "must hold a folder of a task: cola (folder CoLA), " in capsys.readouterr().err
    write_glue(data)
    (data / "CoLA" / "dev.tsv").unlink()
    assert program.run_glue(command) == 1
    assert f"needs a file {data}/CoLA/dev.tsv" in capsys.readouterr().err
    (model / "bert_model.ckpt.index").unlink()
    with refused("must hold a checkpoint"):  # before the first task begins
        model_flags(str(model))


def test_model(tmp_path):
    """A folder, the folder that it was unpacked into, or one of its checkpoints."""
    names = ("model.ckpt-5.index", "model.ckpt-10.index", "tokenizer_config.json", "vocab.txt")
    model = write_model(tmp_path / "m", "albert", *names)
    flag = f"--model_dir={model}"
    (model / "best").mkdir()
    (model / "best" / "model.ckpt-5.index").touch()
    best = "best/model.ckpt-5"
    for given, checkpoint in (
        (".", None),
        ("..", None),
        ("model.ckpt-5", "model.ckpt-5"),
        (best, best),
        ("best", best),
    ):
        folder, flags = model_flags(os.path.normpath(model / given))
        more = [f"--init_checkpoint={model}/{checkpoint}"] if checkpoint else []
        assert (folder.path, flags) == (str(model), [flag, *more])


@pytest.mark.parametrize(
    ("sizes", "name"),
    (({"hidden_size": 256}, "korean_small"), ({"hidden_size": 768}, "korean"), ([], "korean")),
)
def test_small_models_have_flag_files_of_their_own(tmp_path, sizes, name):
    model = write_model(tmp_path / "m", "bert", "bert_model.ckpt.index", "vocab.txt")
    (model / "bert_config.json").write_text(json.dumps(sizes))
    write_published(tmp_path / "data" / "nsmc", "nsmc", train=[], test=[])
    commands = plan_tasks("korean", str(model), str(tmp_path / "data"), "out")
    assert commands["nsmc"][1].endswith(f"flagfiles/{name}.flags")


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_kind_of_model_has_a_flag_file_for_every_task(kind):
    for benchmark, tasks in BENCHMARKS.items():
        for task, size in itertools.product(tasks, (None, 128, 768)):
            assert find_flagfile(benchmark, kind, size, task).exists()


def shown_table(benchmark, folder, prints):
    """The cells of the rows of a table, and the lines below it."""
    lines = prints(lambda: show_table(benchmark, folder) or 0).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(set(map(len, table))) == 1  # columns stand below each other
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0] == ["task", "split", "metrics", "times 100", "without a model"]
    return rows[2:], lines[len(table) :]


def test_glue_table(tmp_path, prints):
    """A task's numbers are averaged first; CoLA's accuracy and WNLI do not count."""
    write_results(tmp_path / "cola", eval_matthews=0.5, eval_accuracy=0.8, baseline_matthews=0.0,
                  baseline_accuracy=0.7, eval_loss=9.0)  # fmt: skip
    write_results(tmp_path / "mnli", eval_accuracy=0.8, dev_mismatched_accuracy=0.7)
    write_results(tmp_path / "mrpc", eval_accuracy=0.85, eval_f1=0.95)
    write_results(tmp_path / "wnli", eval_accuracy=0.01)
    rows, lines = shown_table("glue", tmp_path, prints)
    assert rows == [
        ["cola", "dev", "matthews / accuracy", "50.00 / 80.00", "0.00 / 70.00"],
        ["mrpc", "dev", "accuracy / f1", "85.00 / 95.00", ""],
        ["mnli", "dev", "accuracy", "80.00", ""],
        ["mnli", "dev_mismatched", "accuracy", "70.00", ""],
        ["wnli", "dev", "accuracy", "1.00", ""],
    ]
    assert lines[0] == "without results: sst-2, sts-b, qqp, qnli, rte"
    # (0.5 + 0.9 + 0.75) / 3
    assert lines[1] == (
        "GLUE average: 71.67 over 3 tasks, which is not the full GLUE average: without sst-2, "
        "sts-b, qqp, qnli, rte"
    )


def test_glue_table_of_parts_of_train(tmp_path, prints):
    """--eval_on=train_part names no result eval_...; the average says what it is of."""
    write_results(tmp_path / "mnli", train_part_accuracy=0.75)
    write_results(tmp_path / "rte", eval_accuracy=0.5)
    assert shown_table("glue", tmp_path, prints)[1][1] == (
        "GLUE average: 62.50 over 2 tasks, which is not the full GLUE average: without cola, "
        "sst-2, mrpc, sts-b, qqp, qnli; on train_part of mnli"
    )


def test_korean_table(tmp_path, prints):
    """run_squad's scores are in per cent already; a part of train is not called test or dev."""
    write_results(tmp_path / "korsts", eval_spearman=0.5, eval_pearson=0.25, test_spearman=0.125,
                  test_pearson=0.0)  # fmt: skip
    (tmp_path / "nsmc").mkdir()
    (tmp_path / "nsmc" / "seeds.tsv").write_text(
        "name\tmean\tstandard deviation\t1\t2\neval_accuracy\t0.900000\t0.002000\t0.9\t0.9\n"
    )
    write_results(tmp_path / "korquad", eval_exact=52.25, eval_f1=70.5, baseline_exact=0.0,
                  baseline_f1=12.0, eval_loss=1.0)  # fmt: skip
    write_results(tmp_path / "klue-mrc", train_part_exact=30.0, train_part_rouge_w=40.0,
                  baseline_exact=31.0, baseline_rouge_w=31.0)  # fmt: skip
    write_results(tmp_path / "klue-re", eval_relation_micro_f1=0.5, eval_auprc=0.25,
                  baseline_relation_micro_f1=0.0)  # fmt: skip
    rows, lines = shown_table("korean", tmp_path, prints)
    assert [" ".join(row).strip() for row in rows] == [
        "nsmc test accuracy 90.00 ± 0.20",
        "klue-re dev relation_micro_f1 / auprc 50.00 / 25.00 0.00",
        "korsts dev spearman / pearson 50.00 / 25.00",
        "korsts test spearman / pearson 12.50 / 0.00",
        "korquad dev exact / f1 52.25 / 70.50 0.00 / 12.00",
        "klue-mrc train_part exact / rouge_w 30.00 / 40.00 31.00 / 31.00",
    ]
    assert "GLUE" not in "".join(lines)


@pytest.mark.parametrize(
    ("name", "text"),
    (
        ("eval_results.txt", "eval_accuracy = high\n"),
        ("eval_results.txt", "eval_accuracy\n"),
        ("seeds.tsv", "name\tmean\tstandard deviation\neval_accuracy\t0.5\n"),
    ),
)
def test_results_that_are_damaged(tmp_path, name, text):
    assert read_results(tmp_path) == {}
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{name}.* must hold a name and its number"):
        read_results(tmp_path)


def test_results_that_lack_a_metric(tmp_path):
    write_results(tmp_path / "cola", eval_accuracy=0.5)
    with refused("results of cola must hold eval_matthews. Received: eval"):
        show_table("glue", tmp_path)


def run_script(folder, name, *arguments):
    """Runs a script in a folder that is not the root."""
    return subprocess.run(
        ["bash", str(ROOT / "run_scripts" / name), *arguments],
        cwd=folder, env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True,
    )  # fmt: skip


def test_the_same_command_continues(tmp_path, monkeypatch, capsys):
    """A task that was stopped ends the run; started again it leaves out what is done."""
    write_model(tmp_path / "model", "bert", "bert_model.ckpt.index", "vocab.txt")
    write_glue(tmp_path / "glue")
    ran, stopped = [], ["rte"]

    def run_task(command):
        """Writes results, but not of a task that is stopped."""
        ran.append(command)
        name = command[2].removeprefix("--task_name=")
        if name not in stopped:
            write_results(tmp_path / "out" / name, eval_matthews=0.5, eval_accuracy=0.75)
        return 0

    monkeypatch.setattr(program, "run_task", run_task)
    monkeypatch.chdir(tmp_path)
    command = ["run_glue", "model", "glue", "out"]
    assert program.run_glue([*command, "--learning_rate=3e-5"]) == 1
    shown = capsys.readouterr()
    assert "average" not in shown.out and "left out, no data in" in shown.err
    assert shown.err.endswith(
        "error: every task must finish; the same command continues from there. Received: rte "
        "ended with status 0\n"
    )
    cola, rte = ran
    assert cola[0] == "run_classifier" and cola[-1] == "--learning_rate=3e-5"
    assert "--output_dir=out/cola" in cola and "--task_name=rte" in rte
    stopped.clear()
    assert program.run_glue(command) == 0
    assert len(ran) == 3
    shown = capsys.readouterr().out
    assert "\nout/cola exists already" in shown
    assert "GLUE average: 62.50 over 2 tasks, which is not the full GLUE average" in shown


def test_a_program_gets_ctrl_c_alone(tmp_path):
    """It has the time to save; the benchmark ends after it."""
    child = tmp_path / "python"
    child.write_text(
        "#!/usr/bin/env bash\ntrap 'sleep 0.6; echo saved; exit' INT\necho begun\n"
        "while :; do sleep 0.1; done\n"
    )
    child.chmod(0o755)
    code = (
        "import sys; from bert_common.startup import begin, interruptible; begin(); "
        "from run_scripts.benchmark import run_task\n"
        f"sys.executable = {str(child)!r}\n"
        "with interruptible(): print('status', run_task(['run_ner']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "saved\nstatus 0\n"
    assert process.returncode == 0


def test_script_without_arguments(tmp_path):
    run = run_script(tmp_path, "run_korean.sh", "model")
    assert run.returncode == 2 and run.stderr.startswith("usage: run_korean MODEL ")


@pytest.mark.slow
def test_script_trains(tmp_path):
    """Two tasks of GLUE, small: trained, measured, shown; a second start trains nothing."""
    sizes = {"num_hidden_layers": 1, "vocab_size": 2758}
    model = shutil.copytree(ROOT / "tests" / "data" / "sample_tokenizer", tmp_path / "model")
    write_config(model / "bert_config.json", **sizes)
    save_google_checkpoint(tiny_model(**sizes), str(model / "model.ckpt-7"))
    write_glue(tmp_path / "glue", times=16)
    flags = ("--max_seq_length=16", "--train_batch_size=8", "--num_train_epochs=1")
    command = (tmp_path, "run_glue.sh", "model", "glue", "out", *flags)
    first = run_script(*command)
    assert first.returncode == 0, first.stderr
    assert "| rte  | dev   | accuracy" in first.stdout
    assert "over 2 tasks" in first.stdout
    for task in ("cola", "rte"):
        assert (tmp_path / "out" / task / "model.ckpt-4.index").exists()
    (tmp_path / "out" / "rte" / "eval_results.txt").unlink()
    second = run_script(*command)
    assert second.returncode == 0, second.stderr
    assert "\nout/cola exists already" in second.stdout
    assert "already at step 4 of 4: nothing to train" in second.stdout
    average = [run.stdout.splitlines()[-2] for run in (first, second)]
    assert average[0].startswith("GLUE average: ") and average[0] == average[1]
