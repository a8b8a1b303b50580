"""Computes what classes of transformers return for exported folders; a program of its own.

torch and TensorFlow do not run in one process.

    python transformers_outputs.py JOBS.json     a list of objects: folder, class, inputs (.npz with
                                                 their names), outputs (.npz to write)
"""

import json
import sys

import numpy as np
import torch
import transformers


def run(job):
    """Loads a folder strictly, and writes all outputs with the labels' names."""
    model, info = getattr(transformers, job["class"]).from_pretrained(
        job["folder"], output_loading_info=True
    )
    problems = {name: found for name, found in info.items() if found}
    assert not problems, (job["folder"], problems)
    with np.load(job["inputs"]) as file:
        inputs = {name: torch.tensor(file[name]) for name in file.files}
    with torch.no_grad():
        outputs = model.eval()(**inputs)
    arrays = {name: value.numpy() for name, value in outputs.items()}
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    np.savez(job["outputs"], _labels=np.array(labels), **arrays)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        for each in json.load(file):
            run(each)
