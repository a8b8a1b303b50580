"""Draws the batches of lessons in processes that run in parallel with the training."""

import concurrent.futures
import itertools
import multiprocessing
from typing import NamedTuple

import numpy as np

from benchmarks.sentence_order.lesson_rows import LessonRows
from benchmarks.sentence_order.lessons import Lesson, read_lessons
from benchmarks.sentence_order.text_file import read_text

# The updates whose rows are drawn and packed together, so that few rows are left over and the first
# block does not take long.
BLOCK = 8

# The held-out batches: whether a segment begins where a document does, and their number. With 256
# rows in a batch, the standard error of the accuracy on "others" is one percent.
HELD_OUT = {"beginnings": (True, 4), "others": (False, 10)}

# Set before the processes are forked, so that they share the text's memory.
_rows = None


class Block(NamedTuple):
    """The updates from `first` until before `end`, all from one lesson."""

    first: int
    end: int
    lesson: Lesson


class LessonBatches:
    """The batches of a training by lessons, in order.

    Create it before JAX is first asked for a device, as its processes are forks of this one.

    Args:
        text_path: the file that `lesson_text.py` wrote.
        lessons_path: the file of the lessons, see `lessons.py`.
        description: the content of program.json.
        seed: determines the rows.
        step: the number of earlier updates.
        processes: the number of processes that draw rows.
    """

    def __init__(self, text_path, lessons_path, description, seed, step, processes):
        global _rows
        shapes = {
            row["name"]: row["shape"] for row in description["programs"]["gradients"]["arguments"]
        }
        lessons, content = read_lessons(lessons_path), read_text(text_path)
        self.rows, length = shapes["batch/input_ids"]
        predictions, slots = (
            shapes[f"batch/{name}"][1] for name in ("masked_lm_ids", "sequence_starts")
        )
        vocab_size = description["config"]["vocab_size"]
        ids = (content.train.ids, content.held_out.ids, np.array([*content.special.values()]))
        assert all(values.max(initial=0) < vocab_size for values in ids)  # of its vocabulary
        _rows = LessonRows(content, length, predictions, slots, vocab_size, seed)
        self.held_out = {
            name: _split(_rows.held_out(content.held_out, beginning, n * self.rows), self.rows)
            for name, (beginning, n) in HELD_OUT.items()
        }
        self.count = sum(lesson.updates for lesson in lessons)
        self._pool = concurrent.futures.ProcessPoolExecutor(
            processes, multiprocessing.get_context("fork")
        )
        self._tasks = (
            (number, block, self.rows)
            for number, block in enumerate(_blocks(lessons))
            if block.end > step
        )
        # Twice as many blocks as processes, so that blocks are drawn while others are trained on.
        first = itertools.islice(self._tasks, 2 * processes)
        self._drawn = [self._pool.submit(_draw, task) for task in first]
        self._block, self._batches = Block(0, 0, None), []

    def of_step(self, step):
        """Returns the features of the batch after `step` updates; `step` must be below `count`.

        Steps must increase from call to call.
        """
        while step >= self._block.end:
            self._block, self._batches = self._drawn.pop(0).result()
            self._drawn += [
                self._pool.submit(_draw, task) for task in itertools.islice(self._tasks, 1)
            ]
        return self._batches[step - self._block.first]

    def factor(self):
        """Returns the learning rate's factor for the batch that `of_step` returned last."""
        return self._block.lesson.rate

    def close(self):
        """Ends the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _blocks(lessons):
    """Splits the updates of a list of `Lesson` into a list of `Block`."""
    blocks, end = [], 0
    for lesson in lessons:
        first, end = end, end + lesson.updates
        blocks += [Block(at, min(at + BLOCK, end), lesson) for at in range(first, end, BLOCK)]
    return blocks


def _draw(task):
    number, block, rows = task
    features = _rows.block(number, block.lesson, (block.end - block.first) * rows)
    return block, _split(features, rows)


def _split(features, rows):
    """Splits features into batches of uint16 with the program's names.

    Ids and positions are below 2^16.
    """
    narrow = {f"batch/{name}": values.astype(np.uint16) for name, values in features.items()}
    return [
        {name: values[start : start + rows] for name, values in narrow.items()}
        for start in range(0, len(features["input_ids"]), rows)
    ]
