"""The actors of ``tokenfst.ray.generate`` whose model is run by vLLM.

An actor has a vLLM engine in its own process, with the plugin's backend (docs/engines/vllm.md). The artifacts of a
batch are given to the engine by their names (``named_automata``), so the engine compiles no constraint.
"""

from __future__ import annotations

import os
from typing import Any

from tokenfst.common.plurals import counted
from tokenfst.decoding.engines.shared.requests import named_automata
from tokenfst.decoding.store.entries import Automaton
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import MissingDependencyError, VocabularyMismatchError
from tokenfst.ray.decoding import Rows, Written
from tokenfst.tokenizers.adapters.huggingface import from_huggingface


class VLLMDecoder(Rows):
    """The actor: rows in, rows with texts out."""

    def __init__(self, model: str, engine_options: dict[str, Any], **given: Any) -> None:
        super().__init__(**given)
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # names of automata are valid in this process
        try:
            from vllm import LLM
            from vllm.plugins import load_general_plugins
        except ImportError as missing:
            raise MissingDependencyError(
                'engine="vllm" needs vLLM on every computer of the cluster: pip install "tokenfst[vllm]"'
            ) from missing
        load_general_plugins()
        constraints = {"backend": "tokenfst", **engine_options.pop("structured_outputs_config", {})}
        self._engine = LLM(model=model, structured_outputs_config=constraints, **engine_options)
        self._check_vocabulary(model)

    def _check_vocabulary(self, model: str) -> None:
        """Raise VocabularyMismatchError if the vocabulary that artifacts are compiled for is not the engine's."""
        known, width = self._vocabulary, self._engine.llm_engine.model_config.get_vocab_size()
        if len(known) == width:
            ends = list(known.eos_token_ids)
            if from_huggingface(self._engine.get_tokenizer(), size=width, eos_token_id=ends) == known:
                return
        raise VocabularyMismatchError(
            f"the vocabulary ({counted(len(known), 'token')}) is not that of the model {model!r}, which has "
            f"{counted(width, 'score')}: make it from the model's tokenizer by Vocabulary.from_huggingface(tokenizer, "
            f"size={width})"
        )

    def _write(self, prompts: list[str], automata: list[Automaton]) -> list[Written | str]:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        ends = list(self._vocabulary.eos_token_ids)
        made: list[Written | str] = []
        plain = [each for each in automata if isinstance(each, TokenAutomaton)]
        if len(plain) < len(automata):
            return ["vLLM's workers take no canonical automata: use engine='transformers'"] * len(automata)
        with named_automata(plain) as names:
            params = [
                SamplingParams(
                    **{"max_tokens": self._most, "stop_token_ids": ends, **self._options},
                    structured_outputs=StructuredOutputsParams(grammar=name),
                )
                for name in names
            ]
            for output, automaton in zip(
                self._engine.generate(prompts, params, use_tqdm=False), plain, strict=True
            ):
                made.append(self._written(output.outputs[0], automaton))
        return made

    def _written(self, output: Any, automaton: TokenAutomaton) -> Written | str:
        ends = self._vocabulary.eos_token_ids
        tokens = [token for token in output.token_ids if token not in ends]
        if output.finish_reason in ("error", "abort"):
            return f"vLLM ended the request with {output.finish_reason!r}: its log has the reason"
        matcher = automaton.matcher()
        complete = matcher.accept_tokens(tokens) and matcher.is_accepting()
        return Written(self._vocabulary.decode(tokens).decode("utf-8", "replace"), tokens, complete)
