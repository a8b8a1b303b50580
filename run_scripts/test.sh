#!/usr/bin/env bash
# Installs what the tests need into .venv and runs the tests; arguments are passed to pytest.
#
#   bash run_scripts/test.sh               the quick tests
#   bash run_scripts/test.sh -m slow       the slow tests, which take minutes
set -euo pipefail
cd "$(dirname "$0")/.."
source run_scripts/install.sh
install_project test,korean,finetune,explore,parquet
export PYTHONDONTWRITEBYTECODE=  # cache bytecode: a hundred test processes import the same files
# Two processes, because each spends most of its time compiling on one core.
exec "$PYTHON" -m pytest --numprocesses=2 --dist=loadfile "$@"
