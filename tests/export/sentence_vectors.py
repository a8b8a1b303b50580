"""Computes vectors of texts from folders of sentence-transformers; a program of its own.

torch and TensorFlow do not run in one process.

    python sentence_vectors.py JOBS.json

JOBS.json is a list of objects: folder, texts, outputs (.npy to write) and library, whether
sentence-transformers reads the folder, or `by_hand`. With pooling and normalize the library first
makes a model of a folder of transformers, and writes it to "saved". With truncate_dim it cuts the
vectors, and with "resaved" it writes the model there.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def by_hand(folder, texts):
    """What the files say, step by step."""
    folder = pathlib.Path(folder)
    kinds = {m["type"].rpartition(".")[2]: m["path"] for m in read(folder / "modules.json")}
    assert list(kinds) in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
    length = read(folder / kinds["Transformer"] / "sentence_bert_config.json")["max_seq_length"]
    modes = read(folder / kinds["Pooling"] / "config.json")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    rows = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.no_grad():
        states = model(**rows).last_hidden_state  # [B, T, H]
    assert states.shape[-1] == modes["word_embedding_dimension"]
    mask = rows["attention_mask"][..., None]  # [B, T, 1]
    (mode,) = (name for name, value in modes.items() if value is True)
    vectors = {
        "pooling_mode_cls_token": states[:, 0],
        "pooling_mode_mean_tokens": (states * mask).sum(1) / mask.sum(1),
        "pooling_mode_max_tokens": states.masked_fill(mask == 0, -torch.inf).amax(1),
    }[mode]  # [B, H]
    if "Normalize" in kinds:
        vectors = torch.nn.functional.normalize(vectors, dim=-1)
    return vectors.numpy()


def by_library(job):
    """What SentenceTransformer(folder) computes."""
    from sentence_transformers import SentenceTransformer, models

    if "saved" in job:
        parts = [models.Transformer(job["folder"], max_seq_length=job["length"])]
        size = parts[0].auto_model.config.hidden_size
        parts.append(models.Pooling(size, pooling_mode=job["pooling"]))
        parts += [models.Normalize()] * job["normalize"]
        model = SentenceTransformer(modules=parts, device="cpu")
        model.save(job["saved"])
    else:
        model = SentenceTransformer(job["folder"], device="cpu", trust_remote_code=True)
        assert model.truncate_dim is None  # it cuts only to what it is asked for
        if "resaved" in job:
            model.save(job["resaved"])
        model.truncate_dim = job.get("truncate_dim")
    return model.encode(job["texts"])


if __name__ == "__main__":
    for job in read(pathlib.Path(sys.argv[1])):
        found = by_library(job) if job["library"] else by_hand(job["folder"], job["texts"])
        np.save(job["outputs"], found)
