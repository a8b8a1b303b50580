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

    from benchmarks.speed.devices.products import measure_products
    from run_scripts.tools.check_devices.steps import check_step

    gpus = tf.config.list_physical_devices("GPU")
    device = "GPU:0" if gpus else "CPU:0"
    details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
    name = details.get("device_name", "no GPU: the CPU stands in")
    print(f"TensorFlow {tf.__version__}, {name}, built with {tf.sysconfig.get_build_info()}\n")
    where = {"strategy": "one_device", "device": device, "xla": True, "rows": tiny_rows(1)}
    kinds = {"product": (measure_products, None)}
    kinds |= {f"step of {name}": (check_step, option) for name, option in ENCODERS.items()}
    answers = [
        {
            "what": f"{what}, {precision}{', XLA' if option else ''}",
            **tried(function, {**where, "precision": precision, "option": option}),
        }
        for what, (function, option) in kinds.items()
        for precision in precisions(len(gpus))
    ]
    headings = ("what", "result", "difference or TFLOP/s")
    print_table(headings, map(row, answers))
    print(f"{time.perf_counter() - start:.0f} s in all")
    if arguments.report:
        found = {"device": name, "tensorflow": tf.__version__, "answers": answers}
        write_json(arguments.report, found)
    return int(any(answer["result"] != "ok" for answer in answers))


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
