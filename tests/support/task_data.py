"""Small data sets of the downstream tasks, and tokenizers for them."""

import csv
import io
import json
import random

import numpy as np

from tests.support.vocabularies import SPECIAL, write_lines
from tokenization import KoreanTokenizer

# === SQuAD ===

CONTEXTS = (
    "임종석은 1989년 2월 15일 서울에서 체포됐다. 그는 학생회관(學生會館) 계단에 있었다.",
    "Ａ대학은  e\u0301tude를\u200b 연주했다…\n끝",
)
QUESTION_PIECES = """
[PAD] [UNK] [CLS] [SEP] [MASK] 임종석 ##은 19 ##89 ##년 2 ##월 15 ##일 서울 ##에서
체포 ##됐 ##다 . 그 ##는 학생 ##회 ##관 ( ) 學 生 會 館 계단 ##에 있 ##었 Ａ ##대학 A étude ##를
연주 ##했 … 끝 누구 ##가 ? 언제 어디"""


def write_tokenizer(folder, **switches):
    """A tokenizer that knows every piece of the contexts."""
    path = write_lines(folder / "vocab.txt", QUESTION_PIECES.split())
    return KoreanTokenizer(path, **switches)


def squad_entry(key, context, *texts, question="누구가?", **more):
    """A question, with the first place of each answer."""
    answers = [{"text": text, "answer_start": context.index(text)} for text in texts]
    return {"id": key, "question": question, "answers": answers, **more}


def squad_file(paragraphs, version="1"):
    """What a file of SQuAD's format holds: one article."""
    return {"version": version, "data": [{"title": "t", "paragraphs": paragraphs}]}


def squad_content():
    """What a file of SQuAD 2.0's format holds: five questions, one of them without an answer."""
    first, second = CONTEXTS
    of_first = [
        squad_entry("a", first, "임종석"),
        squad_entry("b", first, "1989년 2월 15일", "2월 15일", question="언제?"),
        squad_entry("c", first, "학생회관(學生會館)", question="어디에서 언제?"),
        {**squad_entry("d", first), "is_impossible": True, "plausible_answers": []},
    ]
    paragraphs = [
        {"context": first, "qas": of_first},
        {"context": second, "qas": [squad_entry("e", second, "e\u0301tude")]},
    ]
    return squad_file(paragraphs, "v2.0")


def write_questions(path, content):
    """Writes the file; returns its path."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# === RACE ===

RACE_WORDS = ["red", "green", "blue", "tall", "small", "old", "new", "north", "south", "east"]


def race_article(draw, number, questions=2):
    """A text, and questions whose right option is the only one with the word "yes"."""
    made = {"questions": ["which _ ?", "what ?"][:questions], "options": [], "answers": []}
    for _ in range(questions):
        right = draw.randrange(4)
        options = [" ".join(draw.choices(RACE_WORDS, k=2)) for _ in range(4)]
        options[right] += " yes"
        made["options"].append(options)
        made["answers"].append("ABCD"[right])
    text = " ".join(draw.choices(RACE_WORDS, k=draw.randrange(5, 40)))
    return {"article": f"{text} {number}", **made}


def write_race(folder, **articles):
    """RACE's folders: split -> how many articles."""
    draw = random.Random(0)
    for split, count in articles.items():
        for number in range(count):
            path = folder / split / ("middle", "high")[number % 2] / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(race_article(draw, number)))


def write_race_lines(path, count, labelled=True):
    """The same as JSON lines."""
    draw, lines = random.Random(1), []
    for number in range(count):
        made = race_article(draw, number, 1)
        label = {"label": made["answers"][0]} if labelled else {}
        line = {"context": made["article"], "question": "what ?", "options": made["options"][0]}
        lines.append(json.dumps({**line, **label}) + "\n")
    path.write_text("".join(lines))


# === Questions about numbers ===

WORDS = ["red", "green", "blue", "tall", "small", "old", "new", "north", "south", "the", "a", "of"]
NUMBERS = ["seven", "nine", "eleven", "twenty"]


def number_questions(count, seed, version_2=False, words=20):
    """Questions whose answer is the only number of their text, if there is one."""
    draw, paragraphs = random.Random(seed), []
    for index in range(count):
        text = draw.choices(WORDS, k=words)
        impossible = version_2 and index % 3 == 0
        entry = {"id": f"{seed}-{index}", "question": "what number ?", "answers": []}
        if not impossible:
            number = draw.choice(NUMBERS)
            text[draw.randrange(words)] = number
            start = " ".join(text).index(number)
            entry["answers"] = [{"text": number, "answer_start": start}]
        if version_2:
            entry["is_impossible"] = impossible
        paragraphs.append({"context": " ".join(text), "qas": [entry]})
    return squad_file(paragraphs)


def in_articles(content, size=1):
    """The same file with so many texts in each article."""
    (article,) = content["data"]
    texts = article["paragraphs"]
    parts = [texts[start : start + size] for start in range(0, len(texts), size)]
    articles = [{"title": f"t{i}", "paragraphs": part} for i, part in enumerate(parts)]
    return {**content, "data": articles}


# === KLUE's named entities ===

KLUE_HEADER = """## 토큰, 레이블 구분자 : \\t
## 토큰 구분자 : \\n
## 문장 구분자 : \\n\\n
## 주석 : ##
## 컬럼명 : CHAR\tNE_TAG
"""


def klue_sentence(name, tagged):
    """A sentence of KLUE's file; `tagged` is the characters, a "|", their tags."""
    text, tags = tagged.split("|")
    lines = [f"{letter}\t{tag}\n" for letter, tag in zip(text, tags.split(), strict=True)]
    return f"## klue-ner-v1_dev_{name}\t<{text}>\n{''.join(lines)}\n"


# === Tables as they are published ===

# Data set -> the name of its files, their header, their rows.
PUBLISHED = {
    "nsmc": ("ratings_{}.txt", "id\tdocument\tlabel\n", "{i}\t{text}\t{label}\n"),
    "korsts": (
        "sts-{}.tsv",
        "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n",
        "a\tb\t2012\t{i}\t{label}\t{text}\t{second}\n",
    ),
    "cola": ("{}.tsv", "", "gj04\t{label}\t\t{text}\n"),
    "rte": ("{}.tsv", "index\tsentence1\tsentence2\tlabel\n", "{i}\t{text}\t{second}\t{label}\n"),
}


def write_published(folder, name, **splits):
    """Writes the files of a data set: split -> its rows (text, label) or (text, second, label)."""
    file, header, line = PUBLISHED[name]
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        lines = [line.format(i=i, text=r[0], second=r[1], label=r[-1]) for i, r in enumerate(rows)]
        (folder / file.format(split)).write_text(header + "".join(lines), encoding="utf-8")
    return folder


# === Tables of sentences ===

MNLI = ("index", "sentence1", "sentence2", "label1", "gold_label")
GOOD, BAD, OTHER = ["good", "nice", "fun"], ["bad", "dull", "sad"], ["the", "film", "is", "a", "so"]
SENTENCE_PIECES = [*SPECIAL, *GOOD, *BAD, *OTHER]


def sentence(rng, words, length=5):
    """Words without a meaning, one of `words` among them."""
    chosen = list(rng.choice(OTHER, rng.integers(1, length)))
    chosen.insert(rng.integers(len(chosen) + 1), str(rng.choice(words)))
    return " ".join(chosen)


def single_rows(count, seed=0):
    """Sentences that are good or bad."""
    rng = np.random.default_rng(seed)
    labels = ["good" if i % 2 else "bad" for i in range(count)]
    return [(sentence(rng, GOOD if label == "good" else BAD), label) for label in labels]


def write_table(path, header, rows):
    """A .tsv; without a header where that is empty."""
    lines = [header] * bool(header) + list(rows)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")


def as_table(rows, delimiter=",", **options):
    """The text of a table of texts and labels, as pandas and spreadsheets write it."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, **options).writerows([("text", "label"), *rows])
    return text.getvalue()


def write_splits(folder, header, rows, **splits):
    """A .tsv a split: from which row to which."""
    folder.mkdir(exist_ok=True)
    for split, (start, end) in splits.items():
        write_table(folder / f"{split}.tsv", header, rows[start:end])
    return folder


def write_mnli(folder):
    """MNLI's files, small."""
    rng = np.random.default_rng(0)
    rows = [
        (i, sentence(rng, GOOD), sentence(rng, BAD), "-", label)
        for i, label in enumerate(["contradiction", "entailment", "neutral"] * 12)
    ]
    folder.mkdir()
    write_table(folder / "train.tsv", MNLI, rows[:24])
    write_table(folder / "dev_matched.tsv", MNLI, rows[24:30])
    write_table(folder / "dev_mismatched.tsv", MNLI, rows[30:])
    for name in ("test_matched", "test_mismatched"):
        write_table(folder / f"{name}.tsv", MNLI[:3], [row[:3] for row in rows[:4]])


def read_table(path):
    """The cells of a .tsv."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
