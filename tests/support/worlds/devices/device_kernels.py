"""Every Triton kernel of the device compiled for GPUs that need not be there; run as a program it prints a line of JSON
for each: what it loads at once, registers and spills.

    python -m tests.support.worlds.devices.device_kernels            # cuda:90, cuda:100 and hip:gfx942
    python -m tests.support.worlds.devices.device_kernels cuda:90

Compiled as they are launched for a vocabulary and logits whose widths are multiples of 16: pointers and those numbers
divide by 16. ``loads``: how many global loads of so many bytes a lane there are in the assembly. What cannot be read
without NVIDIA's tools (``cuobjdump`` comes with Triton) is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGETS = ("cuda:90", "cuda:100", "hip:gfx942")
_INTS = """states table tokens layers masks rows flips batch each keys columns reached bitmask controls actions pushes
comb frames found lengths seen listed kinds slots bits first failures"""
_LONGS = "chosen taken parents seeds draws forced masses model_masses"
_FLOATS = "numbers tops model_tops log_probabilities model_log_probabilities scored weights finals costs"
_NUMBERS = (
    "num_states num_rows vocab_size words left stride width count depth levels blocks num_slots num_frames capacity "
    "list_size num_classes start absorbs num_controls"
)
TYPES = {
    **dict.fromkeys(_INTS.split(), "*i32"),
    **dict.fromkeys(_LONGS.split(), "*i64"),
    **dict.fromkeys(_FLOATS.split(), "*fp32"),
    **dict.fromkeys(_NUMBERS.split(), "i32"),
    "logits": "*bf16",
    "classes": "*u8",
    "text": "*u8",
    "factor": "fp32",
    "special": "fp32",
}
"""Of the arguments of all kernels: equal names have equal types."""
DIVISIBLE = {"stride", "width", "words", "vocab_size"}
MASKS = {"has_left": True, "has_each": True, "steps": 3, "most_flips": 512, "block": 4096}
READ = MASKS | {"block": 8192}
SAMPLED = READ | {"penalized": False, "filtered": False, "logs": False, "shift": 16, "stacked": 0}
EVERYTHING = {"penalized": True, "filtered": True, "logs": True, "shift": 0}
DRAWN = SAMPLED | {"walks": True, "padded": 16, "groups": 4096}
SCORED = {"classes": "*i32"}
KERNELS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    *(("mask_kernel", {"logits": kind}, MASKS) for kind in ("*fp32", "*fp16", "*bf16")),
    ("mask_kernel", {}, MASKS | {"has_each": False}),
    ("mask_kernel", {}, MASKS | {"has_left": False, "has_each": False}),
    *(
        ("greatest_kernel", {"bits": kind}, READ | {"infinity": high, "magnitude": most, "stacked": stacked})
        for kind, high, most in (("*i32", 0x7F800000, 0x7FFFFFFF), ("*i16", 0x7F80, 0x7FFF))
        for stacked in (0, 64)
    ),
    ("choose_kernel", {}, {"padded": 64, "stacked": 0}),
    ("choose_kernel", {}, {"padded": 64, "stacked": 64}),
    ("advance_kernel", {}, {"block": 32}),
    ("advance_tree_kernel", {}, {"block": 32}),
    ("advance_tree_kernel", {}, {"block": 32, "depth": 1}),
    ("compose_kernel", {}, {"block": 1024}),
    ("advance_stacks_kernel", {}, {"padded": 64}),
    ("advance_stacks_kernel", {}, {"padded": 1, "capacity": 1, "num_slots": 1}),
    ("advance_tree_of_stacks_kernel", {}, {"padded": 64}),
    ("resting_kernel", {}, {"has_left": True, "padded": 64}),
    ("resting_kernel", {}, {"has_left": False, "padded": 64}),
    ("resting_kernel", {}, {"has_left": True, "padded": 1, "capacity": 1, "num_slots": 1, "num_frames": 1}),
    ("mass_kernel", {}, SAMPLED),
    ("mass_kernel", {"logits": "*fp32"}, SAMPLED | EVERYTHING),
    ("add_scores_kernel", SCORED, {"block": 1024, "chain": 0}),
    ("add_scores_kernel", SCORED, {"block": 1024, "chain": 4}),
    ("add_scores_kernel", SCORED | {"logits": "*fp32"}, {"block": 1024, "chain": 0}),
    ("add_rows_kernel", {}, {"block": 1024}),
    ("advance_scores_kernel", SCORED, {"block": 32, "chain": 0}),
    ("advance_scores_kernel", SCORED, {"block": 32, "chain": 4}),
    ("draw_kernel", {}, DRAWN),
    ("draw_kernel", {"logits": "*fp32"}, DRAWN | EVERYTHING),
    ("mass_kernel", {}, SAMPLED | {"stacked": 64}),
    ("draw_kernel", {}, DRAWN | {"stacked": 64}),
]
"""Name, types of its own, and what it is compiled for."""
WARPS = {
    "mass_kernel": 8,
    "draw_kernel": 8,
    "greatest_kernel": 8,
    "choose_kernel": 1,
    "advance_kernel": 1,
    "advance_stacks_kernel": 1,
    "advance_tree_kernel": 1,
    "advance_tree_of_stacks_kernel": 1,
    "resting_kernel": 1,
    "advance_scores_kernel": 1,
}


def compiled(target: str) -> Iterator[dict[str, Any]]:
    """Each kernel for one target: ``cuda:90``, ``hip:gfx942``. Raises where one does not compile."""
    from triton import compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tokenfst.decoding.device.kernels import triton_greedy_kernels, triton_kernels, triton_stack_kernels
    from tokenfst.decoding.device.kernels.sampling import triton_kernels as sampling_kernels
    from tokenfst.decoding.device.kernels.scores import triton as scores_kernels

    backend, name = target.split(":")
    made = GPUTarget(backend, int(name) if name.isdigit() else name, 32 if backend == "cuda" else 64)
    for kernel_name, own, constants in KERNELS:
        kernel = next(
            getattr(module, kernel_name)
            for module in (
                triton_kernels,
                triton_greedy_kernels,
                sampling_kernels,
                triton_stack_kernels,
                scores_kernels,
            )
            if kernel_name in vars(module)
        )
        types = TYPES | own | dict.fromkeys(constants, "constexpr")
        signature = {argument: types[argument] for argument in kernel.arg_names}
        aligned = {
            (place,): [["tt.divisibility", 16]]
            for place, (argument, kind) in enumerate(signature.items())
            if kind.startswith("*") or (argument in DIVISIBLE and kind == "i32")
        }
        source = ASTSource(kernel, signature, constexprs=constants, attrs=aligned)
        done = compile(source, target=made, options={"num_warps": WARPS.get(kernel_name, 4)})
        flags = [
            name for name in ("filtered", "penalized", "logs", "has_left", "stacked") if constants.get(name)
        ]
        yield {"target": target, "kernel": kernel_name, "with": flags, **looked_at(done.asm)}


def looked_at(asm: dict[str, Any]) -> dict[str, Any]:
    """What the assembly says: widths of loads in bytes, registers, spills."""
    if "ptx" in asm:
        widths = Counter(
            int(many or 1) * int(bits) // 8
            for many, bits in re.findall(r"ld\.global(?:\.v(\d))?[.\w:]*\.b(\d+)", asm["ptx"])
        )
        return {"loads": dict(sorted(widths.items())), **resources(asm.get("cubin", b""))}
    names = {"ubyte": 1, "ushort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
    widths = Counter(
        names.get(name, 0) for name in re.findall(r"(?:global|buffer)_load_(\w+)", asm["amdgcn"])
    )
    told = {key: int(value) for key, value in re.findall(r"\.(\w+_count):\s*(\d+)", asm["amdgcn"])}
    return {
        "loads": dict(sorted(widths.items())),
        "registers": told["vgpr_count"],
        "spills": told["vgpr_spill_count"],
    }


def resources(cubin: bytes) -> dict[str, int]:
    """Registers and bytes spilled, by ``cuobjdump``; nothing where that is not to be had."""
    import triton

    beside = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    tool = str(beside) if beside.exists() else shutil.which("cuobjdump")
    if tool is None or not cubin:
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        out = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=False
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", out)
    return {"registers": int(found[1]), "stack": int(found[2])} if found else {}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or TARGETS:
        for line in compiled(wanted):
            print(json.dumps(line), flush=True)
