"""The groups that `--help` shows flags in, and their order.

`flag(group=…)` names a group. Within it flags are shown as their classes declare them, those of a
base class first.
"""

MODEL, TOKENIZER, RESIZING, LAYERS, HEAD = "model", "tokenizer", "resizing", "layers", "head"
TASK, FILES, OUTPUT, COLUMNS = "task", "files", "output", "columns"
VOCABULARY, ROWS, BATCHES = "vocabulary", "rows", "batches"
UPDATES, OPTIMIZER, RUNS, UPKEEP = "updates", "optimizer", "runs", "upkeep"
EVALUATION, PREDICTION, ANSWERS, EXPORT = "evaluation", "prediction", "answers", "export"
DEVICES, PROCESSES, THREADS = "devices", "processes", "threads"
GENERAL = "general"
COMPATIBILITY = "compatibility"  # flags that exist only for Google's command lines
TPU = "tpu"  # those of them that have an effect only on a TPU; shown only by --helpfull

REQUIRED = "Required"
GENERAL_HEADING = "General"  # where the flags are too that every program has

# Heading -> its groups, in the order they are shown in; required flags come before all of them.
HEADINGS = {
    "Model and tokenizer": (MODEL, TOKENIZER, RESIZING, LAYERS, HEAD),
    "Data": (TASK, FILES, OUTPUT, COLUMNS, VOCABULARY, ROWS, BATCHES),
    "Training": (UPDATES, OPTIMIZER, RUNS, UPKEEP),
    "Evaluation, prediction, export": (EVALUATION, PREDICTION, ANSWERS, EXPORT),
    "Devices and memory": (DEVICES, PROCESSES, THREADS),
    GENERAL_HEADING: (GENERAL,),
    "For command lines of Google's programs": (COMPATIBILITY,),
    "For TPUs, without effect here": (TPU,),
}

_ORDER = [group for groups in HEADINGS.values() for group in groups]
_HEADING = {group: heading for heading, groups in HEADINGS.items() for group in groups}


def by_heading(fields):
    """Heading -> the flags shown under it, in order; no heading without flags but the general one.

    Args:
        fields: of a program's dataclass.
    """
    found = {heading: [] for heading in (REQUIRED, *HEADINGS)}
    for field in sorted(fields, key=lambda field: _ORDER.index(field.metadata["group"])):
        about = field.metadata
        found[REQUIRED if about["required"] else _HEADING[about["group"]]].append(field)
    return {h: flags for h, flags in found.items() if flags or h == GENERAL_HEADING}


def has_effect(field):
    """Whether a flag exists for more than Google's command lines."""
    return field.metadata["group"] not in (COMPATIBILITY, TPU)
