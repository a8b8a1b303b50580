"""Starts the programs, for launchers as for console scripts.

Nothing heavy is imported before Ctrl-C and the standard streams are handled.

    python -m run_scripts.programs run_classifier --data_dir=...     from wherever it is installed
"""

import functools
import importlib
import sys

from bert_common.startup import begin


def _start(module, argv=None, main="main"):
    """Runs a program of this package; returns its exit status."""
    begin()
    return getattr(importlib.import_module(f"run_scripts.{module}"), main)(argv)


build_vocab = functools.partial(_start, "build_vocab")
create_pretraining_data = functools.partial(_start, "create_data")
run_pretraining = functools.partial(_start, "pretrain")
adapt_checkpoint = functools.partial(_start, "conversion.adapt_checkpoint")
fill_masks = functools.partial(_start, "tools.fill_masks")
explore = functools.partial(_start, "tools.explore")
extract_features = functools.partial(_start, "extract_features")
export_model = functools.partial(_start, "conversion.export_model")
run_classifier = functools.partial(_start, "classifier")
run_ner = functools.partial(_start, "ner")
run_squad = functools.partial(_start, "squad")
run_race = functools.partial(_start, "race")
run_similarity = functools.partial(_start, "similarity")
plan = functools.partial(_start, "plan")
check_devices = functools.partial(_start, "tools.check_devices.__main__")
run_glue = functools.partial(_start, "benchmark", main="run_glue")
run_korean = functools.partial(_start, "benchmark", main="run_korean")


if __name__ == "__main__":
    name = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.exit(globals()[name]())
