"""The questions, each with the variants that are compared.

A question is a row of `QUESTIONS`, a variant the baseline with changes. Whatever two variants have
in common is computed once.
"""

import dataclasses

from choices.tasks import SHORT_TASKS, VOCABULARY_TASKS


@dataclasses.dataclass(frozen=True)
class Variant:
    """How a model is made; the defaults are the baseline's.

    The three dicts hold changes to the baseline's flags and sizes below.
    """

    vocabulary: str = "kiwi-16000"  # a learner, a key of `VOCABULARIES`, and the number of pieces
    records: dict = dataclasses.field(default_factory=dict)
    model_type: str = "bert"  # or "albert"
    model: dict = dataclasses.field(default_factory=dict)
    pretraining: dict = dataclasses.field(default_factory=dict)
    seed: int = 1  # of pre-training; fine-tuning has seeds of its own
    is_pretrained: bool = True  # else fine-tuning starts from random weights
    # "passes": as many passes over the text as the baseline, in as many updates, so that an update
    # sees as much text whatever the pieces; "rows": the baseline's batch and updates, where records
    # repeat text, as random next segments do; "time": as long as the baseline, with its batch in
    # rows, whatever text that is.
    equal: str = "passes"


# Learner -> its program with its own flags.
VOCABULARIES = {
    "usual": ("benchmarks/vocabulary_models/usual_vocabulary.py",),
    # Of all the text, not of a sample, as the usual trainer does: there is less than 1,024 MB.
    "kiwi": ("build_vocab.py", "--analyser=kiwi", "--most_megabytes=1024"),
    "plain": ("build_vocab.py", "--analyser=none", "--most_megabytes=1024"),
}

SIZES = (8000, 16000, 32000)  # of vocabularies, in pieces

LENGTH = 128

RECORDS = {
    "objective": "sop",
    "packing": "true",
    "masking": "dynamic",
    "do_whole_word_mask": "true",
    "ngram": 1,
    "max_seq_length": LENGTH,
}

# Dropout 0: a text is passed over a few times only, and small models do not overfit to it.
# Fine-tuning has dropout before its head alone.
MODEL = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": LENGTH,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}

# ALBERT's tables, 128 wide, are as large as BERT's at hidden size 128; a shared block of hidden
# size 256 has as many weights as the four of 128.
ALBERT = {
    "embedding_size": 128,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}

# As benchmarks/vocabulary.py. In a short trial the loss was 7.30 after 193 updates of 32 rows; with
# AdamW at 1e-3 it was 7.67 after 231.
# Products in bfloat16, as those of the reference model, unless --precision says otherwise.
PRETRAINING = {"optimizer": "lamb", "learning_rate": 1e-2, "precision": "bfloat16"}

# Data of google-research/bert: sequences apart, next sentences, single pieces, static masks, here
# of five passes. Its AdamW with linear warm-up and decay, at a higher rate than its README's 1e-4,
# which is for 12 layers of width 768.
GOOGLE_RECORDS = {
    "objective": "nsp",
    "packing": "false",
    "masking": "static",
    "dupe_factor": 5,
    "do_whole_word_mask": "false",
    "max_predictions_per_seq": 20,
}
GOOGLE_PRETRAINING = {"optimizer": "adamw", "learning_rate": 1e-3}

# One set of masks for the few passes over the text: BERT was trained for 40 passes over 10 sets, so
# it saw each four times (arXiv:1907.11692, section 4.1).
STATIC = {"masking": "static", "dupe_factor": 1}
NGRAMS, PIECES = {"ngram": 3}, {"do_whole_word_mask": "false"}


PRETRAINING_SEEDS = (1, 2, 3)  # of the spread


@dataclasses.dataclass(frozen=True)
class Question:
    """What is compared, and on what."""

    title: str
    title_ko: str
    variants: dict  # name -> `Variant`
    tasks: tuple  # keys of `choices.tasks.TASKS`
    # Groups of variants for each of which bits per character are measured on the same masked spans.
    bits: tuple = ()
    masks_equally: bool = False  # whether all predict the same masked pieces of held-out text
    # Whether each model is measured on the other objective's records, and all of them on the same
    # records without any.
    compares_objectives: bool = False
    replicates: tuple = ()  # variants that differ in the seed of pre-training alone
    # Ways -> their variants, one for each setting; they are compared setting by setting.
    paired: dict = dataclasses.field(default_factory=dict)


def _vocabularies():
    return {
        f"{learner}-{size}": Variant(vocabulary=f"{learner}-{size}")
        for size in SIZES
        for learner in VOCABULARIES
    }


QUESTIONS = {
    "vocabulary": Question(
        "Vocabularies: the usual WordPiece; ours with kiwipiepy; ours without an analyser",
        "어휘: 일반적인 WordPiece, 형태소 분석기(kiwipiepy)로 학습한 어휘, 분석기 없이 학습한 어휘",
        _vocabularies(),
        VOCABULARY_TASKS,
        bits=tuple(tuple(f"{learner}-{size}" for learner in VOCABULARIES) for size in SIZES),
        paired={learner: tuple(f"{learner}-{size}" for size in SIZES) for learner in VOCABULARIES},
    ),
    "sentence": Question(
        "The sentence objective: next sentence, sentence order, none",
        "문장 과제: 다음 문장 예측(NSP), 문장 순서 예측(SOP), 없음",
        {
            "nsp": Variant(records={"objective": "nsp"}, equal="rows"),
            "sop": Variant(records={"objective": "sop"}),
            "none": Variant(records={"objective": "none"}, equal="rows"),
        },
        SHORT_TASKS,
        compares_objectives=True,
    ),
    "masking": Question(
        "Masking: whole words, up to three words, single pieces; dynamic or static masks",
        "마스킹: 어절 전체, 최대 세 어절, 서브워드 하나씩; 동적 마스크와 정적 마스크",
        {
            "words-dynamic": Variant(),
            "ngrams-dynamic": Variant(records=NGRAMS),
            "pieces-dynamic": Variant(records=PIECES),
            "words-static": Variant(records=STATIC),
        },
        SHORT_TASKS,
    ),
    "model": Question(
        "The model: 2 or 4 layers; ALBERT with as many weights, for as many passes or as long",
        "모델: 2층과 4층, 파라미터 수가 같은 ALBERT(같은 횟수 또는 같은 시간)",
        {
            "bert-4-layers": Variant(),
            "bert-2-layers": Variant(model={"num_hidden_layers": 2}),
            "albert-equal-passes": Variant(model_type="albert", model=ALBERT),
            "albert-equal-time": Variant(model_type="albert", model=ALBERT, equal="time"),
        },
        SHORT_TASKS,
        masks_equally=True,
    ),
    "recipe": Question(
        "The recipe: ours; google-research/bert's for the same time",
        "학습 방식: 이 프로젝트의 방식과 google-research/bert의 방식(같은 시간)",
        {
            "ours": Variant(),
            "google": Variant(
                vocabulary="usual-16000",
                records=GOOGLE_RECORDS,
                pretraining=GOOGLE_PRETRAINING,
                equal="time",
            ),
        },
        SHORT_TASKS,
        bits=(("ours", "google"),),
    ),
    "spread": Question(
        "The spread: the same pre-training with other seeds, and none",
        "편차: 시드만 바꾼 사전 학습, 그리고 사전 학습 없음",
        {
            **{f"seed-{seed}": Variant(seed=seed) for seed in PRETRAINING_SEEDS},
            "random-weights": Variant(is_pretrained=False),
        },
        ("nsmc", *SHORT_TASKS),  # NSMC whole: some vocabularies differ by little there
        masks_equally=True,
        replicates=tuple(f"seed-{seed}" for seed in PRETRAINING_SEEDS),
    ),
}
