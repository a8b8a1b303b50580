"""The made data has the statistics of Google's, apart from the bugs that are fixed."""

import collections
import dataclasses
import functools
import gzip
import json
import math
import random
from pathlib import Path

import pytest
from shared import SHARED

from create_pretraining_data import masking
from create_pretraining_data.documents import tokenize_documents
from create_pretraining_data.masking import mask_sequence
from create_pretraining_data.pairs import LengthBalance, PairRules, make_sequences
from run_scripts.cli import parse, resolve_columns
from run_scripts.create_data import CreateDataFlags, choose_plan, make_rules
from tokenization import FullTokenizer, KoreanTokenizer, SentencePieceTokenizer

DATA = Path(__file__).parent / "data" / "pretraining_data"
GOOGLE = json.loads((DATA / "statistics.json").read_text())
SETTINGS = list(GOOGLE)
NGRAM_SETTINGS = [name for name in SETTINGS if "ngrams_drawn" in GOOGLE[name]]
MAX_SEQ_LENGTH = 128
SIGMAS = 4  # one false alarm in 16,000 comparisons, were the two samples independent draws


@functools.cache
def english(setting="bert_default"):
    """The tokenizer of a setting's flags, with the text as it cuts it."""
    flags = " ".join(GOOGLE[setting]["flags"])
    if "--spm_model_file" in flags:
        tokenizer = SentencePieceTokenizer(DATA.parent / "tokenization" / "spm_small.model")
    else:
        tokenizer = FullTokenizer(DATA / "vocab.txt", "--do_lower_case=False" not in flags)
    return tokenizer, read_gzipped(DATA / "synth.txt.gz", tokenizer)


def read_gzipped(path, tokenizer):
    return read_documents(gzip.decompress(path.read_bytes()), tokenizer)


def read_documents(content, tokenizer):
    documents = [part.split("\n") for part in content.decode().split("\n\n")]
    return tokenize_documents(documents, tokenizer)


def rules(setting):
    """The rules that the program would have for a setting's flags."""
    tokenizer, _ = english(setting)
    script_flags = [] if setting.startswith("bert") else ["--input_file_mode=r"]  # ALBERT's column
    argv = ["program", "--input_file=x", *script_flags, *GOOGLE[setting]["flags"]]
    flags = parse(CreateDataFlags, argv)
    plan = choose_plan(flags)
    flags = resolve_columns(flags, plan.column)
    flags = dataclasses.replace(flags, max_seq_length=MAX_SEQ_LENGTH)  # as Google's was run
    return make_rules(flags, plan.objective, tokenizer)


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
    pair_rules = PairRules(objective, length, 0.1, tokenizer.cls_id, tokenizer.sep_id)
    return [
        sequence
        for _ in range(passes)
        for index in range(len(documents))
        for sequence in make_sequences(documents, index, pair_rules, balance, rng)
    ]


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


@pytest.mark.parametrize("setting", SETTINGS)
def test_masking_rate_and_replacements_are_googles(setting):
    google = GOOGLE[setting]
    pair_rules, masking_rules = rules(setting)
    rng = random.Random(12345)
    pieces, counts = 0, collections.Counter()
    for sequence in sequences(pair_rules.objective, 5, setting):
        masked = mask_sequence(sequence, masking_rules, rng)
        pieces += len(sequence.ids)
        for position, label in zip(masked.positions, masked.labels, strict=True):
            assert sequence.ids[position] == label
            now = masked.ids[position]
            kind = "keep" if now == label else "random"
            counts["mask" if now == masking_rules.mask_id else kind] += 1
    total = sum(counts.values())
    google_total = google["masked_total"]
    google_pieces = round(google["mean_length"] * google["instances"])
    assert_same_share(total, pieces, google_total, google_pieces, "masked")
    for kind in ("mask", "keep", "random"):
        google_count = google["replaced_by"][kind] * google_total
        assert_same_share(counts[kind], total, google_count, google_total, kind)


@pytest.mark.parametrize("setting", NGRAM_SETTINGS)
def test_ngram_lengths_are_googles(setting, monkeypatch):
    # Google's n-grams run over [SEP], so here the sequence is one segment for once.
    google = GOOGLE[setting]
    pair_rules, masking_rules = rules(setting)
    drawn = count_draws(monkeypatch)
    accepted = collections.Counter()
    rng = random.Random(12345)
    for sequence in sequences(pair_rules.objective, 5, setting):
        units, _, count = plan_masking(sequence, masking_rules)
        for ngram in masking.choose_ngrams(units, len(units), count, (), masking_rules, rng):
            accepted[str(ngram.length)] += 1
    for ours, theirs in ((drawn, "ngrams_drawn"), (accepted, "ngrams_accepted")):
        google_total = sum(google[theirs].values())
        for length, google_count in google[theirs].items():
            total = sum(ours.values())
            assert_same_share(ours[length], total, google_count, google_total, (theirs, length))


@pytest.mark.parametrize("setting", NGRAM_SETTINGS)
def test_ngrams_do_not_cross_the_separator(setting):
    pair_rules, masking_rules = rules(setting)
    rng = random.Random(12345)
    at_the_border = 0
    for sequence in sequences(pair_rules.objective, 5, setting)[::4]:
        units, border, count = plan_masking(sequence, masking_rules)
        for ngram in masking.choose_ngrams(units, border, count, (), masking_rules, rng):
            end = ngram.first + ngram.length
            assert not ngram.first < border < end
            at_the_border += end == border
    assert at_the_border > 0


def count_draws(monkeypatch):
    drawn, draw_length = collections.Counter(), masking.draw_length

    def counting(weights, rng):
        length = draw_length(weights, rng)
        drawn[str(length)] += 1
        return length

    monkeypatch.setattr(masking, "draw_length", counting)
    return drawn


def plan_masking(sequence, masking_rules):
    units = sequence.words
    if not masking_rules.do_whole_word_mask:
        units = [(p, p + 1) for start, end in units for p in range(start, end)]
    border = sum(sequence.segment_ids[start] == 0 for start, _ in units)
    count = min(20, max(1, round(len(sequence.ids) * 0.15)))
    return units, border, count


@pytest.mark.parametrize("setting", SETTINGS)
def test_lengths_are_googles(setting):
    pair_rules, _ = rules(setting)
    histogram = collections.Counter()
    for sequence in sequences(pair_rules.objective, 5, setting):
        low = len(sequence.ids) // 8 * 8
        histogram[f"{low}-{low + 7}"] += 1
    assert total_variation(histogram, GOOGLE[setting]["length_histogram"]) <= 0.05


def test_token_boundary_has_googles_share():
    google = GOOGLE["albert_wp_default"]
    made = sequences("sop", 5)
    # Google's counts [CLS] and both [SEP] as boundaries too.
    share = sum(len(s.words) + 3 for s in made) / sum(len(s.ids) for s in made)
    assert share == pytest.approx(google["token_boundary_fraction"], abs=0.005)


@pytest.mark.parametrize("objective", ["nsp", "sop"])
def test_labels_are_balanced(objective):
    labels = [sequence.sentence_label for sequence in sequences(objective, 5)]
    assert sum(labels) / len(labels) == pytest.approx(0.5, abs=0.01)


def check_lengths_do_not_tell_the_order(made):
    longer = {1: collections.Counter(), -1: collections.Counter()}
    sums = {0: [0, 0, 0], 1: [0, 0, 0]}
    in_order = collections.Counter()
    for sequence in made:
        a = sequence.segment_ids.count(0) - 2
        b = sequence.segment_ids.count(1) - 1
        label = sequence.sentence_label
        if a != b:
            longer[1 if a > b else -1][label] += 1
        sums[label] = [sums[label][0] + 1, sums[label][1] + a, sums[label][2] + b]
        size, sign = abs(a - b) // 16, (a > b) == (label == 0)
        if size:  # below, two shortened segments differ by one, whatever the order
            in_order[size, sign] += 1
    for counts in longer.values():
        total = counts.total()
        assert abs(counts[1] / total - 0.5) <= 3 * 0.5 / math.sqrt(total), longer
    # By how much must not tell it either: who knows how often which difference comes with which
    # order guesses right in at most 51 of 100. (Google's data from this text: 57.)
    sizes = {size for size, _ in in_order}
    surplus = sum(abs(in_order[size, True] - in_order[size, False]) for size in sizes)
    assert 0.5 + surplus / (2 * len(made)) <= 0.51, in_order
    means = {label: (a / n, b / n) for label, (n, a, b) in sums.items()}
    # The spread of a segment's length is about 0.3 of the room, so this is three standard errors.
    tolerance = 3 * 0.3 * max(map(len, (s.ids for s in made))) * math.sqrt(4 / len(made))
    assert means[0][0] == pytest.approx(means[1][0], abs=tolerance)
    assert means[0][1] == pytest.approx(means[1][1], abs=tolerance)


def test_lengths_do_not_tell_the_order():
    check_lengths_do_not_tell_the_order(sequences("sop", 5))


def test_lengths_do_not_tell_the_order_of_short_documents():
    tokenizer, documents = english()
    cut = [d[i : i + 3] for d in documents for i in range(0, len(d), 3)]
    check_lengths_do_not_tell_the_order(make_all(cut, tokenizer, "sop", 3, MAX_SEQ_LENGTH))


@pytest.mark.parametrize("length", [128, 512])
def test_lengths_do_not_tell_the_order_of_an_encyclopedia(length):
    text = SHARED / "data/kowiki/kowiki_2MB.txt"
    vocabulary = SHARED / "data/vocabs/koelectra.txt"
    if not (text.exists() and vocabulary.exists()):
        pytest.skip("the Korean Wikipedia sample lies outside the repository")
    tokenizer = KoreanTokenizer(vocabulary)
    documents = read_documents(text.read_bytes(), tokenizer)
    made = make_all(documents, tokenizer, "sop", 3, length)
    check_lengths_do_not_tell_the_order(made)
    # Here the first sentences are long.
    first = make_all([d[:3] for d in documents], tokenizer, "sop", 9, length)
    check_lengths_do_not_tell_the_order(first)
