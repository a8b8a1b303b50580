"""Lists the tasks of check_devices as dicts, which `worker` runs one by one."""

from collections.abc import Iterable

from run_scripts.tools.check_devices.processes import Environments, Job, worker_environments
from run_scripts.tools.check_devices.steps import ON_ONE_DEVICE, ON_SEVERAL
from run_scripts.tools.check_devices.worker import SPLIT_VARIABLE

CHECK = "run_scripts.tools.check_devices.steps:check_step"


def precisions(gpus: int) -> tuple[str, ...]:
    """Returns the precisions to check; float16 only on GPUs."""
    return ("float32", "bfloat16", "float16") if gpus else ("float32", "bfloat16")


def devices(gpus: int) -> list[str]:
    """Returns the names of the devices to check."""
    return [f"GPU:{i}" for i in range(gpus)] or ["CPU:0"]


def tiny_rows(gpus: int) -> int:
    """Returns a number of rows that all GPUs or two workers can share in two microbatches each."""
    multiple = 4 * max(1, gpus)
    return -(-8 // multiple) * multiple


def check_tasks(gpus: int) -> list[Job]:
    """Returns the checks of devices, strategies, XLA and precisions, with several workers last."""
    where: list[tuple[str, str | None]] = [("one_device", device) for device in devices(gpus)]
    where += [("mirrored", None), ("multi_worker", None)]
    return [
        _check(gpus, strategy, device, xla=xla, precision=name)
        for strategy, device in where
        for xla in (False, True)
        for name in precisions(gpus)
    ]


def option_tasks(gpus: int) -> list[Job]:
    """Returns the checks of `steps.OPTIONS`, in float32 with XLA, with several workers last.

    On a machine with one GPU, two logical GPUs share it, so that there is something to reduce.
    """
    places: list[tuple[str, str | None, tuple[str, ...]]] = [
        ("one_device", devices(gpus)[0], ON_ONE_DEVICE),
        ("split" if gpus == 1 else "mirrored", None, ON_SEVERAL),
        ("multi_worker", None, ("three steps",)),
    ]
    return [
        {**_check(gpus, strategy, device, xla=True, precision="float32"), "option": option}
        for strategy, device, options in places
        for option in options
    ]


def _check(gpus, strategy, device, **others):
    rows = tiny_rows(gpus)
    return {"kind": CHECK, "strategy": strategy, "device": device, "rows": rows, **others}


def check_groups(tasks: Iterable[Job], gpus: int) -> list[tuple[list[Job], Environments]]:
    """Groups the checks as (tasks, environments), the arguments of `run_groups`."""
    environments = {
        "multi_worker": lambda: worker_environments(gpus),
        "split": lambda: [{SPLIT_VARIABLE: "1"}],
    }
    groups: dict[str, list[Job]] = {}
    for task in tasks:
        name = task["strategy"] if task["strategy"] in environments else ""
        groups.setdefault(name, []).append(task)
    return [(group, environments.get(name, lambda: [{}])) for name, group in groups.items()]
