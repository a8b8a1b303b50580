"""Runs exported programs with JAX alone.

JAX has no public function that accepts StableHLO text, and the arguments of the private one (since
jaxlib 0.7) change between releases, so each variant is tried in turn, the newest first.
"""

import json
import lzma
import os

import jax
import numpy as np

# The count of updates is an int64, which JAX would otherwise truncate to an int32.
jax.config.update("jax_enable_x64", True)


def read_description(folder):
    """Reads a program's program.json."""
    path = os.path.join(folder, "program.json")
    if not os.path.exists(path):
        raise SystemExit(f"error: a program's folder must hold program.json. Received: {folder}")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_text(folder, name):
    """Reads the StableHLO text of one of a folder's programs."""
    with lzma.open(os.path.join(folder, f"{name}.mlir.xz"), "rt", encoding="utf-8") as file:
        return file.read()


class Program:
    """A compiled program, which takes and returns dicts of arrays by name.

    Args:
        folder: the folder that `export_step` wrote.
        name: "gradients" or "update".
        device: a `jax.Device`.
    """

    def __init__(self, folder, name, device):
        signature = read_description(folder)["programs"][name]
        self.arguments = signature["arguments"]
        self.outputs = [row["name"] for row in signature["outputs"]]
        self.device = device
        self.executable = compile_text(read_text(folder, name), device)

    def __call__(self, values):
        """Runs the program without waiting for its end.

        Args:
            values: name -> array on the device; other names are ignored.
        """
        buffers = [values[row["name"]] for row in self.arguments]
        return dict(zip(self.outputs, self.executable.execute(buffers), strict=True))

    def put(self, arrays):
        """Copies NumPy arrays by name to the device, in the types that the program declares."""
        types = {row["name"]: row["dtype"] for row in self.arguments}
        return {
            name: jax.device_put(np.asarray(value, types[name]), self.device)
            for name, value in arrays.items()
            if name in types
        }


def compile_text(text, device):
    """Compiles StableHLO text to an executable for one device."""
    compile, options = device.client.compile_and_load, _compile_options()
    devices = _device_list(device)
    for arguments in ((text, devices), (text, [device])):
        try:
            return compile(*arguments, options)
        except TypeError:  # means a different release of jaxlib, not a compilation error
            continue
    return compile(_module(text), devices, options)


def compile_without_device(text, target):
    """Compiles StableHLO text to an executable for a GPU that this machine need not have.

    Args:
        text: the program.
        target: a `GpuTargetConfigProto` as text, such as `sizes.H100`.
    """
    # Otherwise the plugin looks for a driver.
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="cuda", target_config=target, topology="1x1x1")
    device = topology.devices[0]
    return device.client.compile(_module(text), _device_list(device), _compile_options())


def compiled_memory(executable):
    """Returns XLA's memory plan, a dict of bytes for "arguments", "outputs" and "temporary"."""
    stats = executable.get_compiled_memory_stats()
    return {
        "arguments": stats.argument_size_in_bytes,
        "outputs": stats.output_size_in_bytes - stats.alias_size_in_bytes,
        "temporary": stats.temp_size_in_bytes,
    }


def counted_flops(text):
    """Returns the operations that XLA's cost analysis counts in a program before optimization.

    All operations count, not only dense layers. Recomputed blocks count as often as they are
    computed; a loop's body counts once.
    """
    from jax._src.lib import _jax

    computation = _jax.mlir.mlir_module_to_xla_computation(text)
    client = jax.devices("cpu")[0].client
    return _jax.hlo_module_cost_analysis(client, computation.get_hlo_module())["flops"]


def peak_memory(device):
    """Returns the peak bytes of arrays on a device so far; None if JAX does not count them."""
    return (device.memory_stats() or {}).get("peak_bytes_in_use")


def _compile_options():
    from jax._src.lib import xla_client

    return xla_client.CompileOptions()


def _device_list(device):
    from jax._src.lib import xla_client

    kind = getattr(xla_client, "DeviceList", None)
    return [device] if kind is None else kind((device,))


def _module(text):
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        return ir.Module.parse(text)
