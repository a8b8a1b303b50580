"""Runs the two passes on Apache Spark: the tasks of `passes`, on executors that may die.

A task writes whole files, and what is in them depends on the plan and on its number. So it may
be tried again on another executor, or run on two at once, and the files are the same.
"""

import concurrent.futures
import contextlib
import functools
import os
import sys
from pathlib import Path

from bert_common.errors import InputError
from bert_common.stop_signals import block_signals_for_java
from create_pretraining_data.engine.spark_java import java_for_spark

# Where the packages are: executors import them from there if they are not installed.
_PACKAGES = str(Path(__file__).resolve().parents[2])

# How often the driver looks for tasks that are done.
_SECONDS = 0.2


@contextlib.contextmanager
def start_executors(plan, tokenizer, master):
    """Starts Spark, which ends with the context.

    Args:
        plan: a `WorkPlan`; its paths are those of a file system that all executors have.
        tokenizer: what cuts the text.
        master: the address of the cluster, as Spark writes it.

    Yields:
        A function from one of `passes`' tasks and a list of numbers to an iterator over
        (number, what the task returned), in the order in which they are done.

    Raises:
        InputError: what a task raised, no pyspark, no Java, a cluster that does not answer or
            gives up.
    """
    check_installed()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException

    # Executors run the Python of this process, which has what the tasks import.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName("create_pretraining_data")
    conf.set("spark.ui.showConsoleProgress", "false")  # there is a bar already
    with java_for_spark(), contextlib.ExitStack() as started:
        try:
            with block_signals_for_java():
                context = SparkContext(conf=conf, environment={"PYTHONPATH": _PACKAGES})
            started.callback(context.stop)
            shared = context.broadcast((plan, tokenizer))
        except (Py4JError, PySparkException) as error:
            raise InputError(
                f"Spark must start with --spark_master={master}. Received: {_reason(error)}"
            ) from None
        yield functools.partial(_run, context, shared)


def check_installed():
    """Sees that there is pyspark.

    Raises:
        InputError: there is none.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise InputError(
            "--engine=spark must have pyspark (pip install -e '.[spark]'). Received: not installed"
        ) from None


def _run(context, shared, task, numbers):
    if not numbers:
        return
    from py4j.protocol import Py4JJavaError

    # Spark adds what a task gathered once, however often the task was run.
    done = context.accumulator([], _Gathered())
    each = functools.partial(_do, shared, done, task)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        job = thread.submit(lambda: context.parallelize(numbers, len(numbers)).foreach(each))
        try:
            while not job.done() or done.value:
                while done.value:
                    number, result = done.value.pop(0)
                    if isinstance(result, InputError):
                        raise result
                    yield number, result
                concurrent.futures.wait([job], _SECONDS)
            job.result()
        except Py4JJavaError as error:
            if "PythonException" in str(error):  # a bug, which has its traceback
                raise
            raise InputError(
                "Spark must bring every task to its end. Received: "
                f"{_reason(error)}; the same command goes on from here"
            ) from None
        finally:
            if not job.done():
                context.cancelAllJobs()


def _do(shared, done, task, number):
    """What an executor does."""
    plan, tokenizer = shared.value
    try:
        result = task(plan, tokenizer, number)
    except InputError as error:
        result = error  # trying again would find the same
    done.add([(number, result)])


class _Gathered:
    """How Spark puts together what tasks add to a list."""

    def zero(self, value):
        return []

    def addInPlace(self, left, right):
        left += right
        return left


def _reason(error):
    """The first line of what Spark says; after it are Java's calls."""
    raised = getattr(error, "java_exception", None)
    return (raised.toString() if raised else str(error)).strip().splitlines()[0]
