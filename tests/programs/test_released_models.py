"""A released model's folder is all that a program needs to know of the model: --model_dir."""

import shutil

import numpy as np
import pytest

from run_scripts import classifier, create_data, ner, pretrain, race, squad
from run_scripts.tools import fill_masks
from tests.support.crosses import slow
from tests.support.models.released_models import SIZE, WORDS, WRITERS
from tests.support.programs import features, results
from tests.support.task_data import number_questions, write_questions, write_race, write_splits
from tokenization import load_tokenizer

# The folder in each archive, and its contents.
NAMES = {"bert": "uncased_L-8_H-512_A-8", "albert": "albert_base"}
CHECKPOINTS = {"bert": "bert_model.ckpt", "albert": "model.ckpt-best"}
TOKENIZERS = {"bert": "vocab_file=vocab.txt", "albert": "spm_model_file=30k-clean.model"}

# The programs that a small model is fine-tuned by; one of the real size is by all of them.
FINE_TUNING = {"bert": (squad, ner, classifier), "albert": (race,)}


def write_data(folder):
    """Something small for each program."""
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(WORDS, 6)) for _ in range(24)]
    (folder / "tags").mkdir(parents=True)
    documents = ["\n".join(sentences[i : i + 6]) for i in range(0, 24, 6)]
    (folder / "text.txt").write_text("\n\n".join(documents) + "\n")
    rows = [(sentence, ("yes", "no")[i % 2]) for i, sentence in enumerate(sentences)]
    write_splits(folder / "classes", ("text", "label"), rows, train=(0, 8), dev=(8, 12))
    for split in ("train", "dev"):
        tagged = ["".join(f"{word}\tB-X\n" for word in each.split()) for each in sentences[:8]]
        (folder / "tags" / f"{split}.txt").write_text("\n".join(tagged))
    write_questions(folder / "questions.json", number_questions(8, 1, words=10))
    write_race(folder / "race", train=4, dev=2)


@pytest.fixture(
    scope="module",
    params=(
        slow(("bert", True), id="bert"),
        pytest.param(("albert", True), id="albert"),
        slow(("bert", False), id="bert-real"),
        slow(("albert", False), id="albert-real"),
    ),
)
def released(request, tmp_path_factory):
    """A folder with a model and data, which model it is, and whether it is small."""
    kind, small = request.param
    folder = tmp_path_factory.mktemp(kind)
    WRITERS[kind](folder / "unpacked" / NAMES[kind], small)
    write_data(folder / "data")
    yield folder, kind, small
    shutil.rmtree(folder)  # of the real sizes it is large


def test_features_and_guesses(released, capsys):
    """What the folder means is what the single flags mean."""
    folder, kind, _ = released
    model = folder / "unpacked" / NAMES[kind]
    argv = (folder / "data/text.txt", folder / "x.npz", f"--max_seq_length={SIZE}")
    flag, _, name = TOKENIZERS[kind].partition("=")
    config = f"--{kind}_config_file={model}/{kind}_config.json"
    single = (f"--{flag}={model / name}", config, f"--init_checkpoint={model / CHECKPOINTS[kind]}")
    found = features(*argv, f"--model_dir={folder}/unpacked")
    np.testing.assert_array_equal(found, features(*argv, *single))
    capsys.readouterr()
    assert guess(folder / "unpacked") == 0
    shown = capsys.readouterr()
    assert shown.out.count("%") == 5 and not shown.err


def guess(model):
    """Fills a mask."""
    return fill_masks.main(["fill_masks", f"--model_dir={model}", "--text=The [MASK] is tall."])


@pytest.mark.usefixtures("eagerly")
def test_pretraining_continues(released, capsys):
    """Records by the model's tokenizer, an update; what is left is a model's folder again."""
    folder, kind, _ = released
    model, records = f"--model_dir={folder}/unpacked", f"{folder}/records.tfrecord"
    argv = ["create", model, f"--input_file={folder}/data/text.txt", f"--output_file={records}"]
    flags = [f"--max_seq_length={SIZE}", "--dupe_factor=2", "--num_workers=1"]
    assert create_data.main([*argv, *flags]) == 0
    argv = ["run", model, f"--input_file={records}", f"--output_dir={folder}/pretrained"]
    flags = ["--do_train", "--train_batch_size=2", "--num_train_steps=1", "--xla=off"]
    assert pretrain.main([*argv, *flags]) == 0
    shown = capsys.readouterr().out
    objective = {"bert": "nsp", "albert": "sop"}[kind]
    assert f"objective: {objective}, defaults: {kind.upper()}'s" in shown
    weights = folder / "unpacked" / NAMES[kind] / CHECKPOINTS[kind]
    assert f"starting from --init_checkpoint: {weights}: " in shown
    assert ", 0 in the file ignored" in shown and "initial values" not in shown
    tokenizer = load_tokenizer(folder / "pretrained")
    assert tokenizer.fingerprint() in (folder / "records.json").read_text()
    assert guess(folder / "pretrained") == 0


@pytest.mark.usefixtures("eagerly")
def test_fine_tuning(released):
    """One update; the folder of the result is a model's folder again."""
    folder, kind, small = released
    data, run = folder / "data", ["run", f"--max_seq_length={SIZE}", "--xla=off"]
    task_flags = {
        ner: ("--task_name=conll", f"--data_dir={data}/tags"),
        squad: (f"--train_file={data}/questions.json", f"--predict_file={data}/questions.json",
                "--max_query_length=8", "--doc_stride=8"),
        race: (f"--data_dir={data}/race", "--max_qa_length=12"),
        classifier: ("--task_name=tsv", f"--data_dir={data}/classes"),
    }  # fmt: skip
    for program in FINE_TUNING[kind] if small else task_flags:
        output = folder / program.__name__
        flags = [*task_flags[program], "--bucket_boundaries=none", "--train_batch_size=2"]
        train = ["--do_train", "--train_step=1", f"--output_dir={output}"]
        assert program.main([*run, f"--model_dir={folder}/unpacked", *train, *flags]) == 0
        assert (output / "model.ckpt-1.index").exists(), program
    if program is not classifier:  # what follows is the same for all of them
        return
    # Without --do_train the same command measures what it has trained, ...
    output, again = folder / program.__name__, [*run, "--do_eval", *flags]
    assert program.main([*again, f"--model_dir={folder}/unpacked", f"--output_dir={output}"]) == 0
    found = results(output)
    assert found["global_step"] == 1
    # ... and with the trained model's folder a command that writes elsewhere does.
    other = folder / "measured"
    assert program.main([*again, f"--model_dir={output}", f"--output_dir={other}"]) == 0
    assert results(other) == found
