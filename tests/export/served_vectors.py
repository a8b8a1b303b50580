"""Computes vectors with exported folders and nothing of this project; a program of its own.

python served_vectors.py JOBS.json     a list of objects: format, folder, outputs (.npy to
                                       write), and texts for a SavedModel, else inputs (.npz of
                                       rows of ids)
"""

import json
import sys

import numpy as np


def saved_model(job):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  its operations are in the graph

    served = tf.saved_model.load(job["folder"])  # its functions live as long as it does
    outputs = served.signatures["serving_default"](text=tf.constant(job["texts"]))
    assert list(outputs) == ["vectors"]
    return outputs["vectors"].numpy()


def onnx(job):
    import onnxruntime

    session = onnxruntime.InferenceSession(f"{job['folder']}/model.onnx")
    with np.load(job["inputs"]) as rows:
        names = [each.name for each in session.get_inputs()]
        return session.run(["vectors"], {name: rows[name].astype(np.int64) for name in names})[0]


def litert(job):
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=f"{job['folder']}/model.tflite").get_signature_runner()
    with np.load(job["inputs"]) as rows:
        names = runner.get_input_details()
        return runner(**{name: rows[name].astype(np.int32) for name in names})["vectors"]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        jobs = json.load(file)
    for each in jobs:
        np.save(each["outputs"], globals()[each["format"]](each))
    ours = {name.partition(".")[0] for name in sys.modules} & {"bert_tf", "model_formats"}
    assert not ours, ours
