"""Starts the programs: what launchers and console scripts call.

Nothing heavy is imported before Ctrl-C and the standard streams are taken care of.

    python -m run_scripts.programs run_classifier --data_dir=...     from wherever it is installed
"""

import importlib
import os
import sys

from bert_common.startup import begin


def build_vocab():
    """Text in, a vocabulary out; returns the exit status, as all of these do."""
    return _start("build_vocab")


def create_pretraining_data():
    """Text in, pre-training records out."""
    return _start("create_data")


def run_pretraining():
    """Records in, a trained BERT or ALBERT out."""
    return _start("pretrain")


def fill_masks():
    """A model and texts in, guesses for their masks out."""
    return _start("tools.fill_masks")


def extract_features():
    """A model and texts in, vectors out."""
    return _start("extract_features")


def run_classifier():
    """A pre-trained model in, a fine-tuned text classifier out."""
    return _start("classifier")


def run_ner():
    """A pre-trained model in, one that finds named entities out."""
    return _start("ner")


def run_squad(argv=None):
    """A pre-trained model in, one that answers questions about texts out.

    Args:
        argv: the command line, where it is not `sys.argv`.
    """
    return _start("squad", argv)


def run_race():
    """A pre-trained model in, one that chooses between options out."""
    return _start("race")


def run_glue():
    """A pre-trained model in, its results on all of GLUE out."""
    _run_script("run_glue.sh")


def run_korean():
    """A pre-trained model in, its results on Korean tasks out."""
    _run_script("run_korean.sh")


def _run_script(name):
    """Becomes a shell script beside this file, with this Python."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    environment = {**os.environ, "PYTHON": sys.executable}
    os.execvpe("bash", ["bash", path, *sys.argv[1:]], environment)


def _start(module, argv=None):
    begin()
    return importlib.import_module(f"run_scripts.{module}").main(argv)


if __name__ == "__main__":
    name = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.exit(globals()[name]())
