"""Writes the model card of an export, README.md, from the records in the model's folder.

Information that is not recorded is omitted rather than guessed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf.checkpoint import google_variables, trained_step
from bert_tf.training.evaluation import as_shown, read_results
from finetuning.tasks import TASKS, TransformersClass
from model_formats.huggingface.architectures import class_name, predicts_scores
from model_formats.huggingface.tokenizer_files import trust_argument
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import objective_of
from model_formats.training_record import POSITIONS_KEY
from model_formats.transformers_files.config import to_huggingface
from tokenization.base import TokenizerInterface

# Name of a number in the folder's record -> its name in the card.
TITLES = {"pieces": "tokens"}


def make_card(
    loaded: LoadedModel, architecture: TransformersClass, tokenization: str, card_text: str = ""
) -> str:
    """Returns the text of the card.

    Args:
        tokenization: a sentence about the tokenizer, without its period.
        card_text: Markdown that replaces the title; lines between two "---" at its top are added
            to the header that the Hub reads.
    """
    name = class_name(loaded, architecture)
    metadata, body = split_metadata(card_text)
    lines = [body or f"# {loaded.encoder.title}, {_purpose(loaded)}", ""]
    lines += ["## With transformers", "", "```python", *loading_lines(name, loaded.tokenizer)]
    lines += ["```", ""]
    if architecture.makes_vectors:
        lines += ["## With sentence-transformers", "", "```python"]
        lines += [*sentence_lines(loaded.tokenizer), "```", ""]
    lines += [f"{tokenization[0].upper()}{tokenization[1:]}.", ""]
    for heading, columns in tables(loaded):
        if any(columns):
            lines += [f"## {heading}", "", table(columns), ""]
    return header(architecture, metadata) + "\n".join(lines)


def _purpose(loaded):
    if predicts_scores(loaded):
        return "fine-tuned to predict a score for texts"
    if loaded.task in TASKS:
        return TASKS[loaded.task].description
    return objective_of(google_variables(loaded.model)).description


def loading_lines(name: str, tokenizer: TokenizerInterface | None) -> list[str]:
    """Returns Python lines that load the model by its class, and the tokenizer unless None."""
    names, more = [name], []
    if tokenizer is not None:
        names.append("AutoTokenizer")
        more.append(f"tokenizer = AutoTokenizer.from_pretrained(folder{trust_argument(tokenizer)})")
    return [
        f"from transformers import {', '.join(sorted(names))}",
        "",
        'folder = "path/of/this/folder"',
        f"model = {name}.from_pretrained(folder)",
        *more,
    ]


def sentence_lines(tokenizer: TokenizerInterface | None) -> list[str]:
    """Returns Python lines that load the model and encode texts as vectors."""
    return [
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("path/of/this/folder"{trust_argument(tokenizer)})',
        'vectors = model.encode(["첫 문장", "둘째 문장"])',
    ]


def tables(loaded: LoadedModel) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields the headings and columns of tables about the training, then about the model itself.

    The stages of one program, the earliest first, are the columns of one table.
    """
    programs: dict[str, list[Mapping[str, Any]]] = {}
    for stage in loaded.stages:
        programs.setdefault(str(stage.get("program")), []).append(stage)
    for program, stages in programs.items():
        for part in ("corpus", "settings"):
            found = [stage.get(part) for stage in stages]
            columns = [known(values) if isinstance(values, dict) else {} for values in found]
            yield f"{program.capitalize()}: {part}", columns
    yield "Task", [known(loaded.settings)]
    # The activation is named as in config.json, as transformers' "gelu" differs from ours.
    activation = to_huggingface(loaded.config, loaded.model_type)["hidden_act"]
    positions = known({POSITIONS_KEY: loaded.trained_positions})
    yield "Network", [loaded.config.to_dict() | {"hidden_act": activation} | positions]
    yield "Evaluation", [evaluation(loaded)]


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def split_metadata(text: str) -> tuple[list[str], str]:
    """Splits Markdown into the lines between two "---" at its top, and the rest."""
    first, *lines = text.strip().splitlines() or [""]
    if first != "---" or "---" not in lines:
        return [], text.strip()
    end = lines.index("---")
    return lines[:end], "\n".join(lines[end + 1 :]).strip()


def header(architecture: TransformersClass, metadata: Sequence[str] = ()) -> str:
    """Returns the header that the Hub reads, with extra lines such as "license: apache-2.0".

    The extra lines override keys of the same name, as the Hub rejects duplicate keys.
    """
    own = {"library_name": "transformers", "pipeline_tag": architecture.pipeline}
    given = {line.partition(":")[0] for line in metadata}
    lines = [f"{key}: {value}" for key, value in own.items() if value and key not in given]
    return "\n".join(["---", *lines, *metadata, "---", "", ""])


def table(columns: Sequence[Mapping[str, Any]]) -> str:
    """Formats dicts as the columns of a Markdown table, numbered from 1 if there are several."""
    names = dict.fromkeys(name for values in columns for name in values)
    numbers = range(1, len(columns) + 1)
    rows = [["", *(str(number) if len(columns) > 1 else "" for number in numbers)]]
    for name in names:
        cells = [as_cell(values[name]) if name in values else "" for values in columns]
        rows.append([TITLES.get(name, name), *cells])
    lines = ["".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def as_cell(value: Any) -> str:
    """Formats a value as text without line breaks or characters that end a table's cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split()).replace("|", "\\|")


def evaluation(loaded: LoadedModel) -> dict[str, str]:
    """Returns the results in the checkpoint's folder by name; empty if they are another's."""
    results = read_results(ModelFolder.beside(loaded.source).path)
    if results.get("global_step") != trained_step(loaded.source):
        return {}
    return {
        name: as_shown(name, int(value) if value.is_integer() else value)
        for name, value in results.items()
    }
