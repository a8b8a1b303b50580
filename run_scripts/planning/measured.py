"""What was measured on Korean Wikipedia, for plans of other text.

24.0 MB (8,513 documents, 174,215 sentences, 5,320,997 pieces), one sentence a line, a vocabulary of
32,000 pieces learned from it with kiwipiepy, next sentences, whole words masked, chunks as they are
by default; an Intel Xeon of which two cores were there and others had their share, so times are
those of the processor (user and system, all processes), of two runs where there are two. Sentence
order instead of next sentences: docs/planning.md. Text in other letters has other proportions: run
create_pretraining_data.py on some megabytes of it, whose JSON file has the same figures.
"""

from run_scripts.planning.corpus import Layout, TextStatistics

# --packing --masking=dynamic; --max_predictions_per_seq=24 and 80
PACKED_128 = Layout(
    rows_per_megabyte=2249.9,
    row_bytes=528.3,
    gzip_row_bytes=240.0,
    fill=0.9763,
    core_seconds_per_megabyte=0.667,
)
PACKED_512 = Layout(
    rows_per_megabyte=623.5,
    row_bytes=1695.9,
    gzip_row_bytes=900.0,
    fill=0.9965,
    core_seconds_per_megabyte=0.635,
)

# Static masks, a sequence a row; --max_predictions_per_seq=20 and 77, two and six passes.
SINGLE_128 = Layout(
    rows_per_megabyte=2425.8,
    row_bytes=826.6,
    gzip_row_bytes=300.0,
    fill=0.9061,
    core_seconds_per_megabyte=0.6,
    core_seconds_per_further_pass=0.3,
)
SINGLE_512 = Layout(
    rows_per_megabyte=1018.2,
    row_bytes=2568.5,
    gzip_row_bytes=1000.0,
    fill=0.6105,
    core_seconds_per_megabyte=0.5,
    core_seconds_per_further_pass=0.25,
)

KOREAN_WIKIPEDIA = TextStatistics(
    sentences_per_megabyte=7258.6,
    bytes_per_piece=4.511,
    # Of kiwipiepy's analysis and of choosing the pieces: 289 s for 24 MB.
    vocabulary_core_seconds_per_megabyte=12.04,
    vocabulary_megabytes=32.0,  # --most_megabytes
    layouts={
        ("packed", 128): PACKED_128,
        ("packed", 512): PACKED_512,
        ("single", 128): SINGLE_128,
        ("single", 512): SINGLE_512,
    },
)
