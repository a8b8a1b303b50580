"""Checks that the disks have room for the records before the work begins."""

import os
import shutil

from bert_common.errors import InputError
from bert_common.progress import format_bytes
from create_pretraining_data.engine.shards import find_unfinished_shards
from create_pretraining_data.engine.size_estimate import SizeEstimate
from create_pretraining_data.engine.work_plan import WorkPlan


def check_free_space(plan: WorkPlan, estimate: SizeEstimate) -> None:
    """Checks the free space of every disk that the run of a plan writes to.

    While the last shard is written, all records exist twice: in the chunk files and in the shards.
    Files of an earlier start are taken into account.
    """
    chunk_paths = map(plan.chunk_path, range(len(plan.chunks)))
    existing = plan.existing_files()
    done = sum(os.path.getsize(path) for path in chunk_paths if path in existing)
    needed: dict[int, float] = {}
    folders: dict[int, str] = {}

    def need(folder, size):
        device = os.stat(folder).st_dev
        needed[device] = needed.get(device, 0) + size
        folders.setdefault(device, folder)

    need(plan.folder, max(0, estimate.records - done))
    for shard in find_unfinished_shards(plan):
        folder = os.path.dirname(plan.output_files[shard]) or "."
        need(folder, estimate.files / len(plan.output_files))
    for device, size in needed.items():
        free = shutil.disk_usage(folders[device]).free
        if free < size:
            raise InputError(
                f"{folders[device]} must have room for about {format_bytes(size)}, for the records "
                f"and the intermediate files. Received: {format_bytes(free)} free"
            )
