"""The sentences of docs/results.ko.md."""

from run_scripts.reference.pages.wording import Wording, vocabularies

KOREAN = Wording(
    title="결과",
    navigation="[English](results.md) · [README](../README.ko.md)",
    notes_file="notes.ko.md",
    notes_title="참고",
    introduction=(
        "이 문서의 모든 수치는 [`results/runs.jsonl`](results/runs.jsonl)에서 나왔습니다. 이 "
        "파일에는 측정한 실행이 한 줄에 하나씩 들어 있으며, 명령, 컴퓨터, 시드, 시간, 메모리, "
        "점수가 적혀 있습니다. 문서는 `python -m run_scripts.reference.pages`가 이 파일로 "
        "만듭니다. `python -m run_scripts.reference.again --count=5 --seed=1`은 입력 파일이 남아 "
        "있는 실행 가운데 다섯 개를 무작위로 골라 다시 돌리고, 이전 수치와 새 수치를 나란히 보여 "
        "줍니다."
    ),
    empty="아직 측정한 실행이 없습니다. `results/runs.jsonl`이 비어 있습니다.",
    machines="컴퓨터",
    reading=(
        "시드를 여러 개 쓴 실행은 시드별 값의 평균 ± 표준편차로 적었습니다. 시드는 미세 "
        "조정의 시드이고, 표에 따로 적지 않은 한 사전 학습은 모델마다 한 번만 했습니다. 두 평균의 "
        "차이가 Tukey의 HSD(유의 수준 5%, 표에 있는 설정의 수를 반영)보다 작거나, 아래 '편차' "
        "표에서 잰 사전 학습 시드의 영향보다 작으면 우열을 가릴 수 없다고 봅니다. 정확도, F1, "
        "상관 계수의 단위는 퍼센트입니다."
    ),
    phases_title="사전 학습",
    phases_note=(
        "실행한 순서대로 적었습니다. 다른 실행의 가중치에서 이어 학습했다면 아래 명령의 "
        "`--init_checkpoint`에 나옵니다."
    ),
    phases_header=(
        "실행",
        "행 길이",
        "업데이트 수",
        "시간",
        "CPU 시간",
        "메모리",
        "컴퓨터",
        "시드",
    ),
    stages_title="단계별 비용",
    cost_header=("단계", "결과", "시간", "CPU 시간", "메모리", "컴퓨터", "시드", "코드"),
    total="모두 합해 {time}(CPU 시간 {cpu}).",
    held_out_title="따로 떼어 둔 텍스트",
    held_out_note=(
        "글자당 비트는 가린 단어의 손실을 모두 더해 비트로 바꾼 다음 그 단어들의 글자 수로 나눈 "
        "값입니다. 문장 순서는 두 "
        "세그먼트가 원래 순서인지 맞히는 문제입니다. 찍으면 50이고, 늘 같은 답만 해도 레이블의 "
        "비율에 따라 조금 더 나올 수 있습니다. `reference-1`~`-6`의 가중치는 이 텍스트의 "
        "행으로 스무 번쯤 평가한 것 가운데 가장 좋은 것입니다."
    ),
    order_title="행의 종류별 문장 순서 정확도",
    order_header=(
        "실행",
        "행 길이",
        "예제 수",
        "시작이 있는 행의 비율",
        "모델: 전체",
        "모델: 시작이 있는 행",
        "모델: 나머지",
        "규칙: 전체",
        "규칙: 시작이 있는 행",
        "규칙: 나머지",
    ),
    order_note=(
        "문장 순서 정확도를 세그먼트 하나가 문서의 첫 문장에서 시작하는 행과 나머지 행으로 나누어 "
        "쟀습니다. 찍으면 50입니다. 규칙은 학습 없이 답합니다. 첫째 세그먼트의 끝과 둘째의 시작에 "
        "공통으로 나오는 서브워드가 둘째의 끝과 첫째의 시작에 공통으로 나오는 것보다 많으면 원래 "
        "순서라고 답합니다. 드문 서브워드일수록 가중치가 크고, 동점이면 절반을 맞힌 것으로 칩니다. "
        "모델과 규칙은 똑같이 마스킹한 같은 행을 봅니다(`benchmarks/quality/order.py`)."
    ),
    curves_alt="학습 시간에 따라 따로 떼어 둔 텍스트에서 잰 손실과 정확도. 단계마다 선 하나",
    curves_alt_gpu="GPU에서 학습한 시간(분)에 따라 따로 떼어 둔 텍스트에서 잰 정확도",
    curves_note=(
        "학습 도중에 따로 떼어 둔 텍스트로 잰 값입니다. 평가한 행은 아래 명령의 "
        "`--eval_input_file`에 있습니다(이 플래그가 있는 명령만). 평가한 행의 길이가 다른 "
        "선끼리는 비교할 수 없습니다. 길이가 같아도 새 위치를 배우고 학습률이 다시 올라가므로, "
        "선이 앞 선이 끝난 자리에서 시작하지 않을 수 있습니다. 마스크 수가 다르면 아래 표와도 "
        "비교할 수 없습니다. "
        "`--max_predictions_per_seq`의 기본값인 20개는 길이 512인 행의 4%뿐이어서, 15%를 가린 "
        "아래 표보다 쉽습니다. GPU 그림에서는 실행마다 시간이 0부터 시작합니다."
    ),
    tasks_title="{name}: 한국어 과제",
    tasks_header=("과제", "측정 데이터와 지표", "이 모델", "무작위 가중치"),
    tasks_note="이 모델과 무작위 가중치는 신경망, 어휘, 미세 조정 설정이 모두 같고 시작 "
    "가중치만 다릅니다.",
    linear="선형 모델, {features}",
    questions_title="설정 비교",
    variant="설정",
    trivial="단순한 답",
    nothing_learned="{task}: 단순한 답보다 나은 설정이 없으므로 순위를 매기지 않습니다.",
    best=(
        "{task}: {best}의 점수가 가장 좋습니다. {equal}도 이와 차이가 있다고 할 수 없고, "
        "{worse}의 점수는 이보다 나쁩니다."
    ),
    best_alone="{task}: {best}의 점수가 가장 좋고, {worse}의 점수는 이보다 나쁩니다.",
    best_of_all="{task}: {best}의 점수가 가장 좋지만, {equal}도 이와 차이가 있다고 할 수 없습니다.",
    one_seed="{tasks}: 시드를 바꾸어 여러 번 잰 모델이 두 개가 안 되므로 순위를 매기지 않습니다.",
    single_runs="한 번만 재서 비교하지 않은 것: {variants}.",
    spread=(
        "{task}: 사전 학습 시드가 다른 모델 {count}개의 점수는 {models}입니다. 한 번씩 사전 학습한 "
        "두 모델의 차이가 {least}보다 작으면 시드만으로도 생길 수 있는 차이입니다(t 검정, 유의 "
        "수준 5%)."
    ),
    difference="차이",
    paired=(
        "크기가 같은 {first}와의 차이를 모든 크기에서 평균한 값 ± 표준편차와 대응표본 t 검정의 "
        "p값(열의 수로 보정하지 않음)입니다. 모델마다 따로 사전 학습했으므로 사전 학습 시드의 "
        "영향까지 들어 있습니다."
    ),
    runs_title="실행",
    runs_note=(
        "시간, CPU 시간, 메모리, 컴퓨터의 순서입니다. 시간이 CPU 시간의 몇 배라면 실행을 잠시 "
        "멈추었거나 다른 작업과 코어를 나누어 쓴 것입니다."
    ),
    cost="{time}(CPU 시간 {cpu})",
    commands_title="명령",
    commands_note=(
        "프로젝트 폴더에서 실행할 때 입력한 명령입니다. `output/이름`에는 그 이름의 실행이 만든 "
        "모델이 있고, `reference_model`은 그때의 모델입니다. 나머지 실행의 명령은 "
        "`results/runs.jsonl`에서 실행 이름으로 찾을 수 있습니다."
    ),
    seeds="시드 {seeds}",
    none="–",
    list_comma=", ",
    units=("{}초", "{}분", "{}시간 {}분"),
    stages={
        "text": "텍스트",
        "vocabulary": "어휘",
        "records": "레코드",
        "trial": "속도 측정",
        "positions": "위치 임베딩 복사",
        "pretraining": "사전 학습",
        "heldout": "떼어 둔 텍스트",
        "order": "문장 순서",
        "export": "내보내기",
    },
    labels={
        "model": "`reference_model`",
        "random_weights": "무작위 가중치",
        "masked_lm_loss": "MLM 손실",
        "masked_lm_accuracy": "MLM 정확도",
        "sentence_order_accuracy": "문장 순서 정확도",
        "next_sentence_accuracy": "다음 문장 정확도",
        "bits_per_character": "글자당 비트",
        "run": "실행",
        "examples": "예제 수",
        "megabytes": "MB",
        "pieces": "서브워드 수",
        "records": "레코드 수",
        "documents": "문서 수",
        "reviews": "리뷰 수(반복 포함)",
        "held_out_documents": "떼어 둔 문서 수",
        "left_out_documents": "뺀 문서 수",
        "left_out_reviews": "뺀 리뷰 수(반복 포함)",
        "seconds_per_update": "업데이트당 초",
        "global_step": "업데이트 수",
        "positions": "위치 수",
        "trained_positions": "그중 학습한 위치",
        "row_length": "행 길이",
        "pieces per word": "단어당 서브워드 수",
        "bits per character": "글자당 비트",
        "bits per character, all pieces at once": "글자당 비트(한꺼번에 예측)",
        "seconds per update": "업데이트당 초",
        "masked-LM accuracy, held-out text": "MLM 정확도(떼어 둔 텍스트)",
        "masked-LM accuracy, rows without pairs": "MLM 정확도(문장 쌍이 없는 행)",
        "random or next sentence": "다음 문장 여부(NSP)",
        "order of sentences": "문장 순서(SOP)",
        "characters": "문자 n-gram",
        "words": "단어 n-gram",
        "klue-ner": "klue-ner(개체명 F1)",
        "korsts": "korsts(피어슨)",
        "klue-sts": "klue-sts(KorSTS로 학습, 피어슨)",
        "korquad": "korquad(F1)",
        "usual": "일반적인 WordPiece",
        "kiwi": "kiwipiepy로 학습한 어휘",
        "plain": "분석기 없이 학습한 어휘",
        **vocabularies(
            usual="일반적인 WordPiece({:,}개)",
            kiwi="kiwipiepy로 학습한 어휘({:,}개)",
            plain="분석기 없이 학습한 어휘({:,}개)",
        ),
    },
)
