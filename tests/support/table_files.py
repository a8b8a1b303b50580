"""Writes rows as Parquet and Arrow files, and as Hugging Face's `datasets` lays them out."""

import json

import pyarrow as pa
import pyarrow.parquet as pq


def as_table(texts, key="text", kind=None):
    """A table of texts, with a column of numbers before it."""
    column = pa.array(texts, kind or pa.string())
    return pa.table({"id": range(len(texts)), key: column})


def write_parquet(path, table, **options):
    pq.write_table(table, path, **{"row_group_size": 37, **options})


def write_arrow_stream(path, table, rows=29, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table, max_chunksize=rows)


def write_arrow_file(path, table, rows=29):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def save_dataset(folder, table, files=2):
    """As `Dataset.save_to_disk`, without what is not read."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05d}-of-{files:05d}.arrow" for number in range(files)]
    for number, name in enumerate(names):
        first, last = (table.num_rows * k // files for k in (number, number + 1))
        write_arrow_stream(folder / name, table.slice(first, last - first))
    state = {
        "_data_files": [{"filename": name} for name in names],
        "_split": None,
        # What `datasets` needs to read it too.
        "_fingerprint": "0", "_format_type": None, "_format_columns": None,
        "_format_kwargs": {}, "_output_all_columns": False,
    }  # fmt: skip
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def save_splits(folder, **tables):
    """As `DatasetDict.save_to_disk`."""
    for name, table in tables.items():
        save_dataset(folder / name, table)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(tables)}))
