"""Every benchmark runs on tiny inputs, and prints or writes what it says."""

import importlib.util
import re
from typing import NamedTuple

import numpy as np
import pytest

from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.training.evaluation import read_results
from tests.support.benchmark_programs import output_of
from tests.support.crosses import slow
from tests.support.paths import ROOT, TEST_DATA
from tests.support.task_data import number_questions, write_published, write_questions
from tests.support.tiny_models import tiny_model, write_config

TRAIN, HELD_OUT = ROOT / "sample_corpus" / "train.txt", ROOT / "sample_corpus" / "heldout.txt"
TOKENIZER = TEST_DATA / "sample_tokenizer"
SIZES = {"vocab_size": 3000, "max_position_embeddings": 128}
REVIEWS = ("정말 재미있는 영화", "너무 지루하고 길다", "배우가 아깝다 노잼", "꿀잼 또 본다")


class Smoke(NamedTuple):
    """A tiny run of a benchmark."""

    flags: str  # with the folders of `folder`
    printed: str = ""  # a pattern of what it prints
    needs: tuple = ()  # modules without which it is skipped
    slow: bool = True  # more than a few seconds


# The name of a program, and a word where it has several runs.
RUNS = {
    "gpu.first_look": Smoke(
        "--report={out}/report.json", r"\| step of ALBERT, float32, XLA \| ok \|"
    ),
    "gpu.killed_training": Smoke(
        "--text={held_out} --tokenizer_dir={tokenizer} --config={root}/run_scripts/flagfiles/"
        "bert_mini.json --precision=float32 --updates=8 --batch=2",
        r"(?s)\| resumed at \| [2468] \|.*\| arrays that differ \| 0 \|",
    ),
    "gpu.steps": Smoke(
        "--models=bert-tiny --lengths=32 --precisions=float32 --rows=4 --rounds=1 --steps=1 "
        "--matrix=64 --vary --only=without_dropout", r"\| bert-tiny \| 32 \| float32 \| without_",
    ),
    "speed.memory": Smoke(
        "--config={model}/bert_config.json --length=16 --batch=2 --precision=float32 "
        "--recompute=block --steps=1 --xla=off", r"\| 16 \| float32 \| block \| off \|",
    ),
    "speed.repeated_text": Smoke(
        "--input_file={held_out} --tokenizer_dir={tokenizer} --rounds=1 --work_dir={out} -- "
        "--num_workers=1", r"\| lines \| [0-9,]+ \| [0-9,]+ \|",
    ),
    "speed.training": Smoke(
        "--config={model}/bert_config.json --length=16 --predictions=3 --batch=4 --rounds=2 "
        "--precision=float32 --peers=none",
        r"\| this project, XLA off \| float32 \|",
    ),
    "quality.ladder": Smoke(
        "--text={train} --tokenizer_dir={tokenizer} --tasks_dir={tasks} --work_dir={out} "
        "--rungs=all_masks --tasks=nsmc --seeds=1 --petaflops=5e-7 --layers=1 "
        "--hidden=64 --batch=2 -- --num_train_epochs=1 --train_batch_size=200",
        r"\| all_masks \| 1 x 64 \|",
    ),
    "vocabularies.bits": Smoke(
        "--held_out={train} --output_dir={out} --characters=40 --passages=50 "
        "--models=one:{model}/bert_config.json:{model}:{model}",
        "one_bits = ",
    ),
    "serving.embedding": Smoke(
        "--sizes=tiny --texts={held_out} --count=30 --rounds=1 --contenders=embed",
        r"\| tiny \| 30 \| [0-9.]+ \(0%\) \| 0.0e\+00 \|",
    ),
    "serving.quantization": Smoke(
        "--model_dir={root}/reference_model --sentences=2 --formats=onnx --precisions=float32",
        r"\|", needs=("onnx", "onnxruntime", "tf2onnx"),
    ),
    "serving.requests": Smoke(
        "--sizes=tiny --batches=2 --texts=sentences --rounds=1 --contenders=saved_model",
        r"\| tiny \| sentences \| 2 \| [0-9.]+ \(0%\) \|",
    ),
    "serving.search": Smoke(
        "--vectors=300 --size=16 --queries=20 --rounds=1 --ways=search,numpy",
        r"\| numpy \| [0-9.]+ \(0%\) \| 100.0% \|",
    ),
    # The last five are the queries: 25 of 8 numbers are searched.
    "serving.search file": Smoke(
        "--file={vectors} --queries=5 --rounds=1 --ways=search,numpy",
        r"\| numpy \| [0-9.]+ \(0%\) \| 100.0% \| [0-9.]+ \| 0.00 \|", slow=False,
    ),
    # Of so few vectors the index finds all; beside them, 0.02 MB, it holds up to 64 links of each.
    "serving.search approximate": Smoke(
        "--vectors=300 --size=16 --queries=20 --rounds=1 --ways=faiss_hnsw,faiss",
        r"(?s)\| faiss_hnsw \| [0-9.]+ \(0%\) \| 100.0% \| [0-9.]+ \| 0.1\d \|.*"
        r"\| faiss .* \| 0.02 \|",
        needs=("faiss",), slow=False,
    ),
    "quality.similarity_sources": Smoke(
        "--question_pair={tasks}/question_pair.csv --parakqc={tasks}/parakqc.txt "
        "--questions={questions} --articles=1 --output_dir={out}",
        r"question_pair = 1\nparakqc = 60\nparakqc_pairs = 60\nquestions = [1-9]", slow=False,
    ),
    "quality.partners": Smoke(
        "--models={root}/reference_vectors",
        r"(?s)배송이 너무 늦어요 \| 택배가 안 와요 ✓.*\| TF-IDF \| 2 \|",
    ),
    "serving.similarity": Smoke(
        "--data_dir={tasks}/KorSTS --model_dir={root}/reference_model --rounds=1 "
        "--contenders=embed", r"\| embed \| [0-9,]+ \(0%\) \| 1.00 \| 1.00000 \|",
    ),
    "serving.similarity_training": Smoke(
        "--text={train} --data_dir={tasks}/KorSTS --pairs=64 --batch_size=8 --length=16 --rounds=1",
        r"(?s)\| ours \| [0-9,]+ \(0%\) \|.*\| theirs \| [0-9,]+ \(0%\) \| 1.00 \|",
        needs=("sentence_transformers", "datasets", "accelerate"),
    ),
}  # fmt: skip

# Tried by tests of their own; or no programs by themselves.
OTHERS = {
    "gpu.minutes", "gpu.packed_state", "speed.contenders", "serving.sentence_transformers_training",
    "quality.order", "gpu_step.__main__", "sentence_order.lesson_text", "speed.devices.__main__",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The inputs: a name -> a path."""
    path = tmp_path_factory.mktemp("inputs")
    # No two have the same direction.
    np.save(path / "texts.npy", np.random.default_rng(1).standard_normal((30, 8)))
    return {
        "root": ROOT,
        "train": TRAIN,
        "held_out": HELD_OUT,
        "tokenizer": TOKENIZER,
        "model": write_model(path / "model"),
        "tasks": write_tasks(path / "tasks"),
        "questions": write_questions(path / "questions.json", number_questions(40, seed=1)),
        "vectors": path / "texts.npy",
    }


def write_model(folder):
    """A tiny BERT, only eight of whose positions are trained."""
    folder.mkdir()
    for name in ("vocab.txt", "tokenizer_config.json"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())
    write_config(folder / "bert_config.json", **SIZES)
    model = tiny_model(num_hidden_layers=1, **SIZES)
    save_google_checkpoint(model, str(folder / "model.ckpt-1"))
    (folder / "pretraining.json").write_text('{"trained_positions": 8}')
    return folder


def write_tasks(folder):
    """NSMC, whose labels are words of the reviews; KorSTS; questions that ask the same."""
    rows = [(f"{REVIEWS[i % 4]} {('싫다', '좋다')[i % 2]}", i % 2) for i in range(200)]
    write_published(folder / "nsmc", "nsmc", train=rows, test=rows)
    pairs = [
        ("강아지가 뛴다", "강아지가 뛴다", 5.0),
        ("아이가 논다", "아이가 바다에서 논다", 3.5),
        ("비가 온다", "어제는 비가 왔다", 1.5),
        ("고기를 굽는다", "춤을 춘다", 0.0),
    ]
    write_published(folder / "KorSTS", "korsts", train=pairs, dev=pairs, test=pairs)
    head = "id,qid1,qid2,question1,question2,is_duplicate"
    same = f"{head}\n1,1,2,비가 와,비 온다,0\n2,3,4,비가,해가,1\n"
    (folder / "question_pair.csv").write_text(same, encoding="utf-8-sig")
    wordings = [f"0\t1\t질문 {group}의 {n}번째 말\n" for group in "가나" for n in range(10)]
    (folder / "parakqc.txt").write_text("".join(wordings), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [slow(n) if run.slow else n for n, run in RUNS.items()])
def test_a_tiny_run(name, folder, tmp_path):
    run = RUNS[name]
    # Not imported: torch's compiler crashes in a process that has imported TensorFlow before.
    if missing := [module for module in run.needs if not importlib.util.find_spec(module)]:
        pytest.skip(f"{missing[0]} is not installed")
    flags = run.flags.format(out=tmp_path, **folder).split()
    assert re.search(run.printed, output_of(name.split()[0], *flags))
    if "--output_dir={out}" in run.flags and "=" in run.printed:
        assert read_results(tmp_path)


def test_every_benchmark_is_run_and_says_how():
    """The command that starts a program is in its docstring."""
    programs = set()
    for path in (ROOT / "benchmarks").rglob("*.py"):
        text, name = path.read_text(encoding="utf-8"), ".".join(path.relative_to(ROOT).parts)
        name = name.removeprefix("benchmarks.").removesuffix(".py")
        if "__name__ ==" in text and not name.startswith("reference."):
            assert f"python -m benchmarks.{name.removesuffix('.__main__')}" in text
            programs.add(name)
    assert programs - OTHERS == {name.split()[0] for name in RUNS}
