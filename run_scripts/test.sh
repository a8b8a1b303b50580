#!/usr/bin/env bash
# Installs what the tests need into .venv, then runs them; arguments go to pytest.
#
#   bash run_scripts/test.sh               the quick tests
#   bash run_scripts/test.sh -m slow       the tests that take minutes
set -euo pipefail
cd "$(dirname "$0")/.."
source run_scripts/install.sh
install_project test,korean,finetune,explore,parquet
export PYTHONDONTWRITEBYTECODE=  # the tests start a hundred processes that import the same files
# Two processes at a time, because most of the time goes into compiling on one core each.
exec "$PYTHON" -m pytest --numprocesses=2 --dist=loadfile "$@"
