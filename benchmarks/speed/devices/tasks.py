"""Lists all measurements as tasks, which check_devices' worker takes one by one."""

from create_pretraining_data.instances.mask_processes import default_count
from create_pretraining_data.instances.packing import row_predictions
from run_scripts.tools.check_devices.tasks import devices, precisions

PRODUCT = "benchmarks.speed.devices.products:measure_products"
MODEL = "benchmarks.speed.devices.models:measure_model"
PIPELINE = "benchmarks.speed.devices.pipeline:measure_pipeline"

# A process that trains a model counts as hung after this time without an answer. It is long, as
# the model is compiled again for each batch that is tried.
SILENCE_SECONDS = 1800

# The row lengths of models on GPUs, the longest last. CPUs use only the first.
LENGTHS = (128, 512)

MASKED_SHARE = 0.15

# Two speeds whose ratio is above this are considered equal.
SAME_SPEED = 0.9

# How long the input pipeline reads.
PIPELINE_SECONDS = 10.0


def product_tasks(gpus):
    """Returns the tasks for matrix products, for every device and precision."""
    return [
        {"kind": PRODUCT, "strategy": "one_device", "device": device, "precision": name}
        for device in devices(gpus)
        for name in precisions(gpus)
    ]


def fastest_precision(gpus, products):
    """Returns the precision with the fastest products on the first device.

    Prefers bfloat16 to float16 if both are about equally fast, as it needs no loss scale.
    """
    first = devices(gpus)[0]
    speeds = {t["precision"]: a.get("speed", 0) for t, a in products if t["device"] == first}
    fastest = max(speeds, key=speeds.get, default="float32")
    if fastest == "float16" and speeds["bfloat16"] > SAME_SPEED * speeds["float16"]:
        return "bfloat16"
    return fastest


def model_tasks(gpus, sizes, precision, xla, memory_mib):
    """Returns the tasks for BERT of each size on the first device.

    Args:
        gpus: the number of GPUs.
        sizes: presets of `BertConfig`.
        precision: the fastest precision.
        xla: "auto" or "off".
        memory_mib: the memory of the first GPU; None if not known.
    """
    lengths = LENGTHS if gpus else LENGTHS[:1]
    return [
        {"kind": MODEL, "silence_seconds": SILENCE_SECONDS, "size": size, "length": length,
         "predictions": row_predictions(length, MASKED_SHARE), "precision": precision, "xla": xla,
         "num_gpus": None, "rows": None, "memory_mib": memory_mib,
         "strategy": "one_device", "device": devices(gpus)[0]}
        for size in sizes
        for length in lengths
    ]  # fmt: skip


def scaling_tasks(gpus, model, rows):
    """Returns the tasks for a model on 2, 4, ... and all GPUs, or on two logical CPUs.

    Args:
        gpus: the number of GPUs.
        model: a task of `model_tasks`.
        rows: the rows per device in that task.
    """
    counts = [2**i for i in range(1, gpus.bit_length()) if 2**i < gpus] + [gpus] * (gpus > 1)
    several = {**model, "strategy": "mirrored", "device": None, "rows": rows}
    if not gpus:
        return [several]
    return [{**several, "num_gpus": count} for count in counts]


def pipeline_tasks(gpus):
    """Returns the tasks for the input pipeline, with run_pretraining's number of processes."""
    lengths = LENGTHS if gpus else LENGTHS[:1]
    return [
        {"kind": PIPELINE, "strategy": "one_device", "device": "CPU:0", "length": length,
         "precision": "float32", "seconds": PIPELINE_SECONDS, "mask_processes": default_count(gpus)}
        for length in lengths
    ]  # fmt: skip
