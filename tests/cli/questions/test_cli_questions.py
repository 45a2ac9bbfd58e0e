"""``list``, ``check``, ``sample``, ``diff``, ``draw``, ``inspect`` and ``vocab``: right answers and exit codes."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.programs.command_line import TOY_END, TOY_TOKENS, tokenfst, toy, write_toy

from tests.reference.tokens.mask_table import MaskTable
from tokenfst import TokenAutomaton, Vocabulary, compile, gbnf, regex
from tokenfst.cli.artifacts.inspecting import access_words, mask_counts
from tokenfst.cli.artifacts.vocabularies import round_trip
from tokenfst.cli.questions.comparing import compare
from tokenfst.decoding.artifacts import artifact
from tokenfst.errors import UnspellableWarning


@pytest.fixture
def spec(tmp_path: Path) -> str:
    return write_toy(tmp_path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """An artifact of ``(ab|0)+-?`` over the toy vocabulary."""
    path = tmp_path / "saved.safetensors"
    compile(regex("(ab|0)+-?"), toy()).expand().save(path)
    return path


# --- list ---------------------------------------------------------------------------------------------


def test_texts_come_shorter_ones_first_and_end_where_there_are_no_more() -> None:
    done = tokenfst("list", "[ba]|aa", "-n", "2")
    assert (done.code, done.out) == (0, "a\nb\n")
    assert tokenfst("list", "[ba]|aa", "-n", str(10**30)).out == "a\nb\naa\n"


def test_lists_in_json_are_printed_text_by_text() -> None:
    """The same JSON as of an answer that is there at once, with none, one and several texts."""
    for pattern, texts in (("(?!)", []), ("a", ["a"]), ("[bé]|aa", ["b", "aa", "é"])):
        done = tokenfst("list", pattern, "-n", "9", "--json")
        parts = [{"text": text, "hex": text.encode().hex()} for text in texts]
        answer = {"command": "list", "source": f"regex({pattern!r})", "texts": parts}
        assert done.out == json.dumps(answer) + "\n" and done.code == (0 if texts else 1)
    drawn = tokenfst("sample", "[ab]{3}", "-n", "2", "--seed", "1", "--json")
    lines = tokenfst("sample", "[ab]{3}", "-n", "2", "--seed", "1").out.split()
    answer = json.loads(drawn.out)
    assert [each["text"] for each in answer["samples"]] == lines and drawn.out == json.dumps(answer) + "\n"


# --- check --------------------------------------------------------------------------------------------


def test_accepted_texts() -> None:
    done = tokenfst("check", "[0-9]+", "1", "23")
    assert (done.code, done.out) == (0, 'yes  "1"\nyes  "23"\n')


def test_a_text_that_leaves_the_language() -> None:
    done = tokenfst("check", "é+[0-9]{3}", "éé1x")
    assert done.code == 1
    assert done.out.splitlines() == [
        'no   "éé1x"',
        "       éé1x",
        "          ^ not allowed here, at byte 5 (character 3)",
        "     expected [0-9]",
        '     a shortest way on: "00"',
    ]


def test_a_text_that_stops_too_early() -> None:
    lines = tokenfst("check", '"[^"]*"', '"ab').out.splitlines()
    assert lines[1:3] == ['       "ab', "          ^ the text stops too early, at byte 3"]
    assert lines[3:] == ["     expected any character", '     a shortest way on: "\\""']


def test_wide_characters_and_controls_keep_the_caret_in_place() -> None:
    lines = tokenfst("check", "[^x]+", "漢\n\x1bx").out.splitlines()
    assert lines[1] == "       漢\\n\\x1bx"
    assert lines[2].index("^") == 7 + 2 + len("\\n\\x1b")  # the wide character takes two columns


def test_json_of_texts() -> None:
    done = tokenfst("check", "[ab]é", "aé", "aê", "--json")
    assert done.code == 1
    assert done.json == {
        "command": "check",
        "source": "regex('[ab]é')",
        "accepted": False,
        "results": [
            {"text": "aé", "hex": "61c3a9", "accepted": True},
            {
                "text": "aê",
                "hex": "61c3aa",
                "accepted": False,
                "byte": 1,
                "character": 1,
                "stops_early": False,
                "expected": {"end": False, "characters": [[0xE9, 0xE9]], "bytes": []},
                "ending": {"text": "é", "hex": "c3a9"},
            },
        ],
    }


def test_lines_of_stdin() -> None:
    done = tokenfst("check", "a|b\r?|", stdin=b"a\nb\r\n\nb")
    assert (done.code, done.out.count("yes")) == (0, 4)
    assert tokenfst("check", "a", "-", stdin=b"b\n").code == 1
    assert tokenfst("check", "a", stdin=b"").code == 0
    assert tokenfst("check", "a", "--json", stdin=b"\xff\n").json["results"][0]["text"] is None


@pytest.mark.parametrize("words", [[], ["-"], ["--json"]])
def test_who_checks_nothing_is_told(words: list[str]) -> None:
    done = tokenfst("check", "a+", *words, stdin=b"")
    assert done.code == 0 and "nothing was checked" in done.err
    assert done.json["results"] == [] if "--json" in words else done.out == ""
    assert tokenfst("check", "a+", *words, stdin=b"a\n").err == ""


def test_the_empty_language_is_named() -> None:
    done = tokenfst("check", "a(?!)", "a")
    assert done.code == 1 and "the language is empty" in done.out


def test_an_artifact_answers_without_its_vocabulary(saved: Path) -> None:
    assert tokenfst("check", saved, "ab0ab-", "0").code == 0
    done = tokenfst("check", saved, "aba")
    assert done.code == 1 and 'expected "b"' in done.out


@pytest.mark.parametrize("ids", ["2,4,7,11", "[2, 4]", "0 1", "2,2,2,2"])
def test_accepted_tokens(ids: str, spec: str, saved: Path) -> None:
    assert tokenfst("check", saved, "--tokens", ids, "-v", spec).code == 0
    assert tokenfst("check", "(ab|0)+-?", "--tokens", ids, "-v", spec).code == 0


def test_tokens_that_leave_the_language(spec: str, saved: Path) -> None:
    done = tokenfst("check", saved, "-t", "2,1", "-v", spec)
    assert done.code == 1
    assert done.out.splitlines() == [
        'no   2 tokens: "abb"',
        '     token 1 (1 "b") is not allowed after "ab"',
        '     5 tokens allowed there: 0 "a", 2 "ab", 4 "0", 7 "-", 11 <end>',
    ]
    done = tokenfst("check", saved, "-t", "2,1", "-v", spec, "--show", "2")
    assert done.out.endswith('0 "a", 2 "ab", …\n')


def test_tokens_that_stop_too_early_or_go_on_after_the_end(spec: str, saved: Path) -> None:
    done = tokenfst("check", saved, "-t", "0", "-t", "4,11,4", "-t", "", "-v", spec)
    assert done.code == 1
    assert 'the tokens stop too early, after "a"' in done.out
    assert '2 tokens allowed there: 1 "b", 3 "ba"' in done.out
    assert 'token 2 (4 "0") comes after the end token' in done.out
    assert 'the tokens stop too early, after ""' in done.out


def test_json_of_tokens(spec: str, saved: Path) -> None:
    done = tokenfst("check", saved, "-t", "2,1", "-v", spec, "--json", "--show", "1")
    assert done.json["results"] == [
        {
            "tokens": [2, 1],
            "text": "abb",
            "hex": "616262",
            "accepted": False,
            "token": 1,
            "stops_early": False,
            "before": {"text": "ab", "hex": "6162"},
            "allowed": {"count": 5, "tokens": [{"id": 0, "text": "a", "hex": "61"}]},
        }
    ]


def test_initial_forms_are_named_as_they_stand_there(tmp_path: Path) -> None:
    tokens = [b" a", b"b", b""]
    Vocabulary(tokens, 2, initial_tokens=[b"a", b"b", b""]).to_json(tmp_path / "v.json")
    spec = f"tokens:{tmp_path / 'v.json'}"
    done = tokenfst("check", "a a", "-t", "1", "-t", "0,1", "-v", spec)
    assert 'token 0 (1 "b")' in done.out and '1 token allowed there: 0 "a"' in done.out
    assert (
        'token 1 (1 "b") is not allowed after "a"' in done.out and '1 token allowed there: 0 " a"' in done.out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", "12"], "token id 12 lies outside the vocabulary of"),
        (["-t", "-1"], "token id -1 lies outside the vocabulary of"),
        (["-t", "1,x"], "--tokens takes ids"),
        (["-t", "1", "text"], "not both"),
    ],
)
def test_bad_tokens(words: list[str], message: str, spec: str, saved: Path) -> None:
    done = tokenfst("check", saved, *words, "-v", spec)
    assert done.code == 2 and message in done.err and done.out == ""


def test_tokens_need_the_vocabulary_of_the_artifact(saved: Path, tmp_path: Path) -> None:
    done = tokenfst("check", saved, "-t", "1")
    assert done.code == 2 and "--vocabulary" in done.err
    Vocabulary([b"a", b""], 1).to_json(tmp_path / "other.json")
    done = tokenfst("check", saved, "-t", "0", "-v", f"tokens:{tmp_path / 'other.json'}")
    assert done.code == 2 and "was compiled for the vocabulary" in done.err


def test_a_vocabulary_that_spells_nothing(spec: str) -> None:
    done = tokenfst("check", "xyz", "-t", "0", "-v", spec)
    assert done.code == 1 and "0 tokens allowed" in done.out and "warning: " in done.err


# --- sample -------------------------------------------------------------------------------------------


def test_samples_are_in_the_language_and_repeatable(spec: str, saved: Path) -> None:
    for words in (
        ["(ab|0)+-?"],
        [saved],
        [saved, "-v", spec],
        ["(ab|0)+-?", "-v", spec, "--max-new-tokens", "7"],
    ):
        done = tokenfst("sample", *words, "-n", "20", "--seed", "1")
        assert done.code == 0 and len(done.out.splitlines()) == 20
        assert all(re.fullmatch("(ab|0)+-?", line) for line in done.out.splitlines())
        assert tokenfst("sample", *words, "-n", "20", "--seed", "1").out == done.out
        assert tokenfst("sample", *words, "-n", "20", "--seed", "2").out != done.out


def test_samples_in_json_have_their_tokens(spec: str) -> None:
    answer = tokenfst("sample", "[ab]+", "-v", spec, "-n", "9", "--max-new-tokens", "3", "--json").json
    for each in answer["samples"]:
        assert toy().decode(each["tokens"]) == bytes.fromhex(each["hex"]) == each["text"].encode()
        assert 1 <= len(each["tokens"]) <= 3


def test_unprintable_samples_stay_on_one_line() -> None:
    assert tokenfst("sample", "\n\x1b\\[31m").out == "\\n\\x1b[31m\n"
    assert tokenfst("sample", "\n", "--json").json["samples"] == [{"text": "\n", "hex": "0a"}]


def test_limits_that_no_sample_meets(spec: str) -> None:
    assert tokenfst("sample", "a{9}", "--max-length", "8").code == 2
    assert tokenfst("sample", "a{9}", "--max-length", "9").out == "a" * 9 + "\n"
    done = tokenfst("sample", "a{9}", "-v", spec, "--max-new-tokens", "8")
    assert done.code == 2 and "9" in done.err
    assert tokenfst("sample", "a(?!)").code == 2
    assert tokenfst("sample", "a", "--max-new-tokens", "3").code == 2
    assert tokenfst("sample", "a", "-v", spec, "--max-length", "3").code == 2


def test_the_old_name_of_max_new_tokens_works_and_warns(spec: str) -> None:
    asked = ("sample", "[ab]+", "-v", spec, "--seed", "1")
    old, new = (tokenfst(*asked, name, "3") for name in ("--max-tokens", "--max-new-tokens"))
    assert old.out == new.out and "--max-tokens is called --max-new-tokens now" in old.err and not new.err
    both = tokenfst(*asked, "--max-tokens", "3", "--max-new-tokens", "3")
    assert both.code == 2 and "give --max-new-tokens alone" in both.err
    assert "--max-tokens" not in tokenfst("sample", "--help").out


# --- diff ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "relation", "words"),
    [
        ("a(ba)*", "(ab)*a", "equivalent", (None, None, None)),
        ("a", "a|b", "a_in_b", (None, b"b", None)),
        ("a|b", "a", "b_in_a", (b"b", None, None)),
        ("[ab]", "[bc]", "overlapping", (b"a", b"c", b"b")),
        ("aa", "b", "disjoint", (b"aa", b"b", None)),
        ("a(?!)", "b(?!)", "equivalent", (None, None, None)),
        ("a(?!)", "b", "a_in_b", (None, b"b", None)),
    ],
)
def test_relations(a: str, b: str, relation: str, words: tuple[bytes | None, ...]) -> None:
    found, witnesses = compare(regex(a), regex(b))
    assert found == relation
    assert tuple(witnesses.values()) == words
    done = tokenfst("diff", a, b, "--json")
    assert done.code == (0 if relation == "equivalent" else 1)
    assert done.json["relation"] == relation and done.json["equivalent"] is (relation == "equivalent")
    shown = [
        None if each is None else bytes.fromhex(each["hex"]) for each in (done.json[k] for k in witnesses)
    ]
    assert tuple(shown) == words
    included = tokenfst("diff", a, b, "--includes")
    assert included.code == (0 if done.json["a_includes_b"] else 1)
    assert included.out.startswith("yes: A includes B" if included.code == 0 else "no: B has strings")


def test_diff_for_people() -> None:
    done = tokenfst("diff", "[0-9]+", r"\d+")
    assert done.out.splitlines() == [
        "different: every string of A is in B, but not the other way round",
        '  only in B  "٠"',
    ]


def test_diff_of_artifacts_and_files(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "p.regex").write_text("(0|ab)(0|ab)*-?\n")
    assert tokenfst("diff", saved, "(0|ab)(0|ab)*(-|)").code == 0
    assert tokenfst("diff", "--files", tmp_path / "p.regex", saved).code == 0
    assert tokenfst("diff", saved, "(0|AB)+-?", "--flags", "i").code == 1
    assert tokenfst("diff", "--files", tmp_path / "nope", saved).code == 2
    assert tokenfst("diff", "a", "(").code == 2


# --- draw ---------------------------------------------------------------------------------------------


def test_dot_text(spec: str, saved: Path) -> None:
    done = tokenfst("draw", "ab*")
    assert done.code == 0 and done.out.startswith("digraph {") and '1 -> 2 [label="a"]' in done.out
    over_tokens = tokenfst("draw", saved, "-v", spec).out
    assert '[label="\\"b\\""]' in over_tokens and '\\"ab\\", \\"0\\"' in over_tokens
    assert tokenfst("draw", "(ab|0)+-?", "-v", spec).out.count("->") == over_tokens.count("->")


def test_minimized(spec: str) -> None:
    pytest.importorskip("pynini")
    pattern = "aa|ba"
    assert tokenfst("draw", pattern, "--minimize").out.count(" -> ") == 3  # a start arrow, [ab], a
    assert tokenfst("draw", pattern, "--minimize", "-v", spec).code == 0


def test_long_edges_are_cut(tekken: Vocabulary) -> None:
    done = tokenfst("draw", "[0-9]{2}", "-v", "mistral:tekken_240911")
    assert '\\"0\\", \\"1\\", \\"2\\", \\"3\\", \\"4\\", … (10 tokens)' in done.out


def test_pictures(tmp_path: Path) -> None:
    target = tmp_path / "x.dot"
    done = tokenfst("draw", "ab*", "-o", target, "--json")
    assert done.json == {
        "command": "draw",
        "source": "regex('ab*')",
        "output": str(target),
        "states": 2,
        "bytes": target.stat().st_size,
    }
    if shutil.which("dot") is not None:
        assert tokenfst("draw", "ab*", "-o", tmp_path / "x.svg").code == 0
        assert "<svg" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([r"\w+", "-o", "x.svg"], "--max-states"),
        (["a", "-o", "x.gif"], ".svg, .png, .html, .dot"),
        (["a", "-o", "no/where/x.dot"], "no/where/x.dot: No such file"),
        (["a", "--json"], "--json needs --output"),
    ],
)
def test_bad_drawings(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tokenfst("draw", *words)
    assert done.code == 2 and message in done.err and not list(tmp_path.iterdir())


# --- inspect ------------------------------------------------------------------------------------------


def test_inspect_agrees_with_the_automaton(saved: Path) -> None:
    answer = tokenfst("inspect", saved, "--json").json
    automaton = TokenAutomaton.load(saved, toy())
    arrays = automaton.arrays()
    assert answer["source"] == "regex('(ab|0)+-?')" and answer["bytes"] == saved.stat().st_size
    assert answer["vocabulary"] == {"fingerprint": toy().fingerprint, "size": 12}
    size = regex("(ab|0)+-?").size()
    assert (answer["states"], answer["transitions"], answer["classes"]) == size
    assert answer["accepting"] == int((arrays["accepting"] != 0).sum())
    assert answer["distances"] == {"start": 1, "max": 1, "histogram": [2, 2]}
    first = answer["widest"][0]
    assert first["allowed_tokens"] == 5 and first["after"]["text"] == "0" and first["accepting"]
    assert len(tokenfst("inspect", saved, "--json", "--widest", "1").json["widest"]) == 1


def test_inspect_for_people(saved: Path) -> None:
    done = tokenfst("inspect", saved)
    assert done.code == 0
    assert "4 (2 accepting)" in done.out and "12 tokens, fingerprint" in done.out and 'after "0"' in done.out


def test_inspect_figures_against_whole_masks(tekken: Vocabulary) -> None:
    arrays = compile(regex(r'"(\w+ ){1,3}[^"\\]*"'), tekken).arrays()
    counts = mask_counts(arrays)
    masks = MaskTable(arrays, len(tekken))
    assert len(arrays["rows"]) > 0
    assert counts.tolist() == [len(masks.token_ids(mask)) for mask in range(len(masks))]
    states = list(range(1, len(arrays["distance"])))
    for state, word in access_words(arrays, states).items():
        at = arrays["start"]
        for byte in word:
            at = arrays["table"][at, arrays["classes"][byte]]
        assert at == state


def test_inspect_tells_states_that_no_tokens_reach(tmp_path: Path, spec: str) -> None:
    target = tmp_path / "x.safetensors"
    tokenfst("compile", "ab|xyz", "-v", spec, "-o", target)
    answer = tokenfst("inspect", target, "--json").json
    assert answer["unspellable"] == 2
    assert "2 states on no token sequence" in tokenfst("inspect", target).out
    with pytest.warns(UnspellableWarning):
        compile(regex("xyz"), toy()).expand().save(target)
    assert tokenfst("inspect", target, "--json").json["distances"]["start"] is None
    assert "no token sequence spells a string" in tokenfst("inspect", target).out


def test_inspect_of_a_program(tmp_path: Path, tekken: Vocabulary) -> None:
    path = tmp_path / "it.safetensors"
    compile(gbnf('root ::= "(" root ")" | "x" root | "x"'), tekken).save(path, expand=False)
    answer = tokenfst("inspect", path, "--json").json
    assert answer["format_version"] == 4 and answer["rules"] == 1 and len(answer["program"]) == 64
    assert "made when they are first asked for" in tokenfst("inspect", path).out
    spec = ["--vocabulary", "mistral:tekken_240911"]
    assert tokenfst("check", path, "--tokens", "1040,1120,1041", *spec).code == 0
    assert tokenfst("check", path, "(x)").code == 2


def test_inspect_refuses_what_is_no_artifact(tmp_path: Path, saved: Path) -> None:
    garbage = tmp_path / "garbage.safetensors"
    garbage.write_bytes(random.Random(1).randbytes(500))
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(saved.read_bytes()[:-9])
    for path in (garbage, cut, tmp_path / "nope.safetensors", tmp_path):
        done = tokenfst("inspect", path)
        assert done.code == 2 and done.err.startswith("error: ") and done.out == ""
        assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["table", "mask", "mask_row", "flip_offsets", "flips", "distance"])
def test_hostile_artifacts_with_a_right_digest(name: str, saved: Path, tmp_path: Path) -> None:
    found = artifact.read(saved)
    arrays = {
        key: np.array(value) if hasattr(value, "shape") else value for key, value in found.arrays.items()
    }
    arrays[name].ravel()[-1] = 0xFFFFFFF0
    hostile = tmp_path / "hostile.safetensors"
    artifact.write(hostile, arrays, found.vocabulary_fingerprint, found.vocabulary_size, "x")
    done = tokenfst("inspect", hostile)
    assert done.code == 2 and "breaks a rule of the format" in done.err
    if name == "table":
        done = tokenfst("check", hostile, "a")
        assert done.code == 2 and "breaks a rule of the format" in done.err


# --- vocab --------------------------------------------------------------------------------------------


def test_vocab(spec: str) -> None:
    answer = tokenfst("vocab", spec, "--json").json
    assert answer["name"] == "toy" and answer["fingerprint"] == toy().fingerprint
    assert answer["eos_token_ids"] == [TOY_END]
    assert answer["census"]["tokens"] == len(TOY_TOKENS) and answer["census"]["partial_utf8"] == 1
    assert answer["round_trip"]["changed"] == 0 and answer["round_trip"]["texts"] == 206
    text = tokenfst("vocab", spec).out
    assert "11 <end>" in text and "not spelled" in text


def test_vocab_of_a_real_tokenizer() -> None:
    done = tokenfst("vocab", "mistral:tekken_240911")
    assert done.code == 0 and "206 of 206 texts came back unchanged" in done.out


def test_a_changed_round_trip_is_a_no(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not round_trip(toy(), 50, 0).changed
    monkeypatch.setattr(Vocabulary, "encode_greedy", lambda self, data: [0])
    done = tokenfst("vocab", spec)
    assert done.code == 1 and "changed" in done.out
