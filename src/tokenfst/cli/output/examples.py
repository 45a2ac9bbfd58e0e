"""Examples at the end of each command's help.

All of them run, in this order, in one folder (tests/cli/test_cli_examples.py).
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "compile": (
        "tokenfst compile '(yes|no), [0-9]{1,3} (apples|pears)' --vocabulary mistral:tekken_240911 "
        "--output fruit.safetensors",
        "tokenfst compile --grammar json --vocabulary mistral:tekken_240911 --output json.safetensors",
    ),
    "inspect": (
        "tokenfst inspect fruit.safetensors",
        "tokenfst inspect fruit.safetensors --plot fruit.svg",
    ),
    "check": (
        "tokenfst check fruit.safetensors 'yes, 12 pears'",
        "tokenfst check --grammar json '{\"a\": [1, 2]}' --json",
    ),
    "repair": ("tokenfst repair '(yes|no), [0-9]{1,3} (apples|pears)' 'yes 12 apple'",),
    "sample": ("tokenfst sample '[a-z]{3}-[0-9]{2}' --number 3 --seed 1",),
    "list": ("tokenfst list '(a|b){1,2}'",),
    "count": ("tokenfst count '[0-9]{3}-[0-9]{4}'",),
    "draw": (
        "tokenfst draw 'yes|no' --output bytes.dot",
        "tokenfst draw 'yes|no' --vocabulary mistral:tekken_240911 --output tokens.dot",
        "tokenfst draw '(yes|no)!' --vocabulary mistral:tekken_240911 --text 'yes!' --output masks.dot",
    ),
    "explore": (
        "tokenfst explore --vocabulary mistral:tekken_240911",
        "tokenfst explore '(yes|no), [0-9]{1,3} (apples|pears)' --no-browser",
    ),
    "lint": ("tokenfst lint --grammar json",),
    "diff": ("tokenfst diff 'a(ba)*' '(ab)*a'",),
    "serve": ("tokenfst serve --new-key",),
    "store": (
        "tokenfst store put artifacts '(yes|no)!' --vocabulary mistral:tekken_240911",
        "tokenfst store list artifacts",
        "tokenfst store verify artifacts",
        "tokenfst store prune artifacts --max-bytes 10G --unused-days 30",
        "tokenfst store new-key signing.key",
    ),
    "vocab": ("tokenfst vocab mistral:tekken_240911",),
    "doctor": ("tokenfst doctor", "tokenfst doctor --json"),
}


def epilog(command: str) -> str:
    """The end of a command's help page: its examples, one paragraph each, with brackets escaped for rich.

    ``command``: its name, or two words for a command within another. Empty if there are no examples.
    """
    own = [each for each in EXAMPLES[command.split()[0]] if f"{each} ".startswith(f"tokenfst {command} ")]
    if not own:
        return ""
    lines = [example.replace("[", "\\[") for example in own]
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines])
