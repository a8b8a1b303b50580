"""Draws the batches of lessons in processes beside the training."""

import concurrent.futures
import itertools
import lzma
import multiprocessing
import zipfile
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

import numpy as np

from benchmarks.sentence_order.lesson_rows import LessonRows
from benchmarks.sentence_order.lessons import Lesson, read_lessons
from benchmarks.sentence_order.text_file import read_text
from bert_common.errors import InputError

# Updates whose rows are drawn and packed together: few rows are left over, and the first block does
# not take long.
BLOCK = 8

# Batches for measuring: whether a segment begins where a document does, and how many. With 256 rows
# in a batch, the standard error of the accuracy on the others is one percent.
HELD_OUT = {"beginnings": (True, 4), "others": (False, 10)}

# A pre-training on the order of sentences that packs its rows has these.
NEEDED = ("batch/sequence_starts", "batch/next_sentence_labels", "batch/next_sentence_weights")

# What `read_text` raises where a file is damaged or no `TextFile`.
UNREADABLE = (lzma.LZMAError, zipfile.BadZipFile, ValueError, KeyError, EOFError, TypeError)

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

    def __init__(self, text_path, lessons_path, description, seed, step, processes):
        global _rows
        shapes = {
            row["name"]: row["shape"] for row in description["programs"]["gradients"]["arguments"]
        }
        if missing := [name for name in NEEDED if name not in shapes]:
            raise InputError(
                "the step must be exported for records of --objective=sop --packing=true. "
                f"Received: a step without {', '.join(missing)}"
            )
        lessons = read_lessons(lessons_path)
        try:
            content = read_text(text_path)
        except UNREADABLE as error:
            raise InputError(
                f"{text_path} must be a file of lesson_text.py. Received: {error}"
            ) from None
        self.rows, length = shapes["batch/input_ids"]
        predictions, slots = (
            shapes[f"batch/{name}"][1] for name in ("masked_lm_ids", "sequence_starts")
        )
        vocab_size = description["config"]["vocab_size"]
        ids = (content.train.ids, content.held_out.ids, np.array([*content.special.values()]))
        largest = max(values.max(initial=0) for values in ids)
        if largest >= vocab_size:
            raise InputError(
                f"the ids of {text_path} must be below the model's vocab_size, {vocab_size}: it "
                f"was made with another vocabulary. Received: {largest}"
            )
        _rows = LessonRows(content, length, predictions, slots, vocab_size, seed)
        _rows.check(lessons)
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
        # Twice as many as processes: while one block is trained on, others are drawn.
        first = itertools.islice(self._tasks, 2 * processes)
        self._drawn = [self._pool.submit(_draw, task) for task in first]
        self._block, self._batches = Block(0, 0, None), []

    def of_step(self, step):
        """The features of the batch that follows `step` updates, fewer than `count`.

        Steps must rise from call to call.

        Raises:
            InputError: a process that draws rows was killed.
        """
        while step >= self._block.end:
            try:
                self._block, self._batches = self._drawn.pop(0).result()
            except BrokenProcessPool:
                raise InputError(
                    "the processes that draw rows must stay alive (fewer --processes need less "
                    "memory). Received: one has ended"
                ) from None
            self._drawn += [
                self._pool.submit(_draw, task) for task in itertools.islice(self._tasks, 1)
            ]
        return self._batches[step - self._block.first]

    def factor(self):
        """What the learning rate is multiplied by, for the batch that `of_step` returned last."""
        return self._block.lesson.rate

    def close(self):
        """Ends the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _blocks(lessons):
    """Divides the updates of a list of `Lesson` into a list of `Block`."""
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
    """Divides features into batches, under the program's names, in few bytes.

    Ids and places are below 2^16.
    """
    narrow = {f"batch/{name}": values.astype(np.uint16) for name, values in features.items()}
    return [
        {name: values[start : start + rows] for name, values in narrow.items()}
        for start in range(0, len(features["input_ids"]), rows)
    ]
