"""The program build_vocab: learns, compares, refuses bad input in one line."""

import gzip
import json
import shutil
import sys

import pytest

from create_pretraining_data.engine.plain_lines import open_texts
from run_scripts import build_vocab
from run_scripts.build_vocab import SENTENCES, main
from tests.support.paths import ROOT
from tokenization import load_tokenizer

CORPUS = ROOT / "sample_corpus" / "train.txt"
SAMPLE = ROOT / "tests" / "data" / "sample_tokenizer"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(CORPUS.read_text(encoding="utf-8")[:8000], encoding="utf-8")
    return path


def run(*arguments):
    return main(["build_vocab.py", *map(str, arguments)])


def learn(corpus, folder, *arguments):
    return run(
        f"--input_file={corpus}", f"--output_dir={folder}", "--vocab_size=2000",
        "--analyser=none", *arguments,
    )  # fmt: skip


def test_learns_a_tokenizer(corpus, tmp_path, capsys):
    folder = tmp_path / "new" / "vocab"
    assert learn(corpus, folder, "--num_unused=2", "--user_symbols=뷁뷁, ##읿") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[-1] == f"written: {folder}"
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines[4:9] == ["[MASK]", "[unused0]", "[unused1]", "뷁뷁", "##읿"]
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["user_symbols"] == ["뷁뷁", "##읿"]
    assert f"{report['vocabulary']['lines']:,} tokens" in out
    assert load_tokenizer(folder).vocab_size == len(lines)


def test_a_second_run_writes_the_same_bytes_over_the_first(corpus, tmp_path):
    folder = tmp_path / "vocab"
    assert learn(corpus, folder) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "vocab.txt").write_text("something else")
    assert learn(corpus, folder, "--overwrite") == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("flags", [(), ("--strict_utf8",)])
@pytest.mark.parametrize("line", ["학교에서 공부했다.", '{"text": "학교에서 공부했다."}'])
def test_text_that_is_not_utf8_is_refused(tmp_path, capsys, line, flags):
    path = tmp_path / ("text.jsonl" if line.startswith("{") else "text.txt")
    good = f"{line}\n".encode()
    path.write_bytes(good * 30 + good.replace("공".encode(), b"\xff\xea\xb0"))
    assert learn(path, tmp_path / "out", *flags) == 1
    assert capsys.readouterr().err.startswith(f"error: {path}, line 31: the text must be UTF-8")
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_says_when_the_text_has_fewer_pieces(corpus, tmp_path, capsys):
    assert learn(corpus, tmp_path / "out", "--vocab_size=30000") == 0
    assert "(of 30,000: the text has no more)" in capsys.readouterr().out


def test_says_when_fewer_pieces_would_do(corpus, tmp_path, capsys, monkeypatch):
    advice = "consider --vocab_size=16000 (docs/tokenizers.md)"
    for pieces, size, expected in (
        (32_000, 37_000_000, True), (16_001, 1_000_000, True),
        (16_000, 1_000_000, False), (32_000, 37_000_001, False),
    ):  # fmt: skip
        report = {"vocabulary": {"lines": pieces}, "text": {"bytes": size}}
        assert build_vocab.has_too_many_pieces(report) == expected
    assert learn(corpus, tmp_path / "out") == 0
    assert advice not in capsys.readouterr().out
    monkeypatch.setattr(build_vocab, "has_too_many_pieces", lambda report: True)
    assert learn(corpus, tmp_path / "other") == 0
    assert advice in capsys.readouterr().out


def test_the_size_of_text_is_that_of_what_is_read(tmp_path):
    """Learning takes an even share of a corpus that is larger than it needs."""
    plain = "나는 학교에 갔다.\n" * 99
    (tmp_path / "plain").write_text(plain, encoding="utf-8")
    (tmp_path / "gzip").write_bytes(gzip.compress(plain.encode()))
    (tmp_path / "json").write_text(json.dumps({"id": "q" * 99, "text": plain}))
    for name, input_format in (("plain", "text"), ("gzip", "text"), ("json", "jsonl")):
        (text,) = open_texts([str(tmp_path / name)], input_format)
        assert text.size == pytest.approx(len(plain.encode()), abs=1), name


def test_null_in_json_lines_is_left_out_and_counted(tmp_path, capsys):
    lines = [json.dumps({"text": text}) for text in (None, "나는 학교에\n갔다", None, "나는")]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (text,) = open_texts([str(tmp_path / "a.jsonl")])
    assert capsys.readouterr().out == f"{tmp_path}/a.jsonl: rows without a text, left out: 2\n"
    assert b"".join(text.read_lines()).decode().split() == ["나는", "학교에", "갔다", "나는"]
    assert text.size == len(b"".join(text.read_lines()))


DAMAGED = {
    "a.gz must be a complete gzip file": (
        "a.gz", "text", gzip.compress("가 나\n".encode() * 999)[:-9],
    ),
    "a.json, line 3: a line must be a JSON object": (
        "a.json", "jsonl", '{"text": "가"}\n\n{"title": "나"}\n'.encode(),
    ),
    "a.json, line 2: the text must be UTF-8": (
        "a.json", "jsonl", '{"text": "가"}\n{"text": "'.encode() + b"\xff",
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged_text_is_one_line(message, tmp_path, capsys):
    name, input_format, content = DAMAGED[message]
    (tmp_path / name).write_bytes(content)
    assert learn(tmp_path / name, tmp_path / "out", f"--input_format={input_format}") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: {tmp_path}/{message}") and err.count("\n") == 1
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_half_a_surrogate_pair_is_replaced(tmp_path):
    (tmp_path / "text").write_text('{"text": "학교에서 공부했다 \\ud83d"}\n' * 9)
    assert learn(tmp_path / "text", tmp_path / "out", "--input_format=jsonl") == 0
    assert "##교\n" in (tmp_path / "out" / "vocab.txt").read_text("utf-8")


BAD = {
    "--input_file must be given": [],
    "--output_dir must be given": ["--input_file={corpus}"],
    "--input_file must match a file": ["--input_file={folder}/none", "--output_dir={folder}"],
    "at least one word": ["--input_file={folder}/empty.txt", "--output_dir={folder}/out"],
    "vocab_size must be at least": [
        "--input_file={corpus}", "--output_dir={folder}/out", "--vocab_size=20",
    ],
    "num_unused must be at least 0": [
        "--input_file={corpus}", "--output_dir={folder}/out", "--num_unused=-1",
    ],
    "a folder that can be created": ["--input_file={corpus}", "--output_dir={corpus}/out"],
    "must not hold the text": ["--input_file={folder}/vocab.txt", "--output_dir={folder}"],
    "--compare must name a vocabulary": ["--compare=,"],
    "a vocabulary must be a folder": ["--compare={folder}"],
    "file must exist": ["--compare={folder}/none.txt"],
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line(message, corpus, tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "vocab.txt").write_text("가 나 다\n", encoding="utf-8")
    arguments = [argument.format(corpus=corpus, folder=tmp_path) for argument in BAD[message]]
    assert run("--analyser=none", *arguments) == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and message in err and "Received: " in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out" / "vocab.txt").exists()


def test_without_kiwi_the_other_learner_is_chosen_and_named(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arguments = [f"--input_file={corpus}", f"--output_dir={tmp_path / 'out'}"]
    assert run(*arguments, "--vocab_size=2000") == 0
    assert "analyser: none, because kiwipiepy is not installed" in capsys.readouterr().out
    assert run(*arguments, "--analyser=kiwi", "--overwrite") == 1
    assert "pip install -e '.[korean]'" in capsys.readouterr().err


def test_compares_side_by_side(capsys):
    assert run(f"--compare={SAMPLE},{SAMPLE / 'vocab.txt'}", "--text=나는 학교에 | 바다") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "나는 학교에" and lines[4] == "바다"
    assert lines[1].startswith("  sample_tokenizer (WordPiece, 2,758)")
    assert lines[2].startswith("  vocab.txt (WordPiece, 2,758)")
    count, *pieces = lines[1].split("2,758)")[1].split()
    assert int(count) == len(pieces)
    assert "".join(pieces).replace("##", "") == "나는학교에"


def test_compares_files_of_one_name(tmp_path, capsys):
    shutil.copytree(SAMPLE, tmp_path / "copy")
    paths = [str(folder / "vocab.txt") for folder in (SAMPLE, tmp_path / "copy")]
    assert run(f"--compare={','.join(paths)}", "--text=바다") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == paths


def test_has_default_sentences_to_compare(capsys):
    assert run(f"--compare={SAMPLE}") == 0
    out = capsys.readouterr().out
    assert all(sentence in out for sentence in SENTENCES)


def test_bytes_and_normalization(corpus, tmp_path, capsys):
    """Stored with the tokenizer; the default writes what it wrote before."""
    assert learn(corpus, tmp_path / "plain") == 0
    assert learn(corpus, tmp_path / "bytes", "--unknown=bytes", "--normalization=NFKC") == 0
    plain, made = (load_tokenizer(tmp_path / name) for name in ("plain", "bytes"))
    assert (plain.options.unknown, plain.options.normalization) == ("character", "NFC")
    assert (made.options.unknown, made.options.normalization) == ("bytes", "NFKC")
    config = json.loads((tmp_path / "plain" / "tokenizer_config.json").read_text())
    assert "normalization" not in config and config["unknown"] == "character"
    assert (
        made.decode(made.encode("ｋｏｒｅａ ① 👨\u200d👩\u200d👧")) == "korea 1 👨\u200d👩\u200d👧"
    )
    assert plain.unk_id in plain.encode("ｋｏｒｅａ")
    report = json.loads((tmp_path / "bytes" / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["unknown"] == "bytes" and report["without_a_piece"] < 0.01
    capsys.readouterr()
    assert run(f"--compare={tmp_path / 'bytes'}", "--text=책😀") == 0
    assert "##<0xF0> <0x9F>" in capsys.readouterr().out
    assert learn(corpus, tmp_path / "x", "--unknown=word") == 1
