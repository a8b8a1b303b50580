"""Flag files: where they, and the files that they name, are looked for."""

import dataclasses

import pytest

from bert_common.errors import InputError
from run_scripts.flags.declaration import flag
from run_scripts.flags.flag_files import SHIPPED, find_input
from run_scripts.flags.parser import parse
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import given_config
from tests.support.paths import ROOT, run_python


@dataclasses.dataclass(frozen=True)
class Flags:
    """Copies files."""

    source: str = flag(None, "What to copy.", is_input=True)
    target: str = flag(None, "Where to.")
    times: int = flag(1, "How often.", least=1, most=9)


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


def refusal(*arguments):
    with pytest.raises(InputError) as caught:
        read(*arguments)
    assert "Received: " in str(caught.value)
    return str(caught.value)


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
    jobs = here.parent / "jobs"
    write(jobs / "a-1.txt")
    write(jobs / "model.ckpt-3.index")
    write(here / "b.txt")
    write(jobs / "odd,[name].txt")
    job = jobs / "a.flags"
    for written, found in {
        "a-*.txt": f"{jobs}/a-*.txt",
        "b.txt, a-*.txt,none": f"b.txt,{jobs}/a-*.txt,none",
        "model.ckpt-3": f"{jobs}/model.ckpt-3",
        f"{jobs}/none": f"{jobs}/none",
        "": "",
    }.items():
        job.write_text(f"--source={written}\n")
        assert read(f"--flagfile={job}").source == found
    write(here / "odd,[name].txt")
    job.write_text("-source=odd,[name].txt\n")
    assert read("--flagfile", str(job)).source == "odd,[name].txt"


def test_globs_beside_a_flag_file(here):
    folder = here.parent / "new jobs"
    for name in ("a-1.txt", "a-2.txt", "deep/er/b.txt", "odd,1.txt"):
        write(folder / name)
    job = folder / "a.flags"
    for written, found in {
        "a-*.txt": ["a-1.txt", "a-2.txt"],
        "a-*.txt,odd\\,1.txt": ["a-1.txt", "a-2.txt", "odd,1.txt"],
        "odd\\,*.txt": ["odd,1.txt"],
        "odd\\,1.txt": ["odd,1.txt"],
        "**/b.txt": ["deep/er/b.txt"],
    }.items():
        job.write_text(f"--source={written}\n")
        source = read(f"--flagfile={job}").source
        assert expand_globs(source, "source") == [str(folder / name) for name in found]


def test_a_command_line_finds_what_is_shipped_from_anywhere(here):
    shipped = str(SHIPPED / "bert_mini.json")
    for name in ("bert_mini.json", "run_scripts/flagfiles/bert_mini.json"):
        assert read(f"--source={name}").source == read("--source", name).source == shipped
        assert read(f"--target={name}").target == name
    write(here / "bert_mini.json")
    assert read("--source=bert_mini.json").source == "bert_mini.json"
    # Neither other files of the project nor others where it is installed.
    for name in (
        "pretrain.py",
        "run_scripts/flags/parser.py",
        "run_scripts/flagfiles/../pretrain.py",
        "setup.py",
    ):
        assert find_input(name) == name


@pytest.mark.parametrize("name", ("bert_mini", "albert_base"))
def test_a_shipped_job_from_any_folder(here, name):
    for folder in ("", "run_scripts/flagfiles/"):
        argv = ["run", f"--flagfile={folder}{name}_pretrain.flags"]
        values = parse(PretrainFlags, argv)
        assert given_config(values).config_with(32000).vocab_size == 32000
        assert values.output_dir == f"output/{name}"


def test_a_flag_file_names_one_beside_it(here):
    jobs = here.parent / "jobs"
    write(jobs / "shared.flags", "--times=3\n--source=a.txt\n")
    write(jobs / "a.txt")
    outer = write(jobs / "outer.flags", "--times=2\n--flagfile=shared.flags\n")
    assert read(f"--flagfile={outer}") == Flags(f"{jobs}/a.txt", None, 2)  # its own line counts


def test_bad_flag_files_are_one_line(here):
    nowhere = refusal("--flagfile=none.flags")
    assert "'none.flags', which is neither in the working folder" in nowhere
    assert "--flagfile must be given with a value" in refusal("--flagfile")
    assert "--source must be given with a value" in refusal("--source")
    circle = write(here / "circle.flags", "--times=2\n--flagfile=circle.flags\n")
    assert f"must not name itself. Received: {circle.name}" in refusal(f"--flagfile={circle.name}")
    (here / "bytes.flags").write_bytes(b"--source=\xc7\xd1\n")
    assert "must be UTF-8. Received: bytes.flags" in refusal("--flagfile=bytes.flags")
    assert "must be readable. Received: " in refusal(f"--flagfile={here}")
    write(here / "empty.flags")
    write(here / "marked.flags", "\ufeff--times=4\r\n")
    assert read("--flagfile=empty.flags", "--flagfile=marked.flags").times == 4


def test_a_launcher_runs_from_any_folder(tmp_path):
    """The whole program: what is missing in the end is the reader's own."""
    program = ROOT / "create_pretraining_data.py"
    run = run_python(program, "--flagfile=bert_mini_data.flags", cwd=tmp_path)
    assert run.returncode == 1 and run.stderr == (
        "error: --tokenizer_dir must be a folder. Received: data/vocab, nothing there\n"
    )
