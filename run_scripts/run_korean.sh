#!/usr/bin/env bash
# Fine-tunes a model on Korean tasks, one after the other, and prints one table.
#
#   bash run_scripts/run_korean.sh MODEL DATA_DIR OUTPUT_DIR [--flag=value ...]
#
# MODEL is the folder of a pre-trained model, or a checkpoint with configuration and tokenizer beside
# it. DATA_DIR holds the tasks' folders as they are published: nsmc, klue-tc-v1.1, klue-nli-v1.1,
# klue-sts-v1.1, klue-ner-v1.1, klue-re-v1.1, klue-mrc-v1.1, KorNLI, KorSTS, ko (PAWS-X), 3i4k,
# labeled (Korean hate speech), korquad (with KorQuAD_v1.0_train.json and KorQuAD_v1.0_dev.json);
# tasks without one are left out. Settings are in flagfiles/korean*.flags; flags at the end win.
# --eval_on=train_part evaluates on a tenth of each training set, which is then not trained on.
# When run again, the script continues where it stopped; a task with results is not run again.
set -euo pipefail
source "$(dirname "$0")/benchmark.sh"
run_benchmark korean "$@"
