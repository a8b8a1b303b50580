# Fine-tunes a model on every task of a benchmark; sourced by run_glue.sh and run_korean.sh.
#
#   run_benchmark NAME MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# PYTHON names an interpreter that has the dependencies. If it is unset, .venv is created with them.

finished() { [ -e "$1/eval_results.txt" ] || [ -e "$1/seeds.tsv" ]; }

run_benchmark() {
  local name="$1" model data output root plan line task
  if [ $# -lt 4 ]; then
    echo "usage: bash run_scripts/run_$name.sh MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]" >&2
    exit 2
  fi
  model="$2" data="$3" output="$4"
  shift 4
  root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
  if [ -z "${PYTHON:-}" ]; then
    source "$root/run_scripts/install.sh"
    pushd "$root" > /dev/null
    install_project finetune
    popd > /dev/null
    PYTHON="$root/$PYTHON"
  fi
  if [ -e "$root/setup.py" ]; then  # a checkout, not an installed package
    export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
  fi
  plan="$("$PYTHON" -m run_scripts.tools.glue_plan --benchmark="$name" --model="$model" \
    --data_dir="$data" --output_dir="$output")"
  while IFS=$'\t' read -r -a line; do
    task="${line[0]}"
    printf '\n== %s\n' "$task"
    if finished "$output/$task"; then
      echo "$output/$task exists already"
      continue
    fi
    "$PYTHON" -m run_scripts.programs "${line[@]:1}" "$@" < /dev/null
    if ! finished "$output/$task"; then  # after Ctrl-C the program saves and exits with status 0
      echo "stopped at $task: the same command continues from there" >&2
      exit 1
    fi
  done <<< "$plan"
  printf '\n'
  "$PYTHON" -m run_scripts.tools.glue_table --benchmark="$name" --output_dir="$output"
}
