"""Holds the alternative texts of the tutorials' pictures, for readers who cannot see them."""

# Picture name -> language -> alternative text. The texts say what is drawn but not the results,
# which a new execution may change.
ALT_TEXTS = {
    "01_ten_minutes-1": {
        "ko": "업데이트 횟수에 따른 MLM 손실과 정확도. 학습에 쓰는 글과 떼어 둔 글의 곡선",
        "en": "Masked-LM loss and accuracy over the updates, on training and held-out text",
    },
    "03_pretraining-1": {
        "ko": "업데이트 횟수에 따른 학습률. 워밍업 동안 0에서 올라갔다가 0까지 직선으로 내려감",
        "en": "Learning rate over the updates: up from 0 in the warm-up, then straight down to 0",
    },
    "04_reviews-1": {
        "ko": "모델이 답에 준 확률(가로)과 실제로 맞은 비율(세로), 비교할 대각선, 리뷰의 개수",
        "en": "Probability of the answer against the share that is right, the diagonal to compare "
        "with, and numbers of reviews",
    },
}
