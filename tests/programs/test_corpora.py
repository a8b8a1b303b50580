"""What --input_file of a corpus may name: files, globs, folders, saved data sets."""

import functools
import json
import os

import pytest

from bert_common.errors import InputError
from run_scripts.build_vocab import main as build_vocab
from run_scripts.flags.corpora import find_texts
from run_scripts.flags.create_data import choose_output_files
from run_scripts.flags.paths import expand_globs
from tests.support.paths import run_python
from tests.support.refusals import refused


def fill(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("나는 학교에 갔다.\n")
    return folder


def found(folder, patterns):
    return [os.path.relpath(path, folder) for path in find_texts(patterns)]


def test_a_folder_is_all_texts_in_it(tmp_path, capsys):
    names = "b.txt", "a.jsonl", "c.TXT.gz", "more/z.ndjson", "more/deep/d.parquet", "e.arrow"
    others = "README.md", "more/x.json", "t.tfrecord"
    hidden = ".a.txt", ".git/b.txt", "vocab/vocab.txt", "vocab/tokenizer_config.json"
    fill(tmp_path, *names, *others, *hidden, "model/vocab.txt", "model/electra_config.json")
    (tmp_path / "more" / "loop").symlink_to(tmp_path)
    assert found(tmp_path, str(tmp_path)) == [
        "a.jsonl", "b.txt", "c.TXT.gz", "e.arrow", "more/deep/d.parquet", "more/z.ndjson",
    ]  # fmt: skip
    left_out = "README.md, model, more/loop, 3 more"
    assert capsys.readouterr().out == (f"{tmp_path}: 6 files of text; left out: {left_out}\n")


def test_a_vocabulary_beside_the_text_is_no_text(tmp_path, capsys):
    """build_vocab may have written its files to the folder of the text."""
    fill(tmp_path, "a.txt", "vocab.txt")
    assert found(tmp_path, str(tmp_path)) == ["a.txt", "vocab.txt"]
    fill(tmp_path, "tokenizer_config.json")
    assert found(tmp_path, str(tmp_path)) == ["a.txt"]
    assert "left out: tokenizer_config.json, vocab.txt" in capsys.readouterr().out


FINDERS = (find_texts, functools.partial(expand_globs, flag_name="input_file"))

NAMES = (
    "a,b.txt", "a[1].txt", "a1.txt", "b.txt", "*.txt", "d,e/1.txt", "x/y/2.txt", "x/y/z/3.md",
)  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "files"),
    (
        # A path that exists, whatever is in its name.
        ("{}/a,b.txt", ["a,b.txt"]),
        ("{}/a[1].txt", ["a[1].txt"]),
        ("{}/*.txt", ["*.txt"]),
        # A list, in its order, of paths and globs; a comma in a name is written \,.
        (r"{0}/b.txt,{0}/a\,b.txt", ["b.txt", "a,b.txt"]),
        ("{0}/a[1].txt, {0}/a1.txt,", ["a[1].txt", "a1.txt"]),
        ("{0}/b.txt,{0}/?1.*", ["b.txt", "a1.txt"]),
        (r"{}/d\,e/*", ["d,e/1.txt"]),
        ("{}/**/[2-3].*", ["x/y/2.txt", "x/y/z/3.md"]),
    ),
)
def test_paths_and_globs(tmp_path, patterns, files):
    fill(tmp_path, *NAMES)
    for find in FINDERS:
        assert find(patterns.format(tmp_path)) == [f"{tmp_path}/{name}" for name in files]


@pytest.mark.parametrize(
    ("patterns", "message"),
    (
        ("{}/*.csv", "must match a file. Received: .*csv', no file"),
        (
            "{0}/b.txt,{0}/a,b.txt",
            r"must match a file \(a comma in a name is written \\,\). Received",
        ),
        (",", "must name a file. Received: "),
        ("", "must name a file. Received: "),
        ("{}/pipe", r"must .* read more than once: write .*'.*pipe', a pipe"),
    ),
)
def test_paths_that_match_no_file(tmp_path, patterns, message):
    fill(tmp_path, *NAMES)
    os.mkfifo(tmp_path / "pipe")
    for find in FINDERS:
        with pytest.raises(InputError, match=f"--input_file {message}"):
            find(patterns.format(tmp_path))
    with pytest.raises(InputError, match=r"not their folder: .*/\* names all .*, a folder"):
        expand_globs(str(tmp_path), "input_file")


def test_a_comma_in_the_name_of_a_file_to_write(tmp_path):
    assert choose_output_files(rf"{tmp_path}/a\,b,{tmp_path}/o@2", [], []) == [
        f"{tmp_path}/{name}" for name in ("a,b", "o-00000-of-00002", "o-00001-of-00002")
    ]


def test_globs_name_files_and_folders_where_there_is_no_file(tmp_path, capsys):
    fill(tmp_path, "a.txt", "x/b.txt", "y/c.txt", "y/d.md")
    assert found(tmp_path, f"{tmp_path}/*") == ["a.txt"]
    left_out = f"{tmp_path}/x, {tmp_path}/y"
    assert capsys.readouterr().out == f"{tmp_path}/*: files only; left out: {left_out}\n"
    assert found(tmp_path, f"{tmp_path}/[xy]") == ["x/b.txt", "y/c.txt"]
    fill(tmp_path, "y/z/e.txt")
    capsys.readouterr()
    assert found(tmp_path, f"{tmp_path}/**/*.txt") == ["a.txt", "x/b.txt", "y/c.txt", "y/z/e.txt"]
    assert capsys.readouterr().out == ""
    assert found(tmp_path, f"{tmp_path}/y/*,{tmp_path}/x") == ["y/c.txt", "y/d.md", "x/b.txt"]


def test_a_folder_without_texts_is_refused(tmp_path):
    fill(tmp_path, "a.pdf", ".b.txt")
    with refused("end in .txt, ", ", a folder without one"):
        find_texts(str(tmp_path))


def saved(folder):
    fill(folder, "a.arrow", "b.arrow", "dataset_info.json", "cache-1.arrow")
    files = [{"filename": name} for name in ("b.arrow", "a.arrow")]
    (folder / "state.json").write_text(json.dumps({"_data_files": files}))


def test_a_saved_data_set_is_its_files_in_their_order(tmp_path):
    saved(tmp_path)
    assert found(tmp_path, str(tmp_path)) == ["b.arrow", "a.arrow"]
    (tmp_path / "a.arrow").unlink()
    with refused("state.json must name ", "a.arrow, which is missing"):
        find_texts(str(tmp_path))
    for state in ("{}", "[]", '{"_data_files": []}', '{"_data_files": [1]}'):
        (tmp_path / "state.json").write_text(state)
        with refused("must name the data set's files. Received: none"):
            find_texts(str(tmp_path))


def test_of_several_splits_train_is_read(tmp_path, capsys):
    for name in ("test", "train"):
        saved(tmp_path / name)
    splits = tmp_path / "dataset_dict.json"
    splits.write_text('{"splits": ["test", "train"]}')
    assert found(tmp_path, str(tmp_path)) == ["train/b.arrow", "train/a.arrow"]
    assert "of the splits test, train, train is read\n" in capsys.readouterr().out
    assert found(tmp_path, f"{tmp_path}/test") == ["test/b.arrow", "test/a.arrow"]
    splits.write_text('{"splits": ["test"]}')
    assert found(tmp_path, str(tmp_path)) == ["test/b.arrow", "test/a.arrow"]
    for content, message in (
        ('{"splits": ["dev"]}', "must name folders beside it. Received: dev, which is"),
        ('{"splits": ["test", "dev"]}', "a split named train; .*Received: test, dev"),
        ("{", "must hold JSON"),
        ("[1]", "a list of splits. Received: None"),
    ):
        splits.write_text(content)
        with pytest.raises(InputError, match=message):
            find_texts(str(tmp_path))


PROGRAM = """
from run_scripts.flags.corpora import find_texts
print(*find_texts("/dev/stdin"))
"""


def test_what_the_shell_opens(tmp_path):
    """A pipe cannot be read twice; a file can, under its own name."""
    fill(tmp_path, "a.txt")
    with open(tmp_path / "a.txt") as file:
        done = run_python("-c", PROGRAM, stdin=file)
    assert done.stdout == f"{tmp_path}/a.txt\n"
    done = run_python("-c", PROGRAM, input="가")
    assert done.returncode == 1 and "'/dev/stdin', a pipe" in done.stderr


def learn(path, *flags):
    """The exit status of build_vocab on a text."""
    given = f"--input_file={path}", f"--output_dir={path}.vocab", "--analyser=none"
    return build_vocab(["x", *given, "--vocab_size=600", *flags])


def test_json_lines_are_known_by_their_name_and_key(tmp_path):
    """The same vocabulary as of the text, without --input_format; quotes are no pieces."""
    sentences = ["나는 학교에 갔다.", "비가 온다."] * 9
    (tmp_path / "a.txt").write_text("\n".join(sentences))
    lines = [json.dumps({"id": "q", "meta": {"body": s}}) + "\n" for s in sentences]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    assert learn(tmp_path / "a.txt") == learn(tmp_path / "a.jsonl", "--text_key=meta.body") == 0
    one, two = (tmp_path / f"a.{form}.vocab" / "vocab.txt" for form in ("txt", "jsonl"))
    assert one.read_bytes() == two.read_bytes()


def test_keys_that_are_refused(tmp_path, fails):
    path, as_text = tmp_path / "a.jsonl", tmp_path / "a.txt"
    for each in (path, as_text):
        each.write_text('{"id": 1, "body": "가 나 다"}\n')
    for key, received in (
        ("text", "none; the keys are 'id', 'body'"),
        ("body.x", "str before 'x'"),
        ("id", "int"),
    ):
        said = 'a JSON object with "' + key + '", a string (--text_key'
        fails(lambda key=key: learn(path, f"--text_key={key}"), said, received)
    # The quotes and braces of JSON lines in a .txt file would be learned as text.
    words = "--input_format=jsonl", f"{as_text} read as lines of text"
    fails(lambda: learn(as_text, "--text_key=body"), *words)
    assert learn(as_text, "--text_key=body", "--input_format=jsonl") == 0
