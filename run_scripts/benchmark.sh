# Starts run_glue or run_korean; sourced by run_glue.sh and run_korean.sh.
#
#   start_benchmark PROGRAM MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# PYTHON names an interpreter that has the dependencies. If it is unset, .venv is created with them.

start_benchmark() {
  local root
  root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
  if [ -z "${PYTHON:-}" ]; then
    source "$root/run_scripts/install.sh"
    pushd "$root" > /dev/null
    install_project finetune
    popd > /dev/null
    PYTHON="$root/$PYTHON"
  fi
  export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
  exec "$PYTHON" -m run_scripts.programs "$@"
}
