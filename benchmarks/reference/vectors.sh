#!/usr/bin/env bash
# Trains reference_vectors from reference_model, in three hours on one core.
#
#   git clone https://github.com/songys/Question_pair
#   git clone https://github.com/warnikchow/paraKQC
#   bash benchmarks/reference/vectors.sh
#
# data/ must hold klue-nli-v1.1, KorSTS and korquad as they are published. The Python that is active
# needs the project with the extra finetune.
set -euo pipefail
cd "$(dirname "$0")/../.."

python -m benchmarks.quality.similarity_sources --question_pair=Question_pair/kor_pair_train.csv \
  --parakqc=paraKQC/data/paraKQC_v1.txt --questions=data/korquad/KorQuAD_v1.0_dev.json \
  --output_dir=data/sources
S=data/sources

# Three trainings, first on four sources of pairs, then on scores and two of them.
for seed in 1 2 3; do
  python run_similarity.py --task_name=klue-nli --data_dir=data/klue-nli-v1.1 \
    --model_dir=reference_model \
    --train_file=klue-nli,$S/parakqc.tsv,$S/question_pair.tsv,$S/questions.tsv \
    --train_shares=4,2,1,2 --dev_file=data/KorSTS/sts-dev.tsv --output_dir=output/ranking_$seed \
    --do_train --train_step=240 --train_batch_size=64 --learning_rate=2e-4 --max_seq_length=40 \
    --freeze_embeddings --random_seed=$seed --xla=off
  python run_similarity.py --task_name=korsts --data_dir=data/KorSTS \
    --model_dir=output/ranking_$seed \
    --train_file=korsts,$S/questions_pairs.tsv,$S/parakqc_pairs.tsv --train_shares=5,1,1 \
    --output_dir=output/vectors_$seed --do_train --do_eval --train_step=1080 \
    --learning_rate=2e-4 --max_seq_length=40 --freeze_embeddings --random_seed=$seed --xla=off
done
python -m run_scripts.tools.average_models --output_dir=output/mean \
  --models=output/vectors_1,output/vectors_2,output/vectors_3

# The mean, trained on paragraphs too, and the mean of both.
python run_similarity.py --task_name=korsts --data_dir=data/KorSTS --model_dir=output/mean \
  --train_file=korsts,$S/paragraphs.json,$S/parakqc_pairs.tsv --train_shares=4,3,1 \
  --output_dir=output/paragraphs --do_train --do_eval --train_step=240 --learning_rate=1e-4 \
  --train_batch_size=32 --max_seq_length=256 --freeze_embeddings --random_seed=1 --xla=off
# Texts may have 512 tokens afterwards, as was measured.
sed -i 's/"max_seq_length": [0-9]*/"max_seq_length": 512/' output/{mean,paragraphs}/finetuning.json
python -m run_scripts.tools.average_models --output_dir=output/vectors \
  --models=output/paragraphs,output/mean
python export_model.py --model_dir=output/vectors --base_dir=reference_model \
  --output_dir=reference_vectors --format=difference --precision=float16 --rank=25 --max_size=1MB
