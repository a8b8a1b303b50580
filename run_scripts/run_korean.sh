#!/usr/bin/env bash
# Fine-tunes a model on Korean tasks, one after another, and prints one table.
#
#   bash run_scripts/run_korean.sh MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# MODEL is a pre-trained model's folder, or a checkpoint next to its configuration and tokenizer.
# DATA_DIR holds the tasks' folders under their published names: nsmc, klue-tc-v1.1, klue-nli-v1.1,
# klue-sts-v1.1, klue-ner-v1.1, klue-re-v1.1, klue-mrc-v1.1, KorNLI, KorSTS, ko (PAWS-X), 3i4k,
# labeled (Korean hate speech), korquad (with KorQuAD_v1.0_train.json and KorQuAD_v1.0_dev.json);
# tasks without a folder are skipped. The settings are in flagfiles/korean*.flags; flags at the end
# override them. --eval_on=train_part evaluates on a held-out tenth of each training set.
# If started again, it continues where it stopped; tasks with results are not run again.
set -euo pipefail
source "$(dirname "$0")/benchmark.sh"
start_benchmark run_korean "$@"
