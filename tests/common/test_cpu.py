"""Tests of what Linux says of the CPU."""

import platform

from bert_common.cpu import BFLOAT16_FLAGS, CPU, this_cpu


def test_the_first_cpu_is_read_as_linux_describes_it(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9B14: 4\n"
        "flags\t\t: fma avx512_bf16\nbogomips\t: 4.2\n\nvendor_id\t: other\nflags\t: other\n"
    )
    assert this_cpu(path) == CPU("AMD EPYC 9B14: 4", "AuthenticAMD", {"fma", BFLOAT16_FLAGS[0]})


def test_what_the_system_does_not_tell(tmp_path):
    path = tmp_path / "cpuinfo"
    name = platform.processor() or platform.machine()
    assert this_cpu(path) == CPU(name, "", frozenset())
    path.write_text("Processor : ARM\n")  # as other architectures do
    assert this_cpu(path) == CPU(name, "", frozenset())
