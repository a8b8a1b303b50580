# Creates .venv with the project installed; sourced by quickstart.sh, test.sh and benchmark.sh.
#
#   install_project [EXTRA]     sets PYTHON to the environment's interpreter
#
# Nothing is reinstalled unless setup.py has changed.
# PYTHON3 names the interpreter to create .venv with. Default: python3.

install_project() {
  local extra="${1:-}" base="${PYTHON3:-python3}"
  PYTHON=".venv/bin/python"
  if nvidia-smi -L > /dev/null 2>&1; then  # CUDA's libraries, without which no GPU is found
    extra="${extra:+$extra,}gpu"
  fi
  # TensorFlow 2.21 supports Python 3.10 to 3.13.
  if ! "$base" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; then
    echo "error: python3 must be Python 3.11, 3.12 or 3.13 (PYTHON3=... names another)." \
      "Received: $("$base" --version 2>&1)" >&2
    exit 1
  fi
  if ! "$PYTHON" -m pip --version > /dev/null 2>&1; then  # missing or incomplete
    rm -rf .venv
    "$base" -m venv .venv || {
      echo "error: python3 -m venv must work (on Debian and Ubuntu: apt install python3-venv)" >&2
      exit 1
    }
  fi
  local stamp
  stamp=".venv/installed-${extra:-plain}-$(cksum < setup.py | cut -d' ' -f1)"
  if [ ! -e "$stamp" ]; then
    echo "installing into .venv (the first time this downloads TensorFlow)"
    case "$extra" in *gpu) echo "with CUDA's libraries for the NVIDIA GPU, some gigabytes" ;; esac
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --editable ".${extra:+[$extra]}"
    touch "$stamp"
  fi
}
