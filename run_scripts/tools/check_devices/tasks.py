"""Lists the tasks of check_devices, dicts that `worker` takes one by one."""

from create_pretraining_data.instances.mask_processes import default_count
from create_pretraining_data.instances.packing import row_predictions
from run_scripts.tools.check_devices.processes import worker_environments
from run_scripts.tools.check_devices.steps import ON_ONE_DEVICE, ON_SEVERAL
from run_scripts.tools.check_devices.worker import SPLIT_VARIABLE

# Lengths of rows of models on GPUs, the longest last; on CPUs the first alone.
LENGTHS = (128, 512)

MASKED_SHARE = 0.15

# Two speeds whose ratio is above this differ by chance.
SAME_SPEED = 0.9

# How long the input pipeline reads.
PIPELINE_SECONDS = 10.0


def precisions(gpus):
    """The precisions to check; float16 only on GPUs."""
    return ("float32", "bfloat16", "float16") if gpus else ("float32", "bfloat16")


def devices(gpus):
    """The names of the devices to check."""
    return [f"GPU:{i}" for i in range(gpus)] or ["CPU:0"]


def tiny_rows(gpus):
    """Rows of a tiny batch that all GPUs, or two workers, can share in two microbatches each."""
    multiple = 4 * max(1, gpus)
    return -(-8 // multiple) * multiple


def check_tasks(gpus):
    """The checks of devices, strategies, XLA and precisions, those with several workers last."""
    where = [("one_device", device) for device in devices(gpus)]
    where += [("mirrored", None), ("multi_worker", None)]
    return [
        _check(gpus, strategy, device, xla=xla, precision=name)
        for strategy, device in where
        for xla in (False, True)
        for name in precisions(gpus)
    ]


def option_tasks(gpus):
    """The checks of `options.OPTIONS`, in float32 with XLA; several workers last.

    On a machine with one GPU two logical GPUs share it, so that there is something to reduce.
    """
    several = ["split"] if gpus == 1 else ["mirrored"]
    places = [("one_device", devices(gpus)[0], ON_ONE_DEVICE)]
    places += [(strategy, None, ON_SEVERAL) for strategy in several]
    places += [("multi_worker", None, ("three steps",))]
    return [
        {**_check(gpus, strategy, device, xla=True, precision="float32"), "option": option}
        for strategy, device, options in places
        for option in options
    ]


def _check(gpus, strategy, device, **others):
    return {
        "kind": "check",
        "strategy": strategy,
        "device": device,
        "rows": tiny_rows(gpus),
        **others,
    }


def check_groups(tasks, gpus):
    """The (tasks, environments) of checks, as `run_groups` takes them."""
    environments = {
        "multi_worker": lambda: worker_environments(gpus),
        "split": lambda: [{SPLIT_VARIABLE: "1"}],
    }
    groups = {}
    for task in tasks:
        name = task["strategy"] if task["strategy"] in environments else ""
        groups.setdefault(name, []).append(task)
    return [(group, environments.get(name, lambda: [{}])) for name, group in groups.items()]


def product_tasks(gpus):
    """The matrix products of every device and precision."""
    return [
        {"kind": "product", "strategy": "one_device", "device": device, "precision": name}
        for device in devices(gpus)
        for name in precisions(gpus)
    ]


def fastest_precision(gpus, products):
    """The precision with the fastest products on the first device.

    bfloat16 rather than float16 where both are as fast but for chance: it needs no loss scale.
    """
    first = devices(gpus)[0]
    speeds = {t["precision"]: a.get("speed", 0) for t, a in products if t["device"] == first}
    fastest = max(speeds, key=speeds.get, default="float32")
    if fastest == "float16" and speeds["bfloat16"] > SAME_SPEED * speeds["float16"]:
        return "bfloat16"
    return fastest


def model_tasks(gpus, sizes, precision, xla, memory_mib):
    """BERT of each size on the first device, with the parts of a step and a checkpoint.

    Args:
        gpus: their number.
        sizes: presets of `BertConfig`.
        precision: the fastest one.
        xla: "auto" or "off".
        memory_mib: of the first GPU; None if it is not known.
    """
    lengths = LENGTHS if gpus else LENGTHS[:1]
    return [
        {**_model(size, length, precision, xla), "memory_mib": memory_mib,
         "strategy": "one_device", "device": devices(gpus)[0], "parts": True}
        for size in sizes
        for length in lengths
    ]  # fmt: skip


def scaling_tasks(gpus, model, rows):
    """The first model on 1, 2, 4, ... GPUs, and on all; on a CPU, on two logical ones.

    Args:
        gpus: their number.
        model: a task of `model_tasks`.
        rows: that it had on a device.
    """
    counts = [2**i for i in range(1, gpus.bit_length()) if 2**i < gpus] + [gpus] * (gpus > 1)
    several = {**model, "strategy": "mirrored", "device": None, "rows": rows, "parts": True}
    if not gpus:
        return [several]
    return [{**several, "num_gpus": count} for count in counts]


def _model(size, length, precision, xla):
    return {
        "kind": "model",
        "size": size,
        "length": length,
        "predictions": row_predictions(length, MASKED_SHARE),
        "precision": precision,
        "xla": xla,
        "num_gpus": None,
        "rows": None,
    }


def pipeline_tasks(gpus):
    """The input pipeline, of the lengths that models have, with run_pretraining's processes."""
    lengths = LENGTHS if gpus else LENGTHS[:1]
    return [
        {"kind": "pipeline", "strategy": "one_device", "device": "CPU:0", "length": length,
         "precision": "float32", "seconds": PIPELINE_SECONDS, "mask_processes": default_count(gpus)}
        for length in lengths
    ]  # fmt: skip
