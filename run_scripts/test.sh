#!/usr/bin/env bash
# Installs what the tests need into .venv, then runs them; arguments go to pytest.
#
#   bash run_scripts/test.sh               the quick tests
#   bash run_scripts/test.sh -m slow       those that take minutes
set -euo pipefail
cd "$(dirname "$0")/.."
source run_scripts/install.sh
install_project test
exec "$PYTHON" -m pytest "$@"
