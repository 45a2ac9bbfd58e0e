"""Grammars on the command line: what is read, what is refused, and what every command does with one."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, toy, write_toy

from reference.grammars import grammars as slow
from reference.grammars import spelling
from tokenfst import TokenAutomaton, Vocabulary, load_vocabulary
from tokenfst.automata.expressions.expression import (
    Expr,
    call,
    concat,
    literal,
    optional,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.cli.questions.linting import unspelled
from tokenfst.decoding.artifacts import artifact
from tokenfst.errors import PatternWarning, TokenfstWarning

LISTS = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | [ab]+\n'
SAME_IN_LARK = 'start: "[" [item ("," item)*] "]"\nitem: start | /[ab]+/\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with grammars, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.gbnf").write_text(LISTS)
    (tmp_path / "lists.ebnf").write_text(LISTS)
    (tmp_path / "lists.lark").write_text(SAME_IN_LARK)
    (tmp_path / "lists.txt").write_text(LISTS)
    return tmp_path


# --- what is read -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["lists.gbnf"],
        ["lists.ebnf"],
        ["lists.lark"],
        ["lists.txt", "--syntax", "gbnf"],
        ["lists.txt", "--syntax", "ebnf"],
        ["lists.lark", "--start", "start"],
        ["lists.gbnf", "--start", "root"],
    ],
)
def test_notations(words: list[str], folder: Path) -> None:
    done = tokenfst("sample", "--grammar", *words, "--depth", "1", "-n", "30", "--seed", "1")
    assert done.code == 0
    grammar = gbnf(LISTS)
    for line in done.out.splitlines():
        assert slow.accepts(grammar.rules, "root", line.encode()), line
    assert max(line.count("[") for line in done.out.splitlines()) > 1


def test_line_ends_and_byte_order_marks(folder: Path) -> None:
    for name in ("lists.gbnf", "lists.ebnf", "lists.lark"):
        text = (folder / name).read_text()
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        assert tokenfst("sample", "-g", name, "--depth", "0", "--seed", "3").code == 0


def test_warnings_are_those_of_the_command_line(folder: Path) -> None:
    (folder / "class.gbnf").write_text('root ::= ["a"]\n')
    done = tokenfst("check", "--grammar", "class.gbnf", "a")
    assert (done.code, done.out) == (0, 'yes  "a"\n')
    assert done.err.startswith('warning: ["a"] in line 1 is one of') and ".py" not in done.err
    assert issubclass(PatternWarning, TokenfstWarning)


def test_other_starts(folder: Path) -> None:
    for name in ("lists.gbnf", "lists.ebnf", "lists.lark"):
        done = tokenfst("draw", "-g", name, "--start", "item")
        assert done.code == 0 and done.out.index("penwidth=2") > done.out.index("cluster_0")
        assert f"grammar('{name}', start='item')" in done.out
    assert tokenfst("sample", "-g", "json", "--start", "member", "--depth", "0", "--seed", "1").code == 0


@pytest.mark.parametrize("name", bundled_grammars())
def test_bundled_grammars_by_name(name: str) -> None:
    done = tokenfst("draw", "-g", name)
    assert done.code == 0
    assert done.out.count("subgraph") == len(bundled_grammar(name).rules)


def test_a_file_comes_before_a_bundled_grammar(folder: Path) -> None:
    (folder / "json").write_text('start: "mine"')
    assert tokenfst("sample", "-g", "json").out == "mine\n"
    (folder / "csv").mkdir()
    assert tokenfst("draw", "-g", "csv").code == 0


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-g", "jsn"], "there is no file 'jsn', and no grammar of that name comes with tokenfst; did you mean json?"),
        (["-g", "xyz"], "comes with tokenfst; there are arithmetic, "),
        (["-g", "nope.lark"], "nope.lark: No such file or directory"),
        (["-g", "no/where"], "no/where: No such file or directory"),
        (["-g", "folder"], "folder: Is a directory"),
        (["-g", "latin.lark"], "latin.lark is not UTF-8 at byte 8: save the grammar in UTF-8"),
        (["-g", "lists.gbnf", "--start", "itme"], "gbnf: the start rule 'itme' is not defined; did you mean item?"),
        (["-g", "lists.lark", "--start", "itme"], "lark: the start rule 'itme' is not defined; did you mean item?"),
        (["-g", "json", "--start", "xxx"], "json: the start rule 'xxx' is not defined"),
        (["-g", "lists.gbnf", "--syntax", "abnf"], "'abnf' is not one of 'lark', 'gbnf', 'ebnf'; see: tokenfst "),
        (["-g", "json", "--syntax", "lark"], "--syntax needs a file, but json is a grammar that comes with"),
        (["--start", "x"], "--start and --syntax go with --grammar"),
        (["--syntax", "gbnf"], "--start and --syntax go with --grammar"),
    ],
)  # fmt: skip
def test_bad_grammar_options_are_one_line(words: list[str], message: str, folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "latin.lark").write_bytes('start: "ä"'.encode("latin-1") + b"\xff")
    for command in (["lint"], ["draw"], ["sample"], ["check"], ["compile", "-o", "x.safetensors"]):
        done = tokenfst(*command, *words)
        assert done.code == 2 and done.out == "", command
        assert message in done.err and done.err.startswith("error: ") and done.err.count("\n") == 1
        assert "Traceback" not in done.err


def test_malformed_grammars_show_the_place(folder: Path) -> None:
    (folder / "bad.lark").write_text('start: "a"\nb: (c\nc: "d"\n')
    done = tokenfst("lint", "-g", "bad.lark")
    assert done.code == 2 and done.err.startswith("error: bad.lark: line 2, column 6: ")
    assert done.err.endswith("\n  b: (c\n       ^\n")
    done = tokenfst("lint", "-g", "lists.txt")
    assert done.code == 2 and done.err.startswith("error: lists.txt: line 1, column 7: ")
    assert done.err.endswith("say --syntax gbnf or ebnf\n") and "Lark's notation" in done.err
    assert "--syntax" not in tokenfst("lint", "-g", "lists.txt", "--syntax", "lark").err
    (folder / "empty.gbnf").write_text('root ::= "a" root\n')
    done = tokenfst("sample", "-g", "empty.gbnf")
    assert done.code == 2 and done.err.startswith(
        "error: empty.gbnf: line 1, column 1: the rule 'root' has no word"
    )


def test_options_that_do_not_fit_together(folder: Path) -> None:
    for words, message in (
        (["sample", "a", "--depth", "2"], "--depth goes with --grammar"),
        (["sample", "-g", "json", "--flags", "i"], "--file and --flags cannot be combined"),
        (["check", "-g", "json", "-f", "lists.txt", "x"], "--file and --flags cannot be combined"),
        (["sample", "-g", "json", "x"], "the grammar is json, so 'x' is one argument too many"),
        (["draw", "-g", "json", "--minimize"], "and this command needs a finite automaton: add --depth N"),
        (["draw", "-g", "json", "--max-states", "3"], "at most 3 are drawn; draw fewer rules, or raise --max-states"),
        (["lint"], "lint needs --grammar"),
        (["lint", "-g", "json", "x"], "unexpected extra argument"),
    ):  # fmt: skip
        done = tokenfst(*words)
        assert done.code == 2 and message in done.err, words
    assert tokenfst("sample", "-g", "json", "--depth", "2", "--budget-positions", "9").code == 3


# --- draw, sample, and what is regular ----------------------------------------------------------------


def test_rules_are_drawn_unless_a_machine_is_asked_for(folder: Path) -> None:
    done = tokenfst("draw", "-g", "lists.gbnf", "-o", "x.dot")
    assert done.out == "x.dot: 2 rules of grammar('lists.gbnf')\n"
    assert (folder / "x.dot").read_text().count("subgraph") == 2
    done = tokenfst("draw", "-g", "lists.gbnf", "-o", "x.dot", "--json")
    assert done.json["rules"] == 2 and done.json["bytes"] == (folder / "x.dot").stat().st_size
    done = tokenfst("draw", "-g", "lists.gbnf", "--depth", "1", "-o", "x.dot", "--json")
    assert done.json["states"] > 5 and "subgraph" not in (folder / "x.dot").read_text()
    spec = write_toy(folder)
    assert (
        '\\"ab\\"' in tokenfst("draw", "-g", "lists.gbnf", "--start", "item", "--depth", "0", "-v", spec).out
    )


def test_a_regular_grammar_is_a_language(folder: Path) -> None:
    (folder / "r.gbnf").write_text('root ::= root "-" item | item\nitem ::= "ab" | "0"\n')
    spec = write_toy(folder)
    done = tokenfst("compile", "-g", "r.gbnf", "-v", spec, "-o", "r.safetensors", "--json")
    assert done.code == 0 and done.json["source"] == "grammar('r.gbnf')" and done.json["estimate"]["exact"]
    assert tokenfst("diff", "r.safetensors", "(ab|0)(-(ab|0))*").code == 0
    assert tokenfst("sample", "-g", "r.gbnf", "-n", "3", "-v", spec).code == 0


def test_a_truncation_is_compiled(folder: Path) -> None:
    spec = write_toy(folder)
    (folder / "x.gbnf").write_text('root ::= "a" root "b" | "0"\n')
    done = tokenfst("compile", "-g", "x.gbnf", "--depth", "2", "-v", spec, "-o", "x.safetensors")
    assert done.code == 0 and "truncate(grammar('x.gbnf'), 2)" in done.out
    assert tokenfst("diff", "x.safetensors", "0|a0b|aa0bb").code == 0


# --- lint ---------------------------------------------------------------------------------------------


def test_findings_and_exit_codes(folder: Path) -> None:
    (folder / "g.lark").write_text('start: start "a" | "b"\nold: "x"\nno: "z" no\n')
    done = tokenfst("lint", "-g", "g.lark")
    assert done.code == 1 and done.err == ""
    assert done.out.splitlines() == [
        "1:1: note: the rule 'start' begins with itself: start → start [left-recursion]",
        "2:1: the rule 'old' is not used: no way leads to it from 'start' [unreachable]",
        "3:1: the rule 'no' has no word: every one of its alternatives needs a word of a rule without "
        "[unproductive]",
        "3:1: the rule 'no' is not used: no way leads to it from 'start' [unreachable]",
        "grammar('g.lark'): 3 rules, 3 findings",
    ]
    (folder / "g.lark").write_text('start: start "a" | start | "b"\n')
    assert "[cycle]" in tokenfst("lint", "-g", "g.lark").out


def test_notes_alone_are_no_findings(folder: Path) -> None:
    (folder / "g.lark").write_text('start: start "a" | "b"\n')
    done = tokenfst("lint", "-g", "g.lark")
    assert done.code == 0 and "[left-recursion]" in done.out and "1 rule, 0 findings" in done.out
    for name in bundled_grammars():
        assert tokenfst("lint", "-g", name).code == 0, name


def test_findings_in_json(folder: Path) -> None:
    (folder / "g.lark").write_text('start: start "a" | "b"\nold: "x"\n')
    answer = tokenfst("lint", "-g", "g.lark", "--json").json
    assert answer.pop("findings")[1:] == [
        {
            "kind": "unreachable",
            "note": False,
            "rule": "old",
            "message": "the rule 'old' is not used: no way leads to it from 'start'",
            "path": [],
            "line": 2,
            "column": 1,
        }
    ]
    assert answer == {"command": "lint", "source": "grammar('g.lark')", "rules": 2, "clean": False}


def test_rules_that_the_vocabulary_cannot_spell(folder: Path) -> None:
    spec = write_toy(folder)
    (folder / "g.gbnf").write_text(
        'root ::= "a" pair? | euro | "b" far\npair ::= "x" | "0" "y"\neuro ::= "€"\nfar ::= "é"\n'
    )
    done = tokenfst("lint", "-g", "g.gbnf", "-v", spec)
    assert done.code == 1
    assert done.out.splitlines()[:-1] == [
        "2:1: the rule 'pair' takes part in no text that the vocabulary can spell [unspelled]",
        "3:1: the rule 'euro' takes part in no text that the vocabulary can spell [unspelled]",
    ]
    assert (
        tokenfst("lint", "-g", "g.gbnf", "-v", spec, "--start", "far").code == 1
    )  # the others are unreachable
    (folder / "h.gbnf").write_text('root ::= "x" | "y" tail\ntail ::= "a"\n')
    done = tokenfst("lint", "-g", "h.gbnf", "-v", spec)
    assert done.out.startswith("1:1: no text of the rule 'root', where the grammar starts, can be spelled")
    assert done.out.count("[unspelled]") == 1


def test_a_token_may_cross_the_borders_of_rules() -> None:
    grammar = gbnf('root ::= p q | q p\np ::= "x"\nq ::= "y" | "z"')
    assert not unspelled(grammar, Vocabulary([b"xy", b""], 1), set())
    assert [each.rule for each in unspelled(grammar, Vocabulary([b"xz", b"xxy", b""], 2), set())] == []
    assert [each.rule for each in unspelled(grammar, Vocabulary([b"yy", b""], 1), set())] == ["root"]


def test_a_complete_vocabulary_spells_everything(tekken: Vocabulary) -> None:
    for name in bundled_grammars():
        assert unspelled(bundled_grammar(name), tekken, set()) == []


def test_initial_forms_count_at_the_start_only() -> None:
    grammar = gbnf('root ::= p | "a" q | " a" r\np ::= "b"\nq ::= "b"\nr ::= "b"')
    #  The text begins with "a" or "b"; a space comes later only, and b nowhere else.
    vocabulary = Vocabulary([b" a", b" b", b""], 2, initial_tokens=[b"a", b"b", b""])
    assert [each.rule for each in unspelled(grammar, vocabulary, set())] == ["q", "r"]


TOKENS = [b"a", b"b", b"ab", b"ba", b"bb", b"aab", b"bab"]


def random_grammar(rng: random.Random) -> Grammar:
    names = ["s", "t", "u"]

    def body(depth: int) -> Expr:
        if depth == 0:
            return rng.choice([literal(b"a"), literal(b"b"), literal(b"ab"), *map(call, names)])
        parts = [body(depth - 1) for _ in range(2)]
        kind = rng.randrange(6)
        if kind < 3:
            return concat(*parts)
        return union(*parts) if kind < 5 else optional(parts[0])

    return Grammar.from_rules({name: union(body(2), body(1)) for name in names}, "s")


def test_unspelled_rules_against_the_definition() -> None:
    verdicts = []
    for seed in range(200):
        rng = random.Random(seed)
        grammar = random_grammar(rng)
        tokens = rng.sample(TOKENS, rng.randint(1, 3))
        found = {each.rule for each in unspelled(grammar, Vocabulary([*tokens, b""], len(tokens)), set())}
        wanted = set(grammar.rules) - spelling.used(grammar.rules, "s", tokens)
        assert found == ({"s"} if "s" in wanted else wanted), (seed, tokens)
        verdicts.append(len(found))
    assert all(verdicts.count(size) > 10 for size in range(3))


# --- check --------------------------------------------------------------------------------------------


def test_check_shows_the_rules_at_the_failure(folder: Path) -> None:
    done = tokenfst("check", "-g", "lists.gbnf", "[a,[b]]", "[a,[b;]]", "[ab")
    assert done.code == 1
    assert done.out.splitlines() == [
        'yes  "[a,[b]]"',
        'no   "[a,[b;]]"',
        "       [a,[b;]]",
        "            ^ not allowed here, at byte 5",
        "     in root → item → root → item",
        "     expected [,\\]ab]",
        '     a shortest way on: "]]"',
        'no   "[ab"',
        "       [ab",
        "          ^ the text stops too early, at byte 3",
        "     in root → item",
        "     expected [,\\]ab]",
        '     a shortest way on: "]"',
    ]


def test_check_of_a_grammar_in_json(folder: Path) -> None:
    answer = tokenfst("check", "-g", "lists.gbnf", "[[", "--json").json
    assert answer["source"] == "grammar('lists.gbnf')"
    (result,) = answer["results"]
    assert result["byte"] == 2 and result["stops_early"] and result["rules"][0] == "root"
    assert bytes.fromhex(result["ending"]["hex"]) == b"]]"


def test_check_of_deep_and_of_other_texts() -> None:
    deep = "[" * 3000 + "]" * 3000
    assert tokenfst("check", "-g", "json", deep, '{"a": [1, "é"]}', " null ").code == 0
    done = tokenfst("check", "-g", "json", "[" * 3000)
    assert done.code == 1 and "more) → " in done.out
    done = tokenfst("check", "-g", "json", '{"aé": [1, 2,, 3]}')
    assert "at byte 14 (character 13)" in done.out
    assert "in start → value → object → member → value → array" in done.out
    done = tokenfst("check", "-g", "json", '{"aé": "\x01"}')
    assert "STRING" in done.out


def test_check_of_tokens(folder: Path) -> None:
    (folder / "x.gbnf").write_text('root ::= "a" root "b" | "0"\n')
    spec = write_toy(folder)
    done = tokenfst("check", "-g", "x.gbnf", "-t", "0,4,1", "-t", "0,0,4,1", "-v", spec)
    assert done.code == 1 and 'yes  3 tokens: "a0b"' in done.out and "the tokens stop too early" in done.out


def test_check_agrees_with_the_definition(folder: Path) -> None:
    grammar = gbnf('root ::= "a" root "b" | root root | "0"')
    (folder / "x.gbnf").write_text(grammar.text)
    done = tokenfst("check", "-g", "lists.lark", "[[")
    assert "in start → item → start" in done.out
    words = ["".join(word) for n in range(1, 6) for word in itertools.product("ab0", repeat=n)]
    answer = tokenfst("check", "-g", "x.gbnf", "--json", *words).json
    wanted = [slow.accepts(grammar.rules, "root", word.encode()) for word in words]
    assert [each["accepted"] for each in answer["results"]] == wanted


# --- compile ------------------------------------------------------------------------------------------


def test_a_deterministic_grammar_becomes_an_artifact(folder: Path) -> None:
    (folder / "x.gbnf").write_text('root ::= "a" root "b" | "0"\n')
    spec = write_toy(folder)
    done = tokenfst("compile", "-g", "x.gbnf", "-v", spec, "-o", "x.safetensors", "--json")
    assert done.code == 0 and done.json["estimate"] is None and done.json["source"] == "grammar('x.gbnf')"
    assert artifact.read(folder / "x.safetensors").source == "grammar('x.gbnf')"
    matcher = TokenAutomaton.load(folder / "x.safetensors", toy()).matcher()
    assert matcher.accept_tokens([0, 0, 4, 1, 1]) and matcher.is_accepting()
    done = tokenfst("compile", "-g", "x.gbnf", "-v", spec, "--estimate")
    assert done.code == 2 and "--depth" in done.err


def test_what_cannot_be_expanded_is_told_with_the_remedy(folder: Path) -> None:
    (folder / "x.gbnf").write_text('root ::= "a" root "a" | "0"? \n')
    spec = write_toy(folder)
    done = tokenfst("compile", "-g", "x.gbnf", "-v", spec, "-o", "x.safetensors")
    assert done.code == 2 and "Add --depth N" in done.err and not (folder / "x.safetensors").exists()


def test_tokens_are_sampled_from_a_grammar(folder: Path) -> None:
    (folder / "x.gbnf").write_text('root ::= "a" root "b" | "0"\n')
    done = tokenfst("sample", "-g", "x.gbnf", "-v", write_toy(folder), "-n", "20", "--max-new-tokens", "9")
    lines = done.out.splitlines()
    assert done.code == 0 and len(lines) == 20
    assert all(line == "a" * line.count("a") + "0" + "b" * line.count("a") for line in lines)


def test_tekken_and_json(tekken: Vocabulary) -> None:
    assert load_vocabulary("mistral:tekken_240911").fingerprint == tekken.fingerprint
    ids = ",".join(map(str, tekken.encode_greedy(b'{"a": [1, 2]}')))
    assert tokenfst("check", "-g", "json", "-t", ids, "-v", "mistral:tekken_240911").code == 0
