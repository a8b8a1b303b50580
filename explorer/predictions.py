"""Shows what a fine-tuned model predicts for a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

from explorer.errors import malformed
from finetuning.tasks import TASKS

if TYPE_CHECKING:
    from explorer.answers import Explored


def show_prediction(
    explored: "Explored", text: str, second: str | None, options: Sequence[str] | None
) -> dict[str, Any]:
    """Predicts the label, entities, answer or option from the text and the task's other fields.

    Returns:
        A dict whose "view", a key of `VIEWS`, says what the other members are; "kind" is the task.
    """
    model = explored.model
    task = TASKS.get(model.loaded.task)
    if task is None:
        raise malformed(
            f"prediction needs a fine-tuned model. Received: one of {model.loaded.task}"
        )
    given = {"text": text, "second": second, "options": options}
    given = {field: given[field] for field in task.fields if given[field] is not None}
    lacking = [field for field in task.fields if field not in (*given, *task.optional_fields)]
    if lacking:
        raise malformed(f"{' and '.join(lacking)} must be given. Received: none")
    found = model.predict(text if len(given) == 1 else tuple(given.values()))
    return {"kind": task.name, "view": task.view, **VIEWS[task.view](found)}


def _show_class(found):
    if not found.probabilities:
        return {"score": float(found.label), "labels": []}
    chosen = found.label if isinstance(found.label, tuple) else (found.label,)
    shares = sorted(found.probabilities.items(), key=lambda item: -item[1])
    return {
        "score": None,
        "labels": [
            {"label": label, "probability": rounded(share), "chosen": label in chosen}
            for label, share in shares
        ],
    }


def _members(found):
    """Returns the members of a `FoundEntity` or a `FoundAnswer`."""
    return found._asdict() | {"probability": rounded(found.probability)}


# The view of a `finetuning.tasks.Task` -> a function that turns what `predict` returns for a text
# into the members of the answer.
VIEWS = {
    "labels": _show_class,
    "entities": lambda found: {"entities": [*map(_members, found.entities)]},
    "answer": lambda found: {
        "answer": _members(found.answer),
        "candidates": [*map(_members, found.candidates)],
    },
    "choice": lambda found: {
        "chosen": found.index,
        "probabilities": [*map(rounded, found.probabilities)],
    },
}


def rounded(value: SupportsFloat) -> float:
    """Rounds a number: more digits are noise, and make the answer long."""
    return round(float(value), 6)
