"""Hidden Markov models over tokens: tractable approximations of a language model, in torch, on any device.

A model with H hidden states emits one token per step. ``transition`` (H, H), ``emission`` (H, V) and ``initial`` (H,)
are the A, B and π of the textbooks; rows sum to one. The emissions are stored transposed, (V, H) and contiguous,
because every algorithm here reads the column of an observed token.

Underflow is avoided. Products of probabilities are never formed. The forward recursion keeps the *filtered*
distribution p(h_t | x_1..x_t), which sums to one, and the logarithm of the normalizer. The backward recursion is scaled
to a maximum of one and keeps the logarithm of the scale. A token's column is first divided by its maximum, so the
smallest number that occurs is a product of two relative probabilities. The length of a sequence does not matter. As in
every scaled implementation, numbers below 1e-38 *relative to the largest one of their step* are lost in float32.

A token with probability zero gives the logarithm -inf and leaves the belief as if the token had not been observed. So a
proposal from a poor model is still a valid proposal.

Cost: a step of the recursions is one product of (rows, H) with (H, H). ``forward`` and ``backward`` hold rows · length
· H numbers; ``log_likelihood`` and ``Belief`` hold one step.

Rejected: log space throughout. The log-sum-exp of a matrix product has no fast kernel; with the maximum divided out it
is the computation above.

Source: Rabiner, "A tutorial on hidden Markov models" (1989), sections III and V.A (scaling).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from typing import Any

from tokenfst.common.arguments import checked, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import (
    ArtifactError,
    ArtifactVersionError,
    HmmError,
    MissingDependencyError,
    TokenIdError,
)

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('hidden Markov models need torch: pip install "tokenfst[torch]"') from error

_FORMAT = "tokenfst.hmm"
_VERSION = 1
_SLACK = 1e-3
"""The tolerance for the sum of a distribution: float32 sums of 131,072 entries are off by 1e-5."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The distribution of the hidden states that emit the next tokens.

    ``state``: (rows, H), each row a distribution p(h_{t+1} | x_1..x_t). ``log_likelihood``: (rows,), log p(x_1..x_t);
    -inf from the first impossible token on.
    """

    state: torch.Tensor
    log_likelihood: torch.Tensor

    def select(self, rows: torch.Tensor) -> Belief:
        """The beliefs of these rows (indices, which may repeat)."""
        return Belief(self.state[rows], self.log_likelihood[rows])


class Hmm:
    """A hidden Markov model; immutable.

    ``initial``: (H,); ``transition``: (H, H), row i is the distribution of the state after i; ``emission``: (H, V), row
    i is the distribution of the token emitted in state i. Floating point, all of one dtype and on one device.
    ``vocabulary``: the fingerprint of the vocabulary of its tokens, if known.

    Raises ``HmmError`` if the shapes do not match, or if a row is not a distribution.
    """

    __slots__ = ("_emitted", "initial", "transition", "vocabulary")

    @checked
    def __init__(
        self,
        initial: torch.Tensor,
        transition: torch.Tensor,
        emission: torch.Tensor,
        vocabulary: str | None = None,
    ) -> None:
        hidden = initial.shape[0] if initial.dim() == 1 else 0
        if (
            not hidden
            or transition.shape != (hidden, hidden)
            or emission.dim() != 2
            or emission.shape[0] != hidden
        ):
            raise HmmError(
                "a hidden Markov model is initial (H,), transition (H, H) and emission (H, V); these have shapes "
                f"{tuple(initial.shape)}, {tuple(transition.shape)} and {tuple(emission.shape)}"
            )
        for name, table in (("initial", initial[None]), ("transition", transition), ("emission", emission)):
            _check_distributions(name, table, initial)
        self.initial = initial
        self.transition = transition
        self._emitted = emission.T.contiguous()
        self.vocabulary = vocabulary

    def __repr__(self) -> str:
        size = f"{counted(self.hidden_size, 'hidden state')}, {counted(self.vocab_size, 'token')}"
        return f"<Hmm: {size}, {self.device}>"

    @classmethod
    @checked
    def random(
        cls,
        hidden_size: int,
        vocab_size: int,
        *,
        sharpness: float = 1.0,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
        vocabulary: str | None = None,
    ) -> Hmm:
        """A random model: each row is the softmax of independent normal numbers with standard deviation ``sharpness``
        (0: uniform).

        On the device of ``generator``, or the CPU.
        """
        if hidden_size < 1 or vocab_size < 1:
            raise HmmError(
                f"hidden_size and vocab_size must be at least 1, not {hidden_size} and {vocab_size}"
            )
        device = generator.device if generator is not None else "cpu"

        def drawn(*shape: int) -> Any:
            normal = torch.randn(shape, generator=generator, device=device, dtype=dtype)
            return (sharpness * normal).softmax(-1)

        return cls(
            drawn(hidden_size), drawn(hidden_size, hidden_size), drawn(hidden_size, vocab_size), vocabulary
        )

    @property
    def emission(self) -> torch.Tensor:
        """(H, V): the distribution of tokens in each state. A view."""
        return self._emitted.T

    @property
    def emitted(self) -> torch.Tensor:
        """(V, H): the transpose of ``emission``, contiguous."""
        return self._emitted

    @property
    def hidden_size(self) -> int:
        """The number of hidden states."""
        return int(self.initial.shape[0])

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return int(self._emitted.shape[0])

    @property
    def device(self) -> torch.device:
        """The device of the tables."""
        return self.initial.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the tables."""
        return self.initial.dtype

    @checked
    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Hmm:
        """This model on another device, or with another dtype."""
        initial, transition, emitted = (
            part.to(device=device, dtype=dtype) for part in (self.initial, self.transition, self._emitted)
        )
        return Hmm(initial, transition, emitted.T, self.vocabulary)

    # --- one step at a time -------------------------------------------------------------------------------

    @checked
    def start(self, rows: int = 1) -> Belief:
        """The belief before the first token, for ``rows`` sequences."""
        whole("Hmm.start", "rows", rows, 0)
        return Belief(self.initial.expand(rows, -1), self.initial.new_zeros(rows))

    @checked
    def observe(self, belief: Belief, tokens: torch.Tensor) -> Belief:
        """The belief after one more token per row; ``tokens``: (rows,) ids. One product with the transition matrix."""
        if tokens.shape != belief.log_likelihood.shape:
            raise HmmError(
                f"tokens must be one for each of {counted(len(belief.state), 'row')}, not {tuple(tokens.shape)}"
            )
        posterior, gained = _condition(belief.state, self._emitted[self._ids(tokens)])
        return Belief(posterior @ self.transition, belief.log_likelihood + gained)

    @checked
    def observe_all(
        self, belief: Belief, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> Belief:
        """The belief after the tokens (rows, T), using the first ``lengths`` tokens of each row (default: all)."""
        tokens, lengths = self.padded(tokens, lengths)
        for column in range(tokens.shape[1]):
            seen = self.observe(belief, tokens[:, column])
            counts = column < lengths
            belief = Belief(
                torch.where(counts[:, None], seen.state, belief.state),
                torch.where(counts, seen.log_likelihood, belief.log_likelihood),
            )
        return belief

    @checked
    def log_next(self, belief: Belief) -> torch.Tensor:
        """(rows, V): log p(x_{t+1} | x_1..x_t) of every token. One product with the emission matrix."""
        return (belief.state @ self._emitted.T).log()

    # --- whole sequences ----------------------------------------------------------------------------------

    @checked
    def log_likelihood(self, tokens: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """(rows,): natural log p(x_1..x_T) of the tokens (rows, T); -inf for a sequence with probability zero.

        ``lengths``: (rows,), the number of tokens of each row that are used (default: all).
        """
        tokens, lengths = self.padded(tokens, lengths)
        return self.observe_all(self.start(len(tokens)), tokens, lengths).log_likelihood

    @checked
    def forward(
        self, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Filtered distributions (rows, T, H), p(h_t | x_1..x_t), and (rows, T), log p(x_t | x_1..x_{t-1}).

        Columns beyond a row's length hold predictions, and the logarithm 0.
        """
        tokens, lengths = self.padded(tokens, lengths)
        rows, columns = tokens.shape
        filtered = self.initial.new_empty(rows, columns, self.hidden_size)
        gains = self.initial.new_zeros(rows, columns)
        state = self.initial.expand(rows, -1)
        for column in range(columns):
            counts = column < lengths
            posterior, gained = _condition(state, self._emitted[tokens[:, column]])
            filtered[:, column] = torch.where(counts[:, None], posterior, state)
            gains[:, column] = gained.where(counts, gained.new_zeros(()))
            state = filtered[:, column] @ self.transition
        return filtered, gains

    @checked
    def backward(
        self, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Scaled backward probabilities (rows, T, H) and the logarithms of their scales (rows, T).

        p(x_{t+1}..x_T | h_t) = exp(scale_t) · scaled_t[h_t]; the largest entry of each scaled row is 1 (all are 0
        where nothing that follows is possible). From a row's last token on: ones, and the scale 0.
        """
        tokens, lengths = self.padded(tokens, lengths)
        rows, columns = tokens.shape
        scaled = self.initial.new_ones(rows, columns, self.hidden_size)
        scales = self.initial.new_zeros(rows, columns)
        for column in range(columns - 2, -1, -1):
            emitted, peak = unit_maximum(self._emitted[tokens[:, column + 1]])
            before, again = unit_maximum((emitted * scaled[:, column + 1]) @ self.transition.T)
            counts = column + 1 < lengths
            scaled[:, column] = torch.where(counts[:, None], before, scaled[:, column])
            gained = scales[:, column + 1] + peak.log() + again.log()
            scales[:, column] = gained.where(counts, gained.new_zeros(()))
        return scaled, scales

    @checked
    def sample(self, rows: int, length: int, generator: torch.Generator | None = None) -> torch.Tensor:
        """int64 (rows, length): token sequences drawn from the model. ``generator``: on the model's device."""
        whole("Hmm.sample", "rows", rows, 0)
        whole("Hmm.sample", "length", length, 0)
        tokens = torch.empty(rows, length, dtype=torch.long, device=self.device)
        weights = self.initial.expand(rows, -1)
        for column in range(length):
            state = torch.multinomial(weights, 1, generator=generator).squeeze(1)
            emitted = self._emitted.T[state]
            tokens[:, column] = torch.multinomial(emitted, 1, generator=generator).squeeze(1)
            weights = self.transition[state]
        return tokens

    # --- files --------------------------------------------------------------------------------------------

    @checked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as safetensors: ``initial``, ``transition``, ``emission``. The same model gives the same
        bytes.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        about = json.dumps({"version": _VERSION, "vocabulary": self.vocabulary}, sort_keys=True)
        tensors = {
            "emission": self.emission.contiguous(),
            "initial": self.initial,
            "transition": self.transition.contiguous(),
        }
        try:
            save_file({name: part.cpu() for name, part in tensors.items()}, path, {_FORMAT: about})
        except SafetensorError as error:
            raise ArtifactError(f"cannot write {path}: {error}") from error

    @classmethod
    @checked
    def load(cls, path: str | PathLike[str], device: torch.device | str = "cpu") -> Hmm:
        """Read a model that ``save`` wrote. Raises ``ArtifactError`` if the file does not contain a model, and
        ``HmmError`` if its tables are not distributions.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt", device=str(device)) as file:
                about = json.loads((file.metadata() or {})[_FORMAT])
                if about["version"] != _VERSION:
                    raise ArtifactVersionError(
                        f"{path} holds a hidden Markov model of version {about['version']}; this release reads "
                        f"{_VERSION}"
                    )
                initial, transition, emission = map(file.get_tensor, ("initial", "transition", "emission"))
        except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ArtifactError(
                f"{path} holds no hidden Markov model that Hmm.save wrote: {error}"
            ) from error
        return cls(initial, transition, emission, about.get("vocabulary"))

    # --- checks -------------------------------------------------------------------------------------------

    def _ids(self, tokens: torch.Tensor) -> torch.Tensor:
        """The tokens on the model's device, each within its vocabulary."""
        tokens = _integers("tokens", tokens).to(self.device, torch.long)
        outside = tokens[(tokens < 0) | (tokens >= self.vocab_size)]
        if len(outside):
            raise TokenIdError(
                f"token id {int(outside[0])} lies outside the {counted(self.vocab_size, 'token')} of the hidden "
                "Markov model"
            )
        return tokens

    @checked
    def padded(self, tokens: torch.Tensor, lengths: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens (rows, T), padding replaced by token 0, and the lengths (rows,), on the model's device.

        Raises ``TokenIdError`` for an id outside the model's vocabulary, and ``HmmError`` for other shapes.
        """
        if tokens.dim() != 2:
            raise HmmError(f"tokens must have the shape (rows, length), not {tuple(tokens.shape)}")
        rows, columns = tokens.shape
        if lengths is None:
            return self._ids(tokens), torch.full((rows,), columns, device=self.device)
        lengths = _integers("lengths", lengths).to(self.device, torch.long)
        if lengths.shape != (rows,) or bool(((lengths < 0) | (lengths > columns)).any()):
            raise HmmError(
                f"lengths must be one for each row ({counted(rows, 'row')}), from 0 to {columns}, not "
                f"{lengths.tolist()!r:.80}"
            )
        padding = torch.arange(columns, device=self.device) >= lengths[:, None]
        return self._ids(tokens.to(self.device).masked_fill(padding, 0)), lengths


def _integers(name: str, given: torch.Tensor) -> torch.Tensor:
    kind = given.dtype
    if given.numel() and (kind.is_floating_point or kind.is_complex or kind == torch.bool):
        raise HmmError(f"{name} must be integers, not {given.dtype}")
    return given


def _check_distributions(name: str, table: torch.Tensor, like: torch.Tensor) -> None:
    if not table.is_floating_point() or table.dtype != like.dtype or table.device != like.device:
        raise HmmError(
            f"{name} is {table.dtype} on {table.device}; all tables must be of one floating-point type, on one "
            "device"
        )
    bad = ~((table >= 0).all(-1) & ((table.sum(-1) - 1).abs() <= _SLACK))
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise HmmError(
            f"row {row} of {name} is no distribution: its sum is {float(table[row].sum()):.6g} and its least "
            f"entry {float(table[row].min()):.6g}. Rows must be non-negative and sum to one"
        )


def unit_maximum(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows divided by their largest entries, and these entries; rows of zeros stay zeros."""
    peak = rows.amax(-1)
    return rows / peak.where(peak > 0, peak.new_ones(()))[:, None], peak


def _condition(state: torch.Tensor, emitted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The hidden states given their tokens, and the logarithm of the tokens' probability.

    ``state``: (rows, H) before; ``emitted``: (rows, H), p(token | state). Impossible tokens leave the row as it is.
    """
    relative, peak = unit_maximum(emitted)
    joint = state * relative
    total = joint.sum(-1)
    possible = total > 0
    posterior = joint / total.where(possible, total.new_ones(()))[:, None]
    return torch.where(possible[:, None], posterior, state), total.log() + peak.log()
