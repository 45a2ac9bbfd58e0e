"""One processor for many calls of ``generate``: one after the other, inside of each other, in several threads; rows
without a constraint; tokens that another processor forbids.
"""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.engines.tiny_gpt2 import tiny_gpt2
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.matchers.unconstrained import UNCONSTRAINED
from tokenfst.errors import LogitsError, MaskBufferError, VocabularyWarning
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
logits_processor = pytest.importorskip("tokenfst.decoding.search.logits_processor")

TOKENS = [b"a", b"b", b"c", b"ab", b"bc", b"x", b"", b""]
PAD, EOS = 6, 7
PATTERNS = ["ab+c", "(a|bc)*x"]
MODES = {
    "greedy": {},
    "sample": {"do_sample": True},
    "samples": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
}
NO_STRING = -1e8

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, EOS, {"<pad>": PAD, "<eos>": EOS})


@pytest.fixture(scope="module")
def model():
    return tiny_gpt2(3, len(TOKENS) + 2, end=EOS, pad=PAD, positions=64, layers=1)


def run(model, prompts, processor, **options):
    """The texts that are generated, and the model's scores of them, where there are any."""
    ids = torch.tensor(prompts)
    options = {"max_new_tokens": 8, **options}
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[processor] if processor else None,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    scores = out.get("sequences_scores")
    texts = []
    for place, row in enumerate(out.sequences[:, ids.shape[1] :].tolist()):
        if scores is None or scores[place] > NO_STRING:
            row = row[: row.index(EOS)] if EOS in row else row
            texts.append(b"".join([*TOKENS, b"?", b"!"][token] for token in row).decode())
    return texts


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("most", [1, 2, 8])
def test_prompt_after_prompt(model, vocabulary, mode, pattern, most):
    """Each prompt with one processor as with a new one: the same again, a token longer, a token shorter, going on with
    what was generated, cut off after a token.
    """
    automaton = compile(regex(pattern), vocabulary)
    shared = logits_processor.ConstraintLogitsProcessor(automaton)
    prompts = [[0, 1], [0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 0, 1], [0], [0, 2], [0, 2, 3], [0, 2, 3, 4]]
    for seed, prompt in enumerate([*prompts, *prompts[::-1], *([5, *prompts[3][:k]] for k in range(4))]):
        found = []
        for processor in (shared, logits_processor.ConstraintLogitsProcessor(automaton)):
            torch.manual_seed(seed)
            found.append(run(model, [prompt], processor, max_new_tokens=most, **MODES[mode]))
        assert found[0] == found[1], prompt
        for text in found[0]:
            matcher = automaton.matcher()
            assert matcher.accept_tokens(vocabulary.encode_greedy(text.encode())), (prompt, text)


def test_on_with_what_was_generated(model, vocabulary):
    """A text as the next prompt: it is the last call's ids and one token more, which no ids tell from a step."""
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("(ab|c){4}"), vocabulary))
    ids = torch.tensor([[5]])
    for _ in range(4):
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], max_new_tokens=1
        )
        assert int(out[0, -1]) in (0, 2, 3)
        ids = out


def test_assistants_of_many_rounds(model, vocabulary):
    """An assistant's own calls of generate belong to the call that they are for."""
    torch.manual_seed(11)
    assistant = transformers.GPT2LMHeadModel(model.config).eval()
    assistant.generation_config.num_assistant_tokens = 2
    for pattern in PATTERNS:
        automaton = compile(regex(pattern), vocabulary)
        shared = logits_processor.ConstraintLogitsProcessor(automaton, max_new_tokens=8)
        for prompt in ([0, 1], [0, 1], [0, 1, 0], [0]):
            new = logits_processor.ConstraintLogitsProcessor(automaton, max_new_tokens=8)
            (text,) = run(model, [prompt], shared, assistant_model=assistant)
            assert re.fullmatch(pattern, text)
            assert [text] == run(model, [prompt], new)


@pytest.mark.parametrize("mode", ["greedy", "beams"])
def test_loops_in_several_threads(model, vocabulary, mode):
    """Eight threads with one processor, prompts that begin alike: as one after the other."""
    automaton = compile(regex("(a|bc)*x|ab+c"), vocabulary)
    shared = logits_processor.ConstraintLogitsProcessor(automaton, max_new_tokens=8)
    prompts = [[0, 1, *([k % 3] * (k // 3))] for k in range(16)] * 3

    def one(prompt):
        return run(model, [prompt], shared, **MODES[mode])

    alone = [
        run(
            model,
            [prompt],
            logits_processor.ConstraintLogitsProcessor(automaton, max_new_tokens=8),
            **MODES[mode],
        )
        for prompt in prompts[:16]
    ]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, prompts)) == alone * 3


def test_a_loop_inside_of_a_loop(model, vocabulary):
    """Another call of generate with the same processor in the midst of one, prompts that begin alike."""
    automaton = compile(regex("(a|bc)*x|ab+c"), vocabulary)
    shared = logits_processor.ConstraintLogitsProcessor(automaton, max_new_tokens=8)
    inner = []

    class Asks(transformers.StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            inner.append((input_ids.tolist(), run(model, input_ids.tolist(), shared)))
            return torch.zeros(len(input_ids), dtype=torch.bool)

    outer = run(model, [[0, 1]], shared, stopping_criteria=transformers.StoppingCriteriaList([Asks()]))
    new = logits_processor.ConstraintLogitsProcessor
    assert outer == run(model, [[0, 1]], new(automaton, max_new_tokens=8))
    assert len(inner) > 1
    for prompt, texts in inner:
        assert texts == run(model, prompt, new(automaton, max_new_tokens=8))


def test_nothing_is_kept_of_calls_that_are_over(model, vocabulary):
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("ab+c"), vocabulary))
    for _ in range(3):
        run(model, [[0, 1]], processor)
    assert not processor._states._of_calls


@pytest.mark.parametrize("mode", ["greedy", "samples", "beams"])
def test_rows_without_a_constraint(model, vocabulary, mode):
    """Mixed batches: free rows are what they are without a processor, the others as if they were alone."""
    first, last = (compile(regex(pattern), vocabulary) for pattern in ("ab+c", "c?ab{1,3}"))
    new, options = logits_processor.ConstraintLogitsProcessor, MODES[mode]
    prompts = [[0, 1], [1, 2], [2, 5], [5, 0]]
    shared = new(["free", first, UNCONSTRAINED, last], max_new_tokens=8)
    many = options.get("num_return_sequences", 1)
    for _ in range(2):
        found = run(model, prompts, shared, **options)
        assert all(re.fullmatch("ab+c", text) for text in found[many : 2 * many])
        assert all(re.fullmatch("c?ab{1,3}", text) for text in found[3 * many :])
        if not options.get("do_sample"):
            alone = [
                run(model, [prompt], constraint and new(constraint, max_new_tokens=8), **options)
                for prompt, constraint in zip(prompts, (None, first, None, last), strict=True)
            ]
            assert found == [text for each in alone for text in each]
    scores = torch.randn(2, len(TOKENS) + 2)
    free, held = new([UNCONSTRAINED, first])(torch.tensor([[1], [1]]), scores)
    assert torch.equal(free, scores[0])
    assert held.isfinite().nonzero().flatten().tolist() == [0, 3]
    with pytest.raises(ValueError, match="automata has nothing but UNCONSTRAINED"):
        new(["free", UNCONSTRAINED])
    with pytest.raises(ValueError, match="automata is empty"):
        new([])
    with pytest.raises(TypeError, match=r"automata\[1\] must be"):
        new([first, None])
    with pytest.raises(TypeError, match=r"automata\[1\] must be .*tokenfst\.UNCONSTRAINED"):
        new([first, "fre"])


@pytest.mark.parametrize("mode", ["greedy", "sample", "samples"])
def test_what_another_processor_forbids(model, vocabulary, mode):
    processor = logits_processor.ConstraintLogitsProcessor(
        compile(regex("c(a|b)x"), vocabulary), max_new_tokens=4
    )
    for forbidden, step in (([2], 0), ([0, 1], 1), ([5], 2), ([EOS], 3)):
        with pytest.raises(LogitsError, match=rf"-inf in row 0 at step {step}:"):
            run(model, [[0, 1]], processor, suppress_tokens=forbidden, **MODES[mode])
    assert run(model, [[0, 1]], processor, suppress_tokens=[0], **MODES[mode])[0] == "cbx"
    with pytest.raises(LogitsError, match="row 0 at step 3"):
        run(model, [[0, 1]], processor, min_new_tokens=4, **MODES[mode])


def test_beams_go_on_without_what_another_processor_forbids(model, vocabulary):
    """A row of the search has nothing left, another has: no error, and what is found is the constraint's. Where no row
    has, there is one. There are as many beams as first tokens, so each is followed, whichever the model prefers.
    """
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("cx|(ab|bc)x"), vocabulary))
    beams = {"num_beams": 4, "num_return_sequences": 4}
    found = run(model, [[0, 1]], processor, bad_words_ids=[[3, 5], [0], [4, 5]], **beams)
    assert set(found) == {"cx", "bcx"}
    with pytest.raises(LogitsError, match="at step 1"):
        run(model, [[0, 1]], processor, bad_words_ids=[[3, 5], [0], [1], [4, 5], [2, 5]], **beams)
    one = logits_processor.ConstraintLogitsProcessor(compile(regex("ab"), vocabulary))
    with pytest.raises(LogitsError, match="at step 0"):
        run(model, [[0, 1]], one, suppress_tokens=[0, 3], **beams)
    assert set(run(model, [[0, 1]], one, suppress_tokens=[0], **beams)) == {"ab"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [8, 40, 700])
def test_all_minus_infinity_is_found_wherever_it_is(dtype, width):
    tokens = [*(bytes([65 + k % 26, 65 + k // 26]) for k in range(width - 1)), b""]
    vocabulary = Vocabulary(tokens, width - 1)
    for allowed in (0, 5, width - 2):
        automaton = compile(regex(re.escape(tokens[allowed].decode())), vocabulary)
        processor = logits_processor.ConstraintLogitsProcessor(automaton)
        scores = torch.full((3, width + 3), -torch.inf, dtype=dtype)
        scores[:, allowed] = torch.tensor([0.0, -3.0, torch.inf], dtype=dtype)
        ids = torch.tensor([[1], [2], [3]])
        assert not processor(ids, scores).isneginf().all(1).any()
        processor.reset()
        scores = torch.randn((3, width + 3)).to(dtype)
        scores[1, allowed] = -torch.inf
        with pytest.raises(LogitsError, match="in row 1 at step 0"):
            processor(ids, scores)


def test_empty_rows_on_other_devices():
    """The same question by torch's operations alone."""
    bitmask_torch = pytest.importorskip("tokenfst.decoding.masks.on_device")
    scores = torch.tensor([[0.0, -torch.inf], [-torch.inf] * 2, [torch.inf] * 2, [-torch.inf] * 2])
    assert bitmask_torch.first_empty(scores, None) == 1
    assert bitmask_torch.first_empty(scores, [0, 2, 3]) == 3
    assert bitmask_torch.first_empty(scores, [0, 2]) is None
    assert bitmask_torch.first_empty(scores[1], None) == 0


def test_finished_and_dead_rows_end_whatever_else_is_forbidden(vocabulary):
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("ab"), vocabulary))
    scores = torch.zeros(3, len(TOKENS))
    processor(torch.tensor([[5], [5], [5]]), scores)
    scores[:, EOS] = -torch.inf
    finished, dead, live = processor(torch.tensor([[5, EOS], [5, 5], [5, 0]]), scores)
    assert finished.isfinite().nonzero().tolist() == dead.isfinite().nonzero().tolist() == [[EOS]]
    assert live.isfinite().nonzero().tolist() == [[1]]


def test_budgets_of_stacks_are_exact():
    """A text that closes two brackets by one token fits, though the bound of stacks says that it does not."""
    pieces = [b"(", b")", b"a", b"))", b"", b"", b"", b""]
    nested = compile(gbnf('root ::= "(" root ")" | "a"'), Vocabulary(pieces, EOS, {"<pad>": PAD}))
    processor = logits_processor.ConstraintLogitsProcessor(nested, max_new_tokens=4)
    scores = torch.zeros(1, len(TOKENS))
    row = [5]
    for allowed, token in (([0, 2], 0), ([0, 2], 0), ([2], 2), ([3], 3), ([EOS], EOS)):
        out = processor(torch.tensor([row]), scores)
        assert out[0].isfinite().nonzero().flatten().tolist() == allowed
        row.append(token)


def test_rows_that_do_not_go_with_the_scores(vocabulary):
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("ab"), vocabulary))
    with pytest.raises(MaskBufferError, match="input_ids has 2 rows, and scores has 3"):
        processor(torch.zeros(2, 1, dtype=torch.long), torch.zeros(3, len(TOKENS)))


def test_a_processor_is_copied_and_sent_as_what_it_was_made_of(model, vocabulary):
    automata = [compile(regex(PATTERNS[0]), vocabulary), "free"]
    processor = logits_processor.ConstraintLogitsProcessor(automata, max_new_tokens=8)
    prompts = [[0, 1], [2, 2]]
    run(model, prompts, processor)
    for other in (copy.deepcopy(processor), pickle.loads(pickle.dumps(processor))):
        assert other is not processor
        texts = run(model, prompts, other)
        assert texts == run(model, prompts, processor) and re.fullmatch(PATTERNS[0], texts[0])


def test_a_vocabulary_of_another_model_is_warned_of_once(vocabulary):
    """Its ids stand for other texts: the model's text was another one, without a word."""
    processor = logits_processor.ConstraintLogitsProcessor(compile(regex("ab+c"), vocabulary))
    size = len(vocabulary)
    ids = torch.tensor([[1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        processor(ids, torch.zeros(1, size + 1024))
    with pytest.warns(
        VocabularyWarning, match=f"scores 3,000 tokens, and the constraint's vocabulary has {size}"
    ):
        processor(ids, torch.zeros(1, 3000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        processor(ids, torch.zeros(1, 3000))
