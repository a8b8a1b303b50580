"""Lines longer than a row are split, and what is cut away is counted."""

import itertools
import json

import pytest

from create_pretraining_data.instances.long_lines import LineLimits, split_line
from run_scripts.create_data import main

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"가나다라마.?", "##가", "##나"]
PARAGRAPH = " ".join(["가 나 다 라. 마 가나 다?"] * 40)
NO_ENDS = " ".join(["가", "나나", "다"] * 100)


def run(folder, text, *flags, name="ko"):
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "text.txt").write_text(text)
    status = main([
        "create_pretraining_data.py",
        f"--input_file={folder}/text.txt",
        f"--output_file={folder}/{name}.tfrecord",
        f"--vocab_file={folder}/vocab.txt",
        "--tokenizer=korean",
        "--max_seq_length=32",
        "--max_predictions_per_seq=5",
        "--dupe_factor=2",
        "--num_workers=1",
        *flags,
    ])  # fmt: skip
    assert status == 0
    return json.loads((folder / f"{name}.json").read_text())


def cut(text):
    return [[word] for word in text.split()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("가 나. 다", ["가 나. 다"]),
        ("가 나 다 라. 마 바 사? 아", ["가 나 다 라.", "마 바 사?", "아"]),
        ('가 나 다 "라." 마 바 사', ['가 나 다 "라."', "마 바 사"]),
        ("가 나 3.14 다 라 마.바 사 아", ["가 나 3.14", "다 라 마.바", "사 아"]),
        ("가 나 다 라 마 바 사 아", ["가 나 다", "라 마 바", "사 아"]),
    ],
)
def test_where_lines_are_split(line, expected):
    parts = split_line(line, cut, LineLimits(6, 3))
    assert [" ".join(itertools.chain.from_iterable(part)) for part in parts] == expected


def test_a_word_longer_than_a_part_is_cut():
    parts = split_line("가", lambda _: [list("abcdefghi")], LineLimits(6, 4))
    assert parts == [[list("abcd")], [list("efgh")], [["i"]]]


@pytest.mark.parametrize("masking", ["static", "dynamic"])
@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("objective", ["none", "sop", "nsp"])
@pytest.mark.parametrize("line", [PARAGRAPH, NO_ENDS])
def test_little_is_cut_away(tmp_path, capsys, line, objective, packing, masking):
    flags = f"--objective={objective}", f"--packing={packing}", f"--masking={masking}"
    text = f"{line}\n\n{line}\n{line}\n"
    made = run(tmp_path, text, *flags)
    assert made["settings"]["--long_lines"] == "split"
    printed = capsys.readouterr()
    assert "of the pieces are in lines" not in printed.err and "cut away" in printed.out
    assert made["cut_share"] <= (0 if objective == "none" else 0.02)
    google = run(tmp_path, text, *flags, "--long_lines=truncate", name="google")
    assert google["cut_share"] > 0.7
    assert "--long_lines=split makes several sentences" in capsys.readouterr().err


@pytest.mark.parametrize("objective", ["none", "sop", "nsp"])
def test_without_long_lines_the_records_are_the_same(tmp_path, objective):
    text = "가 나. 다 라? 마 가나\n" * 30 + "\n" + "다 라. 마\n" * 20
    run(tmp_path, text, f"--objective={objective}")
    run(tmp_path, text, f"--objective={objective}", "--long_lines=truncate", name="google")
    first, second = (tmp_path / f"{name}.tfrecord" for name in ("ko", "google"))
    assert first.read_bytes() == second.read_bytes()
