"""Compares the first GPU with the CPU on a few matrix products, then on one training step.

    python -m benchmarks.gpu.first_look --report=first_look.json

It computes a matrix product in each precision, then one jitted step of a tiny BERT and of a tiny
ALBERT, compared with the same step on the CPU in float32 without XLA. Without a GPU the CPU is
compared with itself.
"""

import time

from benchmarks.common import flag, launch, print_table
from bert_common.atomic_write import write_json
from run_scripts.tools.check_devices.tasks import precisions, tiny_rows

ENCODERS = {"BERT": "plain", "ALBERT": "albert"}  # name -> check_devices' option


def main(arguments):
    """Prints the table; returns exit status 1 if any result is not "ok"."""
    start = time.perf_counter()
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    device = "GPU:0" if gpus else "CPU:0"
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    name = details.get("device_name", "no GPU: the CPU stands in")
    print(f"TensorFlow {tf.__version__}, {name}, built with {tf.sysconfig.get_build_info()}\n")
    answers = [
        *({"what": f"product, {p}", **product(device, p)} for p in precisions(len(gpus))),
        *(
            {"what": f"step of {encoder}, {p}, XLA", **step(device, option, p)}
            for encoder, option in ENCODERS.items()
            for p in precisions(len(gpus))
        ),
    ]
    headings = ("what", "result", "difference or TFLOP/s")
    print_table(headings, map(row, answers))
    print(f"{time.perf_counter() - start:.0f} s in all")
    if arguments.report:
        found = {"device": name, "tensorflow": tf.__version__, "answers": answers}
        write_json(arguments.report, found)
    return int(any(answer["result"] != "ok" for answer in answers))


def product(device, precision):
    """Returns the answer of `measure_products`, or its error."""
    from benchmarks.speed.devices.products import measure_products

    return tried(measure_products, {"device": device, "precision": precision})


def step(device, option, precision):
    """Returns the answer of `check_step`, or its error."""
    from run_scripts.tools.check_devices.steps import check_step

    where = {"strategy": "one_device", "device": device, "xla": True}
    task = {**where, "precision": precision, "option": option, "rows": tiny_rows(1)}
    return tried(check_step, task)


def tried(function, task):
    """Returns a function's answer, or its error as the result, so that the next one still runs."""
    from run_scripts.tools.check_devices.worker import first_line

    try:
        return function(task)
    except Exception as error:  # any kind, as the next function may work
        return {"result": f"failed: {first_line(error)}"}


def row(answer):
    """Returns a row of the table."""
    speed, difference = answer.get("speed"), answer.get("difference")
    number = f"{speed / 1e12:.3g}" if speed else "" if difference is None else f"{difference:.1e}"
    return answer["what"], answer["result"], number


if __name__ == "__main__":
    launch(main, __doc__, {"report": flag(None, "a JSON file to write the answers to")})
