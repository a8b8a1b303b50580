"""Turns the resolved flags of create_pretraining_data into settings, manifest and plan."""

import datetime
import os
import warnings

from bert_common.atomic_write import write_json
from bert_common.json_text import parse_json
from bert_common.progress import format_bytes
from create_pretraining_data.engine import splitting
from create_pretraining_data.engine.splitting import (
    LONGEST_SEARCH,
    InputFile,
    cut_into_chunks,
    inflate,
    is_gzip,
)
from create_pretraining_data.engine.work_plan import WorkPlan, count_buckets, estimate_records_size
from create_pretraining_data.instances.make_instances import VERSION, InstanceSettings
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from create_pretraining_data.instances.pairs import PairRules
from create_pretraining_data.instances.sentences import describe_splitter
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat

# Flags that do not determine the bytes, or that another entry of the manifest covers.
NOT_IN_MANIFEST = (
    "input_file", "output_file", "vocab_file", "spm_model_file", "tokenizer", "tokenizer_dir",
    "do_lower_case", "random_next_sentence", "input_file_mode", "parallel", "num_workers",
    "num_tasks", "task_index", "engine", "spark_master", "model_dir",
)  # fmt: skip


def make_settings(flags, defaults, tokenizer):
    """Creates `InstanceSettings`: how documents become sequences, these are masked and stored.

    Args:
        flags: `CreateDataFlags`, resolved.
        defaults: `ObjectiveDefaults`.
        tokenizer: cuts the text into pieces.
    """
    pair_rules = PairRules(
        objective=defaults.objective,
        max_seq_length=flags.max_seq_length,
        short_seq_prob=flags.short_seq_prob,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    masking_rules = MaskingRules(
        masked_lm_prob=flags.masked_lm_prob,
        max_predictions_per_seq=flags.max_predictions_per_seq,
        do_whole_word_mask=flags.do_whole_word_mask,
        ngram=flags.ngram,
        favor_shorter_ngram=flags.favor_shorter_ngram,
        do_permutation=flags.do_permutation,
        mask_id=tokenizer.mask_id,
        vocab_size=tokenizer.vocab_size,
    )
    record_format = RecordFormat(
        max_seq_length=flags.max_seq_length,
        max_predictions_per_seq=masking_rules.max_predictions,
        sentence_label=defaults.objective != "none",
        # As in ALBERT's script, whose training program reads it.
        token_boundary=defaults.model_type == "albert",
        packed_sequences=MAX_SEQUENCES if flags.packing else 0,
        masking=masking_rules if flags.masking == "dynamic" else None,
    )
    return InstanceSettings(pair_rules, masking_rules, record_format, flags.dupe_factor)


def make_manifest(flags, defaults, tokenizer, input_files, output_files):
    """Lists everything that determines the bytes of the record files.

    Args:
        flags, defaults, tokenizer: as for `make_settings`.
        input_files, output_files: paths.

    Returns:
        A flat dict; its keys appear in messages about differences.
    """
    deciding_flags = {
        f"--{name}": value for name, value in vars(flags).items() if name not in NOT_IN_MANIFEST
    }
    inputs = {}
    for path in input_files:
        status = os.stat(path)
        modified = datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC).isoformat()
        inputs[f"input {os.path.abspath(path)}"] = f"{status.st_size} bytes of {modified}"
    folder = os.path.dirname(os.path.abspath(output_files[0]))
    return {
        **deciding_flags,
        "--objective": defaults.objective,
        "defaults": defaults.model_type,
        "tokenizer": tokenizer.fingerprint(),
        **({"sentence splitter": describe_splitter()} if flags.split_sentences else {}),
        "output files": [os.path.relpath(path, folder) for path in output_files],
        "bytes of a chunk": splitting.CHUNK_BYTES,
        "version": VERSION,
        **inputs,
        # A list, as the order of files matters and that of a JSON object's keys does not.
        "input files": [os.path.abspath(path) for path in input_files],
    }


def inflate_once(path, plain):
    """Decompresses a gzip file unless an earlier run did; a JSON file beside it has the size."""
    marker = f"{plain}.json"
    try:
        with open(marker, encoding="utf-8") as file:
            is_done = parse_json(file.read())["size"] == os.path.getsize(plain)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        is_done = False
    if not is_done:
        inflate(path, plain)
        write_json(marker, {"size": os.path.getsize(plain)})


def make_plan(flags, settings, input_files, output_files, folder):
    """Divides the work into chunks, buckets and shards: a `WorkPlan`.

    Args:
        flags: `CreateDataFlags`, resolved.
        settings: `InstanceSettings`.
        input_files, output_files: paths.
        folder: the work folder, into which gzip files are decompressed.

    Raises:
        InputError: a gzip file is damaged.
    """
    sources = []
    for number, path in enumerate(input_files):
        plain = path
        if is_gzip(path):
            plain = os.path.join(folder, f"input-{number:05d}")
            inflate_once(path, plain)
        sources.append(InputFile(path, os.path.abspath(plain), os.path.getsize(plain)))
    chunks, continued = cut_into_chunks(sources, flags.input_format)
    if continued:
        remedy = {
            "text": "put a blank line between documents",
            "jsonl": "put each document on its own line",
        }
        warnings.warn(
            f"documents longer than {format_bytes(LONGEST_SEARCH)} are cut between two sentences, "
            f"lines longer than that between two words, at {len(continued):,} places: "
            f"{remedy[flags.input_format]}",
            stacklevel=2,
        )
    estimate = estimate_records_size(sum(source.size for source in sources), settings)
    return WorkPlan(
        chunks=chunks,
        continued=continued,
        input_format=flags.input_format,
        split_sentences=flags.split_sentences,
        settings=settings,
        seed=flags.random_seed,
        # Absolute, as the executors of a cluster start in other folders.
        output_files=[os.path.abspath(path) for path in output_files],
        compression=flags.compression,
        buckets_per_shard=count_buckets(estimate, len(output_files)),
        folder=os.path.abspath(folder),
    )
