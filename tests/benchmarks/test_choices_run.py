"""A tiny run of the benchmark of choices by the real programs."""

import json
import os
import subprocess
import sys
import time

import pytest
from paths import ROOT

from run_scripts.reference.ledger import read_runs

REVIEWS = ["정말 재미있는 영화", "시간이 아까운 영화", "배우가 좋다", "다시는 보지 않는다"]


def write_tasks(folder):
    """The tasks that are cut or trained on, a few examples each."""
    for name in ("nsmc", "KorSTS", "klue-sts-v1.1", "korquad", "3i4k"):
        (folder / name).mkdir(parents=True)
    reviews = "".join(f"{i}\t{REVIEWS[i % 4]} {i}\t{1 - i % 2}\n" for i in range(40))
    for split in ("train", "test"):
        path = folder / "nsmc" / f"ratings_{split}.txt"
        path.write_text("id\tdocument\tlabel\n" + reviews, encoding="utf-8")
    header = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
    pairs = "".join(
        f"a\tb\tc\t{i}\t{i % 6}\t{REVIEWS[i % 4]}\t{REVIEWS[i % 3]}\n" for i in range(30)
    )
    for split in ("train", "dev", "test"):
        (folder / "KorSTS" / f"sts-{split}.tsv").write_text(header + pairs, encoding="utf-8")
    klue = [
        {"guid": f"{i}", "sentence1": REVIEWS[i % 4], "sentence2": REVIEWS[i % 3],
         "labels": {"real-label": i % 6, "label": 1, "binary-label": 0}}
        for i in range(20)
    ]  # fmt: skip
    for split in ("train", "dev"):
        path = folder / "klue-sts-v1.1" / f"klue-sts-v1.1_{split}.json"
        path.write_text(json.dumps(klue), encoding="utf-8")
    articles = []
    for number, review in enumerate(REVIEWS * 35):  # 140 articles, as in the public file
        context, answer = f"{review} 나온 해는 {1990 + number}년이다.", f"{1990 + number}년"
        answers = [{"text": answer, "answer_start": context.index(answer)}]
        asked = {"id": f"q{number}", "question": "나온 해는?", "answers": answers}
        paragraphs = [{"context": context, "qas": [asked]}]
        articles.append({"title": f"{number}", "paragraphs": paragraphs})
    content = {"version": "KorQuAD_v1.0_dev", "data": articles}
    (folder / "korquad" / "KorQuAD_v1.0_dev.json").write_text(json.dumps(content))


@pytest.mark.slow
def test_a_tiny_run_that_is_killed_on_the_way(tmp_path):
    write_tasks(tmp_path / "tasks")
    ledger, reviews = tmp_path / "runs.jsonl", tmp_path / "tasks" / "nsmc" / "ratings_train.txt"
    command = [
        sys.executable, "benchmarks/choices", "--wiki=sample_corpus/train.txt",
        "--held_out=sample_corpus/heldout.txt", f"--reviews={reviews}",
        f"--tasks_dir={tmp_path}/tasks", f"--work_dir={tmp_path}/work", f"--ledger={ledger}",
        "--passes=0.5", "--updates=4", "--seeds=1", "--questions=vocabulary",
        "--variants=plain-8000", "--tasks=korsts,korquad",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for lines in (1, 4):  # killed once so many pieces are measured
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        while len(read_runs(ledger)) < lines and process.poll() is None:
            time.sleep(0.1)
        process.kill()
        process.wait()
        assert len(read_runs(ledger)) >= lines
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    runs = read_runs(ledger)
    start = "choices/vocabulary/plain-8000"
    assert list(runs)[:2] == ["choices/text", "choices/tasks"]
    assert runs["choices/tasks"].scores == {
        "nsmc_30k": 40, "sts_train": 30, "sts_dev": 30, "sts_test": 20,
    }  # fmt: skip
    assert runs[f"{start}/records"].scores["records"] > 50
    assert 0 < runs[f"{start}/pretraining"].scores["masked_lm_loss"] < 10
    assert {"eval_pearson", "test_pearson"} <= set(runs[f"{start}/korsts/seed1"].scores)
    assert {"eval_f1", "eval_exact"} <= set(runs[f"{start}/korquad/seed1"].scores)
    questions = json.loads((tmp_path / "questions.json").read_text())
    assert [question["name"] for question in questions][0] == "vocabulary"
