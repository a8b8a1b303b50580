"""Bad input of a benchmark is one line."""

import pytest

from tests.support.benchmark_programs import run_benchmark
from tests.support.paths import ROOT, TEST_DATA

SOURCES = (
    "quality.similarity_sources --question_pair={empty} --questions={empty} --output_dir={out}"
)


@pytest.mark.parametrize(
    "command, message",
    (
        ("gpu.minutes unpack {out}", "unpack must be given two folders. Received: one"),
        (
            "gpu.minutes train {out}",
            "--text must be given until --work_dir has the records. Received: none",
        ),
        (
            "serving.embedding --texts={empty}",
            "--texts must hold a text. Received: none in {empty}",
        ),
        ("serving.requests --file={empty}", "--file must hold a text. Received: none in {empty}"),
        pytest.param(
            "serving.quantization --model_dir={root}/reference_vectors",
            "--model_dir must hold a pre-trained model with its head for masked words. Received: "
            "{root}/reference_vectors/difference.safetensors without",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "serving.quantization --model_dir={root}/reference_model --texts={empty}",
            "--texts must hold a text. Received: none in {empty}",
            marks=pytest.mark.slow,
        ),
        (
            "serving.search --vectors=10",
            "there must be more than 10 vectors besides the queries of --file, or --vectors. "
            "Received: 10",
        ),
        (
            "serving.similarity_training --text={empty} --data_dir={out} --pairs=7 --batch_size=8",
            "--pairs must be at least --batch_size. Received: --pairs=7, --batch_size=8",
        ),
        (
            f"{SOURCES} --parakqc={{topics}}",
            "{topics} must hold two questions for each topic and kind. Received: one at line 21",
        ),
    ),
)
def test_bad_input(command, message, tmp_path):
    paths = {name: tmp_path / name for name in ("empty", "topics", "out")}
    paths |= {"root": ROOT, "tokenizer": TEST_DATA / "sample_tokenizer"}
    paths["empty"].write_text("")
    # Two questions of one topic, then one of another, with ten wordings each.
    groups = ["0\t1\t말 {}\n"] * 20 + ["1\t1\t말 {}\n"] * 10
    lines = [line.format(number) for number, line in enumerate(groups)]
    paths["topics"].write_text("".join(lines), encoding="utf-8")
    done = run_benchmark(*command.format(**paths).split())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: {message.format(**paths)}"


def test_texts_that_do_not_exist(tmp_path):
    """What make records says is all that is said."""
    flags = f"--text={tmp_path}/*.gz", f"--data_flags=--tokenizer_dir={TEST_DATA}/sample_tokenizer"
    done = run_benchmark("gpu.minutes", "train", tmp_path / "out", *flags)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and f"{tmp_path}/*.gz" in done.stderr
