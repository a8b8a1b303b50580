"""Shortens the StableHLO text that TensorFlow exports.

The text is large for two reasons. Every line names the operation that it comes from. And TensorFlow
precomputes each dropout's counter, an arithmetic progression modulo 2^32 that the hash mixes, as an
array of up to 10 MB for each mask. Such an array is replaced by the operations that compute it,
after a check that they give the same numbers.
"""

import math
import re

import numpy as np

# loc(#loc7), loc("name"), loc(fused[#loc7, #loc8]), loc(callsite("name" at #loc7)).
_LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_ARRAY = re.compile(
    r'^ *(?P<name>%\w+) = stablehlo\.constant dense<"0x(?P<hex>[0-9A-F]+)">'
    r" : tensor<(?P<shape>[\dx]+)x(?P<type>u?i)32>$"
)


def shorten(text):
    """Removes locations, and replaces arrays that are arithmetic progressions.

    Args:
        text: a module of StableHLO, as text.
    """
    lines = (line for line in text.splitlines() if not line.startswith("#loc"))
    return "\n".join(_without_array(_LOCATION.sub("", line)) for line in lines) + "\n"


def _without_array(line):
    match = _ARRAY.match(line)
    if not match:
        return line
    values = np.frombuffer(bytes.fromhex(match["hex"]), "<u4")
    start, stride = values[0], np.diff(values)[0]  # modulo 2^32
    shape = [int(size) for size in match["shape"].split("x")]
    expected = np.arange(math.prod(shape), dtype=np.uint32) * stride + start
    if not np.array_equal(values, expected):
        return line
    name, flat = f"%array_{match['name'][1:]}", f"tensor<{len(values)}x{match['type']}32>"
    # A ui32 is written without a sign, an i32 with one.
    kind = np.uint32 if match["type"] == "ui" else np.int32
    start, stride = (int(number.astype(kind)) for number in (start, stride))
    return "\n".join(
        (
            f"    {name}_index = stablehlo.iota dim = 0 : {flat}",
            f"    {name}_stride = stablehlo.constant dense<{stride}> : {flat}",
            f"    {name}_start = stablehlo.constant dense<{start}> : {flat}",
            f"    {name}_scaled = stablehlo.multiply {name}_index, {name}_stride : {flat}",
            f"    {name}_flat = stablehlo.add {name}_scaled, {name}_start : {flat}",
            f"    {match['name']} = stablehlo.reshape {name}_flat : ({flat}) -> "
            f"tensor<{match['shape']}x{match['type']}32>",
        )
    )
