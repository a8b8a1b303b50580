"""Makes all training instances of a corpus, in their shuffled order."""

from array import array
from typing import NamedTuple

from create_pretraining_data.masking import mask_sequence
from create_pretraining_data.pairs import LengthBalance, make_sequences


class Instance(NamedTuple):
    """One training instance, not padded; compact, as a whole corpus of them is kept."""

    input_ids: array  # [T]
    segment_ids: bytes  # [T]
    token_boundary: bytes  # [T] 1 where a word begins, and at [CLS] and [SEP]
    masked_lm_positions: array  # [P]
    masked_lm_ids: array  # [P]
    sentence_label: int | None


def make_instances(documents, pair_rules, masking_rules, dupe_factor, rng, progress=iter):
    """Passes over the documents `dupe_factor` times, each time with other cuts and masks.

    Args:
        documents: as `read_documents` returns them; their order is shuffled in a copy.
        pair_rules: `PairRules`.
        masking_rules: `MaskingRules`.
        dupe_factor: how many passes.
        rng: a `random.Random`; the same state gives the same instances.
        progress: wraps the list of (pass, document) while it is worked off.

    Returns:
        A shuffled list of `Instance`.
    """
    documents = list(documents)
    rng.shuffle(documents)
    balance = LengthBalance()
    passes = [index for _ in range(dupe_factor) for index in range(len(documents))]
    instances = [
        make_instance(sequence, mask_sequence(sequence, masking_rules, rng))
        for index in progress(passes)
        for sequence in make_sequences(documents, index, pair_rules, balance, rng)
    ]
    rng.shuffle(instances)
    return instances


def make_instance(sequence, masked):
    """Packs a `Sequence` with its `Masked` into an `Instance`."""
    boundary = bytearray(len(sequence.ids))
    for start, _ in sequence.words:
        boundary[start] = 1
    # [CLS] is before the first word, each [SEP] behind the last of its segment.
    boundary[0] = boundary[-1] = boundary[sequence.segment_ids.count(0) - 1] = 1
    return Instance(
        input_ids=array("i", masked.ids),
        segment_ids=bytes(sequence.segment_ids),
        token_boundary=bytes(boundary),
        masked_lm_positions=array("i", masked.positions),
        masked_lm_ids=array("i", masked.labels),
        sentence_label=sequence.sentence_label,
    )


def make_features(instance, record_format, pad_id=0):
    """Pads an instance to the features of a record.

    Args:
        instance: an `Instance`.
        record_format: a `RecordFormat`.
        pad_id: what stands behind the pieces.

    Returns:
        A dict from feature name to its values, for `record_format`.
    """
    padding = bytes(record_format.max_seq_length - len(instance.input_ids))
    missing = bytes(record_format.max_predictions_per_seq - len(instance.masked_lm_ids))
    features = {
        "input_ids": [*instance.input_ids, *[pad_id] * len(padding)],
        "input_mask": b"\1" * len(instance.input_ids) + padding,
        "segment_ids": instance.segment_ids + padding,
        "masked_lm_positions": [*instance.masked_lm_positions, *missing],
        "masked_lm_ids": [*instance.masked_lm_ids, *missing],
        "masked_lm_weights": b"\1" * len(instance.masked_lm_ids) + missing,
    }
    if record_format.sentence_label:
        features["next_sentence_labels"] = [instance.sentence_label]
    if record_format.token_boundary:
        features["token_boundary"] = instance.token_boundary + padding
    return features
