"""Defines the groups in which `--help` shows flags; a group declares its flags.

    batch_size: int = groups.EVALUATION.flag(8, "Examples in a step.", least=1)

Groups are in display order. Within a group, flags are in declaration order, base classes first.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

from finetuning.settings import Setting
from run_scripts.flags import declaration
from run_scripts.flags.paths import FILE, FOLDER, NOTHING


class Group(NamedTuple):
    """A group of flags that `--help` shows together."""

    name: str

    def flag(self, default: Any, help: str, **about: Any) -> Any:
        """Declares a flag of this group, with the arguments of `declaration.flag`."""
        return declaration.flag(default, help, group=self, **about)

    def setting(self, setting: Setting, help: str, **about: Any) -> Any:
        """Declares the flag of a task's setting, with its default, bound and choices."""
        default = declaration.PerModel(setting.default, setting.of_encoder)
        choices = setting.choices or None
        return self.flag(default, help, least=setting.least, choices=choices, **about)

    def optional(self, help: str, **about: Any) -> Any:
        """Declares a flag without a default."""
        return self.flag(None, help, **about)

    def required(self, help: str, **about: Any) -> Any:
        """Declares a flag without which the program refuses to run."""
        return self.flag(None, help, required=True, **about)

    def unused(self, help: str = "Accepted but has no effect.", **about: Any) -> Any:
        """Declares a flag that exists only so that command lines with it still work."""
        return self.flag(None, help, no_effect=True, **about)

    def input_file(self, help: str, **about: Any) -> Any:
        """Declares a flag that names a file to read."""
        return self.flag(None, help, is_input=True, takes=(FILE,), **about)

    def input_folder(self, help: str, **about: Any) -> Any:
        """Declares a flag that names a folder to read."""
        return self.flag(None, help, is_input=True, takes=(FOLDER,), **about)

    def output_folder(self, help: str, **about: Any) -> Any:
        """Declares a flag that names a folder to write, which is created if it is missing."""
        return self.flag(None, help, takes=(FOLDER, NOTHING), **about)


MODEL, TOKENIZER, RESIZING = map(Group, ("model", "tokenizer", "resizing"))
LAYERS, HEAD = map(Group, ("layers", "head"))
TASK, FILES, OUTPUT, COLUMNS = map(Group, ("task", "files", "output", "columns"))
VOCABULARY, ROWS, BATCHES = map(Group, ("vocabulary", "rows", "batches"))
UPDATES, OPTIMIZER, RUNS, UPKEEP = map(Group, ("updates", "optimizer", "runs", "upkeep"))
DISTILLATION = Group("distillation")
EVALUATION, PREDICTION = map(Group, ("evaluation", "prediction"))
ANSWERS, EXPORT = map(Group, ("answers", "export"))
DEVICES, PROCESSES, THREADS = map(Group, ("devices", "processes", "threads"))
GENERAL = Group("general")
COMPATIBILITY = Group("compatibility")  # flags that exist only for older and Google's command lines
TPU = Group("tpu")  # flags that have an effect only on a TPU; shown only by --helpfull

REQUIRED = "Required"
GENERAL_HEADING = "General"  # includes the flags that every program has

# Heading -> its groups, in display order; required flags come before all of them.
HEADINGS = {
    "Model and tokenizer": (MODEL, TOKENIZER, RESIZING, LAYERS, HEAD),
    "Data": (TASK, FILES, OUTPUT, COLUMNS, VOCABULARY, ROWS, BATCHES),
    "Training": (UPDATES, OPTIMIZER, DISTILLATION, RUNS, UPKEEP),
    "Evaluation, prediction, export": (EVALUATION, PREDICTION, ANSWERS, EXPORT),
    "Devices and memory": (DEVICES, PROCESSES, THREADS),
    GENERAL_HEADING: (GENERAL,),
    "For compatibility": (COMPATIBILITY,),
    "For TPUs, without effect here": (TPU,),
}

_ORDER = [group for groups in HEADINGS.values() for group in groups]
_HEADING = {group: heading for heading, groups in HEADINGS.items() for group in groups}


def group_of(field: dataclasses.Field[Any]) -> Group:
    """Returns the group of a flag, `GENERAL` if its declaration names none."""
    return field.metadata["group"] or GENERAL


def by_heading(fields: Iterable[dataclasses.Field[Any]]) -> dict[str, list[dataclasses.Field[Any]]]:
    """Returns heading -> its flags, in display order; only the general one may have none."""
    found: dict[str, list[dataclasses.Field[Any]]] = {
        heading: [] for heading in (REQUIRED, *HEADINGS)
    }
    for field in sorted(fields, key=lambda field: _ORDER.index(group_of(field))):
        heading = REQUIRED if field.metadata["required"] else _HEADING[group_of(field)]
        found[heading].append(field)
    return {h: flags for h, flags in found.items() if flags or h == GENERAL_HEADING}
