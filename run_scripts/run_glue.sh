#!/usr/bin/env bash
# Fine-tunes a model on GLUE, task by task, and prints one table with the average.
#
#   bash run_scripts/run_glue.sh MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# MODEL is the folder of a pre-trained model, or a checkpoint with configuration and tokenizer beside
# it. DATA_DIR holds the tasks' folders as GLUE names them (CoLA, SST-2, ...); tasks without one are
# left out. Settings are in flagfiles/glue_bert.flags and glue_albert_*.flags; run_classifier.py's
# flags at the end win (--do_lower_case=false for a cased vocabulary). When run again, the script
# continues where it stopped; a task with results is not run again.
set -euo pipefail
source "$(dirname "$0")/benchmark.sh"
run_benchmark glue "$@"
