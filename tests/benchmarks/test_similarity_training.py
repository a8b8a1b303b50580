"""The benchmark of training similarity counts only the pairs that were trained on."""

import argparse
import subprocess

import numpy as np

from benchmarks.serving import similarity_training


def test_only_whole_batches_count_for_the_speed(monkeypatch, tmp_path):
    """The other side drops the last batch: of 20 pairs in batches of 8 it trains on 16."""
    folder = tmp_path / "KorSTS"
    folder.mkdir()
    rows = ["genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2"]
    rows += [f"a\tb\t2012\t{i}\t{i}.0\t말 {i}\t글 {i}" for i in range(3)]
    (folder / "sts-dev.tsv").write_text("\n".join([*rows, ""]), encoding="utf-8")

    def trained(command, **_):
        np.save(f"{output}/vectors.npy", np.random.default_rng(0).standard_normal((6, 4)))
        return subprocess.CompletedProcess(command, 0, stdout="2.0\n", stderr="")

    output = tmp_path / "theirs"
    output.mkdir()
    monkeypatch.setattr(similarity_training.subprocess, "run", trained)
    options = argparse.Namespace(
        pairs=20, batch_size=8, length=16, learning_rate=1e-4, data_dir=str(folder)
    )
    rate, _ = similarity_training.train_theirs(options, 1, tmp_path / "pairs.jsonl", str(output))
    assert rate == 16 / 2.0
