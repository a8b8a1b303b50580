"""Turns the resolved flags of create_pretraining_data into settings, manifest and plan."""

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_common.atomic_write import remove_partial_files, write_json
from bert_common.json_text import parse_json
from bert_common.progress import format_bytes
from create_pretraining_data.engine import splitting
from create_pretraining_data.engine.plain_text import TEXT_KEY, Source, write_plain
from create_pretraining_data.engine.size_estimate import SizeEstimate, estimate_records_size
from create_pretraining_data.engine.splitting import LONGEST_SEARCH, InputFile, cut_into_chunks
from create_pretraining_data.engine.work_folder import describe_inputs, locked
from create_pretraining_data.engine.work_plan import WorkPlan, count_buckets, work_folder_for
from create_pretraining_data.instances.make_instances import VERSION, InstanceSettings
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from create_pretraining_data.instances.pairs import PairRules
from create_pretraining_data.instances.sentences import describe_splitter
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from model_formats.encoders import ENCODERS
from run_scripts.flags.create_data import CreateDataFlags, ObjectiveDefaults
from run_scripts.flags.declaration import names_of
from tokenization.loading import Tokenizer


def make_settings(
    flags: CreateDataFlags, defaults: ObjectiveDefaults, tokenizer: Tokenizer
) -> InstanceSettings:
    """Creates `InstanceSettings`, which say how to make, mask and store sequences of documents."""
    special: Any = tokenizer  # `open_tokenizer` has checked that its ids are not None
    pair_rules = PairRules(
        objective=defaults.objective,
        max_seq_length=flags.max_seq_length,
        short_seq_prob=flags.short_seq_prob,
        cls_id=special.cls_id,
        sep_id=special.sep_id,
        long_lines=flags.long_lines,
    )
    masking_rules = MaskingRules(
        masked_lm_prob=flags.masked_lm_prob,
        max_predictions_per_seq=flags.max_predictions_per_seq,
        do_whole_word_mask=flags.do_whole_word_mask,
        ngram=flags.ngram,
        favor_shorter_ngram=flags.favor_shorter_ngram,
        do_permutation=flags.do_permutation,
        mask_id=special.mask_id,
        vocab_size=tokenizer.vocab_size,
        mask_replace_prob=flags.mask_replace_prob,
        random_replace_prob=flags.random_replace_prob,
    )
    record_format = RecordFormat(
        max_seq_length=flags.max_seq_length,
        max_predictions_per_seq=masking_rules.max_predictions,
        sentence_label=defaults.objective != "none",
        token_boundary=ENCODERS[defaults.model_type].token_boundary,
        packed_sequences=MAX_SEQUENCES if flags.packing else 0,
        masking=masking_rules if flags.masking == "dynamic" else None,
    )
    return InstanceSettings(pair_rules, masking_rules, record_format, flags.dupe_factor)


def make_manifest(
    flags: CreateDataFlags,
    defaults: ObjectiveDefaults,
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    output_files: Sequence[str],
) -> dict[str, Any]:
    """Lists everything that determines the bytes of the record files.

    Its keys appear in messages about differences.
    """
    deciding_flags = {f"--{name}": getattr(flags, name) for name in names_of(flags, "in_manifest")}
    formats = sorted({source.line_format for source in sources})
    folder = os.path.dirname(os.path.abspath(output_files[0]))
    return {
        **deciding_flags,
        "--input_format": ", ".join(formats),
        **({"--text_key": flags.text_key} if flags.text_key != TEXT_KEY else {}),
        "--objective": defaults.objective,
        "defaults": defaults.model_type,
        "tokenizer": tokenizer.fingerprint(),
        **({"sentence splitter": describe_splitter()} if flags.split_sentences else {}),
        "output files": [os.path.relpath(path, folder) for path in output_files],
        "bytes of a chunk": splitting.CHUNK_BYTES,
        "version": VERSION,
        **describe_inputs(source.path for source in sources),
        # A list, as the order of files matters and the order of a JSON object's keys does not.
        "input files": [os.path.abspath(source.path) for source in sources],
    }


def unpack_once(source: Source, plain: str) -> InputFile:
    """Writes a source's plain text, unless an earlier run did, and returns its `InputFile`.

    A JSON file beside the plain text, written last, says how many rows of the source were left out.
    """
    marker = f"{plain}.json"
    # Tasks that start together wait for the first. Partial files of killed ones take up space.
    with locked(os.path.dirname(plain), "unpack", wait=True):
        if not os.path.exists(marker):
            remove_partial_files([plain])
            write_json(marker, {"left_out": write_plain(source, plain)})
    left_out = parse_json(Path(marker).read_bytes())["left_out"]
    if left_out:
        print(f"{source.path}: rows without a text, left out: {left_out:,}")
    place, size = os.path.abspath(plain), os.path.getsize(plain)
    return InputFile(source.path, place, size, source.line_format, source.plain_key)


def make_plan(
    flags: CreateDataFlags,
    settings: InstanceSettings,
    tokenizer: Tokenizer,
    manifest: Mapping[str, Any],
    sources: Sequence[Source],
    output_files: Sequence[str],
) -> tuple[WorkPlan, SizeEstimate]:
    """Divides the work into chunks, buckets and shards; unpacks what is not plain text.

    Returns:
        The plan, and the size of its records, which determines the number of buckets.
    """
    folder = work_folder_for(output_files)
    inputs = []
    for number, source in enumerate(sources):
        if source.is_plain:
            place, size = os.path.abspath(source.path), os.path.getsize(source.path)
            inputs.append(InputFile(source.path, place, size, source.line_format, source.text_key))
        else:
            inputs.append(unpack_once(source, os.path.join(folder, f"input-{number:05d}")))
    chunks, continued = cut_into_chunks(inputs)
    if continued:
        warnings.warn(
            f"documents longer than {format_bytes(LONGEST_SEARCH)} are cut between two sentences, "
            f"lines longer than that between two words, at {len(continued):,} places: "
            "put a blank line between documents",
            stacklevel=2,
        )
    plan = WorkPlan(
        chunks=chunks,
        continued=continued,
        split_sentences=flags.split_sentences,
        drop_duplicates=flags.drop_duplicates,
        settings=settings,
        tokenizer=tokenizer,
        manifest=manifest,
        seed=flags.random_seed,
        # Absolute because the executors of a cluster start in other folders.
        output_files=[os.path.abspath(path) for path in output_files],
        compression=flags.compression,
        buckets_per_shard=1,
        folder=os.path.abspath(folder),
    )
    estimate = estimate_records_size(plan)
    buckets = count_buckets(estimate.records, len(output_files))
    return dataclasses.replace(plan, buckets_per_shard=buckets), estimate
