"""The format of pre-training records."""

import dataclasses

from create_pretraining_data.records.masking_rules import MaskingRules


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """What every record of a data set holds; the names are those of google-research/bert.

    An ordinary record is one sequence. A packed record is a row of several, one after the
    other, which must not see each other; what it has beyond Google's names says where they are.
    Either may be stored without masks, which are drawn whenever it is read.

    Attributes:
        max_seq_length: positions of a record.
        max_predictions_per_seq: places for predictions of a record.
        sentence_label: whether next_sentence_labels is there (not with --objective=none).
        token_boundary: whether token_boundary is there (as in google-research/albert).
        packed_sequences: places for sequences of a packed record; 0 for ordinary records.
        masking: how masks are drawn when a record is read; None where it holds its masks.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    sentence_label: bool
    token_boundary: bool
    packed_sequences: int = 0
    masking: MaskingRules | None = None

    def with_masks(self):
        """The format that such records have when their masks were drawn."""
        return dataclasses.replace(self, masking=None)

    def features(self):
        """The table {name: (length, kind)}; kind is "int" (int64) or "float" (float32)."""
        return self._masked() if self.masking is None else self._unmasked()

    def _unmasked(self):
        slots = self.packed_sequences or 1
        table = {
            "input_ids": (self.max_seq_length, "int"),
            # 1 where a word begins; not at [CLS], not at [SEP].
            "word_starts": (self.max_seq_length, "int"),
            # For each sequence: pieces of [CLS] A [SEP], of B [SEP]; 0 for one that is not there.
            "segment_lengths": (2 * slots, "int"),
        }
        if self.sentence_label:
            table["next_sentence_labels"] = (slots, "int")
        return table

    def _masked(self):
        sequence, predictions = self.max_seq_length, self.max_predictions_per_seq
        table = {
            "input_ids": (sequence, "int"),
            "input_mask": (sequence, "int"),
            "segment_ids": (sequence, "int"),
            "masked_lm_positions": (predictions, "int"),
            "masked_lm_ids": (predictions, "int"),
            "masked_lm_weights": (predictions, "float"),
        }
        if self.packed_sequences:
            # 1 for the first sequence of the row, 2 for the second, ...; 0 for padding.
            table["segment_index"] = (sequence, "int")
            # From 0 on in every sequence.
            table["position_ids"] = (sequence, "int")
            # Where the [CLS] of each sequence is; 0 for a sequence that is not there.
            table["sequence_starts"] = (self.packed_sequences, "int")
        if self.sentence_label:
            # Named so in ALBERT's records too, where it is the sentence order.
            table["next_sentence_labels"] = (self.packed_sequences or 1, "int")
        if self.sentence_label and self.packed_sequences:
            # 0 for a sequence that is not there.
            table["next_sentence_weights"] = (self.packed_sequences, "float")
        if self.token_boundary:
            table["token_boundary"] = (sequence, "int")
        return table
