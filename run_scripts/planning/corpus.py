"""Estimates the records of a corpus from its size in bytes."""

import dataclasses

MEGABYTE = 10**6
HOUR = 3600.0


@dataclasses.dataclass(frozen=True)
class Layout:
    """A way to store records, with measurements of it.

    All costs grow in proportion to the text, as docs/planning.md checks on 158 MB.
    """

    # Records of one pass over a megabyte (10^6 bytes) of text. With next-sentence pairs, a pass has
    # more tokens than the text because half of all second segments come from elsewhere.
    rows_per_megabyte: float
    row_bytes: float  # of a record in its file, not compressed
    gzip_row_bytes: float  # with --compression=GZIP
    fill: float  # the share of a row's positions that hold a token
    # User and system time of the first pass, which tokenizes the text, and of each further pass.
    core_seconds_per_megabyte: float
    core_seconds_per_further_pass: float = 0.0


@dataclasses.dataclass(frozen=True)
class TextStatistics:
    """Statistics of text and tokenizer, whose proportions are assumed to stay the same."""

    sentences_per_megabyte: float
    bytes_per_piece: float
    # The time of build_vocab.py, which reads a sample of at most `vocabulary_megabytes`.
    vocabulary_core_seconds_per_megabyte: float
    vocabulary_megabytes: float
    # (objective, "packed" with dynamic masks or "single" with static ones, T) -> `Layout`
    layouts: dict[tuple[str, str, int], Layout]


@dataclasses.dataclass(frozen=True)
class TextPlan:
    """The size of a text, and the time to learn its vocabulary."""

    sentences: float
    pieces: float
    vocabulary_hours: float


@dataclasses.dataclass(frozen=True)
class RecordPlan:
    """The size of the records of one length, and the time to make them."""

    rows: float  # of all stored passes
    disk_bytes: float  # of finished records; while they are made, twice that
    hours: float


def plan_text(statistics: TextStatistics, text_bytes: float) -> TextPlan:
    """Returns the `TextPlan` of a corpus, given its bytes of UTF-8."""
    megabytes = text_bytes / MEGABYTE
    sample = min(megabytes, statistics.vocabulary_megabytes)
    seconds = sample * statistics.vocabulary_core_seconds_per_megabyte
    return TextPlan(
        sentences=megabytes * statistics.sentences_per_megabyte,
        pieces=text_bytes / statistics.bytes_per_piece,
        vocabulary_hours=seconds / HOUR,
    )


def plan_records(
    layout: Layout, text_bytes: float, stored_passes: int, cores: int, compressed: bool = False
) -> RecordPlan:
    """Returns the `RecordPlan` of a corpus, given its bytes of UTF-8.

    Args:
        stored_passes: --dupe_factor; 1 for masks that are drawn while training.
        cores: the cores of the machine that makes the records; the work divides among them without
            loss, as was measured with two.
        compressed: whether --compression=GZIP is given.
    """
    megabytes = text_bytes / MEGABYTE
    rows = megabytes * layout.rows_per_megabyte
    size = layout.gzip_row_bytes if compressed else layout.row_bytes
    further = (stored_passes - 1) * layout.core_seconds_per_further_pass
    seconds = megabytes * (layout.core_seconds_per_megabyte + further) / cores
    return RecordPlan(
        rows=rows * stored_passes, disk_bytes=rows * stored_passes * size, hours=seconds / HOUR
    )
