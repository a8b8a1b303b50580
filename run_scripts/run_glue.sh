#!/usr/bin/env bash
# Fine-tunes a model on GLUE, task by task, and prints one table with the average.
#
#   bash run_scripts/run_glue.sh MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# MODEL is a pre-trained model's folder, or a checkpoint next to its configuration and tokenizer.
# DATA_DIR holds the tasks' folders under GLUE's names (CoLA, SST-2, ...); tasks without a folder
# are skipped. Settings are in flagfiles/glue_bert.flags and glue_albert_*.flags; flags at the end
# are passed to run_classifier.py and override them (--do_lower_case=false for a cased vocabulary).
# If started again, it continues where it stopped; tasks with results are not run again.
set -euo pipefail
source "$(dirname "$0")/benchmark.sh"
start_benchmark run_glue "$@"
