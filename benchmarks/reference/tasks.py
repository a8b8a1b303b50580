"""Finds the Korean tasks that have data, and the texts that must not be trained on."""

import os

from finetuning.datasets import DATASETS
from finetuning.ner.data import FORMATS, read_tagged
from finetuning.question_answering.data import read_questions
from finetuning.readers import read_split
from run_scripts.tools.glue_plan import BENCHMARKS, find_task

# The number of common characters, without spaces, from which one of two texts counts as a copy,
# about half a sentence of Wikipedia. Shorter texts, such as half of NSMC's reviews, may be written
# by anybody, such as "재미있어요", and never count as copies.
WINDOW = 24


def find_tasks(tasks_dir):
    """Returns the Korean tasks with published data in a folder, a dict name -> `BenchmarkTask`.

    Tasks with missing files are omitted.
    """
    tasks = {name: find_task(name) for name in BENCHMARKS["korean"]}
    return {
        name: task
        for name, task in tasks.items()
        if all(has_part(tasks_dir, task, split) for split in task.files)
    }


def has_part(tasks_dir, task, split):
    """Returns True if all files of a split of a `BenchmarkTask` exist."""
    folder = os.path.join(tasks_dir, task.folder)
    return all(os.path.isfile(os.path.join(folder, file)) for file in task.files[split])


class MeasuredTexts:
    """The texts of the tasks' splits on which models are measured.

    Args:
        texts: an iterable of strings.
    """

    def __init__(self, texts):
        self._windows = set()
        for text in texts:
            letters = without_spaces(text)
            last = len(letters) - WINDOW
            self._windows.update(hash(letters[i : i + WINDOW]) for i in range(last + 1))

    def share_text_with(self, line):
        """Returns True if a line and one of the texts have a long passage in common.

        This finds every line of at least `WINDOW` characters that is part of a text, every common
        passage of twice that length, and some shorter ones.
        """
        letters = without_spaces(line)
        last = len(letters) - WINDOW
        if last < 0:
            return False
        starts = {*range(0, last, WINDOW), last}
        return any(hash(letters[i : i + WINDOW]) in self._windows for i in starts)


def without_spaces(text):
    """Removes all whitespace, in which copies may differ."""
    return "".join(text.split())


def measured_texts(tasks_dir):
    """Yields the texts of the dev and test splits of tasks in a folder.

    A task's training split may be missing.
    """
    for name in BENCHMARKS["korean"]:
        task = find_task(name)
        folder = os.path.join(tasks_dir, task.folder)
        for split in task.files:
            if split != "train" and has_part(tasks_dir, task, split):
                yield from _READERS[task.program](name, task, split, folder)


def _classified(name, task, split, folder):
    examples, _ = read_split(DATASETS[name], split, folder)
    for example in examples:
        yield example.text
        yield example.second or ""


def _tagged(name, task, split, folder):
    sentences, _ = read_tagged(FORMATS[name], split, folder)
    yield from (sentence.text for sentence in sentences)


def _asked(name, task, split, folder):
    (file,) = task.files[split]
    questions, _ = read_questions(os.path.join(folder, file), with_answers=False)
    yield from dict.fromkeys(question.context for question in questions)
    yield from (question.question for question in questions)


# The program of a task -> a generator of the texts of one of its splits.
_READERS = {"run_classifier": _classified, "run_ner": _tagged, "run_squad": _asked}
