"""Reads the texts in a column of a Parquet or Arrow file, a few rows at a time."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from bert_common.arrow import import_pyarrow, report_damage
from bert_common.errors import InputError

# The kinds of files by their first bytes; no UTF-8 text begins with the third.
_MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Arrow file", b"\xff\xff\xff\xff": "Arrow stream"}

# The end of an Arrow stream; a file without it was cut off between two batches.
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"

# The maximum bytes and rows to decode at a time. Rows are limited too because a repeated text is
# stored only once.
_BATCH_BYTES, _BATCH_ROWS = 4_000_000, 256

# The maximum bytes that Parquet's reader fetches at a time; a column may be far larger.
_BUFFER_BYTES = 1 << 20


def table_kind(head: bytes) -> str | None:
    """Returns the kind of table by the first bytes of a file; None for other files."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def read_column(path: str, kind: str, key: str) -> Iterator[tuple[str | None, float]]:
    """Yields, for each row, the text in a column or None, and the share of the file read so far.

    Args:
        kind: the result of `table_kind`.
        key: the column's name; "a.b" is field b of column a, which holds structs.

    Raises:
        InputError: pyarrow is not installed, the file is damaged, it has no such column, or the
            column holds no texts.
    """
    pa = import_pyarrow(path, kind)
    batches = _parquet_batches if kind == "Parquet" else _arrow_batches
    row = 0
    with report_damage(path, kind), contextlib.ExitStack() as stack:
        for column, share in batches(pa, stack, path, kind, key):
            for value in column:
                row += 1
                yield _as_text(value, path, row), share


def check_column(path: str, kind: str, key: str) -> None:
    """Raises the errors of `read_column` about files and columns, reading at most one text."""
    for _ in read_column(path, kind, key):
        return


def _as_text(value, path, row):
    try:
        text = value.as_py()
        return text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, row {row}: the text must be UTF-8. Received: {error.reason}"
        ) from None


def _parquet_batches(pa, stack, path, kind, key):
    # Without pre_buffer=False, whole columns of a row group would be prefetched.
    file = stack.enter_context(
        pa.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    )
    names = _find_column(pa, file.schema_arrow, path, key)
    total, done = file.metadata.num_rows, 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        parts = map(group.column, range(group.num_columns))
        size = sum(p.total_uncompressed_size for p in parts if p.path_in_schema == key)
        rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * group.num_rows // max(1, size)))
        for batch in file.iter_batches(rows, [number], [key], use_threads=False):
            done += len(batch)
            yield _column(pa, batch, names), done / total


def _arrow_batches(pa, stack, path, kind, key):
    source, is_stream = stack.enter_context(pa.memory_map(path)), kind == "Arrow stream"
    if is_stream:
        source.seek(max(0, source.size() - len(_END_OF_STREAM)))
        if source.read() != _END_OF_STREAM:
            raise InputError(f"{path} must be a complete {kind}. Received: one without an end")
        source.seek(0)
    open_reader = pa.ipc.open_stream if is_stream else pa.ipc.open_file
    schema = open_reader(source).schema
    names = _find_column(pa, schema, path, key)
    field = schema.get_field_index(names[0])
    options = pa.ipc.IpcReadOptions(included_fields=[field], use_threads=False)
    source.seek(0)
    reader = open_reader(source, options=options)
    if is_stream:
        places = ((batch, source.tell() / source.size()) for batch in reader)
    else:
        count = reader.num_record_batches
        places = ((reader.get_batch(n), (n + 1) / count) for n in range(count))
    for batch, share in places:
        yield _column(pa, batch, names), share


def _column(pa, batch, names):
    column = batch.column(batch.schema.get_field_index(names[0]))
    for name in names[1:]:
        column = pa.compute.struct_field(column, name)
    return column


def _find_column(pa, schema, path, key):
    """Returns the names that lead to a column of texts, from the outermost struct inwards."""
    names = [key] if key in schema.names else key.split(".")
    fields = schema
    for name in names:
        known = [field.name for field in fields]
        if known.count(name) != 1:
            found = "two columns of that name" if name in known else f"columns {', '.join(known)}"
            raise InputError(
                f"{path} must have a column {key!r} (--text_key names another). Received: {found}"
            )
        kind = next(field.type for field in fields if field.name == name)
        fields = list(kind) if pa.types.is_struct(kind) else ()
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    texts = ("string", "large_string", "string_view", "binary", "large_binary", "null")
    if not any(getattr(pa.types, f"is_{name}")(value_kind) for name in texts):
        raise InputError(
            f"{path}, column {key!r}, must hold texts (--text_key names another). Received: {kind}"
        )
    return names


def saved_dataset_files(folder: str, state: Mapping[str, Any]) -> list[str]:
    """Lists the Arrow files of a Hugging Face `datasets` folder with this state.json, in order."""
    try:
        files = [os.path.join(folder, item["filename"]) for item in state["_data_files"]]
    except (KeyError, TypeError):
        files = []
    missing = [path for path in files if not os.path.isfile(path)]
    if missing or not files:
        raise InputError(
            f"{os.path.join(folder, 'state.json')} must name the data set's files. Received: "
            + (f"{missing[0]}, which is missing" if missing else "none")
        )
    return files
