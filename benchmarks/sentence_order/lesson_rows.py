"""Draws the rows of lessons from a tokenized text, using only NumPy.

Shapes: N sequences, R rows, T positions, S slots for sequences in a row.
"""

import itertools
import random

import numpy as np

from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.features import make_features
from create_pretraining_data.instances.masking import mask_sequences, prediction_counts
from create_pretraining_data.instances.packing import lay_out, pack
from create_pretraining_data.instances.pairs import LengthBalance, PairRules, make_pairs
from create_pretraining_data.instances.sequences import Sequences, assemble, lengths_and_borders
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat

# The defaults of create_pretraining_data's --short_seq_prob and --masked_lm_prob.
SHORT_SEQUENCES, MASKED = 0.1, 0.15

# The number of sequences masked at a time, whose arrays fit into the processor's cache.
PART = 512

# The tokens drawn for a block exceed the needed tokens by this factor, as some rows are not full.
SURPLUS = 1.03

# An upper bound of the sequences in a block, so that the keys of different blocks differ.
MOST_SEQUENCES = 1 << 20

# The passes over a held-out text without a row of a kind after which it counts as having none.
FRUITLESS = 10


class LessonRows:
    """Draws rows of `length` positions.

    Args:
        content: a `TextFile`.
        length: the number of positions in a row.
        predictions: the maximum number of predictions in a row.
        slots: the maximum number of sequences in a row.
        vocab_size: the model's vocabulary size.
        seed: determines a block, together with the block's number.
    """

    def __init__(self, content, length, predictions, slots, vocab_size, seed):
        self.text, self.seed, self.special = content.train, seed, content.special
        counts = np.diff(self.text.documents)
        single = counts == 1
        self.documents = {"single": np.flatnonzero(single), "natural": np.flatnonzero(~single)}
        self.masking = MaskingRules(
            masked_lm_prob=MASKED,
            max_predictions_per_seq=predictions,
            do_whole_word_mask=True,
            ngram=1,
            favor_shorter_ngram=False,
            do_permutation=False,
            mask_id=content.special["mask_id"],
            vocab_size=vocab_size,
        )
        self.format = RecordFormat(length, predictions, True, False, slots)

    def block(self, number, lesson, rows):
        """Draws `rows` rows.

        Args:
            number: the number of the block, counting from 0.
            lesson: a `Lesson`.
            rows: the number of rows.

        Returns:
            A dict from feature name to an array [R, values of the feature], as in packed records
            with masks.
        """
        rng = random.Random(f"{self.seed} {number}")
        needed = SURPLUS * rows * self.format.max_seq_length
        while True:
            parts = [
                self._sequences(kind, needed * share, rng)
                for kind, share in lesson.shares.items()
                if share
            ]
            sequences = Sequences(*map(np.concatenate, zip(*(p for p, _ in parts), strict=True)))
            weights = np.concatenate(
                [np.full(len(part.lengths), weight, np.float32) for part, weight in parts]
            )  # [N]
            features = self._rows(sequences, weights, number, rng)
            if len(features["input_ids"]) >= rows:
                return {name: values[:rows] for name, values in features.items()}
            needed *= SURPLUS

    def held_out(self, text, beginning, rows):
        """Makes rows of one natural pair each from a held-out text, always the same.

        Args:
            text: a `TokenizedText`.
            beginning: whether one segment or no segment starts where a document starts.
            rows: the number of rows.
        """
        rng, balance = random.Random(0), LengthBalance()
        starts, pairs = {text.sentence_bounds(i)[0] for i in range(text.num_documents)}, []
        for number in itertools.count():
            if len(pairs) >= rows:
                break
            assert pairs or number < FRUITLESS
            for index in range(text.num_documents):
                for pair in make_pairs(text, index, self._rules(), balance, rng):
                    begins = pair.first_start in starts or pair.second_start in starts
                    pairs += [pair] if begins == beginning else []
        sequences = assemble(text, np.array(pairs[:rows], np.int64), self._rules())
        order = np.arange(rows)
        layout = lay_out(order, sequences.lengths)
        masked = mask_sequences(sequences, self.masking, derive_keys(np.uint64(0), order))
        return make_features(sequences, masked, layout, self.format)

    def _rules(self):
        cls_id, sep_id = self.special["cls_id"], self.special["sep_id"]
        return PairRules("sop", self.format.max_seq_length, SHORT_SEQUENCES, cls_id, sep_id)

    def _sequences(self, kind, pieces, rng):
        """Draws pairs of at least `pieces` tokens; returns `Sequences` and their labels' weight."""
        documents, balance, pairs = self.documents[kind], LengthBalance(), []
        while pieces > 0:
            index = int(documents[rng.randrange(len(documents))])
            new = make_pairs(self.text, index, self._rules(), balance, rng)
            pairs += new
            pieces -= sum(int(lengths_and_borders(np.array([p]))[0][0]) for p in new)
        found = np.array(pairs, np.int64).reshape(-1, 5)  # [N, 5]
        return assemble(self.text, found, self._rules()), float(kind != "single")

    def _rows(self, sequences, weights, number, rng):
        """Packs and masks sequences; returns the features of their rows, in random order."""
        form, lengths = self.format, sequences.lengths
        predictions = prediction_counts(lengths, self.masking)
        rows = pack(
            lengths, predictions, form.max_seq_length, form.max_predictions_per_seq,
            form.packed_sequences,
        )  # fmt: skip
        order = np.random.RandomState(rng.getrandbits(32))
        rows = order.permutation(rows.max() + 1)[rows]
        by_row, ends = np.argsort(rows, kind="stable"), np.cumsum(np.bincount(rows))
        numbers = number * MOST_SEQUENCES + np.arange(len(rows))  # [N]
        keys = derive_keys(np.uint64(self.seed), numbers)
        parts, first = [], 0
        while first < len(rows):  # each pass takes complete rows with at most PART sequences
            last = ends[np.searchsorted(ends, first + PART, side="right") - 1]
            part, first = by_row[first:last], last
            some = Sequences(*(values[part] for values in sequences))
            layout = lay_out(rows[part], some.lengths)
            masked = mask_sequences(some, self.masking, keys[part])
            features = make_features(some, masked, layout, form)
            labelled = np.zeros((layout.num_rows, form.packed_sequences), np.float32)  # [R, S]
            labelled[layout.rows, layout.slots] = weights[part]
            parts.append({**features, "next_sentence_weights": labelled})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
