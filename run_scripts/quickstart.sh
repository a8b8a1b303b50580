#!/usr/bin/env bash
# Installs the project into .venv and fills in a few sentences with the model that comes with it.
# Then builds a small Korean ALBERT from scratch: learns a vocabulary from the sample corpus, turns
# the corpus into records, pre-trains, evaluates on held-out text and fills in three sentences.
#
#   bash run_scripts/quickstart.sh
#
# If started again, it skips finished steps. All its files are in .venv and output/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."
source run_scripts/install.sh
install_project korean

OUTPUT=output/quickstart

step() { printf '\n== %s\n' "$1"; }

step "1/7 the model that comes with the project fills in masked words"
# On the CPU, because for a few sentences starting a GPU takes longer than it saves.
"$PYTHON" -m run_scripts.tools.fill_masks --device=cpu --guesses=3 \
  --text='배우들의 [MASK]가 훌륭하다.|그는 서울대학교를 [MASK]하였다.|우리[MASK] 버스를 타고 집에 갔다.'

# Uses the CPU, and prints the reason, if TensorFlow cannot use the machine's GPU.
DEVICE="$("$PYTHON" -c '
import sys
from bert_common.errors import InputError
from bert_common.import_tensorflow import import_tensorflow
import_tensorflow()
from bert_tf.training.gpus import check_gpus
try:
    check_gpus()
    print("auto")
except InputError as error:
    print(f"note: the CPU is used: {error}", file=sys.stderr)
    print("cpu")
')"

# make_records NAME PASSES: skips complete records; a record file gets its name when complete.
make_records() {
  if [ -e "$OUTPUT/$1.json" ]; then  # the last file to be written
    echo "$OUTPUT/$1.tfrecord exists already"
    return
  fi
  "$PYTHON" create_pretraining_data.py \
    --flagfile=run_scripts/flagfiles/quickstart_data.flags \
    --input_file="sample_corpus/$1.txt" --output_file="$OUTPUT/$1.tfrecord" --dupe_factor="$2"
}

step "2/7 a vocabulary: the morphemes of the training part of the sample corpus"
if [ -e "$OUTPUT/tokenizer/report.json" ]; then  # the last file to be written
  echo "$OUTPUT/tokenizer exists already"
else
  "$PYTHON" build_vocab.py --input_file=sample_corpus/train.txt --vocab_size=3000 \
    --output_dir="$OUTPUT/tokenizer"
fi

step "3/7 text to records: the training part, 20 times with other masks"
make_records train 20

step "4/7 text to records: the held-out part"
make_records heldout 5

step "5/7 pre-training"
"$PYTHON" run_pretraining.py --flagfile=run_scripts/flagfiles/quickstart_pretrain.flags \
  --input_file="$OUTPUT/train.tfrecord" --output_dir="$OUTPUT/model" --do_train --device="$DEVICE"

step "6/7 evaluation on the held-out part, which training has not seen"
"$PYTHON" run_pretraining.py --flagfile=run_scripts/flagfiles/quickstart_pretrain.flags \
  --input_file="$OUTPUT/heldout.tfrecord" --output_dir="$OUTPUT/model" --nodo_train --do_eval \
  --device="$DEVICE"

step "7/7 filling in masked words"
"$PYTHON" -m run_scripts.tools.fill_masks --model_dir="$OUTPUT/model" --device="$DEVICE" \
  --text='바다를 보고 싶었[MASK].|이 영화는 정말 재미있[MASK].|우리[MASK] 버스를 타고 집에 갔다[MASK]'

cat <<TEXT

Look at the curves:   .venv/bin/tensorboard --logdir $OUTPUT/model
Try a sentence:       .venv/bin/python -m run_scripts.tools.fill_masks --text='...[MASK]...'
With your own model:  the same with --model_dir=$OUTPUT/model
Use your own text:    README.md, "Your own corpus" (README.ko.md: "내 말뭉치로 학습하기")
TEXT
