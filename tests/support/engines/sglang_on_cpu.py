"""Lets SGLang be imported on a machine without CUDA, for tests of real requests: no advice to users.

``sglang_environment.sh`` puts this module into the engine's environment, with a ``.pth`` file that imports it in each
process. ``sgl_kernel``, SGLang's CUDA kernels, becomes a package whose names all raise when they are called: on a CPU,
with torch's own attention, nobody does. torchvision's wheel is for CUDA too; two operators that it looks for are
declared before it is imported.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from typing import Any

_KERNELS = "sgl_kernel"
_kept: list[Any] = []


class _Kernel:
    """A name of the kernels: it may be looked into and compared, and not be called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> _Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Kernel(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{self.__name__}: there are no CUDA kernels here")

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __eq__(self, other: object) -> bool:
        return self is other


class _Finder:
    """Finds the stand-in, and makes torchvision importable when it is asked for."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name == _KERNELS or name.startswith(f"{_KERNELS}."):
            return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]
        if name == "torchvision" and not _kept:
            import torch

            library = torch.library.Library("torchvision", "DEF")
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _kept.append(library)
        return None


class _Loader:
    @staticmethod
    def create_module(spec: Any) -> types.ModuleType:
        module = types.ModuleType(spec.name)

        def attribute(name: str) -> _Kernel:
            if name.startswith("__"):
                raise AttributeError(name)
            return _Kernel(f"{spec.name}.{name}")

        module.__getattr__ = attribute  # type: ignore[method-assign]
        return module

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        module.__path__ = []


sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
