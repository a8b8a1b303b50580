"""Computes what classes of transformers return for exported folders; a program of its own.

torch and TensorFlow do not run in one process.

    python transformers_outputs.py JOBS.json     a list of objects: folder, outputs (.npz to write),
                                                 class, inputs (.npz with their names); or what
                                                 (a key of PREDICTIONS) and what that one reads
"""

import json
import sys

import numpy as np
import torch
import transformers
from transformers import AutoTokenizer


def run(job):
    """Loads a folder strictly, and writes all outputs with the labels' names."""
    model, info = getattr(transformers, job["class"]).from_pretrained(
        job["folder"], output_loading_info=True
    )
    problems = {name: found for name, found in info.items() if found}
    assert not problems, (job["folder"], problems)
    with np.load(job["inputs"]) as file:
        inputs = {name: torch.tensor(file[name]) for name in file.files}
    outputs = model.eval()(**inputs)
    arrays = {name: value.numpy() for name, value in outputs.items()}
    labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
    np.savez(job["outputs"], _labels=np.array(labels), **arrays)


def load(job, name):
    """The tokenizer, and a model of the class."""
    tokenizer = AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True)
    return tokenizer, getattr(transformers, name).from_pretrained(job["folder"]).eval()


def tags(job):
    """The tag of each word: that of its first token."""
    tokenizer, model = load(job, "AutoModelForTokenClassification")
    inputs = tokenizer(job["text"], return_tensors="pt", return_offsets_mapping=True)
    starts = [start for start, end in inputs.pop("offset_mapping")[0].tolist() if end]
    places = [1 + starts.index(start) for start in job["starts"]]  # after [CLS]
    best = model(**inputs).logits[0, places].softmax(-1).max(-1)
    return {
        "tags": [model.config.id2label[i] for i in best.indices.tolist()],
        "shares": best.values,
    }


def span(job):
    """The part of the text whose start and end have the largest sum of logits."""
    tokenizer, model = load(job, "AutoModelForQuestionAnswering")
    inputs = tokenizer(*job["pair"], return_tensors="pt", return_offsets_mapping=True)
    offsets = inputs.pop("offset_mapping")[0].tolist()
    found = model(**inputs)
    starts, ends = found.start_logits[0], found.end_logits[0]
    inside = inputs["token_type_ids"][0].tolist()
    allowed = [i for i, second in enumerate(inside) if second and offsets[i][1]]
    _, first, last = max(
        (float(starts[i] + ends[j]), i, j)
        for i in allowed
        for j in allowed
        if i <= j < i + job["longest"]
    )
    return {"span": [offsets[first][0], offsets[last][1]]}


PREDICTIONS = {"tags": tags, "span": span}

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file, torch.inference_mode():
        for each in json.load(file):
            if "what" in each:
                np.savez(each["outputs"], **PREDICTIONS[each["what"]](each))
            else:
                run(each)
