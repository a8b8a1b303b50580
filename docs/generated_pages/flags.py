"""Makes docs/flags.md: every flag of every program, from the dataclasses that declare them."""

import dataclasses
import inspect

from run_scripts.build_vocab import BuildVocabFlags
from run_scripts.classifier import ClassifierFlags
from run_scripts.conversion.adapt_checkpoint import AdaptFlags
from run_scripts.conversion.export_model import ExportFlags
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import PerModel, value_type
from run_scripts.flags.groups import by_heading
from run_scripts.flags.limits import MOST_STEPS
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.ner import NerFlags
from run_scripts.plan import CorpusPlanFlags
from run_scripts.race import RaceFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.squad import SquadFlags
from run_scripts.tools.explore import ExploreFlags
from run_scripts.tools.fill_masks import FillMasksFlags
from run_scripts.tools.retrieval import RetrievalFlags
from run_scripts.tools.search import SearchFlags

# How a program is started -> the class of its flags; in the order in which a reader meets them.
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
    "export_model.py": ExportFlags,
    "run_scripts.plan": CorpusPlanFlags,
}

HEAD = """# Flags

[README](../README.md)

Every flag of every program, as `--help` shows them. Names without `.py` are started as
`python -m NAME`. Every program also has `--flagfile=FILE` (flags of a file, one a line), `--help`,
`--helpfull` and `--version`. (`python -m run_scripts.tools.check_devices --help` shows the few
options of the check of devices.) A switch is `--name`, `--noname`, `--name=true` or `--name=false`.
Several defaults, such as "BERT 128, ALBERT 512", are those of the reference repositories.

This page is made from the code by `python docs/generated_pages`; a test compares it.
"""


def page():
    """The text of the page."""
    return "\n".join([HEAD, *map(_program, PROGRAMS)])


def _program(name):
    """The part about one program: what it does, a table for each group of flags."""
    flags_class = PROGRAMS[name]
    lines = [f"## {name}", "", inspect.cleandoc(flags_class.__doc__), ""]
    for heading, fields in by_heading(dataclasses.fields(flags_class)).items():
        if not fields:
            continue
        lines += [f"**{heading}**", "", "| flag | values | default | |", "|---|---|---|---|"]
        lines += [*map(_row, fields), ""]
    return "\n".join(lines)


def _row(field):
    help = field.metadata["help"].replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
    return f"| `--{field.name}` | {_values(field)} | {_default(field)} | {help} |"


def _values(field):
    """The values that a flag takes: a list, bounds, or a type."""
    if field.metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in field.metadata["choices"])
    kind = {bool: "switch", str: "text", int: "whole number", float: "number"}[value_type(field)]
    words = {"least": "from {}", "above": "above {}", "most": "to {}", "below": "below {}"}
    bounds = [
        words[name].format(bound)
        for name, bound in field.metadata["bounds"].items()
        if abs(bound) < MOST_STEPS
    ]
    return " ".join([kind, *bounds])


def _default(field):
    default = field.default
    if field.metadata["required"]:
        return "required"
    if isinstance(default, PerModel) and default.by_encoder:
        return ", ".join(f"{title} {shown(value)}" for title, value in default.by_title().items())
    return shown(default.default if isinstance(default, PerModel) else default)


def shown(value):
    """A default as the page shows it."""
    if value is None or value == "":
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
