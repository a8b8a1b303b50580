"""Command lines: every flag of the reference programs, their defaults, errors in one line."""

import dataclasses
import errno
import itertools
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from bert_common.errors import InputError
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags.create_data import (
    CreateDataFlags,
    choose_objective,
    choose_output_files,
    resolve_defaults,
)
from run_scripts.flags.declaration import PerModel, flag, resolve_model_defaults
from run_scripts.flags.help_groups import TPU, group_of
from run_scripts.flags.parser import parse, run_program
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.tools.fill_masks import FillMasksFlags


@dataclasses.dataclass(frozen=True)
class CopyFlags:
    """Copies a file.

    As often as it is told to."""

    source: str = flag(None, "The file to copy.", required=True)
    times: int = flag(1, "How often.")
    limit: int | None = flag(None, "At most so many bytes.")
    rate: float = flag(PerModel(0.5, 2.0), "Copies a second.")
    overwrite: bool = flag(PerModel(False, True), "Whether files are replaced.")
    quiet: bool = flag(False, "Whether to be silent.")
    mode: str = flag("fast", "The way to copy.", choices=("fast", "slow"))


def read(*arguments):
    """The values of a command line that has its required flag."""
    return parse(CopyFlags, ["copy", "--source=a.txt", *arguments])


def refusal(*arguments):
    """The message of the InputError that a command line raises."""
    with pytest.raises(InputError) as caught:
        parse(CopyFlags, ["copy", *arguments])
    return str(caught.value)


def test_types():
    values = read(
        "--times=3", "--limit=-7", "--rate=1e-3", "--overwrite", "--noquiet", "--mode=slow"
    )
    assert values == CopyFlags("a.txt", 3, -7, 0.001, True, False, "slow")
    kinds = [type(getattr(values, field.name)) for field in dataclasses.fields(values)]
    assert kinds == [str, int, int, float, bool, bool, str]
    assert type(read("--rate=3").rate) is float


def test_ways_to_write_a_value():
    assert read("--times", "3").times == read("--times=3").times == read("-times=3").times == 3
    assert read("--times=3", "--times=4").times == 4
    for yes in ("--overwrite", "--overwrite=true", "--overwrite=1", "--overwrite=True"):
        assert read(yes).overwrite is True
    for no in ("--nooverwrite", "--overwrite=false", "--overwrite=0"):
        assert read(no).overwrite is False


def test_value_with_commas_globs_or_hangul_comes_through():
    value = "a b,*.txt,한국어=x"
    assert parse(CopyFlags, ["copy", f"--source={value}"]).source == value


def test_defaults():
    values = read()
    assert (values.times, values.limit, values.quiet, values.mode) == (1, None, False, "fast")
    assert values.rate == PerModel(0.5, 2.0) and values.overwrite == PerModel(False, True)


def test_columns_fill_only_what_is_not_given():
    bert, albert = (resolve_model_defaults(read(), model_type) for model_type in ("bert", "albert"))
    assert (bert.rate, bert.overwrite) == (0.5, False)
    assert (albert.rate, albert.overwrite) == (2.0, True)
    # Given stays given, though it is the other model's default.
    values = resolve_model_defaults(read("--rate=0.5", "--nooverwrite"), "albert")
    assert (values.rate, values.overwrite) == (0.5, False)
    values = resolve_model_defaults(read("--rate=2.0", "--overwrite"), "bert")
    assert (values.rate, values.overwrite) == (2.0, True)
    assert values.source == "a.txt" and values.times == 1


def test_two_parses_do_not_share_values():
    read("--times=9", "--rate=9", "--quiet")
    assert read() == CopyFlags("a.txt")


def test_flagfile(tmp_path):
    path = tmp_path / "flags.txt"
    path.write_text("# a comment\n// another\n\n--nooverwrite\n--times=4\n  --mode=slow\n")
    for written in ([f"--flagfile={path}"], ["--flagfile", str(path)]):
        values = read(*written)
        assert (values.times, values.mode, values.overwrite) == (4, "slow", False)
        assert resolve_model_defaults(values, "albert").overwrite is False  # given, by the file
    assert read(f"--flagfile={path}", "--times=5").times == 5
    assert read("--times=5", f"--flagfile={path}").times == 4


def test_flagfile_names_a_flagfile(tmp_path):
    inner, outer = tmp_path / "inner.txt", tmp_path / "outer.txt"
    inner.write_text("--times=6\n")
    outer.write_text(f"--quiet\n--flagfile={inner}\n")
    values = read(f"--flagfile={outer}")
    assert (values.times, values.quiet) == (6, True)


def test_flagfile_that_cannot_be_read_or_is_wrong(tmp_path):
    missing = tmp_path / "missing.txt"
    assert str(missing) in refusal("--source=a", f"--flagfile={missing}")
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("--tims=3\n")
    assert "'tims'" in refusal("--source=a", f"--flagfile={wrong}")
    wrong.write_text("times 3\n")
    assert "'times 3'" in refusal("--source=a", f"--flagfile={wrong}")


def test_unknown_flag_comes_with_a_suggestion():
    message = refusal("--source=a", "--tims=3")
    assert "'tims'" in message and "Did you mean: times" in message and "--help" in message
    assert "'zzzzzz'" in refusal("--source=a", "--zzzzzz")
    assert "'tim'" in refusal("--source=a", "--tim=3")  # no abbreviations
    assert "'notimes'" in refusal("--source=a", "--notimes")


@pytest.mark.parametrize(
    "argument",
    ("--times=two", "--times=1.5", "--rate=fast", "--overwrite=perhaps", "--mode=medium",
     "--limit=", "--times"),
)  # fmt: skip
def test_value_of_the_wrong_type(argument):
    name = argument.lstrip("-").split("=")[0]
    assert f"--{name}" in refusal("--source=a", argument)


def test_choices_are_listed():
    message = refusal("--source=a", "--mode=medium")
    assert "fast" in message and "slow" in message


@pytest.mark.parametrize("arguments", ([], ["--source="], ["--times=3"]))
def test_required_flag(arguments):
    message = refusal(*arguments)
    assert "--source must be given" in message and "The file to copy." in message


@pytest.mark.parametrize(
    "arguments", (["b.txt"], ["--times=2", "b.txt"], ["b.txt", "--times=2"], ["--", "b.txt"])
)
def test_positional_argument(arguments):
    message = refusal("--source=a", *arguments)
    assert "b.txt" in message and "--name=value" in message


def test_values_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().times = 2


@pytest.mark.parametrize("spelling", ("--help", "-h", "-help"))
def test_help_of_a_program(spelling, capsys):
    called = []
    assert run_program(called.append, CopyFlags, ["dir/copy.py", spelling]) == 0
    assert not called
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("copy.py: Copies a file.\n\nAs often as it is told to.\n")
    for line in (
        "--source=<str>  (required)",
        "--times=<int>  (default: 1)",
        "--limit=<int>  (not set)",
        "--rate=<float>  (default: BERT 0.5, ALBERT 2.0)",
        "--overwrite=<bool>  (default: BERT false, ALBERT true)",
        "--quiet=<bool>  (default: false)",
        "--mode=<fast|slow>  (default: fast)",
        "--flagfile=<path>",
    ):
        assert f"  {line}\n" in out
    assert out.count("  --") == 8


def status_and_output(program, capsys, arguments=("--source=a",)):
    """What `run_program` returns, with the lines on both streams."""
    status = run_program(program, CopyFlags, ["copy", *arguments])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err.splitlines()


def raising(error):
    """A program that fails."""

    def program(values):
        raise error

    return program


def test_status_of_a_run_is_0(capsys):
    seen = []
    assert status_and_output(seen.append, capsys) == (0, [], [])
    assert seen == [CopyFlags("a")]


def test_bad_input_is_one_line_with_status_1(capsys, tmp_path):
    program = raising(InputError("the file must\nbe UTF-8.   Received: bytes"))
    line = "error: the file must be UTF-8. Received: bytes"
    assert status_and_output(program, capsys) == (1, [], [line])
    for arguments in (
        [],
        ["--source=a", "--tims=3"],
        ["--source=a", "b"],
        ["--source=a", "--times"],
    ):
        status, out, err = status_and_output(program, capsys, arguments)
        assert (status, out, len(err)) == (1, [], 1) and err[0].startswith("error: ")

    missing = tmp_path / "missing.txt"
    status, out, err = status_and_output(lambda values: missing.read_text(), capsys)
    assert (status, out) == (1, []) and err == [f"error: No such file or directory: {missing}"]
    status, out, err = status_and_output(lambda values: tmp_path.read_text(), capsys)
    assert (status, out) == (1, []) and err == [f"error: Is a directory: {tmp_path}"]
    full = OSError(errno.ENOSPC, "No space left on device")
    status, out, err = status_and_output(raising(full), capsys)
    assert (status, out, len(err)) == (1, [], 1) and "No space left on device" in err[0]
    status, out, err = status_and_output(raising(KeyboardInterrupt()), capsys)
    assert (status, out, len(err)) == (1, [], 1)


@pytest.mark.parametrize(
    "error",
    (
        ValueError("a bug"),
        KeyError("a bug"),
        AssertionError("a bug"),
        RuntimeError("a bug"),
        OSError(errno.EBADF, "a bug"),
        OSError("a bug"),
    ),
    ids=repr,
)
def test_bug_is_not_swallowed(error, capsys):
    with pytest.raises(type(error)) as caught:
        run_program(raising(error), CopyFlags, ["copy", "--source=a"])
    assert caught.value is error
    assert capsys.readouterr().err == ""


def test_paths_with_commas_and_brackets(tmp_path):
    names = ("a,b.txt", "a[1].txt", "a1.txt", "c.txt", "*.txt")
    odd, bracket, plain, other, star = (str(tmp_path / name) for name in names)
    for path in (odd, bracket, plain, other, star):
        Path(path).write_text("x")
    assert expand_globs(odd, "input_file") == [odd]
    assert expand_globs(bracket, "input_file") == [bracket]
    assert expand_globs(star, "input_file") == [star]
    escaped = odd.replace(",", "\\,")
    assert expand_globs(f"{other},{escaped}", "input_file") == [other, odd]
    assert expand_globs(f"{bracket}, {plain}", "input_file") == [bracket, plain]
    with pytest.raises(InputError, match=r"a comma in a name is written \\,"):
        expand_globs(f"{other},{odd}", "input_file")
    (tmp_path / "d,e").mkdir()
    (tmp_path / "d,e" / "1.txt").write_text("x")
    assert expand_globs(f"{tmp_path}/d\\,e/*", "input_file") == [f"{tmp_path}/d,e/1.txt"]
    assert choose_output_files(f"{escaped},{tmp_path}/o@2", [], []) == [
        odd, f"{tmp_path}/o-00000-of-00002", f"{tmp_path}/o-00001-of-00002",
    ]  # fmt: skip


def test_globs(tmp_path):
    for name in ("b.txt", "a.txt", "c.tsv"):
        (tmp_path / name).touch()
    (tmp_path / "folder.txt").mkdir()
    a, b, c = (str(tmp_path / name) for name in ("a.txt", "b.txt", "c.tsv"))
    assert expand_globs(f"{tmp_path}/*.txt", "input_file") == [a, b]
    assert expand_globs(f"{c}, {tmp_path}/*.txt,", "input_file") == [c, a, b]
    for patterns in (f"{tmp_path}/*.csv", f"{a},{tmp_path}/none", str(tmp_path), ",", ""):
        with pytest.raises(InputError, match="--input_file must"):
            expand_globs(patterns, "input_file")


# The flags of google-research/bert and google-research/albert.
BERT_PRETRAIN = """
    bert_config_file input_file output_dir init_checkpoint max_seq_length max_predictions_per_seq
    do_train do_eval train_batch_size eval_batch_size learning_rate num_train_steps
    num_warmup_steps save_checkpoints_steps iterations_per_loop max_eval_steps use_tpu tpu_name
    tpu_zone gcp_project master num_tpu_cores
"""
ALBERT_PRETRAIN = """
    albert_config_file optimizer poly_power start_warmup_step keep_checkpoint_max
    init_from_group0 masked_lm_budget
"""
BERT_CREATE_DATA = """
    input_file output_file vocab_file do_lower_case do_whole_word_mask max_seq_length
    max_predictions_per_seq random_seed dupe_factor masked_lm_prob short_seq_prob
"""
ALBERT_CREATE_DATA = """
    spm_model_file input_file_mode do_permutation favor_shorter_ngram random_next_sentence ngram
"""

PRETRAIN_DEFAULTS = {
    "bert": {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "do_train": False,
        "do_eval": False,
        "train_batch_size": 32,
        "eval_batch_size": 8,
        "learning_rate": 5e-5,
        "num_train_steps": 100000,
        "num_warmup_steps": 10000,
        "save_checkpoints_steps": 1000,
        "optimizer": "adamw",
    },
    "albert": {
        "max_seq_length": 512,
        "max_predictions_per_seq": 20,
        "do_train": True,
        "do_eval": False,
        "train_batch_size": 4096,
        "eval_batch_size": 64,
        "learning_rate": 0.00176,
        "num_train_steps": 125000,
        "num_warmup_steps": 3125,
        "save_checkpoints_steps": 5000,
        "optimizer": "lamb",
    },
}
PRETRAIN_DEFAULTS_OF_BOTH = {
    "init_checkpoint": None,
    "poly_power": 1.0,
    "start_warmup_step": 0,
    "keep_checkpoint_max": 5,
    "max_eval_steps": 100,
    "use_tpu": False,
    "tpu_name": None,
    "tpu_zone": None,
    "gcp_project": None,
    "master": None,
    "masked_lm_budget": 0,
    "init_from_group0": False,
}
CREATE_DATA_DEFAULTS = {
    "bert": {
        "max_seq_length": 128,
        "do_whole_word_mask": False,
        "dupe_factor": 10,
        "ngram": 1,  # google-research/bert masks single pieces
    },
    "albert": {
        "max_seq_length": 512,
        "do_whole_word_mask": True,
        "dupe_factor": 40,
        "ngram": 3,
    },
}
CREATE_DATA_DEFAULTS_OF_BOTH = {
    "max_predictions_per_seq": 20,
    "masked_lm_prob": 0.15,
    "short_seq_prob": 0.1,
    "random_seed": 12345,
    "favor_shorter_ngram": True,
    "random_next_sentence": False,
    "do_permutation": False,
}


def flag_names(flags_class):
    """The flags that a program declares."""
    return {field.name for field in dataclasses.fields(flags_class)}


def test_every_flag_of_the_reference_programs_exists():
    assert set((BERT_PRETRAIN + ALBERT_PRETRAIN).split()) <= flag_names(PretrainFlags)
    assert set((BERT_CREATE_DATA + ALBERT_CREATE_DATA).split()) <= flag_names(CreateDataFlags)


@pytest.mark.parametrize("model_type", ("bert", "albert"))
def test_defaults_of_run_pretraining(model_type):
    values = parse(PretrainFlags, ["run_pretraining", "--input_file=a", "--output_dir=b"])
    values = dataclasses.asdict(resolve_model_defaults(values, model_type))
    expected = {**PRETRAIN_DEFAULTS[model_type], **PRETRAIN_DEFAULTS_OF_BOTH}
    assert {name: values[name] for name in expected} == expected
    assert not [name for name, value in values.items() if isinstance(value, PerModel)]


@pytest.mark.parametrize("model_type", ("bert", "albert"))
def test_defaults_of_create_pretraining_data(model_type):
    values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a"])
    values = dataclasses.asdict(resolve_defaults(values, model_type))
    expected = {**CREATE_DATA_DEFAULTS[model_type], **CREATE_DATA_DEFAULTS_OF_BOTH}
    assert {name: values[name] for name in expected} == expected
    assert not [name for name, value in values.items() if isinstance(value, PerModel)]


def test_defaults_that_follow_other_flags():
    def resolved(*argv, model_type="bert"):
        values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a", *argv])
        return resolve_defaults(values, model_type)

    assert resolved("--packing").max_predictions_per_seq == 24
    assert resolved("--packing", model_type="albert").max_predictions_per_seq == 80
    assert resolved("--packing", "--max_predictions_per_seq=30").max_predictions_per_seq == 30
    assert resolved("--masking=dynamic").dupe_factor == 1
    assert resolved("--masking=dynamic", "--dupe_factor=3").dupe_factor == 3


def test_flags_of_one_reference_choose_its_column():
    for arguments, model_type in (
        (["--vocab_file=v", "--dupe_factor=3"], "bert"),
        (["--spm_model_file=m"], "albert"),
        (["--vocab_file=v", "--ngram=3"], "albert"),
        (["--vocab_file=v", "--norandom_next_sentence"], "albert"),  # given, though a default
        (["--vocab_file=v", "--objective=sop"], "albert"),
        (["--spm_model_file=m", "--objective=nsp"], "bert"),
    ):
        values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a", *arguments])
        assert choose_objective(values).model_type == model_type


def launch(*command):
    """Runs Python in the root directory as a person would."""
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)


# Runs a launcher as Python would, but lives on to tell its status and what it imported.
HELP = """
import runpy, sys
sys.argv = [{name!r}, "--help"]
try:
    runpy.run_path({name!r}, run_name="__main__")
    status = None
except SystemExit as stop:
    status = stop.code
print("status", status)
print("heavy", sorted({{"keras", "tensorflow"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "launcher, flags_class",
    (
        ("run_pretraining.py", PretrainFlags),
        ("create_pretraining_data.py", CreateDataFlags),
        ("extract_features.py", ExtractFeaturesFlags),
    ),
)
def test_help_of_a_launcher(launcher, flags_class):
    run = launch("-c", HELP.format(name=launcher))
    assert run.stderr == ""
    check_help(run.stdout, launcher, flags_class)
    lines = run.stdout.splitlines()
    assert lines[-2:] == ["status 0", "heavy []"]


def test_help_of_fill_masks():
    run = launch(
        "-c",
        "import sys; from run_scripts.tools.fill_masks import main\n"
        "print('status', main(['fill_masks', '--help']))\n"
        "print('heavy', sorted({'keras', 'tensorflow'} & set(sys.modules)))",
    )
    assert (run.returncode, run.stderr) == (0, "")
    check_help(run.stdout, "fill_masks", FillMasksFlags)
    assert run.stdout.splitlines()[-2:] == ["status 0", "heavy []"]


def check_help(text, program, flags_class):
    """Every flag is listed once, with what it does, with its default or both its defaults."""
    lines = text.splitlines()
    assert lines[0] == f"{program}: {flags_class.__doc__.strip().splitlines()[0]}"
    listed = {line.split("=")[0].strip(" -"): i for i, line in enumerate(lines) if "=<" in line}
    tpu = {field.name for field in dataclasses.fields(flags_class) if is_for_tpus(field)}
    assert set(listed) == flag_names(flags_class) - tpu | {"flagfile"}
    assert bool(tpu) == ("  --helpfull" in lines)
    for field in dataclasses.fields(flags_class):
        if field.name in tpu:
            continue
        line = lines[listed[field.name]]
        described = itertools.takewhile(
            lambda line: line.startswith(" " * 8), lines[listed[field.name] + 1 :]
        )
        assert " ".join(map(str.strip, described)) == field.metadata["help"]
        default = field.default
        if isinstance(default, PerModel):
            bert, albert = (str(value) for value in (default.bert, default.albert))
            shown = bert if bert == albert else f"BERT {bert}, ALBERT {albert}"
            assert f"default: {shown})".lower() in line.lower()
        elif default is None:
            assert "required" in line if field.metadata["required"] else "not set" in line
        else:
            assert f"default: {'none' if default == '' else default}".lower() in line.lower()


def heading_of(field):
    """The heading that a flag is shown under."""
    return group_of(field.name, field.metadata["help"], field.metadata["required"])


def is_for_tpus(field):
    """Whether a flag is shown by --helpfull alone."""
    return heading_of(field) == TPU


def test_a_few_lines_of_the_help():
    text = launch("run_pretraining.py", "--help").stdout
    assert "  --learning_rate=<float>  (default: BERT 5e-05, ALBERT 0.00176)\n" in text
    assert "  --do_train=<bool>  (default: BERT false, ALBERT true)\n" in text
    assert "  --optimizer=<adamw|lamb>  (default: BERT adamw, ALBERT lamb)\n" in text
    assert "  --output_dir=<str>  (required)\n" in text
    assert "  --allow_missing=<str>  (default: none)\n" in text
    assert "tpu_name" not in text
    assert "  --tpu_name=<str>" in launch("run_pretraining.py", "--helpfull").stdout
    text = launch("-m", "run_scripts.tools.fill_masks", "--help").stdout
    assert "\n  python -m run_scripts.tools.fill_masks \\\n" in text


def test_error_of_a_launcher_is_one_line_with_status_1(tmp_path):
    sizes = f"--bert_config_file={tmp_path}/none.json"
    folders = [f"--input_file={tmp_path}/x", f"--output_dir={tmp_path}/out"]
    for command, part in (
        (["run_pretraining.py"], "--output_dir must be given"),
        (["run_pretraining.py", "--lerning_rate=1", *folders], "Did you mean: learning_rate"),
        (["run_pretraining.py", "--do_train", sizes, *folders], f"{tmp_path}/none.json"),
        (["create_pretraining_data.py", "--ngram=few"], "--ngram"),
        (["create_pretraining_data.py", f"--input_file={tmp_path}/x", "--vocab_file=v"], "/x"),
    ):
        run = launch(*command)
        lines = run.stderr.splitlines()
        assert run.returncode == 1 and len(lines) == 1, run.stderr
        assert lines[0].startswith("error: ") and part in lines[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "launcher, program",
    (
        ("run_pretraining.py", "run_scripts.pretrain"),
        ("create_pretraining_data.py", "run_scripts.create_data"),
        ("extract_features.py", "run_scripts.extract_features"),
    ),
)
def test_launcher_is_the_program(launcher, program, monkeypatch):
    # Its name must not be taken for the package, or the module, of the same name.
    monkeypatch.setattr("run_scripts.programs.begin", lambda: None)
    monkeypatch.setattr(f"{program}.main", lambda argv: 7)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / launcher), run_name="__main__")
    assert end.value.code == 7
