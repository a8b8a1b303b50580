"""What the tutorials' pictures show, in words for those who cannot see them."""

# Name of a picture -> language -> its words. They say what is drawn, not how it comes out, which
# another execution may change.
ALT_TEXTS = {
    "01_ten_minutes-1": {
        "ko": "업데이트 횟수에 따른 MLM 손실과 정확도. 학습에 쓰는 글과 떼어 둔 글의 곡선",
        "en": "Masked-LM loss and accuracy over the updates, on training and held-out text",
    },
    "03_pretraining-1": {
        "ko": "-4에서 4까지의 GELU와 ReLU. GELU는 0 근처에서 매끄럽고 음수를 조금 통과시킴",
        "en": "GELU and ReLU from -4 to 4; GELU is smooth, and not quite 0 below 0",
    },
    "03_pretraining-2": {
        "ko": "업데이트 횟수에 따른 학습률. 워밍업 동안 0에서 올라갔다가 0까지 직선으로 내려감",
        "en": "Learning rate over the updates: up from 0 in the warm-up, then straight down to 0",
    },
    "03_pretraining-3": {
        "ko": "학습 시간에 따라 떼어 둔 글에서 잰 마스크 언어 모델의 정확도와 문장 순서 정확도. "
        "단계마다 선 하나, 찍을 때의 값은 점선",
        "en": "Accuracy on held-out text over hours of training, a line for each phase: masked "
        "pieces, and order of sentences with a dashed line for guessing",
    },
    "04_reviews-1": {
        "ko": "모델이 답에 준 확률(가로)과 실제로 맞은 비율(세로), 비교할 대각선, 리뷰의 개수",
        "en": "Probability of the answer against the share that is right, the diagonal to compare "
        "with, and numbers of reviews",
    },
    "05_entities-1": {
        "ko": "개체명의 종류마다 F1을 나타낸 막대. 이름 목록, 특징과 BiLSTM, 미세 조정",
        "en": "Bars of F1 for each kind of entity: list of names, features and BiLSTM, fine-tuned",
    },
    "07_embeddings-1": {
        "ko": "다섯 부류의 단어 40개를 임베딩의 주성분 둘로 나타낸 그림. 부류마다 색이 다름",
        "en": "Forty words of five groups along two principal components, a colour for each group",
    },
    "07_embeddings-2": {
        "ko": "문장 24개의 `배` 벡터를 주성분 둘로 나타낸 그림. 0층과 마지막 층, 뜻마다 다른 색",
        "en": "The vectors of 배 in 24 sentences along two principal components, at layer 0 and at "
        "the last layer, a colour for each meaning",
    },
    "07_embeddings-3": {
        "ko": "문장 12개 사이의 코사인을 색으로 나타낸 표 둘. 평균, 전체 평균을 뺀 평균",
        "en": "Two tables of the cosines between 12 sentences: mean vectors, and mean vectors "
        "less that of all sentences",
    },
    "07_embeddings-4": {
        "ko": "고른 헤드 하나의 어텐션. 행의 토큰이 열의 토큰에 주는 확률을 색으로 나타냄",
        "en": "Attention of the chosen head: what the token of each row gives to each column",
    },
}
