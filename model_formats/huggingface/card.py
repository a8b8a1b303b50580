"""The model card of an export: README.md with what the model's folder records of it.

What is not recorded is left out: nothing here is guessed.
"""

import json
import os

from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.checkpoint_files import step_of
from bert_tf.training.evaluation import as_shown, read_results
from model_formats.huggingface.architectures import class_name
from model_formats.model_folder import POSITIONS_FILE, POSITIONS_KEY

MODEL_NAMES = {"bert": "BERT", "albert": "ALBERT"}

# Parts of POSITIONS_FILE, with the heading of each.
RECORDS = {"corpus": "Corpus", "training": "Pre-training"}

TASKS = {
    "pretraining": "pre-trained on masked words",
    "classification": "fine-tuned to classify texts",
    "ner": "fine-tuned to find named entities",
    "question_answering": "fine-tuned to answer questions with a span of a text",
    "multiple_choice": "fine-tuned to answer multiple-choice questions",
}
SCORES = "fine-tuned to predict a score for texts"


def make_card(loaded, architecture, tokenization):
    """The text of the card.

    Args:
        loaded: a `LoadedModel`.
        architecture: what `choose_architecture` returned.
        tokenization: a sentence about the tokenizer, without its full stop.
    """
    name = class_name(loaded, architecture)
    regression = loaded.task == "classification" and not loaded.labels
    purpose = SCORES if regression else TASKS[loaded.task]
    lines = [f"# {MODEL_NAMES[loaded.model_type]}, {purpose}", ""]
    lines += ["```python", f"from transformers import {name}", ""]
    lines += [f'model = {name}.from_pretrained("path/of/this/folder")', "```", ""]
    lines += [f"{tokenization[0].upper()}{tokenization[1:]}.", ""]
    sections = {
        **recorded_sections(loaded.folder),
        "Fine-tuning": {k: v for k, v in loaded.settings.items() if v is not None},
        "Network": loaded.config.to_dict() | positions(loaded),
        "Evaluation": evaluation(loaded),
    }
    for heading, values in sections.items():
        if values:
            lines += [f"## {heading}", "", table(values), ""]
    return header(architecture) + "\n".join(lines)


def header(architecture):
    """The lines at the top that the Hub reads."""
    lines = ["---", "library_name: transformers"]
    if architecture.pipeline:
        lines.append(f"pipeline_tag: {architecture.pipeline}")
    return "\n".join([*lines, "---", "", ""])


def positions(loaded):
    """The number of positions that were trained, where that is known."""
    known = loaded.trained_positions
    return {} if known is None else {POSITIONS_KEY: known}


def recorded_sections(folder):
    """Heading -> what pre-training recorded of its corpus and its settings."""
    path = os.path.join(folder, POSITIONS_FILE)
    if not os.path.exists(path):
        return {}
    content = read_json(read_bytes(path), path)
    found = {heading: content.get(key) for key, heading in RECORDS.items()}
    return {heading: values for heading, values in found.items() if isinstance(values, dict)}


def table(values):
    """A dict as a table in Markdown."""
    rows = [f"| {name} | {as_cell(value)} |" for name, value in values.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


def as_cell(value):
    """A value as text that ends no cell of a table."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "\\|")


def evaluation(loaded):
    """The results in the folder, if they are of this checkpoint: name -> number as text."""
    results = read_results(loaded.folder)
    if results.get("global_step") != step_of(loaded.source):
        return {}
    return {
        name: as_shown(int(value) if value.is_integer() else value)
        for name, value in results.items()
    }
