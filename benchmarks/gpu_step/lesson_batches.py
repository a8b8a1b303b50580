"""Draws the batches of lessons in processes beside the training."""

import multiprocessing
import threading
from typing import NamedTuple

import numpy as np
from sentence_order.lesson_rows import LessonRows
from sentence_order.lessons import Lesson, read_lessons
from sentence_order.text_file import read_text

# Updates whose rows are drawn and packed together.
BLOCK = 8

# Batches for measuring, of rows in which a segment begins where a document does, and of others.
HELD_OUT = {"beginnings": (True, 4), "others": (False, 10)}

# Set before the processes are forked: they share the text's memory.
_rows = None


class Block(NamedTuple):
    """The updates from `first` to before `end`, of one lesson."""

    first: int
    end: int
    lesson: Lesson


class LessonBatches:
    """The batches of a training by lessons, in their order.

    To be made before JAX is first asked for a device: the processes are forks of this one.

    Args:
        text_path: the file of `lesson_text.py`.
        lessons_path: the lessons, see `lessons.py`.
        description: the content of program.json.
        seed: determines the rows.
        step: updates made before.
        processes: how many draw rows.
    """

    first_step = 0

    def __init__(self, text_path, lessons_path, description, seed, step, processes):
        global _rows
        self.lessons, content = read_lessons(lessons_path), read_text(text_path)
        shapes = {
            row["name"]: row["shape"] for row in description["programs"]["gradients"]["arguments"]
        }
        self.rows, length = shapes["batch/input_ids"]
        predictions, slots = (
            shapes[f"batch/{name}"][1] for name in ("masked_lm_ids", "sequence_starts")
        )
        vocab_size = description["config"]["vocab_size"]
        _rows = LessonRows(content, length, predictions, slots, vocab_size, seed)
        self.held_out = {
            name: self._split(_narrow(_rows.held_out(content.held_out, beginning, n * self.rows)))
            for name, (beginning, n) in HELD_OUT.items()
        }
        self.count = self.lessons.updates
        self._ahead = threading.Semaphore(2 * processes)  # blocks that nobody has asked for yet
        self._pool = multiprocessing.get_context("fork").Pool(processes)
        self._drawn = self._pool.imap(_draw, self._tasks(step))
        self._block, self._batches = Block(0, 0, None), []

    def lesson(self, step):
        """The `Lesson` of the update that follows `step` updates."""
        return self.lessons.of_step(step)

    def of_step(self, step):
        """The features of the batch that follows `step` updates; steps must rise."""
        while step >= self._block.end:
            self._block, self._batches = next(self._drawn)
            self._ahead.release()
        return self._batches[step - self._block.first]

    def close(self):
        """Ends the processes."""
        self._ahead.release(len(_blocks(self.lessons)))  # the thread that waits for it ends
        self._pool.terminate()

    def _tasks(self, step):
        for number, block in enumerate(_blocks(self.lessons)):
            if block.end > step:
                self._ahead.acquire()
                yield number, block, self.rows

    def _split(self, features):
        count = len(features["batch/input_ids"]) // self.rows
        return [
            {n: v[i * self.rows : (i + 1) * self.rows] for n, v in features.items()}
            for i in range(count)
        ]


def _blocks(lessons):
    """Divides the updates of `Lessons` into a list of `Block`."""
    blocks, end = [], 0
    for lesson in lessons.lessons:
        first, end = end, end + lesson.updates
        blocks += [Block(at, min(at + BLOCK, end), lesson) for at in range(first, end, BLOCK)]
    return blocks


def _draw(task):
    number, block, rows = task
    count = block.end - block.first
    features = _narrow(_rows.block(number, block.lesson, count * rows))
    return block, [
        {name: values[i * rows : (i + 1) * rows] for name, values in features.items()}
        for i in range(count)
    ]


def _narrow(features):
    """Names for the program, and fewer bytes to send: ids and places are below 2^16."""
    return {f"batch/{name}": values.astype(np.uint16) for name, values in features.items()}
