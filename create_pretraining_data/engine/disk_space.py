"""Sees that there is room for the records before any time is spent."""

import os
import shutil

from bert_common.errors import InputError
from bert_common.progress import format_bytes
from create_pretraining_data.engine.shards import finished_shard
from create_pretraining_data.engine.work_plan import DEFLATED


def check_free_space(plan, estimated_bytes):
    """Refuses to begin what would fill the disk.

    The records are there twice while the last shard is made: in the files of the chunks, and in
    the shards. What is there from an earlier start is taken into account.

    Args:
        plan: a `WorkPlan`.
        estimated_bytes: what `estimate_records_size` says.

    Raises:
        InputError: names a folder, what is needed, what is free.
    """
    chunk_files = map(plan.chunk_file, range(len(plan.chunks)))
    names = plan.files_there()
    there = sum(os.path.getsize(path) for path in chunk_files if path in names)
    needed, folders = {}, {}

    def need(folder, size):
        device = os.stat(folder).st_dev
        needed[device] = needed.get(device, 0) + size
        folders.setdefault(device, folder)

    need(plan.folder, max(0, estimated_bytes - there))
    ratio = DEFLATED if plan.compression == "GZIP" else 1
    for shard, path in enumerate(plan.output_files):
        if plan.shard_marker(shard) not in names or finished_shard(plan, shard) is None:
            need(os.path.dirname(path) or ".", ratio * estimated_bytes / len(plan.output_files))
    for device, size in needed.items():
        free = shutil.disk_usage(folders[device]).free
        if free < size:
            raise InputError(
                f"{folders[device]} must have room for about {format_bytes(size)}, the records and "
                f"their parts until these are put together. Received: {format_bytes(free)} free"
            )
