"""What `--help` says of a program fits what the program declares."""

import dataclasses
import itertools
import re
import runpy
import shlex
import sys

import pytest

from finetuning.settings import NEVER, UNTRAINED
from finetuning.tasks import TASKS
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import PerModel, names_of, value_type
from run_scripts.flags.finetune import FinetuneFlags
from run_scripts.flags.groups import COMPATIBILITY, HEADINGS, REQUIRED, TPU, group_of
from run_scripts.flags.parser import help_text, parse
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.relations import full_help
from run_scripts.tools.fill_masks import FillMasksFlags
from tests.support.bad_inputs.bad_input_programs import FLAG_CLASSES
from tests.support.paths import ROOT, run_python


def is_for_tpus(field):
    """Whether a flag is shown by --helpfull alone."""
    return field.metadata["group"] == TPU


@pytest.mark.parametrize("flags_class", FLAG_CLASSES)
def test_help_of_every_program(flags_class):
    """Its example runs; each flag is there once, with what it does, in its group."""
    short, full = (help_text(flags_class, "x.py", full=full) for full in (False, True))
    assert full.startswith(f"x.py: {flags_class.__doc__.strip().splitlines()[0]}\n")
    headings = [line for line in full.splitlines() if re.fullmatch(r"[A-Z].*[^.]:", line)]
    order = [f"{name}:" for name in ("Example", REQUIRED, *HEADINGS)]
    assert headings == [heading for heading in order if heading in headings]
    before, *_ = full.partition(f"\n{headings[2]}\n")
    fields = dataclasses.fields(flags_class)
    assert full.count("\n  --") == len(fields) + 2 + ("\n  --helpfull\n" in full)
    assert ("\n  --helpfull\n" in short) == any(map(is_for_tpus, fields))
    for field in fields:
        start = f"\n  --{field.name}=<"
        assert full.count(start) == 1 and (start in short) != is_for_tpus(field)
        assert start in before or not field.metadata["required"]
        _, *after = full.partition(start)[2].splitlines()
        described = itertools.takewhile(lambda line: line.startswith(" " * 8), after)
        assert " ".join(map(str.strip, described)) == full_help(field)
    assert max(map(len, full.partition("Example:")[2].splitlines())) <= 100
    parse(flags_class, ["x", *shlex.split(flags_class.EXAMPLE)])


# Names of flags that name files or folders.
PATH = re.compile(r"(.*_)?(file|dir|checkpoint)")


@pytest.mark.parametrize("flags_class", FLAG_CLASSES)
def test_what_is_declared_fits_the_name_and_the_help(flags_class):
    for field in dataclasses.fields(flags_class):
        about = field.metadata
        has_effect = group_of(field) not in (COMPATIBILITY, TPU)
        begins = ("Accepted but has no effect", "Another name ", "Must be ")
        assert has_effect != about["help"].startswith(begins), field.name
        says_so = bool(re.match("Accepted but has no effect[.:]", about["help"]))
        assert about["no_effect"] == says_so, field.name
        assert about["refused"] == about["help"].startswith("Must be "), field.name
        if has_effect and PATH.fullmatch(field.name):
            assert about["is_path"], field.name


# The name of a task -> the flags of its program, the one with a `PROGRAM`.
FINE_TUNING = {
    module.PROGRAM.task.name: flags_class
    for flags_class in FLAG_CLASSES
    if hasattr(module := sys.modules[flags_class.__module__], "PROGRAM")
}


@pytest.mark.parametrize("task", TASKS)
def test_the_settings_of_a_task_are_flags(task):
    flags_class, settings = FINE_TUNING[task], TASKS[task].settings
    fields = {field.name: field for field in dataclasses.fields(flags_class)}
    for name, setting in settings.items():
        assert value_type(fields[name]) is setting.kind
        default = fields[name].default
        assert default in (None, PerModel(setting.default, setting.of_encoder))
    assert {*names_of(FinetuneFlags, "recorded")} <= {*names_of(flags_class, "recorded")}


# Task -> the settings that never change.
NEVER_CHANGED = {
    "classification": {"task_name", "task_type", "labels", "feature_layers"},
    "ner": {"task_name", "labels", "feature_layers"},
    "question_answering": {"version_2_with_negative", "start_n_top", "end_n_top"},
    "multiple_choice": set(),
    "similarity": {"pooling", "normalize", "embedding_sizes"},
}


def test_which_settings_may_change():
    untrained = set()
    for task, names in NEVER_CHANGED.items():
        found = {name: setting.changeable for name, setting in TASKS[task].settings.items()}
        untrained |= {name for name, when in found.items() if when == UNTRAINED}
        assert {name for name, when in found.items() if when == NEVER} == names
    columns = {"text_column", "second_column", "label_column", "id_column"}
    assert untrained == {*columns, "metrics"}


# Runs a launcher as Python would, then prints its status and what it imported.
HELP = """
import runpy, sys
sys.argv = ["run_pretraining.py", "--help"]
try:
    runpy.run_path("run_pretraining.py", run_name="__main__")
    status = None
except SystemExit as stop:
    status = stop.code
print("status", status)
print("heavy", sorted({"keras", "tensorflow"} & set(sys.modules)))
"""


def test_help_of_a_launcher():
    run = run_python("-c", HELP)
    assert run.stderr == ""
    *lines, status, heavy = run.stdout.splitlines()
    assert lines == help_text(PretrainFlags, "run_pretraining.py", full=False).splitlines()
    assert (status, heavy) == ("status 0", "heavy []")


def test_a_few_lines_of_the_help(capsys):
    text = help_text(PretrainFlags, "run_pretraining.py", full=False)
    assert "tpu_name" not in text
    rates = "BERT 5e-05, ALBERT 0.00176, ELECTRA 0.0005"
    assert f"  --learning_rate=<float>  (default: {rates})\n" in text
    assert "  --output_dir=<str>  (required)\n" in text
    assert "  --allow_missing=<str>  (default: none)\n" in text
    assert parse(PretrainFlags, ["run_pretraining.py", "--helpfull"]) is None
    assert "  --tpu_name=<str>" in capsys.readouterr().out
    text = help_text(CreateDataFlags, "program")
    assert "  --ngram=<1 to 32>  (default: BERT 1, ALBERT 3)\n" in text
    assert "  --random_seed=<int>  (default: 12345)\n" in text
    assert "  --favor_shorter_ngram=<bool>  (default: true)\n" in text
    steps = "  --train_step=<int>  (default: BERT none, ALBERT 1000)\n"
    assert steps in help_text(FINE_TUNING["classification"], "program")
    text = help_text(FillMasksFlags, "/a/run_scripts/tools/fill_masks.py")
    assert "\n  python -m run_scripts.tools.fill_masks \\\n" in text


@pytest.mark.parametrize(
    "launcher, program",
    (
        ("run_pretraining.py", "run_scripts.pretrain"),
        ("create_pretraining_data.py", "run_scripts.create_data"),
        ("extract_features.py", "run_scripts.extract_features"),
        ("export_model.py", "run_scripts.conversion.export_model"),
    ),
)
def test_launcher_is_the_program(launcher, program, monkeypatch):
    # Its name must not be taken for the package, or the module, of the same name.
    monkeypatch.setattr("run_scripts.programs.begin", lambda: None)
    monkeypatch.setattr(f"{program}.main", lambda argv: 7)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / launcher), run_name="__main__")
    assert end.value.code == 7
