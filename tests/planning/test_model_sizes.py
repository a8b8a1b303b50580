"""The tables of models: counts of real models and of the papers, every kind of configuration."""

import json
import re
import shutil

import pytest

from bert_tf.config import BertConfig
from bert_tf.costs.flops import forward_flops, training_flops
from bert_tf.memory_estimate import (
    GIB,
    RUNTIME_BYTES,
    count_parts,
    estimate_bytes,
    inference_bytes,
    teacher_bytes,
)
from electra_tf import costs as electra_costs
from model_formats.config_file import ConfigFile
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.plan import main
from run_scripts.planning.sizes import published_sizes
from run_scripts.planning.table import number
from tests.support.paths import TEST_DATA
from tests.support.programs import one_line
from tests.support.tiny_models import SIZES, tiny_model

# The parts by the beginnings of our variables' paths below the encoder's or the model's name.
PATHS = {
    "words": ("embeddings/word_embeddings",),
    "positions": ("embeddings/position", "embeddings/token_type", "embeddings/layer_norm"),
    "projection": ("embedding_projection",),
    "blocks": ("layer_", "group_"),
    "pooler": ("pooler",),
}


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_parts_of_real_models(kind):
    model = tiny_model(kind, num_hidden_layers=3)
    found = dict.fromkeys([*PATHS, "heads"], 0)
    inside = {id(variable) for variable in model.encoder.trainable_variables}
    for variable in model.trainable_variables:
        name = variable.path.split("/", 2 if id(variable) in inside else 1)
        below = "/".join(name[1:]).removeprefix(f"{kind}/")
        part = next((p for p, starts in PATHS.items() if below.startswith(starts)), "heads")
        found[part if id(variable) in inside else "heads"] += int(variable.value.numpy().size)
    assert count_parts(model.config) == found
    assert found["heads"] > 500 and (found["projection"] > 0) == (kind == "albert")


def table(output, title):
    """The cells of a table by the name of the model, under the names of its columns."""
    lines = output[output.index(title) :].split("\n\n")[1].splitlines()
    names, *rows = (re.split(" {2,}", line.strip()) for line in lines)
    return {model: dict(zip(names, cells, strict=True)) for model, *cells in rows}


def test_published_sizes(capsys):
    """arXiv:1810.04805 and 1909.11942, table 1: 110 and 340 M; 12, 18, 60 and 235 M."""
    assert main(["sizes"]) == 0
    output = capsys.readouterr().out
    counts = table(output, "Parameters in millions")
    assert list(counts) == list(published_sizes()) and len(counts) == 10
    assert counts["BERT-base"] == {
        "embeddings": "23.8", "of words": "23.4", "projection": "0.0", "blocks": "85.1",
        "pooler": "0.6", "encoder": "109.5", "heads": "0.6", "blocks x runs": "12 x 1",
    }  # fmt: skip
    albert = counts["ALBERT-base"]
    assert (albert["embeddings"], albert["encoder"]) == ("3.9", "11.7")
    assert albert["blocks x runs"] == "1 x 12"
    assert [counts[f"ALBERT-{n}"]["encoder"] for n in ("large", "xlarge", "xxlarge")] == [
        "17.7", "58.7", "222.6",
    ]  # fmt: skip
    config = published_sizes()["BERT-large"]
    operations = table(output, "Operations per token")["BERT-large"]
    assert operations["train 128"] == f"{training_flops(config, 128, 20) / 128e6:,.0f}"
    # The vectors of all pieces take more than the masked ones alone, by less than a block.
    least = forward_flops(config, 512, 0) / 512e6
    assert least < float(operations["use 512"]) < 1.05 * least
    memory = table(output, "Memory in GiB to train, ")["BERT-large"]
    assert memory["512 bfloat16"] == f"{estimate_bytes(config, 32, 512, 77, 'bfloat16') / GIB:.1f}"
    saved = table(output, "with --recompute=block")["BERT-large"]["512 bfloat16"]
    used = table(output, "Memory in GiB to use")["BERT-large"]["512 bfloat16"]
    assert 1 < float(used) < float(saved) < float(memory["512 bfloat16"])
    # What is said of a teacher: without its logits, its memory is what it has to use.
    assert "is not counted: it adds about the operations\nand the memory" in output
    beside = teacher_bytes(config, 32, 512, precision="bfloat16") + RUNTIME_BYTES
    assert f"{beside / GIB:.1f}" == used


def test_memory_to_use_as_measured():
    """Of BERT-base on a CPU, 32 rows, TensorFlow included: peaks of the process in GiB."""
    config = BertConfig.from_preset("base", 30522)
    peaks = {(128, "float32"): 1.46, (512, "float32"): 2.19, (128, "bfloat16"): 1.5}
    for case, peak in peaks.items():
        assert inference_bytes(config, 32, *case) / GIB == pytest.approx(peak, rel=0.15)


def test_any_configuration_file(tmp_path, capsys):
    files = {"bert,1.json": SIZES, "albert.json": {**SIZES, "embedding_size": 16}}
    for name, values in files.items():
        (tmp_path / name).write_text(json.dumps(values))
    shutil.copy(TEST_DATA / "transformers" / "electra_small" / "config.json", tmp_path)
    paths = [str(tmp_path / name) for name in (*files, "config.json")]
    assert [ConfigFile(path).config.embedding_size for path in paths] == [32, 16, 16]
    given = ", ".join(path.replace(",", "\\,") for path in paths)
    argv = ["sizes", f"--config_file={given},", "--lengths=16, 24,99", "--batch_size=8"]
    assert main(argv) == 0
    output = capsys.readouterr().out
    rows = table(output, "Operations per token")
    electra = paths[-1]
    both = f"{electra} with generator"
    assert list(rows) == [*paths, both]
    config = ConfigFile(electra).config
    assert rows[both]["train 24"] == number(electra_costs.training_flops(config, 24, 4) / 24e6)
    assert rows[both]["use 24"] == rows[electra]["use 24"]
    parts = table(output, "Parameters in millions")
    assert parts[both]["blocks x runs"] == f"{2 * config.num_blocks} x 1"
    assert rows[paths[0]]["train 99"] == "-" != rows[paths[0]]["use 24"]
    assert "training with masks at 3 of 16, 4 of 24, 15 of 99" in output
    assert "8 rows of a length at once" in output


def test_memory_to_use_with_long_rows(tmp_path, capsys):
    """Attention is computed blockwise there, in extract_features and in a teacher."""
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps({**SIZES, "max_position_embeddings": 4096}))
    config = ConfigFile(str(path)).config
    assert main(["sizes", f"--config_file={path}", "--lengths=512,4096"]) == 0
    used = table(capsys.readouterr().out, "Memory in GiB to use")[str(path)]
    for length in (512, 4096):
        beside = teacher_bytes(config, 32, length, blockwise=length == 4096) + RUNTIME_BYTES
        assert used[f"{length} float32"] == f"{beside / GIB:.1f}"


@pytest.mark.parametrize(
    "own, flags, tokens",
    (
        # The shipped files leave it open: training takes it from the tokenizer.
        (None, (), 32_000),
        (None, ("--vocab_size=8000",), 8000),
        (9000, (), 9000),
        (9000, ("--vocab_size=70000",), 70_000),
    ),
)
def test_the_size_of_the_vocabulary(own, flags, tokens, tmp_path, capsys):
    path = SHIPPED / "bert_mini.json"
    if own:
        values = {**json.loads(path.read_text()), "vocab_size": own}
        path = tmp_path / "bert_config.json"
        path.write_text(json.dumps(values))
    assert main(["sizes", f"--config_file={path}", *flags]) == 0
    row = table(capsys.readouterr().out, "Parameters in millions")[str(path)]
    assert row["of words"] == f"{tokens * 256 / 1e6:.1f}"


def test_token_dropping(capsys):
    assert main(["sizes", "--token_dropping=0.5"]) == 0
    output, config = capsys.readouterr().out, published_sizes()["BERT-base"]
    row = table(output, "Operations per token")["BERT-base"]
    assert row["train 512"] == number(training_flops(config, 512, 77, 1, 0.5) / 512e6)
    assert row["train 512"] != number(training_flops(config, 512, 77) / 512e6)
    saved = estimate_bytes(config, 32, 512, 77, token_dropping=0.5)
    memory = table(output, "Memory in GiB to train, ")["BERT-base"]
    assert memory["512 float32"] == f"{saved / GIB:.1f}"
    assert ", 50% dropped" in output


@pytest.mark.parametrize(
    "flag, words",
    (
        ("--lengths=1", ("--lengths", "at least 2", "Received: 1")),
        ("--lengths=8,x", ("--lengths", "Received: 8,x")),
        ("--lengths=2,3,4,5,6", ("--lengths must be one to 4 numbers",)),
        ("--config_file=HERE/list.json", ("list.json must hold a JSON object",)),
        ("--config_file=HERE/other.json", ("other.json", "every key must be one of BertConfig's")),
    ),
)
def test_bad_input(flag, words, tmp_path, capsys):
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"vocab_size": 5, "n_layer": 3}')
    assert main(["sizes", flag.replace("HERE", str(tmp_path))]) == 1
    line = one_line(capsys)
    assert all(word in line for word in words), line
