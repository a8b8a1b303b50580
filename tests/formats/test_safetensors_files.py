"""Safetensors files are read whole or refused in one line; pickles are never read."""

import glob
import json
import random
import re
import shlex
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers_models import FOLDERS

from bert_common.errors import InputError
from model_formats.transformers_files import safetensors_files
from model_formats.transformers_files.safetensors_files import open_tensors
from model_formats.weights import check_weights, find_weights

SOURCE = FOLDERS / "albert" / "model.safetensors"


def refusal(function, path):
    with pytest.raises(InputError) as caught:
        function(str(path))
    message = str(caught.value)
    assert len(message) < 1000
    return message


@pytest.mark.parametrize("dtype", (np.float32, np.float16, ml_dtypes.bfloat16))
def test_every_float_is_read_as_float32(dtype, tmp_path):
    array = np.random.default_rng(0).normal(size=(3, 4)).astype(dtype)
    save_file({"a": array}, tmp_path / "x.safetensors")
    tensors = open_tensors(str(tmp_path / "x.safetensors"))
    assert tensors.shapes == {"a": [3, 4]} and tensors.read("a").dtype == np.float32
    np.testing.assert_array_equal(tensors.read("a"), array.astype(np.float32))


def test_other_types_are_refused(tmp_path):
    for dtype in (np.int64, np.float64):
        save_file({"a": np.zeros(2, dtype)}, tmp_path / "x.safetensors")
        tensors = open_tensors(str(tmp_path / "x.safetensors"))
        message = refusal(lambda path, t=tensors: t.read("a"), "a")
        assert "a must be of type F32, F16, BF16. Received: " in message
        assert "whole safetensors file" not in message


def test_a_cut_file(tmp_path):
    content, path = SOURCE.read_bytes(), tmp_path / "x.safetensors"
    for size in (0, 7, 8, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        assert f"{path} must be a whole safetensors file" in refusal(open_tensors, path)
    path.write_bytes(content + b"x")
    refusal(open_tensors, path)


def test_a_header_that_lies_about_lengths(tmp_path):
    content, path = SOURCE.read_bytes(), tmp_path / "x.safetensors"
    tracemalloc.start()
    for length in (2**63, 2**40, 90_000_000, len(content), 1, 0):
        path.write_bytes(struct.pack("<Q", length) + content[8:])
        refusal(open_tensors, path)
    huge = {"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}
    for changes in ({}, {"data_offsets": [0, 2**62]}, {"data_offsets": [4, 0]}, {"shape": [-1]}):
        header = json.dumps({"a": {**huge["a"], **changes}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\\0" * 4)
        refusal(open_tensors, path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def mutate(content, rng):
    """A file whose header has some changed, dropped or repeated bytes, or changed numbers."""
    (length,) = struct.unpack("<Q", content[:8])
    header = bytearray(content[8 : 8 + length])
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(header))
        kind = rng.randrange(4)
        if kind == 0:
            header[place] = rng.randrange(256)
        elif kind == 1:
            del header[place : place + rng.randint(1, 20)]
        elif kind == 2:
            header[place:place] = header[place : place + rng.randint(1, 20)]
        else:  # a digit, so that the JSON stays valid
            digits = [i for i, byte in enumerate(header) if 48 <= byte < 58]
            header[rng.choice(digits)] = rng.randint(48, 57)
    told = len(header) if rng.random() < 0.8 else rng.choice((length, 2 ** rng.randint(0, 63)))
    return struct.pack("<Q", told) + bytes(header) + content[8 + length :]


def test_500_mutated_headers(tmp_path):
    content, path, rng = SOURCE.read_bytes(), tmp_path / "x.safetensors", random.Random(0)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(500):
        path.write_bytes(mutate(content, rng))
        try:
            tensors = open_tensors(str(path))
            for name in tensors.shapes:
                tensors.read(name)
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    # Letters in a name may change; everything else is noticed.
    assert outcomes["refused"] > 300 and outcomes["read"] > 5


def write_shards(folder, names=None):
    """The kept ALBERT in two files with an index; returns the index's path."""
    arrays = load_file(SOURCE)
    halves = sorted(arrays)[::2], sorted(arrays)[1::2]
    places = {}
    for number, half in enumerate(halves):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({name: arrays[name] for name in half}, folder / file)
        places |= dict.fromkeys(half, file)
    path = folder / safetensors_files.INDEX_FILE
    path.write_text(json.dumps({"metadata": {}, "weight_map": {**places, **(names or {})}}))
    return path


def test_shards(tmp_path):
    tensors, whole = open_tensors(str(write_shards(tmp_path))), load_file(SOURCE)
    assert set(tensors.shapes) == set(whole)
    for name, array in whole.items():
        np.testing.assert_array_equal(tensors.read(name), array)


def test_shards_that_do_not_fit_their_index(tmp_path):
    shard = "model-00001-of-00002.safetensors"
    path = write_shards(tmp_path, {"more": shard})
    assert f"{shard} must hold the tensors that {path} names. Received: without more" in refusal(
        open_tensors, path
    )
    save_file({"extra": np.zeros(1, np.float32)}, tmp_path / "third.safetensors")
    path = write_shards(tmp_path, {"extra_2": "third.safetensors"})
    assert "without extra_2; with extra" in refusal(open_tensors, path)
    path = write_shards(tmp_path, {"more": "fourth.safetensors"})
    assert "fourth.safetensors must be a whole" in refusal(open_tensors, path)
    for file in ("../x.safetensors", "/etc/passwd", "..", ""):
        path = write_shards(tmp_path, {"more": file})
        assert "must name files of its own folder" in refusal(open_tensors, path)
    for text in ("[]", "{}", '{"weight_map": {"a": 1}}', "{"):
        path.write_text(text)
        assert str(path) in refusal(open_tensors, path)


def test_pickles_are_refused_with_the_command_that_converts_them(tmp_path):
    for name in ("pytorch_model.bin", "model.pt", "weights.pkl", "last.ckpt"):
        path = tmp_path / name
        path.write_bytes(b"\x80\x04N.")
        for function in (find_weights, check_weights):
            message = refusal(function, path)
            assert f"Received: {path};" in message and "safetensors" in message
            assert "torch.load(f, weights_only=True)" in message


@pytest.mark.parametrize("name", ("old", "it's [old]"))
def test_a_folder_with_a_pickle_alone(tmp_path, name):
    """Its name may have what quotes and patterns have, and the command is still right."""
    tmp_path = tmp_path / name
    tmp_path.mkdir()
    (tmp_path / "config.json").write_bytes((FOLDERS / "albert" / "config.json").read_bytes())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04N.")
    *_, code = shlex.split(refusal(find_weights, tmp_path).split(" are installed: ")[1])
    compile(code, "command", "exec")
    found = eval(re.search(r"glob\.glob\(.+?\)(?= for)", code)[0], {"glob": glob})
    assert found == [str(tmp_path / "pytorch_model.bin")]
    (tmp_path / "model.safetensors").write_bytes(SOURCE.read_bytes())
    assert find_weights(str(tmp_path)) == str(tmp_path / "model.safetensors")
