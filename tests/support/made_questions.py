"""A small file of questions, a tokenizer for it, and what is true of both."""

import json

from tokenization import KoreanTokenizer

CONTEXTS = (
    "임종석은 1989년 2월 15일 서울에서 체포됐다. 그는 학생회관(學生會館) 계단에 있었다.",
    "Ａ대학은  e\u0301tude를\u200b 연주했다…\n끝",
)
PIECES = """[PAD] [UNK] [CLS] [SEP] [MASK] 임종석 ##은 19 ##89 ##년 2 ##월 15 ##일 서울 ##에서
체포 ##됐 ##다 . 그 ##는 학생 ##회 ##관 ( ) 學 生 會 館 계단 ##에 있 ##었 Ａ ##대학 A étude ##를
연주 ##했 … 끝 누구 ##가 ? 언제 어디"""


def write_tokenizer(folder, **switches):
    """A tokenizer that knows every piece of the contexts."""
    path = folder / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in PIECES.split()), encoding="utf-8")
    return KoreanTokenizer(path, **switches)


def entry(key, context, *texts, question="누구가?", **more):
    """A question, with the first place of each answer."""
    answers = [{"text": text, "answer_start": context.index(text)} for text in texts]
    return {"id": key, "question": question, "answers": answers, **more}


def content():
    """What a file of SQuAD 2.0's format holds: five questions, one of them without an answer."""
    first, second = CONTEXTS
    of_first = [
        entry("a", first, "임종석"),
        entry("b", first, "1989년 2월 15일", "2월 15일", question="언제?"),
        entry("c", first, "학생회관(學生會館)", question="어디에서 언제?"),
        {**entry("d", first), "is_impossible": True, "plausible_answers": []},
    ]
    paragraphs = [
        {"context": first, "qas": of_first},
        {"context": second, "qas": [entry("e", second, "e\u0301tude")]},
    ]
    return {"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}


def write_questions(path, content):
    """Writes the file; returns its path."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
