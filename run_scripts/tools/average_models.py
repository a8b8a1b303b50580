"""The average_models program, which averages the weights of models that were trained alike.

Training runs of one pre-trained model on the same task with different seeds or settings end near
each other; the mean of their weights often scores higher and costs no more to use than one model
(Wortsman et al. 2022, Model soups, arXiv:2203.05482, section 2).
"""

import dataclasses
import functools
import os
import sys
from collections.abc import Sequence

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_tf.checkpoint_files import EXPORTED_NAME
from korean_bert.loading import open_folder
from model_formats.folder_tokenizer import check_table
from model_formats.folder_weights import check_output
from model_formats.model_folder import ModelFolder
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import split_list

# The setting in which models may differ, as the mean takes the least.
LENGTH = "max_seq_length"


@dataclasses.dataclass(frozen=True)
class AverageFlags:
    """Averages the weights of models that started from the same weights and learned the same task.

    The result is a model of the same kind. Compare it with the originals before you use it.
    """

    EXAMPLE = "--models=output/seed_1,output/seed_2,output/seed_3 --output_dir=output/mean"

    models: str = groups.MODEL.required(
        "The models to average, comma-separated: model folders or checkpoints.", is_path=True
    )
    output_dir: str = groups.OUTPUT.output_folder(
        "The folder to write the averaged model to. It must not hold a model yet.", required=True
    )


def average(values: AverageFlags) -> None:
    """Checks the models, then writes their mean."""
    folders = open_models(values.models)
    for folder in folders:
        check_output(values.output_dir, folder.path)
    requirement = "--output_dir must be a folder that can be created and written to"
    make_writable(values.output_dir, requirement)
    import_tensorflow()
    from bert_tf.checkpoint import write_arrays

    first, arrays = folders[0], mean_arrays(folders)
    known = [n for folder in folders if (n := folder.trained_positions) is not None]
    lengths = [n for folder in folders if isinstance(n := folder.settings.get(LENGTH), int)]
    ModelFolder.write(
        values.output_dir,
        first.model_type,
        first.config,
        tokenizer=first.tokenizer,
        positions=min(known, default=None),  # those that all models have trained
        task=first.task,
        settings=first.settings | ({LENGTH: min(lengths)} if lengths else {}),
        stages=[
            *first.stages,
            {"program": "averaging", "settings": {"models": len(folders)}},
        ],
    )
    # The checkpoint comes last: it makes the folder a model's.
    write_arrays(os.path.join(values.output_dir, EXPORTED_NAME), arrays)
    print(f"written: {values.output_dir}, the mean of {len(folders)} models")


def open_models(models: str) -> list[ModelFolder]:
    """Opens the models that --models names and checks that they fit together."""
    paths = split_list(models)
    folders = []
    for path in paths:
        folder = open_folder(path)
        check_weights(folder.checkpoint)
        if folder.tokenizer:
            check_table(folder.config, folder.tokenizer.vocab_size, folder.path)
        folders.append(folder)
        first = folders[0]
        for what in ("model_type", "config", "task", "settings"):
            one, other = (getattr(each, what) for each in (first, folder))
            if what == "settings":  # the same task may be learned of texts of other lengths
                one, other = ({k: v for k, v in s.items() if k != LENGTH} for s in (one, other))
            if one != other:
                raise InputError(
                    f"the models must have the same {what}. Received: {paths[0]} with {one}, "
                    f"{path} with {other}"
                )
        own, other = (f.tokenizer and f.tokenizer.fingerprint() for f in (folder, first))
        if own != other:
            raise InputError(
                f"the models must have the same tokenizer. Received: {paths[0]} and {path}"
            )
    if len(paths) < 2:
        raise InputError(f"--models must name at least two models. Received: {models}")
    return folders


def mean_arrays(folders: Sequence[ModelFolder]) -> dict[str, np.ndarray]:
    """Returns Google's name -> mean of a weight, summed in float64, with the first model's dtype.

    Raises:
        InputError: a model lacks a weight, has an additional one or one of a different shape, or
            one that no model here has.
    """
    from bert_tf.checkpoint import weight_names
    from model_formats.weights import check_names, open_weights

    models = [open_weights(folder.checkpoint) for folder in folders]
    for model in models:
        check_names(model)
    shapes = [{name: tuple(model.shapes[name]) for name in weight_names(model)} for model in models]
    for model, found in zip(models, shapes, strict=True):
        if differing := sorted(found.items() ^ shapes[0].items()):
            raise InputError(
                f"the models must have the same weights. Received: {models[0].source} and "
                f"{model.source}, which differ in {differing[0][0]}"
            )
    means = {}
    for name in shapes[0]:
        arrays = [model.read(name) for model in models]
        total = sum(array.astype(np.float64) for array in arrays)
        means[name] = np.asarray(total / len(arrays), arrays[0].dtype)
    return means


main = functools.partial(run_program, average, AverageFlags)

if __name__ == "__main__":
    sys.exit(main())
