"""Lists what is measured, as tasks that check_devices' worker takes one by one."""

from create_pretraining_data.instances.mask_processes import default_count
from create_pretraining_data.instances.packing import row_predictions
from run_scripts.tools.check_devices.tasks import devices, precisions

PRODUCT = "benchmarks.speed.devices.products:measure_products"
MODEL = "benchmarks.speed.devices.models:measure_model"
PIPELINE = "benchmarks.speed.devices.pipeline:measure_pipeline"

# A process that trains a model and gives no answer for so long is taken to hang: the model is
# compiled anew for each batch that is tried.
SILENCE_SECONDS = 1800

# Lengths of rows of models on GPUs, the longest last; on CPUs the first alone.
LENGTHS = (128, 512)

MASKED_SHARE = 0.15

# Two speeds whose ratio is above this differ by chance.
SAME_SPEED = 0.9

# How long the input pipeline reads.
PIPELINE_SECONDS = 10.0


def product_tasks(gpus):
    """The matrix products of every device and precision."""
    return [
        {"kind": PRODUCT, "strategy": "one_device", "device": device, "precision": name}
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
         "strategy": "one_device", "device": devices(gpus)[0]}
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
    several = {**model, "strategy": "mirrored", "device": None, "rows": rows}
    if not gpus:
        return [several]
    return [{**several, "num_gpus": count} for count in counts]


def _model(size, length, precision, xla):
    return {
        "kind": MODEL,
        "silence_seconds": SILENCE_SECONDS,
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
        {"kind": PIPELINE, "strategy": "one_device", "device": "CPU:0", "length": length,
         "precision": "float32", "seconds": PIPELINE_SECONDS, "mask_processes": default_count(gpus)}
        for length in lengths
    ]  # fmt: skip
