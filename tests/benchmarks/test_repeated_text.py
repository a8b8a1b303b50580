"""What repeated text costs is measured for every choice, beside another version."""

import importlib
import sys

import pytest
from paths import ROOT

repeated_text = importlib.import_module("repeated_text")


@pytest.mark.slow
def test_the_tables(tmp_path, capsys, monkeypatch):
    text = ROOT / "sample_corpus" / "heldout.txt"
    flags = (
        f"--input_file={text}", f"--tokenizer_dir={ROOT}/reference_model", f"--baseline={ROOT}",
        "--repeats=1", "--dupe_factor=1", "--workers=1", f"--work_dir={tmp_path}",
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["repeated_text.py", *flags])
    repeated_text.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines if line.startswith("| ")] == [
        "| `--drop_duplicates`", "| without counting", "| none", "| documents", "| lines",
        "| killed at", "| 1 of 1 files of hashes; 1 of 1 files of chunk; 1 of 1 files of chunk",
    ]  # fmt: skip
    assert lines[-2].endswith("| equal |")


def test_texts_are_joined(tmp_path):
    import gzip

    (tmp_path / "a.txt").write_text("가\n\n나\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("다".encode()))
    target = tmp_path / "joined"
    size = repeated_text.join_texts(f"{tmp_path}/a.txt,{tmp_path}/*.gz", target)
    assert target.read_text() == "가\n\n나\n\n\n다\n\n" and size == target.stat().st_size
