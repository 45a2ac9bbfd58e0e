"""The plugin that adds the structured outputs backend "tokenfst" to vLLM.

vLLM has no registry of backends: their names are a ``Literal``, their classes an if-chain. But it loads plugins
(``vllm.general_plugins``) in every process, before anything else. This plugin changes seven places, each only for
engines whose backend is "tokenfst":

    StructuredOutputsConfig.backend                      the name is one of those allowed
    SamplingParams._validate_structured_outputs          a request is read and compiled in the front end; a refused
                                                         one gets HTTP 400 with the library's own message
    StructuredOutputManager.grammar_init                 makes the backend
    StructuredOutputManager._create_grammar              uses a request's own white space and number of tokens
    StructuredOutputManager.grammar_bitmask              masks of a whole batch in one native call
    StructuredOutputManager.accept_tokens                the tokens of a request in one native call
    BeamSearchOnlineMixin.beam_search                    refuses a constraint, which vLLM's server would ignore

If any of these places is missing, the plugin raises an error with the versions that it was written for, and changes
nothing.
"""

from __future__ import annotations

import inspect
import logging
import sys
from functools import partial
from typing import Any, Literal

from tokenfst.errors import MissingDependencyError, TokenfstError

NAME = "tokenfst"
VERSIONS = ("0.32", "0.33")
_MARK = "_tokenfst"
_log = logging.getLogger(__name__)


def register() -> None:
    """Install the backend. vLLM calls this in each process, any number of times."""
    import vllm
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager

    _wrap_beams()
    if hasattr(StructuredOutputManager, _MARK):
        return
    places = {
        "StructuredOutputsConfig.__pydantic_fields__": getattr(
            StructuredOutputsConfig, "__pydantic_fields__", {}
        ).get("backend"),
        "SamplingParams._validate_structured_outputs": getattr(
            SamplingParams, "_validate_structured_outputs", None
        ),
        **{
            f"StructuredOutputManager.{name}": getattr(StructuredOutputManager, name, None)
            for name in (
                "grammar_init",
                "_create_grammar",
                "grammar_bitmask",
                "accept_tokens",
                "_get_constraint_bounds",
            )
        },
    }
    missing = [name for name, found in places.items() if found is None]
    if missing:
        raise MissingDependencyError(
            f"the tokenfst plugin was written for vLLM {' and '.join(VERSIONS)}; vLLM {vllm.__version__} has no "
            f"{', '.join(missing)}"
        )
    if not vllm.__version__.startswith(VERSIONS):
        _log.warning(
            "vLLM %s: the tokenfst plugin was tested with %s", vllm.__version__, " and ".join(VERSIONS)
        )
    _allow_name(StructuredOutputsConfig)
    _wrap_validation(SamplingParams)
    _wrap_manager(StructuredOutputManager)
    setattr(StructuredOutputManager, _MARK, True)


def _allow_name(config: Any) -> None:
    from pydantic.dataclasses import rebuild_dataclass

    field = config.__pydantic_fields__["backend"]
    wider = Literal[(*field.annotation.__args__, NAME)]  # type: ignore[valid-type]
    config.__annotations__["backend"] = config.__dataclass_fields__["backend"].type = wider
    field.annotation = wider
    rebuild_dataclass(config, force=True)


def _wrap_validation(params: Any) -> None:
    original = params._validate_structured_outputs

    def validate(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        if (
            structured_outputs_config is None
            or self.structured_outputs is None
            or structured_outputs_config.backend != NAME
        ):
            original(self, model_config, structured_outputs_config, tokenizer)
        else:
            _validate(self, model_config, structured_outputs_config, tokenizer)

    params._validate_structured_outputs = validate


_front_ends: dict[int, tuple[Any, Any]] = {}
"""For each tokenizer of a front end, the tokenizer itself and its cache of compiled constraints."""


def _validate(self: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
    """Refuse what the engine cannot do, before the request is queued."""
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import check_json_nesting

    from tokenfst.decoding.engines import vllm_backend

    asked = self.structured_outputs
    if getattr(model_config, "is_diffusion", False):
        raise VLLMValidationError("Structured outputs are not supported for diffusion language models.")
    if tokenizer is None:
        raise VLLMValidationError("Structured outputs need a tokenizer: leave skip_tokenizer_init out")
    if asked._backend not in (None, NAME):
        raise VLLMValidationError(
            f"the request names the structured outputs backend {asked._backend!r}, and this engine's is {NAME!r}"
        )
    if asked.json_object is False:
        raise VLLMValidationError("structured_outputs.json_object must be true if it is given")
    check_json_nesting(asked.json)
    check_json_nesting(asked.structural_tag, structural_tag=True)
    if id(tokenizer) not in _front_ends:
        made = vllm_backend.compiled_requests(tokenizer, model_config.get_vocab_size())
        _front_ends[id(tokenizer)] = tokenizer, made
    requests = _front_ends[id(tokenizer)][1]
    if self.ignore_eos:
        raise VLLMValidationError(
            "structured_outputs: ignore_eos asks for tokens after the end of the text, which no constraint allows; "
            "leave it out"
        )
    try:
        room = model_config.max_model_len - 1  # the prompt has at least one token
        most = None if config.reasoning_parser else min(self.max_tokens or room, room)
        requests.matcher(vllm_backend.read_params(asked), sorted(self.all_stop_token_ids), most)
    except TokenfstError as error:
        raise VLLMValidationError(f"structured_outputs: {error}") from error
    asked._backend = NAME


def _wrap_manager(manager: Any) -> None:
    grammar_init, create_grammar = manager.grammar_init, manager._create_grammar
    grammar_bitmask, accept_tokens = manager.grammar_bitmask, manager.accept_tokens
    same_shape = list(inspect.signature(grammar_bitmask).parameters) == [
        "self",
        "requests",
        "structured_output_request_ids",
        "scheduled_spec_decode_tokens",
    ]

    def is_ours(self: Any) -> bool:
        return getattr(self, "backend_name", None) == NAME

    def init(self: Any, request: Any) -> None:
        asked = request.sampling_params and request.sampling_params.structured_outputs
        if self.backend is None and asked is not None and asked._backend == NAME:
            from tokenfst.decoding.engines.vllm_backend import TokenfstBackend

            width = self.vllm_config.model_config.get_vocab_size()
            self.backend = TokenfstBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=width)
            self.backend.num_drafts = self.vllm_config.num_speculative_tokens
            self.backend_name = NAME
        grammar_init(self, request)

    def create(self: Any, request: Any) -> Any:
        if not is_ours(self):
            return create_grammar(self, request)
        return self.backend.compile_request(request, counted=self.reasoner_cls is None)

    def bitmask(
        self: Any, requests: Any, structured_output_request_ids: Any, *drafts: Any, **named: Any
    ) -> Any:
        if not (same_shape and is_ours(self)) or self.backend.num_drafts:
            return grammar_bitmask(self, requests, structured_output_request_ids, *drafts, **named)
        if not structured_output_request_ids:
            return None
        begun = None if self.reasoner_cls is None else partial(_has_begun, self)
        return self.backend.masks_of_step(requests, structured_output_request_ids, begun)

    def accept(self: Any, request: Any, new_token_ids: Any) -> Any:
        if not is_ours(self) or self.reasoner_cls is not None:
            return accept_tokens(self, request, new_token_ids)
        asked = request.structured_output_request
        return asked is None or asked.grammar.served.accept_until_over(new_token_ids)

    manager.grammar_init, manager._create_grammar = init, create
    manager.grammar_bitmask, manager.accept_tokens = bitmask, accept


def _has_begun(manager: Any, request: Any) -> bool:
    """Whether the reasoning before a request's text has ended."""
    return bool(manager._get_constraint_bounds(request, ()).constraint_start == 0)


def _wrap_beams() -> None:
    """Refuse constraints in a server's beam search, because vLLM would ignore them.

    A server imports these modules before plugins are loaded; other processes do not need the change.
    """
    modules = [
        sys.modules.get(f"vllm.entrypoints.{name}")
        for name in (
            "openai.chat_completion.protocol",
            "openai.completion.protocol",
            "generate.beam_search.online",
        )
    ]
    names = ("ChatCompletionRequest", "CompletionRequest", "BeamSearchOnlineMixin")
    chat, completion, beams = (
        getattr(module, name, None) for module, name in zip(modules, names, strict=True)
    )
    if chat is None or completion is None or beams is None or hasattr(beams, _MARK):
        return
    for request in (chat, completion):
        request.to_beam_search_params = _with_constraint(request.to_beam_search_params)
    search = beams.beam_search

    def beam_search(self: Any, prompt: Any, request_id: str, params: Any, *rest: Any, **named: Any) -> Any:
        config = self.engine_client.vllm_config.structured_outputs_config
        if params.structured_outputs is not None and config.backend == NAME:
            from vllm.exceptions import VLLMValidationError

            raise VLLMValidationError(
                "structured_outputs: vLLM's server does not constrain beam search: leave use_beam_search out, or ask "
                "for n texts"
            )
        return search(self, prompt, request_id, params, *rest, **named)

    beams.beam_search = beam_search
    setattr(beams, _MARK, True)


def _with_constraint(make: Any) -> Any:
    """``to_beam_search_params`` whose result has the request's constraint."""

    def to_beam_search_params(self: Any, *given: Any, **named: Any) -> Any:
        params = make(self, *given, **named)
        params.structured_outputs = self.extract_structured_outputs()
        return params

    return to_beam_search_params
