"""Shows what a fine-tuned model says of a text."""

from explorer.errors import malformed
from explorer.rounding import rounded


def show_prediction(explored, text, second, options):
    """The label, the entities, the answer or the option.

    Args:
        explored: the `Explored`.
        text: the text; where the task has a question, the text that it is about.
        second: a classifier's second text or None, or the question.
        options: those of a multiple-choice question, else None.

    Returns:
        A dict whose "kind" says what the other members are.

    Raises:
        RequestError: the model is not fine-tuned, or its task needs other fields.
    """
    model = explored.model
    task = model.loaded.task
    if task not in SHOWN:
        raise malformed(f"prediction needs a fine-tuned model. Received: one of {task}")
    ask, show = SHOWN[task]
    return {"kind": task, **show(model.predict(ask(text, second, options)))}


def _class_input(text, second, options):
    return text if second is None else (text, second)


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


def _ner_input(text, second, options):
    return text


def _show_entities(found):
    return {
        "entities": [
            {
                "text": each.text,
                "kind": each.kind,
                "start": each.start,
                "end": each.end,
                "probability": rounded(each.probability),
            }
            for each in found.entities
        ]
    }


def _question_input(text, second, options):
    if second is None:
        raise malformed("second must be given: the question. Received: none")
    return second, text


def _show_answer(found):
    return {
        "answer": _answer(found.answer),
        "candidates": [_answer(each) for each in found.candidates],
    }


def _answer(answer):
    return {
        "text": answer.text,
        "start": answer.start,
        "end": answer.end,
        "probability": rounded(answer.probability),
    }


def _choice_input(text, second, options):
    if second is None or options is None:
        raise malformed("second and options must be given: a question, and its answers")
    return second, text, options


def _show_choice(found):
    return {"chosen": found.index, "probabilities": [rounded(each) for each in found.probabilities]}


# Task -> functions: the fields -> what `predict` takes; what it returns -> members of the answer.
SHOWN = {
    "classification": (_class_input, _show_class),
    "ner": (_ner_input, _show_entities),
    "question_answering": (_question_input, _show_answer),
    "multiple_choice": (_choice_input, _show_choice),
}
