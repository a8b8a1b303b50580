"""What was measured on Korean Wikipedia, for plans of other text.

24.0 MB (8,513 documents, 174,215 sentences, 5,320,997 pieces), one sentence a line, and a
vocabulary of 32,000 pieces learned from it with kiwipiepy. Seconds are the processor's, user
and system, of all processes together, on two cores of an Intel Xeon that other programs used as
well, which makes them more than on a quiet machine: means of two runs of packed next sentences
(15.7 s and 16.3 s at 128, 15.1 s and 15.4 s at 512), the others of one run, some at a higher load.
Text in other letters has other proportions: a run of create_pretraining_data.py on some megabytes
of it writes the same figures into its JSON file.
"""

from run_scripts.planning.corpus import Layout, TextStatistics

# What a further pass takes, (six passes - two passes) / 4 of next sentences, 24.0 MB: 23.3 s and
# 35.2 s at 128, 20.3 s and 41.0 s at 512. The first pass also cuts the text into pieces. Sentence
# order is taken to need the same.
FURTHER_128 = (35.2 - 23.3) / 4 / 24.0
FURTHER_512 = (41.0 - 20.3) / 4 / 24.0

# --packing --masking=dynamic, --max_predictions_per_seq=24 and 80. Next sentences, whole words.
NSP_PACKED_128 = Layout(
    rows_per_megabyte=2249.9,
    row_bytes=528.3,
    gzip_row_bytes=232.5,
    fill=0.9763,
    core_seconds_per_megabyte=16.0 / 24.0,
)
NSP_PACKED_512 = Layout(
    rows_per_megabyte=623.5,
    row_bytes=1695.9,
    gzip_row_bytes=865.9,
    fill=0.9965,
    core_seconds_per_megabyte=15.3 / 24.0,
)
# Sentence order, runs of up to three words.
SOP_PACKED_128 = Layout(
    rows_per_megabyte=1632.8,
    row_bytes=528.5,
    gzip_row_bytes=233.7,
    fill=0.9782,
    core_seconds_per_megabyte=20.0 / 24.0,
)
SOP_PACKED_512 = Layout(
    rows_per_megabyte=437.3,
    row_bytes=1693.2,
    gzip_row_bytes=852.5,
    fill=0.9907,
    core_seconds_per_megabyte=17.3 / 24.0,
)

# One sequence a row, static masks, --max_predictions_per_seq=20 and 77; seconds of two passes less
# the seconds of a further one.
NSP_SINGLE_128 = Layout(
    rows_per_megabyte=2425.8,
    row_bytes=826.6,
    gzip_row_bytes=248.4,
    fill=0.9061,
    core_seconds_per_megabyte=23.3 / 24.0 - FURTHER_128,
    core_seconds_per_further_pass=FURTHER_128,
)
NSP_SINGLE_512 = Layout(
    rows_per_megabyte=1018.2,
    row_bytes=2568.5,
    gzip_row_bytes=658.0,
    fill=0.6105,
    core_seconds_per_megabyte=20.3 / 24.0 - FURTHER_512,
    core_seconds_per_further_pass=FURTHER_512,
)
SOP_SINGLE_128 = Layout(
    rows_per_megabyte=1771.1,
    row_bytes=981.9,
    gzip_row_bytes=274.6,
    fill=0.9009,
    core_seconds_per_megabyte=22.5 / 24.0 - FURTHER_128,
    core_seconds_per_further_pass=FURTHER_128,
)
SOP_SINGLE_512 = Layout(
    rows_per_megabyte=668.0,
    row_bytes=3132.6,
    gzip_row_bytes=762.9,
    fill=0.6483,
    core_seconds_per_megabyte=20.9 / 24.0 - FURTHER_512,
    core_seconds_per_further_pass=FURTHER_512,
)

# Operations a second, by the formula of bert_tf/costs/flops.py, in the whole training of
# docs/results/runs.jsonl, reference-1/pretraining/64: 12,279 updates of 64 rows of 64, 12
# predictions and 8 sequences, in 0.4314 s each. Two cores of an Intel Xeon with AMX, in bfloat16.
# Model -> what a machine of two cores reaches; other sizes were not measured.
TWO_CORES_FLOPS = {"bert_mini": 205e9}

KOREAN_WIKIPEDIA = TextStatistics(
    sentences_per_megabyte=7258.6,
    bytes_per_piece=4.511,
    # kiwipiepy's analysis and the choice of pieces: 289 s for 24.0 MB.
    vocabulary_core_seconds_per_megabyte=289 / 24.0,
    vocabulary_megabytes=32.0,  # --most_megabytes
    layouts={
        ("nsp", "packed", 128): NSP_PACKED_128,
        ("nsp", "packed", 512): NSP_PACKED_512,
        ("sop", "packed", 128): SOP_PACKED_128,
        ("sop", "packed", 512): SOP_PACKED_512,
        ("nsp", "single", 128): NSP_SINGLE_128,
        ("nsp", "single", 512): NSP_SINGLE_512,
        ("sop", "single", 128): SOP_SINGLE_128,
        ("sop", "single", 512): SOP_SINGLE_512,
    },
)
