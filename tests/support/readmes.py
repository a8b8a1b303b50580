"""The commands of the READMEs and guides: extracted, and given the reader's files."""

import gzip
import json
import re
import shlex
import shutil

from bert_tf.checkpoint import save_google_checkpoint
from tests.support.paths import ROOT
from tests.support.task_data import (
    KLUE_HEADER,
    klue_sentence,
    squad_entry,
    squad_file,
    write_published,
    write_questions,
)
from tests.support.tiny_models import tiny_model, write_config

DOCS = ROOT / "docs"

# Whoever reads a guide has read the README; the commands of each build on those before.
GUIDES = (
    "quickstart", "data", "tokenizers", "models", "training", "planning", "adaptation",
    "finetuning", "similarity", "export", "python", "benchmarks", "architecture", "migration",
    "troubleshooting",
)  # fmt: skip
PAGES = {
    "en": (ROOT / "README.md", *(DOCS / f"{name}.md" for name in GUIDES)),
    "ko": (ROOT / "README.ko.md", *(DOCS / f"{name}.ko.md" for name in GUIDES)),
}
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")


def blocks(page, language):
    """The code blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [body for _, found, body in FENCED.findall(text) if found == language]


def shell_lines(block):
    """The command lines of a shell block, each on one line, without comments."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.strip().startswith("#"):
            yield " ".join(line.split())


def commands(page):
    """(words, whether it is in a block) of every command of this project on a page."""
    text = page.read_text(encoding="utf-8")
    for line in (line for block in blocks(page, "bash") for line in shell_lines(block)):
        # Under Slurm it is in another command's quotes.
        inner = re.search(r"exec (python .*)'$", line)
        words = shlex.split(inner[1] if inner else line, comments=True)
        if words[0] in ("python", "bash", "pip", "tensorboard"):
            yield words, True
    for code in INLINE.findall(FENCED.sub("", text)):
        words = code.split()
        if re.match(r"(python|pip|\S+/pip) ", f"{words[0]} "):
            yield shlex.split(" ".join(words)), False


def comment_commands(flag_file):
    """The commands in the comment at the top of a flag file."""
    lines = flag_file.read_text(encoding="utf-8").splitlines()
    comment = "\n".join(line[1:].strip() for line in lines if line.startswith("#"))
    for line in comment.replace("\\\n", " ").splitlines():
        if line.startswith("python "):
            yield shlex.split(line)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# How often the sample corpus is in the reader's text: a row for each of the 256 files that the flag
# files name, and of the 64 that a guide does.
COPIES = 4


def bring_text(path):
    """The sample corpus as the reader's text."""
    text = (ROOT / "sample_corpus" / "train.txt").read_text(encoding="utf-8").strip()
    write(path.parent / "train.txt", "\n\n".join([text] * COPIES) + "\n")


def bring_held_out(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "sample_corpus" / "heldout.txt", path.parent / "heldout.txt")


def bring_jsonl(path):
    """The sample corpus, a document a line."""
    text = (ROOT / "sample_corpus" / "train.txt").read_text(encoding="utf-8")
    rows = [json.dumps({"text": part}, ensure_ascii=False) for part in text.split("\n\n")]
    lines = "\n".join(rows * COPIES).encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "corpus.jsonl.gz").write_bytes(gzip.compress(lines))


def bring_nsmc(path):
    rows = [("정말 재미있다", 1), ("정말 지루하다", 0)] * 8
    write_published(path, "nsmc", train=rows, test=rows)


def bring_korsts(path):
    rows = [("비가 온다", "눈이 온다", f"{i % 6}.0") for i in range(16)]
    write_published(path, "korsts", train=rows, dev=rows, test=rows)


def bring_klue_nli(path):
    names = ("guid", "premise", "hypothesis", "gold_label")
    rows = [
        dict(zip(names, (f"{i}", f"비가 {i} 온다", f"{word} 온다", label), strict=True))
        for i in range(64)
        for word, label in (("비", "entailment"), ("눈", "contradiction"))
    ]
    for split in ("train", "dev"):
        write(path / f"klue-nli-v1.1_{split}.json", json.dumps(rows, ensure_ascii=False))


def bring_orders(path):
    rows = (("배송이 빨라요", "good"), ("금방 고장 났습니다", "bad")) * 8
    text = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    for split in ("train", "test"):
        write(path / f"{split}.jsonl", text)


def bring_klue_ner(path):
    tagged = "서울에서 왔다|B-LC I-LC O O O O O"
    sentences = "".join(klue_sentence(f"{i:05d}-wikitree", tagged) for i in range(8))
    for split in ("train", "dev"):
        write(path / f"klue-ner-v1.1_{split}.tsv", KLUE_HEADER + sentences)


def bring_names(path):
    sentences = "이순신 B-PS\n장군은 O\n여수에서 B-LC\n싸웠다 O\n\n내일 B-DT\n만나요 O\n\n" * 8
    for split in ("train", "dev"):
        write(path / f"{split}.txt", sentences)


# The folder of a benchmark of questions -> its files, as they are published.
QUESTION_FILES = {
    "korquad": ("KorQuAD_v1.0_train.json", "KorQuAD_v1.0_dev.json"),
    "squad": ("train-v1.1.json", "dev-v1.1.json"),
}


def bring_questions(path):
    context = "나는 어릴 때 서울에서 살았다."
    qas = [squad_entry(f"q{i}", context, "서울", question="어디에 살았나?") for i in range(8)]
    path.mkdir(parents=True, exist_ok=True)
    for name in QUESTION_FILES[path.name]:
        write_questions(path / name, squad_file([{"context": context, "qas": qas}]))


def bring_model(path):
    """A released BERT: small, with random weights."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "book", "is", "red", "##s"]
    write(path / "vocab.txt", "\n".join(pieces) + "\n")
    write_config(path / "bert_config.json", max_position_embeddings=512)
    model = tiny_model(num_hidden_layers=1, max_position_embeddings=512)
    save_google_checkpoint(model, str(path / "bert_model.ckpt"))


def bring_glue(path):
    rows = [("the book is red", 1), ("the book red is", 0)] * 8
    write_published(path / "CoLA", "cola", train=rows, dev=rows)


JOB = """--bert_config_file=bert_base.json
--input_file=output/train.tfrecord
--output_dir=output/job
"""

QUESTIONS = "text\tpositive\tnegative\n" + "언제 오나?\t내일 온다\t집이 크다\n" * 64
SCORED = "sentence1\tsentence2\tscore\n" + "비가 온다\t눈이 온다\t2.5\n" * 64

# The reader's own files in the commands: path -> a function that makes it.
OWN = {
    "data/*.txt": bring_text,
    "bank/*.txt": bring_text,
    "bank/words.txt": lambda path: write(path, "대출금리\n중도상환수수료\n"),
    "data/*.jsonl.gz": bring_jsonl,
    "heldout/*.txt": bring_held_out,
    "sentences.txt": lambda path: write(path, "바다를 보고 싶었다.\n비가 온다. ||| 우산을 썼다.\n"),
    "data/nsmc": bring_nsmc,
    "data/KorSTS": bring_korsts,
    "data/KorSTS/sts-dev.tsv": lambda path: None,  # a file of these
    "data/KorSTS/sts-test.tsv": lambda path: None,
    "data/klue-nli-v1.1": bring_klue_nli,
    "data/questions.tsv": lambda path: write(path, QUESTIONS),
    "data/scored.tsv": lambda path: write(path, SCORED),
    "data/faq.csv": lambda path: write(path, "질문,답\n환불은 언제 되나요?,사흘 뒤\n"),
    "data/korquad/KorQuAD_v1.0_dev.json": lambda path: None,
    "data/orders": bring_orders,
    "sample_tasks/nsmc": lambda path: shutil.copytree(ROOT / "sample_tasks" / "nsmc", path),
    "reference_model": lambda path: shutil.copytree(ROOT / "reference_model", path),
    "data/klue-ner-v1.1": bring_klue_ner,
    "data/names": bring_names,
    "data/names/new.txt": lambda path: write(path, "이순신 장군은 여수에서 싸웠다\n\n내일 가요\n"),
    "data/korquad": bring_questions,
    "data/squad": bring_questions,
    "data/korean": lambda path: bring_nsmc(path / "nsmc"),
    "uncased_L-12_H-768_A-12": bring_model,
    "data/glue": bring_glue,
    "other/vocab.txt": lambda path: write(path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n나\n##는\n"),
    "job.flags": lambda path: write(path, JOB),
}


def bring(folder):
    """Puts all of it into a folder."""
    for name, make in OWN.items():
        make(folder / name)
