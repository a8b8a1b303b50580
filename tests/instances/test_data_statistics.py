"""The data has the statistics of Google's, except where Google's bugs are fixed."""

import collections
import dataclasses
import functools
import gzip
import json
import math
import random

import numpy as np
import pytest

from create_pretraining_data.instances import masking
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.dynamic_masking import make_dynamic_features, mask_records
from create_pretraining_data.instances.masking import find_units, mask_sequences, prediction_counts
from create_pretraining_data.instances.packing import lay_out
from create_pretraining_data.instances.pairs import LengthBalance, PairRules, make_pairs
from create_pretraining_data.instances.sequences import assemble
from create_pretraining_data.instances.text import tokenize_documents
from create_pretraining_data.records.record_format import RecordFormat
from run_scripts.create_data_plan import make_settings
from run_scripts.flags.create_data import CreateDataFlags, choose_objective, resolve_defaults
from run_scripts.flags.parser import parse
from tests.support.crosses import but_slow, slow
from tests.support.paths import SHARED, TEST_DATA
from tokenization import FullTokenizer, KoreanTokenizer, SentencePieceTokenizer

DATA = TEST_DATA / "pretraining_data"
GOOGLE = json.loads((DATA / "statistics.json").read_text())
SETTINGS = list(GOOGLE)
QUICK = ("bert_default", "bert_wwm", "albert_wp_favor_longer", "albert_spm_default")
NGRAM_SETTINGS = [name for name in SETTINGS if "ngrams_drawn" in GOOGLE[name]]
MAX_SEQ_LENGTH = 128
SIGMAS = 4  # one false alarm in 16,000 comparisons, were the two samples independent draws


@functools.cache
def english(setting="bert_default"):
    """The tokenizer of a setting's flags, with the text's documents."""
    flags = " ".join(GOOGLE[setting]["flags"])
    if "--spm_model_file" in flags:
        tokenizer = SentencePieceTokenizer(DATA.parent / "tokenization" / "spm_small.model")
    else:
        tokenizer = FullTokenizer(DATA / "vocab.txt", "--do_lower_case=False" not in flags)
    text = gzip.decompress((DATA / "synth.txt.gz").read_bytes()).decode("utf-8")
    return tokenizer, documents_of(text)


def documents_of(text):
    """One sentence a line, a blank line between documents."""
    documents = [document.split("\n") for document in text.split("\n\n")]
    documents = [[line.strip() for line in document if line.strip()] for document in documents]
    return [document for document in documents if document]


def rules(setting):
    """The rules that the program would have for a setting's flags."""
    tokenizer, _ = english(setting)
    script_flags = [] if setting.startswith("bert") else ["--input_file_mode=r"]  # of ALBERT
    argv = ["program", "--input_file=x", *script_flags, *GOOGLE[setting]["flags"]]
    flags = parse(CreateDataFlags, argv)
    defaults = choose_objective(flags)
    flags = resolve_defaults(flags, defaults.model_type)
    flags = dataclasses.replace(flags, max_seq_length=MAX_SEQ_LENGTH)  # as Google's was run
    settings = make_settings(flags, defaults, tokenizer)
    return settings.pair_rules, settings.masking_rules


# Settings with the same tokenizer share their sequences.
ALIKE = {name: name for name in ("bert_cased", "albert_spm_default", "albert_spm_random_next")}


def sequences(objective, passes, setting="bert_default"):
    return _sequences(objective, passes, ALIKE.get(setting, "bert_default"))


@functools.cache
def _sequences(objective, passes, setting):
    tokenizer, documents = english(setting)
    return make_all(documents, tokenizer, objective, passes, MAX_SEQ_LENGTH)


def make_all(documents, tokenizer, objective, passes, length, seed=12345):
    rng, balance = random.Random(seed), LengthBalance()
    text = tokenize_documents(documents, tokenizer)
    pair_rules = PairRules(objective, length, 0.1, tokenizer.cls_id, tokenizer.sep_id)
    pairs = [
        pair
        for _ in range(passes)
        for index in range(text.num_documents)
        for pair in make_pairs(text, index, pair_rules, balance, rng)
    ]
    return assemble(text, np.array(pairs), pair_rules)


def assert_same_share(count, total, google_count, google_total, what):
    """Two shares differ by no more than the binomial spread of both."""
    pooled = (count + google_count) / (total + google_total)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / total + 1 / google_total))
    difference = count / total - google_count / google_total
    assert abs(difference) <= SIGMAS * spread, (
        f"{what}: {count / total:.4f}, Google's {google_count / google_total:.4f}, "
        f"{difference / spread if spread else math.inf:+.1f} sigma"
    )


def total_variation(ours, google):
    n, m = sum(ours.values()), sum(google.values())
    return sum(abs(ours[key] / n - google.get(key, 0) / m) for key in {*ours, *google}) / 2


def mask_while_reading(made, masking_rules, key):
    """As `mask_sequences`, of records that are stored without masks."""
    length = made.ids.shape[1]
    places = masking_rules.max_predictions_per_seq * (1 + masking_rules.do_permutation)
    record_format = RecordFormat(length, places, True, False, 0, masking_rules)
    layout = lay_out(np.arange(len(made.ids)), made.lengths)
    stored = make_dynamic_features(made, layout, record_format)
    features = mask_records(stored, record_format, key)
    counts = features["masked_lm_weights"].sum(axis=1)
    names = ("input_ids", "masked_lm_positions", "masked_lm_ids")
    return masking.MaskedSequences(*(features[name] for name in names), counts)


MASKINGS = pytest.mark.parametrize(
    "mask", (mask_sequences, mask_while_reading), ids=("static", "dynamic")
)


@MASKINGS
@pytest.mark.parametrize("setting", but_slow(SETTINGS, QUICK))
def test_masking_rate_and_replacements_are_googles(setting, mask):
    google = GOOGLE[setting]
    pair_rules, masking_rules = rules(setting)
    made = sequences(pair_rules.objective, 5, setting)
    masked = mask(made, masking_rules, keys(made.ids))
    pieces = made.lengths.sum()
    rows, places = np.nonzero(np.arange(masked.labels.shape[1]) < masked.counts[:, None])
    positions, labels = masked.positions[rows, places], masked.labels[rows, places]
    assert (made.ids[rows, positions] == labels).all()
    now = masked.ids[rows, positions]
    is_mask = now == masking_rules.mask_id
    counts = {"mask": is_mask.sum(), "keep": (~is_mask & (now == labels)).sum()}
    total = len(rows)
    counts["random"] = total - counts["mask"] - counts["keep"]
    google_total = google["masked_total"]
    google_pieces = round(google["mean_length"] * google["instances"])
    assert_same_share(total, pieces, google_total, google_pieces, "masked")
    for kind in ("mask", "keep", "random"):
        google_count = google["replaced_by"][kind] * google_total
        assert_same_share(counts[kind], total, google_count, google_total, kind)


@MASKINGS
def test_masks_of_long_rows(mask):
    """As many pieces as the rule says, in the first half of a row as often as in the second."""
    tokenizer, documents = english()
    made = make_all(documents, tokenizer, "sop", 2, 512)
    masking_rules = dataclasses.replace(rules("bert_default")[1], max_predictions_per_seq=512)
    masked = mask(made, masking_rules, keys(made.ids))
    assert (masked.counts == np.clip(np.rint(made.lengths * 0.15), 1, None)).all()
    rows, places = np.nonzero(np.arange(masked.labels.shape[1]) < masked.counts[:, None])
    first, total = (masked.positions[rows, places] < made.lengths[rows] / 2).sum(), len(rows)
    assert abs(first - total / 2) <= SIGMAS * math.sqrt(total) / 2 + 0.01 * total


@pytest.mark.parametrize("setting", NGRAM_SETTINGS)
def test_ngram_lengths_are_googles(setting, monkeypatch):
    # Google's n-grams run over [SEP], so here the sequence is one segment for once.
    google = GOOGLE[setting]
    pair_rules, masking_rules = rules(setting)
    drawn, draw_lengths = [], masking.draw_lengths

    def noting(*arguments):
        drawn.append(draw_lengths(*arguments))
        return drawn[-1]

    monkeypatch.setattr(masking, "draw_lengths", noting)
    made = sequences(pair_rules.objective, 5, setting)
    units = find_units(made, masking_rules.do_whole_word_mask)
    units = units._replace(segment_ends=np.broadcast_to(units.numbers[:, None], units.starts.shape))
    counts = prediction_counts(made.lengths, masking_rules)
    taken = np.zeros(units.starts.shape, bool)
    chosen = masking.choose_ngrams(units, counts, taken, masking_rules, keys(taken))
    drawn = np.concatenate(drawn)
    for ours, theirs in ((drawn, "ngrams_drawn"), (chosen[:, 2], "ngrams_accepted")):
        google_total = sum(google[theirs].values())
        for length, count in google[theirs].items():
            found = (ours == int(length)).sum()
            assert_same_share(found, len(ours), count, google_total, (theirs, length))


def keys(rows):
    return derive_keys(np.uint64(12345), np.arange(len(rows)))


@pytest.mark.parametrize("setting", SETTINGS)
def test_lengths_are_googles(setting):
    pair_rules, _ = rules(setting)
    lengths = sequences(pair_rules.objective, 5, setting).lengths
    lows = (lengths // 8 * 8).tolist()
    histogram = collections.Counter(f"{low}-{low + 7}" for low in lows)
    assert total_variation(histogram, GOOGLE[setting]["length_histogram"]) <= 0.05


def test_token_boundary_has_googles_share():
    google = GOOGLE["albert_wp_default"]
    made = sequences("sop", 5)
    # Google's counts [CLS] and both [SEP] as boundaries too.
    share = (made.word_starts.sum() + 3 * len(made.lengths)) / made.lengths.sum()
    assert share == pytest.approx(google["token_boundary_fraction"], abs=0.005)


def check_lengths_do_not_tell_the_order(made):
    first, second = made.borders - 2, made.lengths - made.borders - 1
    labels, difference = made.labels, first - second
    for sign in (1, -1):
        with_label = labels[np.sign(difference) == sign]
        assert abs(with_label.mean() - 0.5) <= 3 * 0.5 / math.sqrt(len(with_label)), sign
    # By how much must not tell it either: who knows how often which difference comes with which
    # order guesses right in at most 51 of 100. (Google's data from this text: 57.)
    sizes = np.abs(difference) // 16  # below, two shortened segments differ by one
    in_order = np.where((difference > 0) == (labels == 0), 1, -1)
    surplus = np.abs(np.bincount(sizes, in_order)[1:]).sum()
    assert 0.5 + surplus / (2 * len(labels)) <= 0.51
    for lengths in (first, second):
        one, other = (lengths[labels == label] for label in (0, 1))
        # The spread of a segment's length is about 0.3 of the room: three standard errors.
        tolerance = 3 * 0.3 * made.lengths.max() * math.sqrt(4 / len(labels))
        assert one.mean() == pytest.approx(other.mean(), abs=tolerance)


def test_lengths_do_not_tell_the_order():
    check_lengths_do_not_tell_the_order(sequences("sop", 5))
    tokenizer, documents = english()
    cut = [d[i : i + 3] for d in documents for i in range(0, len(d), 3)]
    check_lengths_do_not_tell_the_order(make_all(cut, tokenizer, "sop", 3, MAX_SEQ_LENGTH))


@pytest.mark.parametrize("length", [128, slow(512)])
def test_lengths_do_not_tell_the_order_of_an_encyclopedia(length):
    text = SHARED / "data/kowiki/kowiki_2MB.txt"
    vocabulary = SHARED / "data/vocabs/koelectra.txt"
    if not (text.exists() and vocabulary.exists()):
        pytest.skip("the Korean Wikipedia sample is not in the repository")
    tokenizer = KoreanTokenizer(vocabulary)
    documents = documents_of(text.read_text(encoding="utf-8"))
    # In the second, the first sentences are long.
    for texts, passes in ((documents, 3), ([d[:3] for d in documents], 9)):
        made = make_all(texts, tokenizer, "sop", passes, length)
        check_lengths_do_not_tell_the_order(made)
