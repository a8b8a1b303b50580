"""Describes the machine that a run was measured on."""

import dataclasses

from bert_common.cores import available_cores
from run_scripts.tools.check_devices.machine import cpu_info, memory_gib
from run_scripts.tools.check_devices.nvidia_smi import describe_gpus


@dataclasses.dataclass(frozen=True)
class Machine:
    """What decides how long a run takes."""

    processor: str
    cores: int  # that the run may use
    memory_gib: float | None  # None: the system does not tell
    gpus: tuple[str, ...] = ()  # their names; those that the environment hides count too

    def __str__(self):
        memory = "" if self.memory_gib is None else f", {self.memory_gib:.0f} GiB"
        gpus = "".join(f", {self.gpus.count(name)} x {name}" for name in dict.fromkeys(self.gpus))
        return f"{self.processor}, {self.cores} cores{memory}{gpus}"


def this_machine():
    """The `Machine` that this process runs on."""
    memory = memory_gib()
    return Machine(
        processor=cpu_info()[0],
        cores=available_cores(),
        memory_gib=None if memory is None else round(memory, 1),
        gpus=tuple(gpu["name"] for gpu in describe_gpus()["gpus"] or ()),
    )
