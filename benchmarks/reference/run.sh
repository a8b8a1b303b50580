#!/usr/bin/env bash
# From text to a Korean model and to the tables of its results: installs into .venv, learns a
# vocabulary, makes records, pre-trains in phases, measures on held-out text, exports, fine-tunes on
# the Korean tasks, prints the tables.
#
#   bash benchmarks/reference/run.sh [--corpus='data/*.gz'] [--reviews=data/nsmc/ratings_train.txt]
#     [--size=mini] [--hours=6] [--tasks_dir=data] [--docs_dir=docs] [--output_dir=output/reference]
#
# --begin_with=MODEL goes on from a model's weights, --lengths=128,512 runs some of the phases alone:
# a training of several days, each of which starts from the weights of the day before and has a --name
# and an --output_dir of its own.
#
# Without flags: a quarter of an hour on the sample corpus. --help lists all flags. Started again with
# the same flags, it goes on where it stopped. Where the machine has GPUs, they are used.
# PYTHON names an interpreter that has the dependencies; without it they are installed into .venv.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${PYTHON:-}" ]; then
  source run_scripts/install.sh
  install_project korean,finetune
fi
exec "$PYTHON" -m benchmarks.reference "$@"
