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
from tests.support.vocabularies import SPECIAL

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
    """Writes a file with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


TRAIN, HELD_OUT = (
    (ROOT / "sample_corpus" / f"{name}.txt").read_text(encoding="utf-8").strip()
    for name in ("train", "heldout")
)
# How often the sample corpus is in the reader's text: a row for each of the 256 files that the flag
# files name, and of the 64 that a guide does.
COPIES = 4
LONG = {"train.txt": "\n\n".join([TRAIN] * COPIES) + "\n"}


def bring_jsonl(path):
    """The sample corpus, a document a line."""
    rows = [json.dumps({"text": part}, ensure_ascii=False) for part in TRAIN.split("\n\n")]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = gzip.compress("\n".join(rows * COPIES).encode("utf-8"))
    (path.parent / "corpus.jsonl.gz").write_bytes(content)


def bring_nsmc(path):
    rows = [("정말 재미있다", 1), ("정말 지루하다", 0)] * 8
    write_published(path, "nsmc", train=rows, test=rows)


def bring_korsts(path):
    rows = [("비가 온다", "눈이 온다", f"{i % 6}.0") for i in range(16)]
    write_published(path, "korsts", train=rows, dev=rows, test=rows)


def bring_glue(path):
    rows = [("the book is red", 1), ("the book red is", 0)] * 8
    write_published(path / "CoLA", "cola", train=rows, dev=rows)


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
    write(path / "vocab.txt", "\n".join([*SPECIAL, "the", "book", "is", "red", "##s", ""]))
    write_config(path / "bert_config.json", max_position_embeddings=512)
    model = tiny_model(num_hidden_layers=1, max_position_embeddings=512)
    save_google_checkpoint(model, str(path / "bert_model.ckpt"))


def twice(text, name, *splits):
    """The files of a folder, the same for every split."""
    return {name.format(split): text for split in splits}


NAMES = ("guid", "premise", "hypothesis", "gold_label")
NLI = [
    dict(zip(NAMES, (f"{i}", f"비가 {i} 온다", f"{word} 온다", label), strict=True))
    for i in range(64)
    for word, label in (("비", "entailment"), ("눈", "contradiction"))
]
TAGGED = [klue_sentence(f"{i:05d}-wikitree", "서울에서 왔다|B-LC I-LC O O O O O") for i in range(8)]
ORDERS = [{"text": "배송이 빨라요", "label": "good"}, {"text": "금방 고장", "label": "bad"}] * 8
CONLL = "이순신 B-PS\n장군은 O\n여수에서 B-LC\n싸웠다 O\n\n내일 B-DT\n만나요 O\n\n"

# The reader's own files in the commands: path -> its text, the files of a folder with theirs, or a
# function that makes it.
OWN = {
    "data/*.txt": LONG,
    "bank/*.txt": LONG,
    "bank/words.txt": "대출금리\n중도상환수수료\n",
    "data/*.jsonl.gz": bring_jsonl,
    "heldout/*.txt": {"heldout.txt": HELD_OUT + "\n"},
    "sentences.txt": "바다를 보고 싶었다.\n비가 온다. ||| 우산을 썼다.\n",
    "data/nsmc": bring_nsmc,
    "data/KorSTS": bring_korsts,
    "data/KorSTS/sts-dev.tsv": {},  # a file of these
    "data/KorSTS/sts-test.tsv": {},
    "data/klue-nli-v1.1": twice(json.dumps(NLI), "klue-nli-v1.1_{}.json", "train", "dev"),
    "data/questions.tsv": "text\tpositive\tnegative\n" + "언제 오나?\t내일 온다\t집이 크다\n" * 64,
    "data/scored.tsv": "sentence1\tsentence2\tscore\n" + "비가 온다\t눈이 온다\t2.5\n" * 64,
    "data/faq.csv": "질문,답\n환불은 언제 되나요?,사흘 뒤\n",
    "data/korquad/KorQuAD_v1.0_dev.json": {},
    "data/orders": twice("\n".join(map(json.dumps, ORDERS)), "{}.jsonl", "train", "test"),
    "sample_tasks/nsmc": lambda path: shutil.copytree(ROOT / "sample_tasks" / "nsmc", path),
    "reference_model": lambda path: shutil.copytree(ROOT / "reference_model", path),
    "data/klue-ner-v1.1": twice(
        KLUE_HEADER + "".join(TAGGED), "klue-ner-v1.1_{}.tsv", "train", "dev"
    ),
    "data/names": twice(CONLL * 8, "{}.txt", "train", "dev"),
    "data/names/new.txt": "이순신 장군은 여수에서 싸웠다\n\n내일 가요\n",
    "data/korquad": bring_questions,
    "data/squad": bring_questions,
    "data/korean": lambda path: bring_nsmc(path / "nsmc"),
    "uncased_L-12_H-768_A-12": bring_model,
    "data/glue": bring_glue,
    "other/vocab.txt": "\n".join([*SPECIAL, "나", "##는", ""]),
    "job.flags": "--bert_config_file=bert_base.json\n--input_file=output/train.tfrecord\n"
    "--output_dir=output/job\n",
}


def bring(folder, names=OWN):
    """Puts all of it, or what has these names, into a folder."""
    for name in names:
        path, content = folder / name, OWN[name]
        if callable(content):
            content(path)
        else:
            files = {path: content} if isinstance(content, str) else content
            for file, text in files.items():
                write((path.parent if "*" in name else path) / file, text)
