"""Computes with transformers what the methods of korean_bert return; a program of its own.

torch and TensorFlow do not run in one process.

    python transformers_answers.py JOBS.json     a list of objects: what (a key of ANSWERS), folder,
                                                 output (.npz to write), and what that one reads
"""

import json
import sys

import numpy as np
import torch
import transformers
from transformers import AutoTokenizer


def load(job, name, **options):
    """The tokenizer, and a model of the class."""
    tokenizer = AutoTokenizer.from_pretrained(job["folder"], trust_remote_code=True)
    model = getattr(transformers, name).from_pretrained(job["folder"], **options)
    return tokenizer, model.eval()


def inside(job):
    """Every layer, and what each piece attends to."""
    tokenizer, model = load(job, "AutoModelForPreTraining", attn_implementation="eager")
    pair = [job["text"]] if job["second"] is None else [job["text"], job["second"]]
    inputs = tokenizer(*pair, return_tensors="pt")
    found = model(**inputs, output_hidden_states=True, output_attentions=True)
    return {
        "pieces": tokenizer.convert_ids_to_tokens(inputs["input_ids"][0]),
        "hidden_states": torch.cat(found.hidden_states),
        "attentions": torch.cat(found.attentions),
    }


def guesses(job):
    """The most probable pieces for the first mask."""
    tokenizer, model = load(job, "AutoModelForPreTraining")
    inputs = tokenizer(job["text"], return_tensors="pt")
    place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    shares = model(**inputs)[0][0, place, : len(tokenizer)].softmax(-1)
    best = shares.topk(job["top"])
    return {"pieces": tokenizer.convert_ids_to_tokens(best.indices), "shares": best.values}


def nearest(job):
    """The pieces whose embeddings are nearest to the mean of a word's."""
    tokenizer, model = load(job, "AutoModel")
    table = model.get_input_embeddings().weight[: len(tokenizer)]
    own = tokenizer(job["word"], add_special_tokens=False)["input_ids"]
    cosines = torch.cosine_similarity(table, table[own].mean(0), dim=-1)
    cosines[[*own, *tokenizer.all_special_ids]] = -1
    best = cosines.topk(job["top"])
    return {"pieces": tokenizer.convert_ids_to_tokens(best.indices), "cosines": best.values}


def classes(job):
    """The probabilities of a pair's classes."""
    tokenizer, model = load(job, "AutoModelForSequenceClassification")
    logits = model(**tokenizer(*job["pair"], return_tensors="pt")).logits
    return {"labels": names(model), "shares": logits[0].softmax(-1)}


def tags(job):
    """The tag of each word: that of its first piece."""
    tokenizer, model = load(job, "AutoModelForTokenClassification")
    inputs = tokenizer(job["text"], return_tensors="pt", return_offsets_mapping=True)
    starts = [start for start, end in inputs.pop("offset_mapping")[0].tolist() if end]
    places = [1 + starts.index(start) for start in job["starts"]]  # after [CLS]
    best = model(**inputs).logits[0, places].softmax(-1).max(-1)
    return {"tags": [names(model)[i] for i in best.indices], "shares": best.values}


def spans(job):
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


def options(job):
    """The probability of each option."""
    tokenizer, model = load(job, "AutoModelForMultipleChoice")
    rows = [[job["text"], f"{job['question']} {option}"] for option in job["options"]]
    inputs = tokenizer(rows, return_tensors="pt", padding=True)
    logits = model(**{name: value[None] for name, value in inputs.items()}).logits
    return {"shares": logits[0].softmax(-1)}


def names(model):
    return [model.config.id2label[i] for i in range(model.config.num_labels)]


ANSWERS = {
    each.__name__: each for each in (inside, guesses, nearest, classes, tags, spans, options)
}

if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file, torch.inference_mode():
        for each in json.load(file):
            np.savez(each["output"], **ANSWERS[each["what"]](each))
