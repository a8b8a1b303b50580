"""Tests of the reference model's sizes, curves, measures on held-out text."""

import numpy as np
import pytest

from benchmarks.reference.held_out import bits_per_character, characters_of, count_masked
from benchmarks.reference.sizes import FOLDER, SIZES
from run_scripts.create_data import CreateDataFlags, choose_objective
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags, check_flags
from run_scripts.flags.training import given_config
from tests.support.paths import ROOT
from tests.support.record_files import DYNAMIC, FORMAT, features, make_files, write_records
from tokenization import load_tokenizer
from tokenization.comparison import open_vocabulary


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_flag_files_of_a_size(size, monkeypatch):
    """They parse, fit the configuration, and train every position."""
    monkeypatch.chdir(ROOT)
    assert sum(phase.share for phase in size.phases) == pytest.approx(1)
    given = ["--input_file=a", "--output_dir=b", "--do_train"]
    tokens = set()
    for phase in size.phases:
        values = parse(PretrainFlags, ["x", f"--flagfile={size.flagfile(phase)}", *given])
        config = given_config(values).config
        assert values.bert_config_file.endswith(size.config_file)
        check_flags(values, resolve_model_defaults(values, "bert"))
        assert config.vocab_size == size.config["vocab_size"]
        assert values.max_seq_length == phase.length
        tokens.add(values.train_batch_size * phase.length)
    assert phase.length == config.max_position_embeddings
    assert len(tokens) == 1  # an update of every phase sees as much text


def test_flag_files_of_the_records(monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, static in (("reference_data", False), ("reference_heldout", True)):
        given = [f"--flagfile={FOLDER}/{name}.flags", "--input_file=a", "--tokenizer_dir=b"]
        values = parse(CreateDataFlags, ["x", *given])
        assert choose_objective(values).objective == "sop"
        assert (values.masking, values.packing) == (("dynamic", "static")[static], not static)


def test_bits_per_character():
    """Two pieces of three characters each cost 3 nats; 1.5 bits are one nat and a little."""
    assert bits_per_character(3.0, 2, 6) == pytest.approx(1 / np.log(2))
    folder = ROOT / "tests" / "data" / "sample_tokenizer"
    tokenizer = load_tokenizer(folder)
    lengths = characters_of(tokenizer, open_vocabulary(folder).plain)
    assert lengths[tokenizer.mask_id] == lengths[tokenizer.unk_id] == 1
    for piece, number in tokenizer.vocab.items():
        if piece.startswith("##"):
            assert lengths[number] == len(piece) - 2
    assert len(lengths) == tokenizer.vocab_size


def test_masked_pieces_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    lengths = {piece: piece % 3 for piece in range(60)}
    rows = [features(rng, number) for number in range(5)]
    masked = [piece for row in rows for piece in row["masked_lm_ids"][:3]]  # the fourth weighs 0
    write_records(tmp_path / "usual", rows, FORMAT)
    wanted = 15, sum(piece % 3 for piece in masked)
    assert count_masked([str(tmp_path / "usual")], lengths) == wanted
    with pytest.raises(AssertionError, match="masks must be in the records"):
        count_masked(make_files(tmp_path, (2,), DYNAMIC), lengths)
