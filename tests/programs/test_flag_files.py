"""Flag files: what counts in them; where they, and the files that they name, are looked for."""

import dataclasses

import pytest

from run_scripts.flags.declaration import PerModel, flag, resolve_model_defaults
from run_scripts.flags.flag_files import SHIPPED, find_input
from run_scripts.flags.parser import parse
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import given_config
from tests.support.paths import ROOT, run_python
from tests.support.refusals import refused


@dataclasses.dataclass(frozen=True)
class Flags:
    """Copies files."""

    source: str = flag(None, "What to copy.", is_input=True)
    target: str = flag(None, "Where to.")
    times: int = flag(1, "How often.", least=1, most=9)
    force: bool = flag(PerModel(False, {"albert": True}), "Whether files are replaced.")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder, with a folder of jobs beside it."""
    for name in ("here", "jobs"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(*arguments):
    return parse(Flags, ["copy", *arguments])


def test_an_input_lies_in_the_working_folder_or_beside_the_flag_file(here):
    job = write(here.parent / "jobs" / "a.flags", "--source=data/a.txt\n--target=data/a.txt\n")
    assert read(f"--flagfile={job}") == Flags("data/a.txt", "data/a.txt")  # nowhere: as it was
    beside = write(job.parent / "data" / "a.txt")
    # What is written stays in the working folder.
    assert read(f"--flagfile={job}") == Flags(str(beside), "data/a.txt")
    write(here / "data" / "a.txt")
    assert read(f"--flagfile={job}") == Flags("data/a.txt", "data/a.txt")
    assert read("--flagfile=../jobs/a.flags", "--source=b").source == "b"


def test_lists_globs_checkpoints_and_whole_paths(here):
    jobs = here.parent / "new jobs"
    for name in ("a-1.txt", "a-2.txt", "deep/er/c.txt", "odd,1.txt", "m.ckpt-3.index", "o,[n].txt"):
        write(jobs / name)
    write(here / "b.txt")
    write(here / "o,[n].txt")
    job = jobs / "a.flags"
    # In a flag file -> what the flag is, the files that it names.
    for written, found, files in (
        ("a-*.txt", f"{jobs}/a-*.txt", ["a-1.txt", "a-2.txt"]),
        ("b.txt, a-*.txt,none", f"b.txt,{jobs}/a-*.txt,none", None),
        ("m.ckpt-3", f"{jobs}/m.ckpt-3", None),
        (f"{jobs}/none", f"{jobs}/none", None),
        ("o,[n].txt", "o,[n].txt", None),
        ("", "", None),
        ("a-*.txt,odd\\,1.txt", None, ["a-1.txt", "a-2.txt", "odd,1.txt"]),
        ("odd\\,*.txt", None, ["odd,1.txt"]),
        ("odd\\,1.txt", None, ["odd,1.txt"]),
        ("**/c.txt", None, ["deep/er/c.txt"]),
    ):
        job.write_text(f"--source={written}\n")
        source = read(f"--flagfile={job}").source
        assert found is None or source == found
        if files:
            assert expand_globs(source, "source") == [str(jobs / name) for name in files]


def test_a_command_line_finds_what_is_shipped_from_anywhere(here):
    shipped = str(SHIPPED / "bert_mini.json")
    for name in ("bert_mini.json", "run_scripts/flagfiles/bert_mini.json"):
        assert read(f"--source={name}").source == read("--source", name).source == shipped
        assert read(f"--target={name}").target == name
    write(here / "bert_mini.json")
    assert read("--source=bert_mini.json").source == "bert_mini.json"
    # Neither other files of the project nor others where it is installed.
    for name in ("run_scripts/flags/parser.py", "run_scripts/flagfiles/../pretrain.py", "setup.py"):
        assert find_input(name) == name
    for folder in ("", "run_scripts/flagfiles/"):
        values = parse(PretrainFlags, ["run", f"--flagfile={folder}albert_base_pretrain.flags"])
        assert given_config(values).config_with(32000).vocab_size == 32000
        assert values.output_dir == "output/albert_base"


def test_which_value_counts(here):
    """The last, and before all files what the command line says itself, wherever it stands."""
    text = "# a comment\n// another\n\n--times=4\n  --target=b\n--noforce\n"
    file, other = write(here / "a.flags", text), write(here / "b.flags", "\ufeff--times=7\r\n")
    for written in ([f"--flagfile={file}"], ["--flagfile", str(file)]):
        assert read(*written) == Flags(None, "b", 4, False)
        assert resolve_model_defaults(read(*written), "albert").force is False  # given, by the file
    assert read(f"--flagfile={file}", "--times=5").times == 5
    assert read("--times", "5", "--force", f"--flagfile={file}") == Flags(None, "b", 5, True)
    assert read(f"--flagfile={file}", f"--flagfile={other}") == Flags(None, "b", 7, False)
    shared = write(here.parent / "jobs" / "shared.flags", "--times=3\n--source=a.txt\n")
    write(shared.parent / "a.txt")
    outer = write(shared.parent / "outer.flags", "--times=2\n--flagfile=shared.flags\n")
    assert read(f"--flagfile={outer}") == Flags(f"{shared.parent}/a.txt", None, 2)  # its own line


@pytest.mark.parametrize(
    "arguments, message",
    (
        ("--flagfile=none.flags", "'none.flags', which is neither in the working folder"),
        ("--flagfile", "--flagfile must be given with a value"),
        ("--source", "--source must be given with a value"),
        ("--flagfile=circle.flags", "must not name itself. Received: circle.flags"),
        ("--flagfile=bytes.flags", "must be UTF-8. Received: bytes.flags"),
        ("--flagfile=.", "must be readable. Received: "),
        ("--flagfile=unknown.flags", "'tims'"),
        ("--flagfile=words.flags", "'times 3'"),
    ),
)
def test_bad_flag_files_are_one_line(here, arguments, message):
    write(here / "circle.flags", "--times=2\n--flagfile=circle.flags\n")
    (here / "bytes.flags").write_bytes(b"--source=\xc7\xd1\n")
    write(here / "unknown.flags", "--tims=3\n")
    write(here / "words.flags", "times 3\n")
    with refused(message):
        read(arguments)


def test_a_launcher_runs_from_any_folder(tmp_path):
    """The whole program: what is missing in the end is the reader's own."""
    program = ROOT / "create_pretraining_data.py"
    run = run_python(program, "--flagfile=bert_mini_data.flags", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr == (
        "error: --tokenizer_dir must be a folder. Received: data/vocab, nothing there\n"
    )
