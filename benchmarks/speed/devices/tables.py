"""Makes the rows of the printed tables from the answers."""

from benchmarks.speed.devices.products import PRODUCT_SIZES

PRODUCT_HEADINGS = ("device", "what", "precision", "speed", "result")
MODEL_HEADINGS = (
    "model", "devices", "rows", "XLA", "precision", "steps/s", "rows/s", "utilisation",
    "memory (estimate)", "result",
)  # fmt: skip
PART_HEADINGS = (
    "model", "devices", "forward and backward", "reduction", "update", "idle", "step",
    "checkpoint: training waits", "written in",
)  # fmt: skip
PIPELINE_HEADINGS = (
    "rows of", "processes for masks", "input pipeline", "the models' need on all devices", "result",
)  # fmt: skip


def product_row(pair):
    """A row about a matrix product from (task, answer)."""
    task, answer = pair
    size = PRODUCT_SIZES[task["device"][:3]]
    speed = f"{answer['speed'] / 1e12:.3g} TFLOP/s" if "speed" in answer else ""
    what = f"matrix product, {size} x {size}"
    return task["device"], what, task["precision"], speed, answer["result"]


def model_row(pair):
    """A row about the training of a model from (task, answer)."""
    task, answer = pair
    name = model_name(task)
    if "rows" not in answer:
        return (name, "", "", "", task["precision"], "", "", "", "", answer["result"])
    used = answer["utilisation"]
    memory = f"{answer['memory'] / 2**30:.1f}" if answer["memory"] else "?"
    return (
        name,
        str(answer["devices"]),
        f"{answer['rows']} each",
        answer["xla"],
        task["precision"],
        f"{answer['steps_per_second']:.3g}",
        f"{answer['rows_per_second']:.4g}",
        "" if used is None else f"{used:.0%}",
        f"{memory} GiB ({answer['estimated_memory'] / 2**30:.1f})",
        answer["result"],
    )


def part_row(pair):
    """A row about the parts of a step and a checkpoint from (task, answer)."""
    task, answer = pair
    if not answer.get("parts"):
        return None
    parts, checkpoint = answer["parts"], answer["checkpoint"]
    names = ("forward and backward", "reduction", "update", "idle", "step")
    return (
        model_name(task),
        str(answer["devices"]),
        *(f"{1000 * parts[name]:.3g} ms" for name in names),
        f"{checkpoint['copy']:.3g} s",
        f"{checkpoint['write']:.3g} s, {checkpoint['bytes'] / 1e9:.3g} GB",
    )


def pipeline_row(pair, demands):
    """A row about the input pipeline from (task, answer).

    Args:
        pair: as for the others.
        demands: length -> a list of (model, rows a second that it trains).
    """
    task, answer = pair
    speed = f"{answer['rows_per_second']:,.0f} rows/s" if "rows_per_second" in answer else ""
    needs = ", ".join(f"{name} {rows:,.0f}" for name, rows in demands.get(task["length"], ()))
    count = str(task["mask_processes"])
    return str(task["length"]), count, speed, needs or "not measured", answer["result"]


def model_name(task):
    """For example "BERT-base, 128"."""
    return f"BERT-{task['size']}, {task['length']}"
