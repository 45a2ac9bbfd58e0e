"""Random small grammars in Lark's notation, with all that it has: flags, ranges, templates, priorities, counts, what is
ignored, imports, and definitions that are replaced or extended. Over ``LETTERS``.
"""

from __future__ import annotations

import random

LETTERS = "abA1# "
"""What the grammars are about; half of them are about fewer."""

_STRINGS = ('"a"', '"b"', '"ab"', '"ba"', '"a"i', '"ab"i', '"a".."b"', '"#"', '"1"')
_PATTERNS = (
    *(
        "/(?:a|ab)/",
        "/ab|a/",
        "/a?b?a/",
        "/a*?b/",
        "/(a|ab)(b|ba)?/",
        "/a??b?/i",
        "/[ab]+?/",
        "/#.*?#/",
        "/(?i:a)b/",
    ),
    *("/a+/", "/[ab]{1,2}/", "/b|ba|bab/", "/a(?!ab)[ab]a/", "/a  b/x", "/[^a]/", "/./s", "/#[^ ]*/"),
)
_IGNORED = (
    *(
        '" "',
        "/ +/",
        "/[ b]/",
        "/#[^b]*/",
        "/#[^ ]*/",
        "/#.*?b/",
        "/#b|#/",
        "/ |#a?/",
        "IGNORED",
        "/b+/",
        "/# ?/",
    ),
    *("/(b? )+/", '"b" " "', "/ (# )?/", "/a*b/"),
)
_IMPORTED = ("DIGIT", "INT", "SIGNED_INT", "LCASE_LETTER", "LETTER", "WORD")


def random_lark(rng: random.Random) -> tuple[str, str]:
    """A grammar and the letters that its texts may be made of. Lark may refuse it."""
    imported = rng.sample(_IMPORTED, rng.choice([0, 0, 1, 2]))
    names = ["A", "B", "C", *imported]
    has_template = rng.random() < 0.3

    def leaf(rules: tuple[str, ...]) -> str:
        kind = rng.randrange(6)
        if kind == 0:
            return rng.choice(_PATTERNS)
        if kind < 3:
            return rng.choice(names)
        if kind == 3 and rules:
            return rng.choice(rules)
        return rng.choice(_STRINGS)

    def body(depth: int, rules: tuple[str, ...], make: str = "") -> str:
        if depth == 0:
            return make or leaf(rules)
        left, right = body(depth - 1, rules), body(depth - 1, rules)
        forms = [
            "{0} {1}",
            "{0} {1}",
            "({0} | {1})",
            "({0} | {1})",
            "({0})*",
            "({0})+",
            "[{0}]",
            "({0})?",
            "({0})~2",
        ]
        if rules:
            forms += ["t{{s, {2}}}", "t{{{2}, {2}}}"] if has_template else []
            forms += ["({0})~0..2 {1}", "{0} -> x | {1}"] if depth == 3 else ["({0})~1..2"]
        return rng.choice(forms).format(left, right, rng.choice(["A", '"a"', "/b|ba/", "r"]))

    def terminal() -> str:
        kind = rng.randrange(5)
        if kind < 2:
            return rng.choice(_PATTERNS)
        parts = [rng.choice([*_STRINGS, *_PATTERNS]) for _ in range(3)]
        forms = ["{0} | {1}", "{0} | {1} | {2}", "{0} {1}", "({0} | {1}) {2}", "({0})~1..2 {1}", "{0} [{1}]"]
        return rng.choice(forms).format(*parts)

    rules = ("s", "r")
    lines = [f"%import common.{name}" for name in imported]
    lines += [
        f"start: {body(1, rules)}",
        f"s{rng.choice(['', '.2'])}: {body(rng.randint(1, 3), rules)}",
        f"{rng.choice(['', '?', '!'])}r: {body(1, rules)} | {leaf(())}",
        f"A{rng.choice(['', '.2'])}: {terminal()}",
        f"B: {rng.choice([terminal(), 'A ' + rng.choice(_STRINGS), 'C | ' + rng.choice(_PATTERNS)])}",
        f"C: {rng.choice([terminal(), *imported])}",
    ]
    if has_template:
        lines.append(f"t{{x, y}}: {rng.choice(['x y', 'x (y x)*', 'x | y y', '[x] y'])}")
    if rng.random() < 0.6:
        lines += [f"%ignore {each}" for each in rng.sample(_IGNORED, rng.choice([1, 1, 2]))]
        lines += ['IGNORED: " " | "#" /[^b]*/'] if any("IGNORED" in each for each in lines) else []
    for name in (*imported, "A", "r"):
        if rng.random() < 0.2:
            shown = terminal() if name.isupper() or "_" in name else body(1, rules)
            lines.append(f"%{rng.choice(['override', 'extend'])} {name}: {shown}")
    text = "\n".join(lines)
    letters = [each for each in LETTERS if each in "ab" or each in text]
    if imported and "1" not in letters:
        letters.append("1")
    if len(letters) > 4:
        letters = ["a", *rng.sample(letters[1:], 3)]
    return text, "".join(letters)
