"""Runs the process of a contender: this project's step, a peer's, or a product.

    python -m benchmarks.speed.contenders --serve KIND JSON

is started by `start`. It receives a number of steps, and answers with the seconds per step and the
peak memory in GiB.

A kind is a function of `contender_steps`. It takes the task, a dict, and returns a function from
the number of steps to the seconds per step. A task has "model", "config" (its sizes), "batch",
"length", "predictions", "precision", and "xla", which is "auto", "on" or "off".
"""

import functools
import sys

from benchmarks.common import peak_gib, take_turns
from benchmarks.contender import Contender, serve
from benchmarks.speed.contender_steps.peers import kerashub, transformers
from benchmarks.speed.contender_steps.project import matrix, project
from benchmarks.speed.contender_steps.torch_bert import torch_bert

WARM_UP = 2  # steps, unless the task says otherwise; the first compiles

KINDS = {
    function.__name__: function
    for function in (project, kerashub, transformers, torch_bert, matrix)
}

# Starts a `Contender` of a kind and a task.
start = functools.partial(Contender, "benchmarks.speed.contenders")


def in_turns(contenders, rounds, steps):
    """Lets contenders run steps in turn; returns each one's seconds per step by round."""
    runs = {number: functools.partial(one.run, steps) for number, one in enumerate(contenders)}
    return list(take_turns(runs, rounds).values())


def make(kind, task):
    """Warms up the contender of a task; returns its function of a number of steps."""
    run = KINDS[kind](task)
    run(task.get("warm_up", WARM_UP))
    return lambda steps: {"seconds": run(steps), "memory": peak_memory()}


def peak_memory():
    """Returns the peak memory in GiB of the GPU if one is used, else of the process."""
    tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
    if torch and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    if tf and tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**30
    # Not getrusage, whose peak includes the process that started this one.
    return peak_gib()


if __name__ == "__main__":
    serve(make)
