"""Generates docs/flags.md, which lists every flag of every program."""

import collections
import dataclasses
import inspect

from run_scripts.build_vocab import BuildVocabFlags
from run_scripts.classifier import ClassifierFlags
from run_scripts.conversion.adapt_checkpoint import AdaptFlags
from run_scripts.conversion.export_model import ExportFlags
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import PerModel, value_type
from run_scripts.flags.devices import DeviceFlags
from run_scripts.flags.distillation import TeacherFlags
from run_scripts.flags.finetune import FinetuneFlags, TextFlags
from run_scripts.flags.groups import by_heading
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.relations import full_help
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.flags.training import ModelFlags, TrainingFlags
from run_scripts.ner import NerFlags
from run_scripts.plan import CorpusPlanFlags
from run_scripts.race import RaceFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.squad import SquadFlags
from run_scripts.tools.average_models import AverageFlags
from run_scripts.tools.check_devices.__main__ import CheckDevicesFlags
from run_scripts.tools.explore import ExploreFlags
from run_scripts.tools.fill_masks import FillMasksFlags
from run_scripts.tools.retrieval import RetrievalFlags
from run_scripts.tools.search import SearchFlags

# How a program is started -> the class of its flags, in the order in which a reader meets them.
PROGRAMS = {
    "build_vocab.py": BuildVocabFlags,
    "create_pretraining_data.py": CreateDataFlags,
    "run_pretraining.py": PretrainFlags,
    "adapt_checkpoint.py": AdaptFlags,
    "run_scripts.tools.fill_masks": FillMasksFlags,
    "explore.py": ExploreFlags,
    "extract_features.py": ExtractFeaturesFlags,
    "run_classifier.py": ClassifierFlags,
    "run_ner.py": NerFlags,
    "run_squad.py": SquadFlags,
    "run_race.py": RaceFlags,
    "run_similarity.py": SimilarityFlags,
    "run_scripts.tools.search": SearchFlags,
    "run_scripts.tools.retrieval": RetrievalFlags,
    "run_scripts.tools.average_models": AverageFlags,
    "export_model.py": ExportFlags,
    "run_scripts.plan": CorpusPlanFlags,
    "run_scripts.tools.check_devices": CheckDevicesFlags,
}

# A class whose flags several programs share -> (heading, what the flags are for).
SHARED = {
    ModelFlags: ("Model", "These flags name the model that a program starts from."),
    TokenizerFlags: (
        "Tokenizer",
        "These flags name the tokenizer if the model's folder holds none.",
    ),
    FinetuneFlags: ("Fine-tuning", "The programs that fine-tune a model have these flags."),
    TextFlags: ("Fine-tuning on texts", "`run_classifier.py` and `run_ner.py` have these flags."),
    TeacherFlags: (
        "Distillation",
        "The programs whose model can learn from a teacher have these flags.",
    ),
    TrainingFlags: (
        "Training",
        "The programs that train have these flags for folders, checkpoints, curves and speed.",
    ),
    DeviceFlags: ("Devices", "Every program that computes with a model has these flags."),
}

HEAD = """# Flags

[README](../README.md)

This page lists every flag of every program. Flags that several programs share are listed once,
[at the end](#shared-flags); `--help` shows all flags of one program. Start a program whose name
does not end in `.py` with `python -m NAME`.

`--name` or `--name=true` turns a switch on, `--noname` or `--name=false` turns it off. A switch is
off unless its default or its description says otherwise. If no values are listed, a flag takes
text, or a number like its default. Every program also takes `--flagfile=FILE` (a file with one
flag per line), `--help`, `--helpfull` (which shows the flags for TPUs too) and `--version`.
Defaults such as "BERT 128, ALBERT 512" are the defaults of Google's programs; if ELECTRA is not
named, its default is BERT's.

`python docs/generated_pages` makes this page from the code.
"""

# The maximum number of flags in a table without group headings.
SHORT = 12

# Bounds from this value on are left out because no value comes close to them.
LARGE = 4096

SHARED_HEAD = """## Shared flags

If a program's own section lists one of these flags, that entry applies.
"""


def page():
    """Returns the text of the page."""
    return "\n".join([HEAD, *map(_program, PROGRAMS), SHARED_HEAD, *map(_shared, SHARED)])


def own_fields(program):
    """Returns the flags listed in a program's own section, not with the shared flags."""
    flags_class = PROGRAMS[program]
    shared = {_row([field]) for base in _bases(flags_class) for field in shared_fields(base)}
    return [field for field in dataclasses.fields(flags_class) if _row([field]) not in shared]


def shared_fields(base):
    """Returns the flags declared by a class that at least two programs have unchanged."""
    rows = collections.Counter(
        _row([field])
        for flags_class in PROGRAMS.values()
        if base in _bases(flags_class)
        for field in dataclasses.fields(flags_class)
    )
    declared = [field for field in dataclasses.fields(base) if field.name in base.__annotations__]
    return [field for field in declared if rows[_row([field])] > 1]


def _bases(flags_class):
    """Returns the classes of `SHARED` whose flags a program has."""
    return [base for base in SHARED if issubclass(flags_class, base)]


def _program(name):
    """Returns a program's section: what it does, its own flags, links to its shared flags."""
    flags_class = PROGRAMS[name]
    lines = [f"## {name}", "", inspect.cleandoc(flags_class.__doc__), ""]
    titles = [SHARED[base][0] for base in _bases(flags_class)]
    if titles:
        links = ", ".join(f"[{title}](#{title.lower().replace(' ', '-')})" for title in titles)
        lines += [f"Shared flags: {links}.", ""]
    return "\n".join([*lines, *_tables(own_fields(name))])


def _shared(base):
    """Returns the section of flags that several programs share."""
    title, about = SHARED[base]
    return "\n".join([f"### {title}", "", about, "", *_tables(shared_fields(base))])


def _tables(fields):
    """Returns the lines of a table, with a heading row per group if there are many flags.

    Flags that differ only in their names share a row.
    """
    groups = {heading: found for heading, found in by_heading(fields).items() if found}
    if len(fields) <= SHORT:
        groups = {None: [field for found in groups.values() for field in found]}
    lines = ["| flag | values | default | |", "|---|---|---|---|"]
    for heading, found in groups.items():
        lines += [f"| **{heading}** |"] if heading else []
        alike = {}
        for field in found:
            alike.setdefault(_about(field), []).append(field)
        lines += map(_row, alike.values())
    return [*lines, ""]


def _row(fields):
    names = ", ".join(f"`--{field.name}`" for field in fields)
    return f"| {names} | {_about(fields[0])} |".replace("|  |", "| |").replace("|  |", "| |")


def _about(field):
    """Returns the values, the default and the help of a flag as cells of a row."""
    help = full_help(field).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
    return f"{_values(field)} | {_default(field)} | {help}"


def _values(field):
    """Describes the values that a flag takes: a list, bounds or a type."""
    if field.metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in field.metadata["choices"])
    if value_type(field) is bool:
        return "switch"
    bounds = {n: bound for n, bound in field.metadata["bounds"].items() if abs(bound) < LARGE}
    # A count, as the default already shows.
    if bounds in ({"least": 0}, {"least": 1}) and _default(field):
        return ""
    if bounds.keys() == {"least", "most"}:
        return f"{bounds['least']} to {bounds['most']}"
    words = {"least": "at least", "above": "above", "most": "at most", "below": "below"}
    return ", ".join(f"{words[name]} {bound}" for name, bound in bounds.items())


def _default(field):
    default = field.default
    if field.metadata["required"]:
        return "required"
    if isinstance(default, PerModel) and default.by_encoder:
        return ", ".join(f"{title} {shown(value)}" for title, value in default.by_title().items())
    value = shown(default.default if isinstance(default, PerModel) else default)
    return "" if value in ("–", "false") else value


def shown(value):
    """Returns a default as the page shows it."""
    if value is None or value == "":
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
