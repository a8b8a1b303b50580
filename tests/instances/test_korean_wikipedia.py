"""Real text from end to end, by the flag files: records, training, kill -9, resume, curves."""

import json
import subprocess
import sys
import time

import pytest

from bert_tf.checkpoint_files import list_checkpoints
from tests.support.paths import ROOT, SHARED
from tests.support.programs import SENTENCE, curves, results

FLAGFILES = ROOT / "run_scripts" / "flagfiles"
TEXT = SHARED / "data" / "kowiki" / "kowiki_2MB.txt"
VOCABULARY = SHARED / "data" / "vocabs" / "koelectra.txt"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TEXT.exists(), reason="the Korean Wikipedia sample is not here"),
]


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_korean_wikipedia(kind, tmp_path):
    records, output = tmp_path / "train.tfrecord", tmp_path / "output"
    create = [
        sys.executable, "create_pretraining_data.py",
        f"--flagfile={FLAGFILES}/{kind}_mini_data.flags",
        f"--input_file={TEXT}", f"--output_file={records}",
        "--tokenizer_dir=", f"--vocab_file={VOCABULARY}", "--tokenizer=korean",
    ]  # fmt: skip
    print(subprocess.run(create, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    config = json.loads((FLAGFILES / f"{kind}_mini.json").read_text())
    config["vocab_size"] = VOCABULARY.read_text(encoding="utf-8").count("\n") + 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    train = [
        sys.executable, "run_pretraining.py",
        f"--flagfile={FLAGFILES}/{kind}_mini_pretrain.flags",
        f"--input_file={records}", f"--output_dir={output}", f"--vocab_file={VOCABULARY}",
        f"--{kind}_config_file={tmp_path / 'config.json'}",
        "--num_train_steps=120", "--num_warmup_steps=20", "--save_checkpoints_steps=20",
        "--save_summary_steps=10", "--max_eval_steps=20",
    ]  # fmt: skip
    first = subprocess.Popen(train, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 900
    while len(list_checkpoints(output)) < 2:
        assert first.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    first.kill()
    first.wait()
    saved = list_checkpoints(output)[-1]
    second = subprocess.run(train, cwd=ROOT, capture_output=True, text=True)
    print(second.stdout)
    assert second.returncode == 0, second.stderr
    assert f"resuming from {output}/model.ckpt-{saved}," in second.stdout
    assert f"steps {saved + 1} to 120" in second.stdout
    found = curves(output)
    name = SENTENCE[kind]
    for scalar in (
        "loss/total", "loss/masked_lm", f"loss/{name}", "accuracy/masked_lm", f"accuracy/{name}",
        "learning_rate", "gradient_norm", "throughput/examples_per_second",
    ):  # fmt: skip
        print(scalar, found[scalar][0], found[scalar][-1])
    assert found["loss/masked_lm"][-1][1] < found["loss/masked_lm"][0][1] - 1
    assert found["loss/total"][-1][1] < found["loss/total"][0][1] - 1
    print(results(output))
    assert results(output)["global_step"] == 120
