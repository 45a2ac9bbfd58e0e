"""Generation with transformers with constraint and sampling on the device: ``generate(custom_generate=...)``.

The loop is that of ``GenerationMixin._sample`` with two changes. The constraint state of a row is a number on the
device. The test whether all rows are finished synchronizes with the device, so it runs only every ``check_every``
steps; up to that many surplus steps are computed and then cut off. With ``cache_implementation="static"`` all shapes of
a step are fixed.

Logits processors receive masked scores, as they do after ``ConstraintLogitsProcessor``. Whatever they return, the
chosen token is an allowed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import ArgumentValueError, VocabularyMismatchError


class DeviceGenerate:
    """The argument of ``model.generate(..., custom_generate=DeviceGenerate(automaton))``, for greedy decoding and
    sampling.

    ``indices``: the automaton index of each prompt if there are several automata; all sequences that are returned for a
    prompt share it. If ``automaton`` was built with ``token_limits``, the text is always complete within
    ``max_new_tokens``. ``check_every``: the number of steps between two tests whether all rows are finished.
    ``generator``: the random generator, on the device. Calls raise ``TokenLimitError`` if a constraint's shortest text
    is longer than ``max_new_tokens``, ``StackDepthError`` if a stack overflowed, ``VocabularyMismatchError`` if
    ``generate`` has none of the vocabulary's end tokens, ``ValueError`` for beams, encoder-decoder models and
    ``return_dict_in_generate``.
    """

    @checked
    def __init__(
        self,
        automaton: DeviceAutomaton,
        indices: Sequence[int] | None = None,
        *,
        check_every: int = 16,
        generator: torch.Generator | None = None,
    ) -> None:
        if check_every < 1:
            raise ArgumentValueError(f"check_every must be at least 1, not {check_every}")
        self.automaton, self.indices = automaton, indices
        self.check_every, self.generator = check_every, generator

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        **model_kwargs: Any,
    ) -> Tensor:
        """Called by ``generate``: returns the prompts followed by the texts, int64 (rows, length), padded."""
        self._check(model, generation_config)
        rows, prompt = input_ids.shape
        steps = int(generation_config.max_length) - prompt
        states = self._starts(rows, steps if self.automaton.token_limits else None)
        ends = set(torch.as_tensor(generation_config.eos_token_id).flatten().tolist())
        ours = self.automaton.vocabulary.eos_token_ids
        if not ends & set(ours):
            raise VocabularyMismatchError(
                f"generate() ends texts by {sorted(ends)}, and the vocabulary by {ours}: pass eos_token_id"
            )
        pad = generation_config.pad_token_id
        sequences = torch.full(
            (rows, prompt + steps),
            min(ends) if pad is None else pad,
            dtype=torch.int64,
            device=input_ids.device,
        )
        sequences[:, :prompt] = input_ids
        over = torch.zeros(rows, dtype=torch.bool, device=input_ids.device)
        needed = torch.zeros((), dtype=torch.int64, device=input_ids.device)
        forward = model.__call__
        if model._valid_auto_compile_criteria(model_kwargs, generation_config):  # noqa: SLF001  # transformers' own loop, step by step
            forward = model.get_compiled_call(generation_config.compile_config)

        outputs = model._prefill(input_ids, generation_config, model_kwargs)  # noqa: SLF001  # transformers' own loop, step by step
        for step in range(steps):
            width = prompt + step
            if step:
                inputs = model.prepare_inputs_for_generation(
                    sequences[:, :width], next_sequence_length=1, **model_kwargs
                )
                outputs = forward(**inputs, return_dict=True)
            model_kwargs = model._update_model_kwargs_for_generation(outputs, model_kwargs)  # noqa: SLF001  # transformers' own loop, step by step
            left = steps - step if self.automaton.token_limits else None
            scores = outputs.logits[:, -1].float()
            if logits_processor:
                scores = scores.clone() if scores.data_ptr() == outputs.logits[:, -1].data_ptr() else scores
                self.automaton.mask_logits_(scores, states, left)
                scores = logits_processor(sequences[:, :width], scores)
            tokens, states = self.automaton.step(
                scores,
                states,
                left,
                temperature=1.0 if generation_config.do_sample else 0.0,
                generator=self.generator,
            )
            needed = needed + (~over).any()
            sequences[:, width] = torch.where(over, sequences[:, width], tokens)
            over = over | self.automaton.is_ended(states) | self.automaton.is_dead(states)
            if stopping_criteria:
                over = over | stopping_criteria(sequences[:, : width + 1], None)
            if (step + 1) % self.check_every == 0:
                self.automaton.check_stacks(states)
                if bool(over.all()):
                    break
        self.automaton.check_stacks(states)
        return sequences[:, : prompt + int(needed)]

    def _starts(self, rows: int, max_new_tokens: int | None) -> Tensor:
        indices = [0] if self.indices is None else list(self.indices)
        if rows % len(indices) or (self.indices is None and len(self.automaton) != 1):
            raise ArgumentValueError(
                f"{counted(rows, 'row')}, {counted(len(indices), 'index', 'indices')} and "
                f"{counted(len(self.automaton), 'automaton', 'automata')}: give the index of each prompt's automaton"
            )
        each = rows // len(indices)
        return self.automaton.start_states([index for index in indices for _ in range(each)], max_new_tokens)

    def _check(self, model: Any, config: Any) -> None:
        if config.num_beams != 1 or model.config.is_encoder_decoder or config.return_dict_in_generate:
            raise ArgumentValueError(
                "DeviceGenerate decodes greedily or by sampling, with decoder-only models, to a tensor: for beams, "
                "other models and dictionaries use ConstraintLogitsProcessor"
            )
