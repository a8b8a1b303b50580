"""The process of one contender of the benchmarks: this project's step, a peer's, or its products.

    python -m benchmarks.speed.contenders KIND JSON

is started by `contender.Contender`. It prints a line of JSON once it is warm, then one
for every line "STEPS" that it reads: the seconds per step and the peak of memory in GiB.

A kind is a function of `contender_steps`. It takes the task, a dict, and returns a function of the
number of steps that returns the seconds per step. A task has "model", "config" (its sizes),
"batch", "length", "predictions", "precision", and "xla": "auto", "on" or "off".
"""

import json
import os
import sys

from benchmarks.speed.contender_steps.matrix_products import matrix, products
from benchmarks.speed.contender_steps.peers import kerashub, transformers
from benchmarks.speed.contender_steps.project import project, update
from benchmarks.speed.contender_steps.torch_bert import torch_bert

WARM_UP = 2  # steps, unless the task says otherwise; the first compiles

KINDS = {
    function.__name__: function
    for function in (project, kerashub, transformers, torch_bert, products, update, matrix)
}


def peak_memory():
    """The peak in GiB: of the GPU's memory if one is used, else of the process."""
    tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
    if torch and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    if tf and tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**30
    # Not getrusage: that begins with the peak of the process that started this one.
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmHWM"].split()[0]) / 2**20


def main():
    """Answers "STEPS" by JSON until the input ends."""
    kind, task = sys.argv[1], json.loads(sys.argv[2])
    # Libraries print: what they print must not come among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if "cores" in task:
        os.sched_setaffinity(0, task["cores"])
    run = KINDS[kind](task)
    run(task.get("warm_up", WARM_UP))
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        answer = {"seconds": run(int(line)), "memory": peak_memory()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
