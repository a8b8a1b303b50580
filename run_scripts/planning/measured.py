"""Holds the measurements on Korean Wikipedia from which the costs of other text are planned.

The text has 24.0 MB (8,513 documents, 174,215 sentences, 5,320,997 tokens), one sentence per line,
and its vocabulary of 32,000 tokens was learned from it with kiwipiepy. Seconds are user and system
time of all processes together, on two cores of an Intel Xeon that other programs also used, so they
are longer than on a quiet machine. Packed next-sentence pairs have means of two runs (15.7 s and
16.3 s at 128, 15.1 s and 15.4 s at 512); the others are of single runs, some at a higher load. Text
in other scripts has other proportions; a run of create_pretraining_data.py on some megabytes of it
writes the same figures into its JSON file.
"""

from run_scripts.planning.corpus import Layout, TextStatistics

# The seconds per megabyte of a further pass: (six passes - two passes) / 4 of next-sentence pairs
# on 24.0 MB, where two and six passes took 23.3 s and 35.2 s at 128, 20.3 s and 41.0 s at 512. The
# first pass also tokenizes the text. Sentence order is assumed to need the same.
FURTHER_128 = (35.2 - 23.3) / 4 / 24.0
FURTHER_512 = (41.0 - 20.3) / 4 / 24.0


def _static(rows, row_bytes, gzip_bytes, fill, seconds, further):
    return Layout(rows, row_bytes, gzip_bytes, fill, seconds - further, further)


# Model -> operations per second on two cores of an Intel Xeon with AMX, in bfloat16; other sizes
# were not measured. Counted by the formula of bert_tf/costs/flops.py over the whole training
# reference-1/pretraining/64 in docs/results/runs.jsonl: 12,279 updates of 0.4314 s each, with 64
# rows of 64 tokens, 12 predictions and 8 sequences.
TWO_CORES_FLOPS = {"bert_mini": 205e9}

KOREAN_WIKIPEDIA = TextStatistics(
    sentences_per_megabyte=7258.6,
    bytes_per_piece=4.511,
    # kiwipiepy's analysis and the choice of tokens took 289 s for 24.0 MB.
    vocabulary_core_seconds_per_megabyte=289 / 24.0,
    vocabulary_megabytes=32.0,  # --most_megabytes
    # The columns are the fields of `Layout`. "packed": --packing --masking=dynamic and
    # --max_predictions_per_seq=24 and 80. "single": one sequence per row, static masks, 20 and 77
    # predictions; its seconds are two passes minus a further one. Next sentences mask whole words,
    # sentence order masks runs of up to three.
    layouts={
        ("nsp", "packed", 128): Layout(2249.9, 528.3, 232.5, 0.9763, 16.0 / 24.0),
        ("nsp", "packed", 512): Layout(623.5, 1695.9, 865.9, 0.9965, 15.3 / 24.0),
        ("sop", "packed", 128): Layout(1632.8, 528.5, 233.7, 0.9782, 20.0 / 24.0),
        ("sop", "packed", 512): Layout(437.3, 1693.2, 852.5, 0.9907, 17.3 / 24.0),
        ("nsp", "single", 128): _static(2425.8, 826.6, 248.4, 0.9061, 23.3 / 24.0, FURTHER_128),
        ("nsp", "single", 512): _static(1018.2, 2568.5, 658.0, 0.6105, 20.3 / 24.0, FURTHER_512),
        ("sop", "single", 128): _static(1771.1, 981.9, 274.6, 0.9009, 22.5 / 24.0, FURTHER_128),
        ("sop", "single", 512): _static(668.0, 3132.6, 762.9, 0.6483, 20.9 / 24.0, FURTHER_512),
    },
)
