"""Every number on a command line has bounds, and absurd input is one line of error."""

import dataclasses
import re
from pathlib import Path

import pytest

from bert_common.errors import InputError
from bert_common.json_text import read_json
from bert_tf.config import BertConfig
from create_pretraining_data.records.metadata import check_names, read_sidecar, sidecar_path
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.shard_names import expand_output_file
from finetuning.multiple_choice.data import read_choices
from finetuning.question_answering.data import has_answers, read_questions
from model_formats.model_folder import ModelFolder
from run_scripts.classifier import ClassifierFlags
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import PerModel, flag, value_type
from run_scripts.flags.finetune import check_finetune_flags, read_boundaries
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.parser import parse, run_program
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import PretrainFlags, read_bucket_boundaries
from tests.support.bad_inputs.bad_input_programs import FLAG_CLASSES
from tests.support.paths import ROOT, run_python
from tests.support.refusals import refused
from tokenization import load_tokenizer


def numbers(program):
    """The flags of a program that are numbers."""
    return [f for f in dataclasses.fields(program) if value_type(f) in (int, float)]


ABSURD = (
    "-1", "0", "-1e300", "1e300", str(2**31), str(2**63), str(10**20), str(-(10**20)), "9" * 5000,
    "nan", "inf", "-inf", "", " ", "1,5", "0x10", "\udcff", "가",
)  # fmt: skip


def command_line(program, *arguments):
    """A command line that has the required flags."""
    given = []
    for field in dataclasses.fields(program):
        if field.metadata["required"]:
            given.append(f"--{field.name}={next(iter(field.metadata['choices'] or ['x']))}")
    return ["program", *given, *arguments]


def within(value, bounds):
    """Whether a number is within its bounds."""
    return (
        value >= bounds.get("least", value)
        and value <= bounds.get("most", value)
        and ("above" not in bounds or value > bounds["above"])
        and ("below" not in bounds or value < bounds["below"])
    )


def test_programs_are_all_here():
    declared = {
        str(path)
        for path in (ROOT / "run_scripts").rglob("*.py")
        if path.name not in ("parser.py", "benchmark.py")  # the arguments of run_glue have no names
        and re.search(r"\(run_program,|return run_program\(", path.read_text(encoding="utf-8"))
    }
    assert len(declared) == len(FLAG_CLASSES)


@pytest.mark.parametrize("program", FLAG_CLASSES)
def test_every_number_has_bounds(program):
    for field in numbers(program):
        bounds = field.metadata["bounds"]
        assert len({"least", "above"} & set(bounds)) == 1, field.name
        assert len({"most", "below"} & set(bounds)) == 1, field.name
        kept = (field.default,)
        if isinstance(field.default, PerModel):
            kept = field.default.by_title().values()
        assert all(value is None or within(value, bounds) for value in kept), field.name


@dataclasses.dataclass(frozen=True)
class NumberFlags:
    """Takes numbers with bounds of all kinds."""

    count: int = flag(1, "A count.", least=1)
    seed: int = flag(0, "A seed.", least=-(2**63), most=2**63 - 1)
    share: float = flag(0.5, "A share.", least=0, most=1)
    rate: float = flag(0.1, "A rate.", above=0, below=1)
    text: str = flag("", "A text.")


def read(argument):
    """The values of a command line with one flag."""
    return parse(NumberFlags, ["program", argument])


@pytest.mark.parametrize("field", numbers(NumberFlags), ids=lambda field: field.name)
def test_absurd_numbers_are_one_line_or_within_bounds(field):
    for text in ABSURD:
        try:
            value = getattr(read(f"--{field.name}={text}"), field.name)
        except InputError as error:
            assert "Received: " in str(error) or field.name in str(error)
        else:
            assert type(value) is value_type(field) and within(value, field.metadata["bounds"])


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    (
        ("count", (1, 2**31 - 1), (0, 2**31)),
        ("seed", (-(2**63), 2**63 - 1), (-(2**63) - 1, 2**63)),
        ("share", (0, 1), (-0.001, 1.001)),
        ("rate", (0.001, 0.999), (0, 1)),
    ),
)
def test_bounds_themselves(name, inside, outside):
    for value in inside:
        assert getattr(read(f"--{name}={value}"), name) == value
    for value in outside:
        with refused(f"--{name} must be ", "Received: "):
            read(f"--{name}={value}")


@pytest.mark.parametrize(
    "argument", ("--text=a\udcff", "\udcff", "--\udcff=1", "--flagfile=\udcff")
)
def test_strings_that_are_not_utf8(argument):
    with pytest.raises(InputError, match="must be UTF-8. Received: .*udcff"):
        read(argument)


def test_arguments_and_names_that_are_not_utf8_in_a_real_process(tmp_path):
    run = run_python("create_pretraining_data.py", "--input_file=/tmp/\udcc7\udcd1.txt")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("error: the command line must be UTF-8. Received: ")
    assert run.stderr.count("\n") == 1
    try:
        (tmp_path / "\udcc7\udcd1.txt").write_text("a")
    except OSError:
        pytest.skip("this file system has no such names")
    with refused("name of a file of --input_file must be UTF-8"):
        expand_globs(f"{tmp_path}/*.txt", "input_file")


def test_a_working_folder_whose_name_is_not_utf8(tmp_path, monkeypatch):
    folder = tmp_path / "\udcc7\udcd1"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    monkeypatch.chdir(folder)
    with refused("path of the working folder must be UTF-8"):
        parse(CreateDataFlags, command_line(CreateDataFlags))


def test_values_of_thousands_of_characters_are_shortened(capsys):
    assert run_program(None, PretrainFlags, ["program", "--xla=" + "9" * 5000]) == 1
    assert len(capsys.readouterr().err) < 1600


def finetune_flags(*arguments):
    """Flags of a program that trains and measures."""
    common = ("--task_name=nsmc", "--do_train", "--do_eval", "--num_train_epochs=1")
    values = parse(ClassifierFlags, command_line(ClassifierFlags, *common, *arguments))
    return dataclasses.replace(values, train_step=None, warmup_proportion=0.1, warmup_step=None)


def test_last_seed_has_room(capsys):
    check_finetune_flags(finetune_flags(f"--random_seed={2**31 - 3}", "--num_seeds=3"))
    with pytest.raises(InputError, match="--random_seed .* --num_seeds=4"):
        check_finetune_flags(finetune_flags(f"--random_seed={2**31 - 3}", "--num_seeds=4"))


def test_numbers_within_strings():
    long = "9" * 5000  # more than Python makes a number of
    for text in ("", "x", "1,,2", long, f"1,{long}"):
        with pytest.raises(InputError, match="--sizes must be any. Received: "):
            read_numbers("sizes", text, "any", lambda sizes: True)
    for text in ("0,8", "-8,8", "8,8", "12,8", "8,17"):
        with pytest.raises(InputError, match="--bucket_boundaries must be .* lengths"):
            read_boundaries(text, 16)
        with refused("--bucket_boundaries must be ascending lengths"):
            read_bucket_boundaries(text, RecordFormat(16, 2, True, False))
    assert read_boundaries("8,16", 16) == (8, 16)
    with pytest.raises(InputError, match="below --max_seq_length, 16. Received: 8,16"):
        read_bucket_boundaries("8,16", RecordFormat(16, 2, True, False))
    with refused("number of shards, after @"):
        expand_output_file("a@99999999999")
    assert expand_output_file(f"a@{long}") == [f"a@{long}"]  # a name that is too long


UNREADABLE = {
    "lists": "[" * 100_000, "objects": '{"a":' * 100_000, "digits": "9" * 5000, "cut": "[1",
    "surrogate": "\ud83d",
}  # fmt: skip


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_json_that_no_reader_takes(content, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    for reader in (
        lambda: read_json(path.read_bytes(), str(path)),
        lambda: read_questions(str(path), False),
        lambda: has_answers(str(path)),
        lambda: read_choices(str(path)),
        lambda: BertConfig.from_json_file(str(path)),
    ):
        with refused("x.json", "Received: ") as caught:
            reader()
        assert len(str(caught.value)) < 500
    (tmp_path / "tokenizer_config.json").write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="tokenizer_config.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "finetuning.json").write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="finetuning.json"):
        ModelFolder(str(tmp_path)).task  # noqa: B018 (read when asked for)
    records = tmp_path / "a.tfrecord"
    records.touch()
    Path(sidecar_path(str(records))).write_bytes(path.read_bytes())
    assert read_sidecar(str(records)) is None
    with refused("other JSON files"):
        check_names([str(records)], [])
