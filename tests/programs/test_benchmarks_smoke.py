"""The benchmarks run, judge by their targets, and compile what they say they compile."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tokenfst
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_object_regex_has_the_size_that_the_issue_asks_for(modules: Any) -> None:
    pattern = modules("measuring.patterns").object_with_20_properties()
    language = tokenfst.regex(pattern)
    assert 600 <= language.size().states <= 1000
    rng = random.Random(0)
    for _ in range(20):
        text = language.sample(rng).decode()
        assert re.fullmatch(pattern, text)
        assert len(json.loads(text)) == 20


def test_both_notations_of_a_grammar_have_the_same_words(modules: Any) -> None:
    rng = random.Random(0)
    for grammar in modules("grammars.grammars").GRAMMARS:
        one, other = lark_grammar(grammar.lark), ebnf(grammar.ebnf)
        verdicts = set()
        for _ in range(10):
            text = grammar.document(rng)
            assert one.accepts(text) and other.accepts(text), (grammar.name, text)
            for _ in range(20):
                place = rng.randrange(len(text))
                changed = (
                    text[:place] + rng.choice(("", " ", "1", '"', "(", text[place] * 2)) + text[place + 1 :]
                )
                verdict = one.accepts(changed)
                assert verdict == other.accepts(changed), (grammar.name, changed)
                verdicts.add(verdict)
        assert verdicts == {True, False}


def test_a_pass_walks_all_documents_and_refuses_what_is_none(modules: Any) -> None:
    grammars, libraries = modules("grammars.grammars"), modules("measuring.libraries")
    vocabulary = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], eos_token_id=256)
    ours = libraries.Tokenfst(vocabulary)
    for grammar in grammars.GRAMMARS:
        documents = grammar.documents(libraries.World(vocabulary), 300)
        assert sum(map(len, documents)) == 300
        passes = grammars.walk_documents(grammars.compiled(ours, grammar), documents, 0.0)
        assert [len(seconds) for seconds in passes] == [300, 300]
        with pytest.raises(AssertionError, match="refused"):
            grammars.walk_documents(grammars.compiled(ours, grammar), [b")"], 0.0)


def test_a_missed_target_is_marked(modules: Any) -> None:
    run, measure = modules("measuring.table"), modules("measuring.measure")
    ours = measure.figure("x", "tokenfst", [2e-6, 1e-6, 3e-6], target=1e-6)
    assert ours.median == 2e-6
    assert run.judge(ours, ours) == "<= 1 µs MISSED"
    peer = measure.figure("x", "peer", [3e-5], at_least=20)
    assert run.judge(peer, ours) == "ratio >= 20 MISSED"
    peer = measure.figure("x", "peer", [4e-5], at_least=20)
    assert run.judge(peer, ours) == "ratio >= 20 met"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.46e-7, "s", "346 ns"),
        (2.5e-6, "s", "2.5 µs"),
        (1e-3, "s", "1 ms"),
        (7.5, "s", "7.5 s"),
        (2e6, "bytes", "2 MB"),
        (16_312, "bytes", "16.3 kB"),
    ],
)
def test_figures_for_people(modules: Any, value: float, unit: str, text: str) -> None:
    assert modules("measuring.measure").shown(value, unit) == text


@pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None, reason="Tekken comes with mistral-common"
)
def test_one_benchmark_from_the_command_line() -> None:
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "artifact", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "command" in report["machine"]
    figures = {figure["what"].rpartition(": ")[2]: figure for figure in report["figures"]}
    assert set(figures) == {"size", "load", "save"}
    assert 10_000 < figures["size"]["median"] <= 2_000_000
    assert 0 < figures["load"]["median"] < 1


@pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None, reason="Tekken comes with mistral-common"
)
def test_memory_of_a_sequence(modules: Any) -> None:
    run = modules("measuring.table")
    world = modules("measuring.libraries").World(tokenfst.load_vocabulary("mistral:tekken_240911"))
    figures = list(
        modules("grammars.grammars").memory(
            world, "x", list(world.vocabulary.encode_greedy(b"[")) * 1000, 1e3
        )
    )
    assert run.judge(figures[0], figures[0]) == "<= 1 kB MISSED"
    assert "history of tokens 5," in figures[0].note


@pytest.mark.skipif(
    importlib.util.find_spec("mistral_common") is None, reason="Tekken comes with mistral-common"
)
def test_the_loop_on_a_device(modules: Any) -> None:
    """Where there is no GPU, the first figures are of the CPU, and every state takes the token it is timed with."""
    torch = pytest.importorskip("torch")
    device = modules("device.masking_loop")
    world = modules("measuring.libraries").World(tokenfst.load_vocabulary("mistral:tekken_240911"))
    first = next(device.on_cpu(world, torch))
    assert first.what == "advance 64 rows, digits, on the CPU" and 0 < first.least <= first.median < 1e-2
    automaton = device.resident(world, token_limits=False)
    for what in ("digits", "strings", "objects"):
        states, tokens = device.states_in(world, automaton, torch, what, 70)
        assert len(states) == 70 and not automaton.is_dead(automaton.advance(states, tokens)).any()


def test_temporal_formulas_are_timed(modules: Any, capsys: pytest.CaptureFixture[str]) -> None:
    modules("languages.temporal").main(rounds=1)
    assert "clothes, 13 formulas over 10 symbols" in capsys.readouterr().out


def test_whole_decodings_are_timed(
    modules: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    loop = modules("decoders.decoding_loop")
    monkeypatch.setattr(loop, "RUNS", 1)
    monkeypatch.setattr(loop, "DRAWN", 2)
    monkeypatch.setattr(loop, "MOST", 30)
    monkeypatch.setattr(loop, "WORDS", 30)
    monkeypatch.setattr(loop.take_turns, "__kwdefaults__", {**loop.take_turns.__kwdefaults__, "runs": 1})
    tokens = [*(bytes([byte]) for byte in range(256)), b"ka", b"lo", b""]
    vocabulary = tokenfst.Vocabulary(tokens, eos_token_id=258, split_pattern=r"[^\s]+|\s+")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=259, **sizes)).eval()
    assert tokenfst.json_schema(loop.SCHEMA).accepts(
        '{"name":"Plum","kind":"fruit","origin":"Spain","ripe":true,"season":"autumn"}'
    )
    automaton = tokenfst.compile(tokenfst.regex('\\{"kind":"(fruit|vegetable)"\\}'), vocabulary)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    ours, free = loop.per_token(model, [[1, 2]] * 2, automaton, "x")
    assert ours.what == free.what and ours.median and free.median and free.at_least
    calls = [each.median for each in loop.jumps(model, [1, 2], automaton) if each.who == "calls of the model"]
    assert len(calls) == 3 and calls[2] < calls[0]
    assert {each.what for each in loop.drawn(model, [1, 2], automaton)} == {
        f"2 drawn in a batch, jump_forward={how!r}" for how in (False, True, "canonical")
    }
    found = [
        (each.what.partition("`")[2][:8], each.who) for each in loop.speculation(model, [1, 2], automaton)
    ]
    kinds = ["time", "calls of the model", "tokens"]
    assert found == [(which, kind) for which in ("speculat", "generate") for kind in kinds]
    trie, rows = loop.labels(model, [1, 2], vocabulary)
    assert trie.what == rows.what and "labels of " in trie.what


class CudaWithoutOne:
    """Stands in for ``torch.cuda`` on a machine without a GPU: what is called, and that names and arguments fit."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append(name)
            return "no GPU" if name == "get_device_name" else CudaWithoutOne()

        return call

    def __enter__(self) -> CudaWithoutOne:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def elapsed_time(self, end: Any) -> float:
        return 1.0


def test_the_figures_of_a_gpu_are_taken_in_one_command(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that runs on a GPU runs here on the CPU by a clock that stands still; what it measures is not looked at."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers").LlamaForCausalLM  # noqa: B018 - loaded before torch.cuda is replaced
    device, libraries = modules("device.masking_loop"), modules("measuring.libraries")
    tokens = [*(bytes([byte]) for byte in range(256)), b" the", b"12", b""]
    world = libraries.World(tokenfst.Vocabulary(tokens, eos_token_id=258))
    cuda = CudaWithoutOne()
    for name in (
        "Event",
        "CUDAGraph",
        "graph",
        "Stream",
        "stream",
        "synchronize",
        "set_sync_debug_mode",
        "get_device_name",
    ):
        monkeypatch.setattr(torch.cuda, name, getattr(cuda, name))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(device, "CALLS", 1)
    figures = list(device.on_gpu(world, torch, "cpu", (1, 3)))
    peers = [found for found in figures if "xgrammar" in found.who or "in a row" in found.who]
    assert len(peers) == (6 if libraries.version("xgrammar") is not None else 0)
    assert len(figures) == 2 * 3 * 3 + len(peers)
    assert all(found.median == 1e-3 for found in figures if "wall clock" not in found.who)
    assert {found.target for found in figures} == {None, 8e-6, 1.5e-3}
    assert {"CUDAGraph", "graph", "synchronize", "set_sync_debug_mode"} <= set(cuda.calls)
    assert device.gpu_once(torch, lambda: None) == 1e-3
    steps = list(device.decoding(world, torch, "cpu", rows=2, steps=2))
    assert [found.who for found in steps] == ["unconstrained", f"{device.OURS}, constrained"]

    more = modules("device.whole_steps")
    called = list(more.called(world, torch, "cpu"))
    assert [found.target for found in called] == [10e-6, 8e-6, 20e-6, None, 30e-6, None, None]
    sampled = list(more.sampled(world, torch, "cpu", (2, 64)))
    assert [found.target for found in sampled] == [None, None, 12e-6, pytest.approx(18e-6)]
    assert "top_k 50, top_p 0.95, min_p 0.02" in sampled[1].what
    (composed,) = more.composed(world, torch, "cpu")
    assert int(composed.what.split()[0]) > 32 and composed.target == 100e-6
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    steps = list(more.generations(world, torch, "cpu", sizes, new=3))
    assert [found.what for found in steps[::3]] == [
        f"a step of transformers' generate, {rows}, {cache} cache"
        for rows in ("1 row", "64 rows")
        for cache in ("dynamic", "static, compiled")
    ]
    assert all(found.target is not None for number, found in enumerate(steps) if number % 3)


def test_a_store_is_filled_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "all.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(4):
            file.write(json.dumps({"id": number, "schema": {"enum": [number // 2]}}) + "\n")
    code = (
        "import pathlib, sys, tokenfst; sys.path.insert(0, '.'); from benchmarks.workers import store_batch\n"
        "if __name__ == '__main__':\n"
        "    tokens = [*(bytes([byte]) for byte in range(256)), b'']\n"
        "    tokenfst.load_vocabulary = lambda name: tokenfst.Vocabulary(tokens, 256)\n"
        "    store_batch.DATA = pathlib.Path(sys.argv.pop())\n"
        "    store_batch.main()\n"
    )
    (tmp_path / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", "--jobs", "1", path],
        capture_output=True,
        text=True,
        cwd=BENCHMARKS.parent,
    )
    assert done.returncode == 0, done.stderr
    printed = dict(line.split(": ") for line in done.stdout.splitlines() if ": " in line)
    counted = {
        who: [printed[f"{what}, {who}"] for what in ("lines", "put", "known", "failed")]
        for who in ("first", "again")
    }
    assert counted == {"first": ["4", "2", "2", "0"], "again": ["4", "0", "4", "0"]}
    assert {"an entry read, folder", "an entry read, cache", "entries, size"} <= {*printed}


def test_automata_stay_alive(modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.workers import alive

    path = tmp_path / "all.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(30):
            schema = {"type": "odd"} if number == 7 else {"enum": ["x" * number]}
            file.write(json.dumps({"id": number, "schema": schema}) + "\n")
    vocabulary = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
    monkeypatch.setattr(alive.tokenfst, "load_vocabulary", lambda name: vocabulary)
    monkeypatch.setattr(alive, "DATA", path)
    monkeypatch.setattr(alive, "BEFORE", 9)
    for masks in (False, True):
        grown, own, beyond = alive.figures(100, masks=masks)
        assert grown.what == "20 automata" + (" with their first mask" if masks else "")
        assert own.median > 1_000 and beyond.median == grown.median - own.median


def test_a_step_is_timed_without_the_look_at_its_mask(modules: Any) -> None:
    class Slow:
        """A mask that allows the token 3 alone, and takes 50 ms to be looked at."""

        def __getitem__(self, place: tuple[int, int]) -> int:
            begin = time.process_time()
            while time.process_time() - begin < 0.05:
                pass
            return 8 if place == (0, 0) else 0

    accepted: list[int] = []
    filled: list[int] = []
    walk = modules("measuring.libraries").Walk(
        lambda: filled.append(1), accepted.append, Slow(), lambda: None
    )
    stepped = modules("schemas.maskbench").stepped
    for token, allowed in ((3, True), (2, False), (35, False)):
        found, nanoseconds = stepped(walk, token)
        assert found is allowed and 0 < nanoseconds < 40_000_000
    assert accepted == [3] and len(filled) == 3


def test_lines_are_the_sample_as_text(modules: Any, tmp_path: Path) -> None:
    schemas = modules("schemas.schemas")
    rows = [{"id": number, "schema": {"const": "\u00e9" * number}} for number in range(40)]
    path = tmp_path / "all.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    for count in (None, 0, 7, 40):
        sample = schemas.sample_of(path, count)
        assert [json.loads(line) for line in schemas.lines_of(path, count)] == sample
        assert len(sample) == (40 if count is None else count)
    assert schemas.sample_of(path, 7) == schemas.sample_of(path, None)[:7]
    assert sorted(row["id"] for row in schemas.sample_of(path, None)) == list(range(40))


def test_first_masks_are_compared_where_both_libraries_take_the_schema(
    modules: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [{"id": str(k), "first": (k + 1) * 1_000_000} for k in range(100)]
    theirs = [
        {"id": str(k), "refused": "no"} if k >= 90 else {"id": str(k), "first": (k + 1) * 2_000_000}
        for k in range(100)
    ]
    files = [tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"]
    for file, rows in zip(files, (ours, theirs), strict=True):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(sys, "argv", ["both", *map(str, files)])
    modules("schemas.both").main()
    shown = capsys.readouterr().out
    assert "90 schemas that both take" in shown
    assert "ours: p50 46, p90 82, p99 90," in shown and "theirs: p50 92, p90 164, p99 180," in shown
    assert "first / second: p50 0.50, p90 0.50, p99 0.50" in shown
    assert "of the slowest 10% of the first (10), the second refuses 10" in shown
