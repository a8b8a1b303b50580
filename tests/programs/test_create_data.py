"""create_pretraining_data makes records, or reports in one line what is wrong."""

import json
import re

import pytest
import tensorflow as tf

from create_pretraining_data.records.reader import read_format
from create_pretraining_data.records.record_format import RecordFormat
from run_scripts.create_data import main
from tests.support.paths import run_python
from tests.support.vocabularies import SPECIAL, write_tokenizer

SENTENCES = [
    "아침 일찍 일어나 강가를 걸었다.",
    "물안개가 천천히 걷히고 있었다.",
    "오리 두 마리가 물 위를 지나갔다.",
    "나는 돌 위에 앉아 커피를 마셨다.",
    "멀리서 기차 소리가 들려왔다.",
]


@pytest.fixture
def folder(tmp_path):
    """A corpus with its vocabulary: syllables, at a word's start and within."""
    documents = [SENTENCES[i:] + SENTENCES[:i] for i in range(5)] * 2
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(d) for d in documents) + "\n")
    syllables = sorted(set("".join(SENTENCES)) - {" "})
    pieces = SPECIAL + syllables + [f"##{syllable}" for syllable in syllables]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    return tmp_path


def arguments(folder, *flags):
    """A command line that works; flags given here replace those of the same name."""
    defaults = {
        "input_file": folder / "text.txt", "output_file": folder / "out.tfrecord",
        "vocab_file": folder / "vocab.txt", "tokenizer": "korean", "max_seq_length": 40,
        "dupe_factor": 2, "max_predictions_per_seq": 6,
    }  # fmt: skip
    names = {flag.lstrip("-").split("=")[0] for flag in flags}
    kept = [f"--{name}={value}" for name, value in defaults.items() if name not in names]
    return ["create_pretraining_data.py", *kept, *(flag for flag in flags if flag[-1] != "=")]


def run(folder, *flags):
    assert main(arguments(folder, *flags)) == 0
    return folder / "out.tfrecord"


def records(path):
    found = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    return [tf.train.Example.FromString(record).features.feature for record in found]


@pytest.mark.parametrize(
    ("flags", "first_line", "token_boundary"),
    [
        ([], "objective: nsp, defaults: BERT's, because neither", False),
        (["--objective=nsp"], "objective: nsp, defaults: BERT's, because of --obj.*=nsp", False),
        (["--objective=sop"], "objective: sop, defaults: ALBERT's, because of --obj.*=sop", True),
        (["--objective=none"], "objective: none, defaults: BERT's, because of", False),
        (["--ngram=2"], "objective: sop, defaults: ALBERT's, because a flag .*--ngram", True),
        (["--favor_shorter_ngram"], "objective: sop, .*--favor_shorter_ngram", True),
        (["--input_file_mode=r"], "objective: sop, .*--input_file_mode", True),
        (["--nodo_permutation"], "objective: sop, .*--do_permutation", True),
        (["--random_next_sentence"], "objective: nsp, defaults: ALBERT's, because of --rand", True),
        (["--norandom_next_sentence"], "objective: sop, .*--random_next_sentence", True),
        (["--objective=nsp", "--ngram=2"], "objective: nsp, defaults: BERT's", False),
        (["--do_permutation"], "objective: sop, .*--do_permutation", True),
    ],
)
def test_the_first_line_says_objective_and_defaults(
    folder, capsys, flags, first_line, token_boundary
):
    path = run(folder, *flags)
    lines = capsys.readouterr().out.splitlines()
    assert re.match(first_line, lines[0]), lines[0]
    objective = lines[0].split()[1].rstrip(",")
    places = 12 if "--do_permutation" in flags else 6
    assert read_format(str(path)) == RecordFormat(40, places, objective != "none", token_boundary)
    labels = {tuple(f["next_sentence_labels"].int64_list.value) for f in records(path)}
    assert labels == ({()} if objective == "none" else {(0,), (1,)})


def test_the_summary(folder, capsys):
    (folder / "text.txt").write_text((folder / "text.txt").read_text() + "\n\n커피\n\n커피 뷁\n")
    path = run(folder, "--dupe_factor=4", "--random_seed=3")
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert re.match(r"text: [\d.]+ kB in 1 chunk, 1 worker, records: about .* in 1 file$", lines[1])
    summary, rows, text = lines[2:5]
    count = len(records(path))
    labels = [f["next_sentence_labels"].int64_list.value[0] for f in records(path)]
    assert summary == (
        f"12 documents (1 of one word left out), 52 sentences, {count:,} examples, "
        f"label 1: {sum(labels) / count:.1%}"
    )
    assert rows.startswith("mean length ")
    assert "of 40, 0.0% of the tokens in no row, [UNK] 0." in rows
    assert text.startswith("41.7% of the documents and ") and "repeat earlier ones, " in text
    assert text.endswith("examples/s")
    assert lines[5] == f"written: {path}"
    assert all("repeat earlier ones" in line for line in output.err.splitlines())


def test_the_same_seed_writes_the_same_bytes(folder):
    """In another process, which has another hash seed."""
    first = run(folder, "--objective=sop").read_bytes()
    assert run(folder, "--objective=sop", "--random_seed=1").read_bytes() != first
    run_python(*arguments(folder, "--objective=sop"), check=True)
    assert (folder / "out.tfrecord").read_bytes() == first


def test_several_inputs_and_outputs(folder, capsys):
    text = (folder / "text.txt").read_text()
    for name in ("part1.txt", "part2.txt"):
        (folder / name).write_text(text)
    outputs = [folder / "deep" / "er" / f"{name}.tfrecord" for name in "ab"]
    inputs = f"--input_file={folder}/part*.txt, {folder}/text.txt"
    run(folder, inputs, f"--output_file={outputs[0]},{outputs[1]}")
    counts = [len(records(path)) for path in outputs]
    assert abs(counts[0] - counts[1]) <= 1
    assert "30 documents" in capsys.readouterr().out


def test_without_output_file_the_records_lie_beside_the_text(folder):
    assert main(arguments(folder, "--output_file=")) == 0
    assert read_format(str(folder / "text.txt.tfrecord")).max_seq_length == 40


def test_a_tokenizer_folder(folder, capsys):
    pieces = (folder / "vocab.txt").read_text().splitlines()
    tokenizer = write_tokenizer(folder / "tokenizer", pieces, do_lower_case=False)
    by_folder = [f"--tokenizer_dir={tokenizer}", "--vocab_file=", "--tokenizer="]
    expected = run(folder).read_bytes()
    for flags in ([], ["--nodo_lower_case"]):
        assert run(folder, *by_folder, *flags).read_bytes() == expected
    refuses(capsys, folder, "--do_lower_case=True, ", flags=[*by_folder, "--do_lower_case"])


def refuses(capsys, folder, *words, flags=()):
    """The program fails with one line beside warnings, which holds the words."""
    capsys.readouterr()
    assert main(arguments(folder, *flags)) == 1
    lines = capsys.readouterr().err.splitlines()
    (line,) = (line for line in lines if not line.startswith("warning: "))
    assert line.startswith("error: ") and all(word in line for word in words), line


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--input_file=nothing*.txt"], ["--input_file must match a file", "'nothing*.txt'"]),
        (["--vocab_file="], ["one of --vocab_file, --spm_model_file, --tokenizer_dir"]),
        (["--objective=sop", "--random_next_sentence"], ["=sop", "--random_next_sentence=true"]),
        (["--objective=nsp", "--norandom_next_sentence"], ["=nsp", "--random_next_sentence=false"]),
        (["--objective=none", "--random_next_sentence"], ["--objective=none"]),
        (["--tokenizer=sentencepiece"], ["--tokenizer=sentencepiece", "--vocab_file="]),
        ([f"--spm_model_file={__file__}"], ["--spm_model_file=", "--tokenizer=korean"]),
        (["--tokenizer_dir=."], ["--tokenizer_dir=.", "--vocab_file="]),
        (["--tokenizer_dir=.", "--vocab_file="], ["--tokenizer_dir=.", "--tokenizer=korean"]),
        (["--output_file=a.tfrecord,b.tfrecord,a.tfrecord"], ["a.tfrecord twice"]),
        (["--output_file=a.tfrecord,b.tfrecord,./a.tfrecord"], ["a.tfrecord twice"]),
        (["--output_file=/"], ["/, a folder"]),
        (["--output_file=/proc/new/"], ["plain files", "/proc/new/, a folder"]),
        (["--output_file=/dev/null/a.tfrecord"], ["a folder that can be created", "/dev/null"]),
        (["--output_file=/proc/a.tfrecord"], ["created and written to", "/proc"]),
        (["--output_file=,"], ["--output_file must name a file", "','"]),
    ],
)
def test_bad_flags_are_one_line(folder, capsys, flags, parts):
    refuses(capsys, folder, *parts, flags=flags)
    assert not (folder / "out.tfrecord").exists()


def test_a_model_too_small_for_the_records_is_told_before_the_work(folder, capsys):
    model = folder / "model"
    model.mkdir()
    (model / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes())
    for sizes, told in (
        ({"vocab_size": 200, "max_position_embeddings": 40}, []),
        ({"vocab_size": 200, "max_position_embeddings": 39}, ["40 positions", "has 39"]),
        ({"vocab_size": 20, "max_position_embeddings": 40}, ["tokens, the", "has 20"]),
    ):
        (model / "bert_config.json").write_text(json.dumps(sizes))
        run(folder, f"--model_dir={model}", "--tokenizer=korean", f"--vocab_file={model}/vocab.txt")
        lines = capsys.readouterr().err.splitlines()
        warned = [line for line in lines if "the model in --model_dir has" in line]
        assert len(warned) == bool(told) and all(part in warned[0] for part in told), lines


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (b"", ["text.txt", "0 bytes", "no sentence"]),
        ("été\n".encode("latin-1"), ["text.txt, line 1", "must be UTF-8"]),
        ("커피\n\n기차\n".encode(), ["2 documents of one word"]),
    ],
)
def test_bad_text_is_one_line(folder, capsys, text, parts):
    (folder / "text.txt").write_bytes(text)
    refuses(capsys, folder, *parts)


def test_bad_vocabularies_are_one_line(folder, capsys):
    for tokenizer in ("full", "korean"):
        for content in ("[PAD]\n[UNK]\n[CLS]\n[MASK]\n가\n", ""):
            (folder / "vocab.txt").write_text(content)
            refuses(capsys, folder, "vocab.txt", flags=[f"--tokenizer={tokenizer}"])


@pytest.mark.parametrize("name", ("./text.txt", "vocab.txt"))
def test_what_is_read_is_never_overwritten(folder, capsys, name):
    before = (folder / name).read_bytes()
    output = f"--output_file={folder}/{name}"
    refuses(capsys, folder, "must not be a file that is read", flags=[output])
    assert (folder / name).read_bytes() == before


def test_a_link_stays_a_link(folder):
    (folder / "elsewhere").mkdir()
    (folder / "link.tfrecord").symlink_to(folder / "elsewhere" / "real.tfrecord")
    run(folder, f"--output_file={folder}/link.tfrecord")
    assert (folder / "link.tfrecord").is_symlink()
    assert (folder / "elsewhere" / "real.tfrecord").stat().st_size > 0


def test_more_files_than_examples_are_refused(folder, capsys):
    (folder / "text.txt").write_text("\n".join(SENTENCES[:2]) + "\n")
    files = ",".join(str(folder / f"{i}.tfrecord") for i in range(9))
    flags = [f"--output_file={files}", "--dupe_factor=1", "--objective=sop"]
    refuses(capsys, folder, "1 examples, 9 files", flags=flags)


def test_warnings(folder, capsys):
    (folder / "text.txt").write_text("\n\n".join(SENTENCES) + "\n")
    run(folder, "--max_predictions_per_seq=3")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "--max_predictions_per_seq=6 would do" in lines[0]
    assert "every one of the 5 documents has a single sentence" in lines[1]
    (folder / "text.txt").write_text("\n".join(SENTENCES) + "\n")
    run(folder)
    assert "the whole input is one document" in capsys.readouterr().err


def test_a_flag_that_chose_the_defaults_is_not_called_meaningless(folder, capsys):
    run(folder, "--input_file_mode=rb", "--parallel")
    note, first, *_ = capsys.readouterr().out.splitlines()
    assert note == "note: --parallel: without effect here"
    assert "defaults: ALBERT's, because a flag of ALBERT's is given (--input_file_mode)" in first


def test_help_and_bad_input_come_without_tensorflow(folder):
    program = "import sys; from run_scripts.create_data import main\n"
    bad = arguments(folder, "--vocab_file=gone.txt")[1:]
    empty = folder / "empty.txt"
    empty.touch()
    bad_text = arguments(folder, f"--input_file={empty}")[1:]
    for flags in (["--help"], bad, bad_text):
        program += f"print('status', main({['x', *flags]}), 'tensorflow' in sys.modules)\n"
    done = run_python("-c", program)
    lines = [line for line in done.stdout.splitlines() if line.startswith("status ")]
    assert lines == [f"status {status} False" for status in (0, 1, 1)]
    for name in ("objective", "max_seq_length", "random_next_sentence", "tokenizer_dir"):
        assert f"  --{name}=" in done.stdout
