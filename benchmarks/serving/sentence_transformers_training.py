"""Trains vectors with sentence-transformers, as the other side of `similarity_training`.

    python -m benchmarks.serving.sentence_transformers_training SETTINGS.json

`similarity_training` writes the settings and starts this process. It does not load TensorFlow,
which crashes together with the libraries of datasets.
"""

import json
import sys
from pathlib import Path

import numpy as np


def main(path):
    """Trains as the settings say, writes the texts' vectors and prints the seconds of training.

    Args:
        path: the JSON file that `similarity_training.train_theirs` wrote.
    """
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )

    settings = json.loads(Path(path).read_text(encoding="utf-8"))
    lines = Path(settings["pairs"]).read_text(encoding="utf-8").splitlines()
    pairs = Dataset.from_list([json.loads(line) for line in lines])
    # The mean is the default pooling.
    model = SentenceTransformer(settings["folder"], device="cpu", trust_remote_code=True)
    model.max_seq_length = settings["length"]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=settings["output"],
        num_train_epochs=1,
        per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        warmup_steps=settings["warm_up"],
        seed=settings["seed"],
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_drop_last=True,
    )
    loss = losses.MultipleNegativesRankingLoss(model, scale=settings["scale"])
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=pairs, loss=loss)
    seconds = trainer.train().metrics["train_runtime"]
    np.save(Path(settings["output"]) / "vectors.npy", model.encode(settings["texts"]))
    print(seconds)


if __name__ == "__main__":
    main(sys.argv[1])
