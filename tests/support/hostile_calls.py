"""Every public call with arguments that make no sense, one at a time: which errors come out.

``python -m tests.support.hostile_calls [NAME...]`` prints a line for each call that ends without an answer and without
an error that tokenfst promises (TypeError, ValueError, TokenfstError; OSError where a file is named; MemoryError where
memory is asked for), and exits 1 if there is one. Each public call runs in a process of its own, with limits on its
CPU time and memory, so that one that does not end, or ends the process, is named too.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tokenfst as t
from tests.support.hostile_arguments import World, values
from tokenfst import _native

CPU_SECONDS = 10
"""Of one call. The machine may be slow; the budgets of the calls are of a second."""
MEMORY = 4 << 30
NEVER = (UnicodeEncodeError, UnicodeDecodeError, RecursionError, AssertionError)
PATHS = {
    "path",
    "path_or_name",
    "spec",
    "name_or_path",
    "tokenizer",
    "model",
    "encoding",
    "automata",
    "automaton",
}


EXEMPT = {
    "TokenEdges": "holds the arrays that from_arcs and from_automaton make",
    "TokenAutomaton": "is made by compile and load",
    "CanonicalAutomaton": "its methods but matcher, expand, save and load walk nodes that it gives out itself",
    "TokenAutomaton.learn_from": "takes what the reader of artifacts has checked",
    "TokenAutomaton.of_artifact": "takes what the reader of artifacts has checked",
    "ToolParser": "is made by the parser() of a constraint",
    "ToolCall": "is what a parser gives",
    "ToolReply": "is what a parser gives",
    "CanonicalAutomaton.of_artifact": "takes what the reader of artifacts has checked",
    "WeightedLanguage": "holds the arrays that from_fst, of and alternatives make",
    "NGramModel": "is made by from_arpa",
    "GrammarScores": "is made by compile, and walks nodes that it gives out itself",
    "ScoreAutomaton": "is made by compile, and walks nodes that it gives out itself",
    "ScoreMatcher": "is made by the matcher() of an automaton",
    "Store.by_turns": "takes the lock that a batch has made",
    "Concepts.product": "takes the clock of the question that it is a part of",
}
"""Public calls that are left out, and why."""
BOUNDED = {
    ("Grammar.truncate", "depth"),
    ("json_object", "max_depth"),
    ("json_value", "max_depth"),
    ("within_edits", "k"),
    ("SymbolAutomaton.count", "length"),
}
"""Numbers that only a budget of time bounds, the default one here: left to the tests of budgets."""


def calls(world: World) -> Iterator[tuple[str, Callable[..., Any], list[str], dict[str, Any]]]:
    """Each public call: its name, the call, its parameters, and arguments that make sense for those that need one."""
    for name in t.__all__:
        public = getattr(t, name)
        if not callable(public):
            continue  # a constant
        if inspect.isclass(public) and (issubclass(public, BaseException) or public is t.Matcher):
            continue
        yield from _call(world, name, public)
        if inspect.isclass(public):
            for method, member in vars(public).items():
                if isinstance(member, classmethod) and not method.startswith("_"):
                    yield from _call(world, f"{name}.{method}", getattr(public, method))
    for name, thing in world.subjects().items():
        for method in sorted(dir(thing)):
            if method.startswith("_") or isinstance(getattr(type(thing), method, None), property):
                continue
            bound = getattr(thing, method)
            if callable(bound) and not inspect.isclass(bound) and not inspect.ismethod(type(bound)):
                if isinstance(inspect.getattr_static(type(thing), method, None), classmethod):
                    continue
                yield from _call(world, f"{name}.{method}", bound)


def _call(
    world: World, name: str, call: Callable[..., Any]
) -> Iterator[tuple[str, Callable[..., Any], list[str], dict[str, Any]]]:
    if name in EXEMPT:
        return
    needed, names = [], []
    try:
        for parameter in inspect.signature(call).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            names.append(parameter.name)
            if parameter.default is parameter.empty:
                needed.append(parameter.name)
    except ValueError:  # a call of the native core: its docstring begins with its signature
        found = re.match(r"\w+\((.*)\) ->", (call.__doc__ or "").replace("\n", " "))
        assert found is not None, name
        for part in re.split(r", (?=\w+:)", found[1]):
            parameter_name = part.partition(":")[0].strip()
            if parameter_name not in ("self", ""):
                names.append(parameter_name)
                if "=" not in part.rpartition("]")[2] or "ndarray" in part:
                    needed.append(parameter_name)
    if names:
        good = {each: world.argument(each, name) for each in needed if each not in _TREE} | {
            each: np.zeros(1, np.int64) for each in needed if each in _TREE
        }
        yield name, call, names, good


_TREE = {"next_token", "next_sibling", "draft_tokens"}


def run_one(name: str, call: Callable[..., Any], names: list[str], good: dict[str, Any], report: int) -> None:
    """Try all hostile values for one call; writes a line for each that ends otherwise than is promised."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    random.seed(0)
    for parameter in names:
        for label, value in values().items():
            if (name, parameter) in BOUNDED and label == "2**31":
                continue
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            os.write(report, f"?{name}({parameter}={label})\n".encode())
            allowed: tuple[type[BaseException], ...] = (TypeError, ValueError, t.TokenfstError, MemoryError)
            if parameter in PATHS:
                allowed += (OSError,)
            try:
                call(**good | {parameter: value})
            except BaseException as error:
                if isinstance(error, allowed) and not isinstance(error, NEVER):
                    continue
                text = " ".join(str(error).split())[:100]
                if "can't allocate memory" in str(error):  # torch's MemoryError
                    continue
                os.write(report, f"!{name}({parameter}={label}): {type(error).__name__}: {text}\n".encode())


def main(chosen: list[str]) -> int:
    """Run them all, each in a process of its own."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    world, wrong, count = World(), 0, 0
    for name, call, names, good in calls(world):
        if chosen and not any(each in name for each in chosen):
            continue
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            signal.alarm(600)
            run_one(name, call, names, good, writing)
            os._exit(0)
        os.close(writing)
        last = name
        with os.fdopen(reading) as lines:
            for line in lines:
                if line[0] == "?":
                    last, count = line[1:-1], count + 1
                else:
                    print(line[1:], end="", flush=True)
                    wrong += 1
        status = os.waitpid(child, 0)[1]
        if status:
            print(
                f"{last}: ended its process, status {status} (24 is {CPU_SECONDS} seconds of CPU time)",
                flush=True,
            )
            wrong += 1
    print(f"{count} calls, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    assert _native is not None
    sys.exit(main(sys.argv[1:]))
