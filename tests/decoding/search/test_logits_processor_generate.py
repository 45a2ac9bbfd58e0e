"""Constrained text from transformers' own ``generate``: in the language, complete within max_new_tokens."""

from __future__ import annotations

import re

import pytest

from tests.support.engines.tiny_gpt2 import tiny_gpt2
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import LogitsError, MaskBufferError, TokenLimitError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
logits_processor = pytest.importorskip("tokenfst.decoding.search.logits_processor")

WORDS = [
    "ab",
    "abc",
    "bc",
    "ca",
    "12",
    "123",
    "00",
    '{"',
    '":',
    '"}',
    "é",
    "日",
    "本",
    " the",
    "true",
    "\n\n",
]
TOKENS = [*(bytes([b]) for b in range(256)), *(word.encode() for word in WORDS), "日".encode()[:2], b"", b""]
PAD, EOS = len(TOKENS) - 2, len(TOKENS) - 1
EXTRA_LOGITS = 7
PATTERNS = [
    r"[0-9]{4}-(0[1-9]|1[0-2])",
    r"(abc|ca)+[123]{1,3}",
    r"(日本|é)+ the",
    r'\{"[a-c]{1,4}":(true|[0-9]+)(,"[a-c]{1,4}":(true|[0-9]+))*\}',
    r"(?=.*b)(?!.*bb)[abc]{2,8}",
    r"x?",
]
MODES = {
    "greedy": {},
    "sample": {"do_sample": True},
    "samples": {"do_sample": True, "num_return_sequences": 3, "top_k": 5, "temperature": 1.7},
    "beam": {"num_beams": 3},
    "beams": {"num_beams": 4, "num_return_sequences": 4, "early_stopping": True},
    "beam-sample": {"num_beams": 3, "do_sample": True, "num_return_sequences": 2},
    "no-cache": {"use_cache": False},
}
NO_STRING = -1e8
"""Beam search scores what it returns for want of strings below this."""


class Watched(logits_processor.ConstraintLogitsProcessor):
    """Looks at every row that the processor returns."""

    def __call__(self, input_ids, scores):
        before = scores.clone()
        out = super().__call__(input_ids, scores)
        assert torch.equal(scores, before), "the caller's scores were changed"
        assert torch.isfinite(out).any(dim=1).all(), "a row is all -inf"
        assert torch.isneginf(out[:, len(TOKENS) :]).all()
        kept = ~torch.isneginf(out)
        assert torch.equal(out[kept], before[kept])
        return out


pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, EOS, {"<pad>": PAD, "<eos>": EOS})


@pytest.fixture(scope="module")
def automata(vocabulary) -> list[TokenAutomaton]:
    return [compile(regex(pattern), vocabulary) for pattern in PATTERNS]


def make_model(seed: int, layers: int = 2):
    return tiny_gpt2(seed, len(TOKENS) + EXTRA_LOGITS, end=EOS, pad=PAD, positions=160, layers=layers)


@pytest.fixture(scope="module")
def model():
    return make_model(0)


def prompts(batch: int, width: int, seed: int) -> dict[str, torch.Tensor]:
    """Prompts of random lengths, padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, PAD, (batch, width), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(1, batch):
        pad = int(torch.randint(0, width, (1,), generator=generator))
        ids[row, :pad], mask[row, :pad] = PAD, 0
    return {"input_ids": ids, "attention_mask": mask}


def texts(sequences: torch.Tensor, width: int) -> list[str]:
    """The generated texts; after the end token there is only padding."""
    result = []
    for tokens in sequences[:, width:].tolist():
        text, _, rest = (
            (tokens, None, [])
            if EOS not in tokens
            else (
                tokens[: tokens.index(EOS)],
                EOS,
                tokens[tokens.index(EOS) + 1 :],
            )
        )
        assert set(rest) <= {PAD, EOS}
        assert all(token < PAD for token in text)
        result.append(b"".join(TOKENS[token] for token in text).decode())
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("max_new_tokens", [9, 24])
def test_a_constraint_for_each_prompt_and_prompt_after_prompt(model, automata, mode, max_new_tokens):
    processor = Watched(automata, max_new_tokens=max_new_tokens)
    many = MODES[mode].get("num_return_sequences", 1)
    for seed, width in enumerate((6, 6, 11, 1)):
        torch.manual_seed(seed)
        batch = prompts(len(automata), width, seed)
        out = model.generate(
            **batch,
            **MODES[mode],
            logits_processor=[processor],
            max_new_tokens=max_new_tokens,
            return_dict_in_generate=True,
            output_scores=True,
        )
        scores = out.get("sequences_scores")
        for row, text in enumerate(texts(out.sequences, width)):
            if scores is None or scores[row] > NO_STRING:
                assert re.fullmatch(PATTERNS[row // many], text), (PATTERNS[row // many], text)
        best = slice(None, None, many)
        assert scores is None or (scores[best] > NO_STRING).all()


@pytest.mark.parametrize("mode", MODES)
def test_one_constraint_for_all(model, automata, mode):
    processor = Watched(automata[1], max_new_tokens=12)
    for batch in (1, 3):
        torch.manual_seed(batch)
        out = model.generate(
            **prompts(batch, 5, batch), **MODES[mode], logits_processor=[processor], max_new_tokens=12
        )
        for text in texts(out, 5):
            assert re.fullmatch(PATTERNS[1], text), text


def test_a_loaded_automaton_decodes_the_same(model, automata, vocabulary, tmp_path):
    automata[3].save(tmp_path / "object.safetensors")
    loaded = TokenAutomaton.load(tmp_path / "object.safetensors", vocabulary)
    outs = [
        model.generate(
            **prompts(2, 4, 0),
            num_beams=3,
            max_new_tokens=20,
            logits_processor=[Watched(automaton, max_new_tokens=20)],
        )
        for automaton in (automata[3], automata[3].expand(), loaded)
    ]
    assert torch.equal(outs[0], outs[1]) and torch.equal(outs[0], outs[2])


def test_without_a_limit_the_text_is_a_viable_beginning(model, automata):
    out = model.generate(**prompts(1, 4, 0), logits_processor=[Watched(automata[3])], max_new_tokens=8)
    matcher = automata[3].matcher()
    tokens = out[0, 4:].tolist()
    assert matcher.accept_tokens(tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens)


@pytest.mark.parametrize(
    ("do_sample", "draft"), [(False, "model"), (True, "model"), (False, "lookup"), (True, "lookup")]
)
def test_assisted_decoding(model, automata, do_sample, draft):
    """Drafts run ahead, fail, and are cut back; the assistant and the model share the processor."""
    assistant = make_model(1, layers=1)
    assistant.generation_config.num_assistant_tokens = 4
    how = {"assistant_model": assistant} if draft == "model" else {"prompt_lookup_num_tokens": 4}
    for which, (pattern, automaton) in enumerate(zip(PATTERNS, automata, strict=True)):
        processor = Watched(automaton, max_new_tokens=16)
        for seed in range(3):
            torch.manual_seed(seed)
            ids = torch.tensor([[*b"abc ca12 {", *([97, 98, 99] * seed), which]])
            out = model.generate(
                ids, logits_processor=[processor], max_new_tokens=16, do_sample=do_sample, **how
            )
            (text,) = texts(out, ids.shape[1])
            assert re.fullmatch(pattern, text), (pattern, text)
            if not do_sample:
                plain = model.generate(
                    ids, logits_processor=[Watched(automaton, max_new_tokens=16)], max_new_tokens=16
                )
                assert texts(plain, ids.shape[1]) == [text]


def test_fewer_strings_than_beams(model, vocabulary):
    """Two strings, six beams: four of the rows are dead, which must neither raise nor spoil the two."""
    processor = Watched(compile(regex("ab|b1"), vocabulary), max_new_tokens=6)
    out = model.generate(
        **prompts(2, 4, 0),
        logits_processor=[processor],
        num_beams=6,
        num_return_sequences=6,
        max_new_tokens=6,
        return_dict_in_generate=True,
        output_scores=True,
    )
    good = out.sequences_scores > NO_STRING
    found = texts(out.sequences[good], 4)
    assert set(found) == {"ab", "b1"}
    assert good[0] and good[6]


def test_the_raw_logits_stay_raw(model, automata):
    out = model.generate(
        **prompts(1, 4, 0),
        logits_processor=[Watched(automata[0])],
        max_new_tokens=3,
        return_dict_in_generate=True,
        output_logits=True,
        output_scores=True,
    )
    assert torch.isfinite(out.logits[0]).all()
    assert torch.isneginf(out.scores[0]).any()


def test_max_new_tokens_too_small(automata):
    with pytest.raises(TokenLimitError):
        logits_processor.ConstraintLogitsProcessor(automata[0], max_new_tokens=2)


def test_generate_that_stops_before_the_text_is_complete_is_refused(model, automata):
    """The text would be cut off; a longer or missing limit of ``generate``'s own is fine where it is long enough."""
    ids = torch.tensor([[1, 2, 3]])
    for how in ({"max_new_tokens": 15}, {"max_length": 18}):
        for more in ({}, {"prompt_lookup_num_tokens": 4}, {"num_beams": 2}):
            processor = logits_processor.ConstraintLogitsProcessor(automata[0], max_new_tokens=16)
            with pytest.raises(
                ValueError, match=r"stops after 15 tokens, .* max_new_tokens=16: the text might"
            ):
                model.generate(ids, logits_processor=[processor], **how, **more)
    for how in ({"max_new_tokens": 16}, {"max_length": 19}, {"max_new_tokens": 40}):
        processor = logits_processor.ConstraintLogitsProcessor(automata[0], max_new_tokens=16)
        out = model.generate(ids, logits_processor=[processor], **how)
        assert re.fullmatch(PATTERNS[0], texts(out, 3)[0])
    free = logits_processor.ConstraintLogitsProcessor(automata[0])
    assert model.generate(ids, logits_processor=[free], max_new_tokens=2).shape[1] <= 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_score_types_and_finished_rows(automata, dtype):
    processor = Watched(automata[5], max_new_tokens=4)
    ids = torch.tensor([[1, 2], [3, 4]])
    scores = torch.randn(2, len(TOKENS) + EXTRA_LOGITS).to(dtype)
    out = processor(ids, scores)
    assert out.dtype == dtype
    assert torch.isfinite(out[0]).nonzero().flatten().tolist() == [ord("x"), EOS]
    finished, dead = processor(torch.tensor([[1, 2, EOS], [3, 4, ord("y")]]), scores)
    assert torch.isfinite(finished).nonzero().flatten().tolist() == [EOS]
    assert torch.isfinite(dead).nonzero().flatten().tolist() == [EOS]
    padded, dead = processor(torch.tensor([[1, 2, EOS, PAD], [3, 4, ord("y"), len(TOKENS) + 3]]), scores)
    assert torch.isfinite(padded).nonzero().flatten().tolist() == [EOS]
    assert torch.isfinite(dead).nonzero().flatten().tolist() == [EOS]


def test_used_up_rows_may_only_end(automata):
    processor = Watched(automata[5], max_new_tokens=1)
    scores = torch.zeros(1, len(TOKENS))
    processor(torch.tensor([[1]]), scores)
    assert torch.isfinite(processor(torch.tensor([[1, ord("x")]]), scores)[0]).nonzero().tolist() == [[EOS]]


def test_nan_logits(automata):
    scores = torch.zeros(1, len(TOKENS))
    scores[0, ord("0")] = torch.nan
    with pytest.raises(LogitsError, match=f"token {ord('0')} in row 0 is NaN"):
        logits_processor.ConstraintLogitsProcessor(automata[0])(torch.tensor([[1]]), scores)
    logits_processor.ConstraintLogitsProcessor(automata[0], check_nan=False)(torch.tensor([[1]]), scores)
    logits_processor.ConstraintLogitsProcessor(automata[1])(torch.tensor([[1]]), scores)


def test_what_does_not_fit(automata, vocabulary):
    with pytest.raises(VocabularyMismatchError, match=f"scores {len(TOKENS) - 1} tokens"):
        Watched(automata[0])(torch.tensor([[1]]), torch.zeros(1, len(TOKENS) - 1))
    with pytest.raises(MaskBufferError, match="2 constraints cannot be distributed over 3 rows"):
        Watched(automata[:2])(torch.zeros(3, 1, dtype=torch.long), torch.zeros(3, len(TOKENS)))
    with pytest.raises(ValueError, match="automata is empty"):
        Watched([])
    other = compile(regex("a"), Vocabulary([*TOKENS, b"zz"], EOS, {"<pad>": PAD}))
    with pytest.raises(VocabularyMismatchError, match="one vocabulary"):
        Watched([automata[0], other])


def test_reset_for_a_prompt_that_looks_like_the_next_step(automata):
    processor = Watched(automata[5])
    scores = torch.zeros(1, len(TOKENS))
    processor(torch.tensor([[1]]), scores)
    processor.reset()
    first = processor(torch.tensor([[1, ord("x")]]), scores)
    assert torch.isfinite(first[0]).nonzero().flatten().tolist() == [ord("x"), EOS]
