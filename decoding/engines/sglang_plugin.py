"""The plugin that adds the grammar backend "tokenfst" to SGLang.

SGLang has a registry of backends and loads plugins (``sglang.srt.plugins``) in every process, before anything else.
The registry passes no information about the request that a grammar is for. So two of SGLang's own hooks tell a
grammar which tokens may end it and how many it may take (``begin_request``), after the grammar manager has given it
to a request:

    GrammarManager.process_req_with_grammar      for a cached grammar; also refuses scores that are not available
    GrammarManager.get_ready_grammar_requests    for grammars whose compilation has ended

A backend refuses to start if the hooks are not installed, with the version that it was written for.
"""

from __future__ import annotations

from typing import Any

from tokenfst.errors import MissingDependencyError

NAME = "tokenfst"
VERSIONS = ("0.5.23",)
_MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"


def register() -> None:
    """Install the backend. SGLang calls this in each process, any number of times."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    if NAME in GRAMMAR_BACKEND_CHOICES:
        return
    add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, _make)
    HookRegistry.register(f"{_MANAGER}.process_req_with_grammar", _after_one, HookType.AFTER)
    HookRegistry.register(f"{_MANAGER}.get_ready_grammar_requests", _after_several, HookType.AFTER)


def _make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    import sglang
    from sglang.srt.constrained.grammar_manager import GrammarManager

    from tokenfst.decoding.engines.sglang_backend import make_backend

    for name in ("process_req_with_grammar", "get_ready_grammar_requests"):
        if not hasattr(getattr(GrammarManager, name, None), "__wrapped__"):
            raise MissingDependencyError(
                f"the tokenfst plugin was written for SGLang {VERSIONS[0]}; SGLang {sglang.__version__} did not "
                f"put its hook after {name}"
            )
    return make_backend(server_args, tokenizer, vocab_size, eos_token_ids)


def _after_one(queued: bool, manager: Any, request: Any) -> None:
    if request.sampling_params.custom_params:
        from tokenfst.decoding.engines.sglang_scores import refuse_scores

        refuse_scores(request, manager.server_args)
    if not queued and request.grammar is not None:
        from tokenfst.decoding.engines.sglang_backend import begin_request

        begin_request(request)


def _after_several(ready: list[Any], manager: Any) -> None:
    from tokenfst.decoding.engines.sglang_backend import begin_request

    for request in ready:
        begin_request(request)
