"""The compiled files as linkers and processors see them: symbols, instructions, sections (Linux,
binutils).
"""

import re

import pytest


def test_only_the_init_function_of_a_module_is_exported(package, run):
    # Hidden visibility does not hide templates of the standard library, which could replace others'.
    modules = list(package.glob("_core/*.so"))
    assert modules
    for module in modules:
        exported = [
            line.split()[-1] for line in run("nm", "-D", "--defined-only", module).stdout.splitlines()
        ]
        assert exported == [f"PyInit_{module.name.split('.')[0]}"]


def test_nothing_runs_when_the_core_is_loaded(package, run):
    # A dynamic initialiser compiled for AVX-512 would run at load, before anybody has asked the processor.
    archives = list((package / "lib").glob("*.a"))
    assert archives
    for archive in archives:
        listing = run("readelf", "-SW", archive).stdout
        member = "?"
        for line in listing.splitlines():
            member = line.partition("(")[2].rstrip(")") if line.startswith("File:") else member
            assert not re.search(r"\.(init_array|ctors)\b", line), f"{archive.name}: {member}"


@pytest.mark.parametrize(
    ("module", "registers"), [("_cpu", "yz"), ("_core_v2", "yz"), ("_core_v3", "z"), ("_core_generic", "yz")]
)
def test_a_module_uses_no_register_above_its_level(module, registers, package, run):
    for file in package.glob(f"_core/{module}.*.so"):
        disassembly = run("objdump", "-d", "--no-show-raw-insn", file).stdout
        assert not re.search(f"%[{registers}]mm", disassembly)


def test_modules_need_the_system_libraries_and_no_other(package, run):
    allowed = r"lib(stdc\+\+|m|gcc_s|c|g?omp|pthread)[.-]|ld-linux"
    for module in package.glob("_core/*.so"):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", module).stdout)
        assert needed
        for library in needed:
            assert re.match(allowed, library), f"{module.name} needs {library}"
