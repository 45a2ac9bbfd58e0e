"""The statements of a grammar in Lark's notation: where a name is defined, and what it means.

The idea: a text is a scope, a map from names to definitions. ``%import`` reads a grammar that lark ships into its
own scope, once for each importing text, and copies the requested definitions into the importing scope. Bodies stay
trees: ``lark_syntax`` translates those that are needed.

The effect of ``%override`` and ``%extend`` on the imported grammar itself is as in lark, which writes terminals
into those that name them after a text was read, and looks rules up by name at the end. So rules of the imported
grammar see the importing text's changes to an imported name; terminals see the additions of ``%extend`` and ignore
the replacements of ``%override``.

Rejected: lark's own loader. It reports no positions, and it turns repetitions into rules.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.notations.lark_attributes import Attributes, read_attributes
from tokenfst.automata.notations.parsing.reading import Token, fault, mixed_name, near_to, parse
from tokenfst.errors import PatternError, PatternSyntaxError, UnsupportedPatternError

if TYPE_CHECKING:
    from lark import Tree

_NOTATION = r"""
start: (_NL | rule | term | ignore | import | declare | override | extend | options)*
options: OPTIONS _NL
rule: _RULE_MODIFIERS? RULE parameter? params? attributes? priority? _COLON expansions _NL
term: TERMINAL priority? _COLON expansions _NL
parameter: PARAMETER
params: _LBRACE RULE (_COMMA RULE)* _RBRACE
attributes: _LBRA attribute (_COMMA attribute)* _RBRA
attribute: RULE (_EQUALS (STRING | REGEXP | TERMINAL | NUMBER | DECIMAL))?
priority: _DOT NUMBER
ignore: _IGNORE expansions _NL
override: _OVERRIDE (rule | term)
extend: _EXTEND (rule | term)
declare: DECLARE _name+ _NL
import: IMPORT path names? _NL
path: relative? _name (_DOT _name)*
relative: _DOT
names: _LPAR _name (_COMMA _name)* _RPAR | _TO _name -> renamed
_name: RULE | TERMINAL
expansions: _conjunction ((_OR | _NL_OR) _conjunction)*
_conjunction: alternative | both
both: alternative (AND alternative)+
alternative: (_repeated | quantified | counted)* CONDITION? alias?
alias: _TO RULE
quantified: _repeated OP
counted: _repeated (_TILDE NUMBER (_DOTDOT NUMBER)? | BOUNDS)
_repeated: _LPAR expansions _RPAR | maybe | _value | negated
negated: NOT (_LPAR expansions _RPAR | _value)
maybe: _LBRA expansions _RBRA
_value: TERMINAL | RULE | STRING | REGEXP | SPECIAL | _embedded | REGEX | special | range | usage | parameterized
_embedded: JSON | GRAMMAR | LARK
parameterized: RULE PARAMETER
special: _SPECIAL STRING
range: STRING _DOTDOT STRING
usage: RULE _LBRACE _value (_COMMA _value)* _RBRACE
GRAMMAR: /@[A-Za-z_][A-Za-z0-9_-]*/
REGEX: "%regex"
BOUNDS: /\{[ \t]*([0-9]+[ \t]*(,[ \t]*([0-9]+[ \t]*)?)?|,[ \t]*[0-9]+[ \t]*)\}/
_EQUALS: "="
DECIMAL: /[+-]?[0-9]+\.[0-9]+/
_LPAR: "("
_RPAR: ")"
_LBRA: "["
_RBRA: "]"
_LBRACE: "{"
_RBRACE: "}"
OP: /[+*]|[?](?![a-z_])/
_COLON: ":"
_COMMA: ","
_OR: "|"
_DOT: /\.(?!\.)/
_DOTDOT: ".."
_TILDE: /~(?=[ \t]*[+-]?\d)/
NOT: /~(?![ \t]*[+-]?\d)/
AND: "&"
PARAMETER: /::(?!=)[ \t]*(_(?![a-z0-9_])|0x[0-9a-fA-F]+|\d+|[a-z][a-z_]*[ \t]*\([^()\n]*\))?/
CONDITION: /%if\b([ \t]*[a-z_]+)?[ \t]*(\(<NESTED>\))?/
_RULE_MODIFIERS: /(!|![?]?|[?]!?)(?=[_a-z])/
RULE: /_?[a-z][_a-z0-9]*(-[_a-z0-9]+)*/
TERMINAL: /_?[A-Z][_A-Z0-9]*(-[_A-Z0-9]+)*/
STRING: /"(\\[^\n]|[^"\\\n])*"i?/
SPECIAL: /<[^<>\s]+>/
OPTIONS: /%(llguidance|grammar_options)/
JSON: "%json"
LARK: "%lark"
_SPECIAL: "%special"
REGEXP: /\/(?!\/)(\\[\s\S]|[^\\\/])*\/[imslux]*/
_NL: /\r?\n\s*/
_NL_OR: /\r?\n\s*\|/
COMMENT: /\s*\/\/[^\n]*|\s*#[^\n]*/
_TO: "->"
_IGNORE: "%ignore"
_OVERRIDE: "%override"
DECLARE: "%declare"
_EXTEND: "%extend"
IMPORT: "%import"
NUMBER: /[+-]?\d+/
%ignore /[ \t]+/
%ignore COMMENT
%ignore /\\[ ]*\n/
"""
_NESTED = r"[^()\n]*"
for _ in range(8):
    _NESTED = rf"(?:[^()\n]|\({_NESTED}\))*"
_NOTATION = _NOTATION.replace("<NESTED>", _NESTED)
_TOKENS = {
    "RULE": "a rule's name",
    "TERMINAL": "a terminal's name",
    "STRING": "a string",
    "REGEXP": "a regular expression",
    "NUMBER": "a number",
    "OP": "a repetition",
    "_NL": "a line break",
    **dict.fromkeys(
        (
            *("_NL_OR", "_TO", "_RULE_MODIFIERS", "$END", "COMMENT", "SPECIAL", "_SPECIAL", "JSON"),
            *("GRAMMAR", "LARK", "REGEX", "OPTIONS", "BOUNDS"),
        ),
        "",
    ),
    "_LPAR": "'('",
    "_RPAR": "')'",
    "_LBRA": "'['",
    "_RBRA": "']'",
    "_LBRACE": "'{'",
    "_RBRACE": "'}'",
    "_COLON": "':'",
    "_COMMA": "','",
    "_OR": "'|'",
    "_EQUALS": "'='",
    "DECIMAL": "a number",
    "_DOT": "'.'",
    "_DOTDOT": "'..'",
    "_TILDE": "'~'",
    "AND": "'&'",
    "NOT": "",
    "PARAMETER": "",
    "CONDITION": "",
    "_IGNORE": "%ignore",
    "_OVERRIDE": "%override",
    "DECLARE": "%declare",
    "_EXTEND": "%extend",
    "IMPORT": "%import",
}
_SCHEMA = re.compile(
    r'//[^\n]*|\#[^\n]*|"(?:\\[^\n]|[^"\\\n])*"|/(?!/)(?:\\[\s\S]|[^\\/])*/|(?P<json>%(?:json|regex|lark|llguidance|grammar_options))(?![\w])|(?P<brace>[{}])'
)
"""Matches comments, strings and regular expressions, so that they are skipped; ``json``: a word after which a JSON
value or a grammar stands; ``brace``: a brace, to find the end of a grammar in braces.
"""
_INTRODUCES = re.compile("%(?:json|regex|lark|llguidance|grammar_options)")
_BLANKS = re.compile(r"[ \t\r\n]*")
_NO_ATTRIBUTES = Attributes()
_RANGE = re.compile("[A-Za-z]-[A-Za-z]")
"""A name that is rather meant as a range of characters."""
_NO_BREAK = re.compile(r"[^\n]")
_UNFINISHED = {
    '"': "this string does not end in its line",
    "/": "this regular expression does not end",
    "'": "strings are written with double quotes",
}


@dataclass
class File:
    """A text and its names. Errors in an imported text are reported at the import (``at``).

    ``schemas``: the values after each %json, by position. ``ignored``: what %ignore names; ``ignored_once``: at most
    one piece at each place; ``ignored_first``: also at the beginning of the text. ``declared``: the names in %declare
    of an imported text. ``importer``: the text that imports this one; ``given``: by imported name, the name of the
    definition in the importer.
    """

    text: str
    at: int | None = None
    schemas: dict[int, Any] = field(default_factory=dict)
    scope: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Any] = field(default_factory=list)
    ignored_once: bool = False
    ignored_first: bool = True
    libraries: dict[str, File] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    importer: File | None = None
    given: dict[str, str] = field(default_factory=dict)

    @cached_property
    def has_parameters(self) -> bool:
        """Whether parameters or conditions may occur in the text."""
        return "::" in self.text or "%if" in self.text

    def position(self, token: Token) -> int:
        """The position of a token in the main text; for a token of an imported file, the position of the import."""
        return token.start_pos if self.at is None else self.at


@dataclass
class Definition:
    """The definition of a rule or, if ``terminal``, of a terminal. ``bodies``: its alternatives, each with the file in
    which its names are looked up. ``attributes``: the part in brackets after its name. ``parameterized``: it has a
    parameter (``name::_``).
    """

    name: str
    bodies: list[tuple[Tree[Any], File]]
    params: list[str]
    position: int
    own: bool
    attributes: Attributes = field(default_factory=Attributes)
    parameterized: bool = False
    terminal: bool = False


class Source:
    """The main text with the texts that it imports, parsed. ``main``: its scope. ``blind``: the positions of terminals
    that ask about the text around them, which they do not see.
    """

    def __init__(self, text: str, deadline: Deadline, *, ignored_first: bool = True) -> None:
        self.text, self.deadline = text, deadline
        self.blind: set[int] = set()
        self.main = self.load(File(text, ignored_first=ignored_first), "")

    def fail(self, message: str, position: int, kind: type[PatternError] = PatternSyntaxError) -> NoReturn:
        """Raise the error for a position in the main text."""
        raise fault(message, self.text, position, kind)

    def load(self, file: File, library: str) -> File:
        """Read the definitions of a text into its scope: imports first, then all others in order."""
        text = self.take_schemas(file) if not library else file.text
        try:
            tree = parse(
                _NOTATION, text + "\n", _TOKENS, _UNFINISHED, deadline=self.deadline, late="expansions"
            )
        except PatternSyntaxError as error:
            raise PatternSyntaxError(
                error.message + mixed_name(text, error.position), text, error.position
            ) from None
        statements: list[Any] = list(tree.children)
        kinds = [kind_of(statement) for statement in statements]
        for kind, statement in zip(kinds, statements, strict=True):
            if kind == "import":
                self.load_import(statement, file, library)
        for kind, statement in zip(kinds, statements, strict=True):
            if kind in ("rule", "term"):
                self.define(statement, file, library)
            elif kind == "ignore":
                file.ignored += statement.children
            elif kind == "options":
                self.take_options(statement.children[0], file)
            elif kind == "declare" and library:
                file.declared |= {str(token) for token in statement.children[1:]}
            elif kind == "declare":
                message = "%declare needs a lexer of your own; give the terminal a pattern"
                self.fail(message, file.position(statement.children[0]), UnsupportedPatternError)
            elif kind in ("override", "extend"):
                self.redefine(kind, statement.children[0], file)
        return file

    def take_schemas(self, file: File) -> str:
        """The text with blanks in place of the JSON value after each %json, since no regular expression could find its
        end. The values are put into ``file.schemas``.
        """
        if not _INTRODUCES.search(file.text):
            return file.text
        pieces: list[str] = []
        copied = place = 0
        while match := _SCHEMA.search(file.text, place):
            place = match.end()
            if match["json"] is None:
                continue
            begin = place + len(_BLANKS.match(file.text, place)[0])  # type: ignore[index]
            if match["json"] == "%lark":
                end = self.end_of_grammar(file, begin)
                blanks = _NO_BREAK.sub(
                    " ", file.text[: begin + 1]
                )  # so that positions in it are positions in the text
                file.schemas[match.start()] = blanks + file.text[begin + 1 : end - 1]
                pieces += (file.text[copied:place], " " * (end - place))
                copied = place = end
                continue
            try:
                value, end = json.JSONDecoder().raw_decode(file.text, begin)
            except json.JSONDecodeError as error:
                what = "a JSON Schema" if match["json"] == "%json" else "a JSON object"
                self.fail(f"{match['json']} must be followed by {what}: {error.msg}", error.pos)
            except ValueError as error:  # a number of thousands of digits, which Python does not read
                self.fail(f"{error}", begin)
            except RecursionError:
                self.fail("this JSON Schema is nested too deeply", begin)
            file.schemas[match.start()] = value
            pieces += (file.text[copied:place], " " * (end - place))
            copied = place = end
        return "".join([*pieces, file.text[copied:]])

    def end_of_grammar(self, file: File, begin: int) -> int:
        """The end of the grammar in braces that follows %lark."""
        depth, place = 1, begin + 1
        while depth > 0:
            match = _SCHEMA.search(file.text, place) if file.text[begin : begin + 1] == "{" else None
            if match is None:
                self.fail("%lark needs a grammar in braces: the closing brace is missing", begin)
            place = match.end()
            if match["brace"] is not None:
                depth += 1 if match["brace"] == "{" else -1
        return place

    def take_options(self, token: Token, file: File) -> None:
        """Read options: ``skip_repetition``, ``allow_initial_skip``, and those that do not change the texts."""
        given, position, name = file.schemas[token.start_pos], file.position(token), str(token)
        if not isinstance(given, dict):
            self.fail(f"{name} needs a JSON object of options", position)
        for option, value in given.items():
            if option == "skip_repetition":
                if value not in ("once", "repeat"):
                    self.fail(f"{name}: skip_repetition must be 'once' or 'repeat', not {value!r}", position)
                file.ignored_once = value == "once"
            elif option == "allow_initial_skip" and isinstance(value, bool):
                file.ignored_first = value
            elif option != "no_forcing" and (option, value) != ("allow_invalid_utf8", False):
                message = f"{name}: the option {option!r} of {value!r} has no meaning here; leave it out"
                self.fail(message, position, UnsupportedPatternError)

    def define(self, statement: Any, file: File, library: str) -> None:
        """Add the definition of a rule or a terminal."""
        token, *between, body = statement.children
        params, attributes, parameter = [], _NO_ATTRIBUTES, False
        if between:
            params = _parameters(between)
            attributes, parameter = self.attributes(statement, file), self.parameter(statement, file)
        if token in file.scope:
            line = self.text.count("\n", 0, file.scope[token].position) + 1
            self.fail(f"{str(token)!r} is defined twice, first in line {line}", file.position(token))
        if doubled := [name for k, name in enumerate(params) if name in params[:k]]:
            self.fail(f"the parameter {str(doubled[0])!r} is listed twice", file.position(doubled[0]))
        name = f"{library}.{token}" if library else str(token)
        names = [str(name) for name in params]
        file.scope[str(token)] = Definition(
            name,
            [(body, file)],
            names,
            file.position(token),
            not library,
            attributes,
            parameter,
            is_terminal(token),
        )

    def parameter(self, statement: Any, file: File) -> bool:
        """Whether a rule has a parameter: ``::_`` after its name."""
        found = [part.children[0] for part in statement.children if kind_of_or_none(part) == "parameter"]
        if found and str(found[0])[len("::") :].strip() != "_":
            self.fail(
                "the definition of a rule with a parameter has ::_ after its name", file.position(found[0])
            )
        return bool(found)

    def attributes(self, statement: Any, file: File) -> Attributes:
        """The attributes in brackets after a rule's name."""
        trees = [part for part in statement.children if kind_of_or_none(part) == "attributes"]
        return read_attributes(statement.children[0], trees[0] if trees else None, file.position, self.fail)

    def redefine(self, kind: str, statement: Any, file: File) -> None:
        """Apply an ``%extend`` or ``%override``."""
        token, *between, body = statement.children
        definition = self.look_up(token, file)
        names = [str(name) for name in _parameters(between)]
        if kind == "override":
            own, attributes = definition.own, self.attributes(statement, file)
            place, parameter = file.position(token), self.parameter(statement, file)
            definition = Definition(
                definition.name, [], names, place, own, attributes, parameter, definition.terminal
            )
            file.scope[str(token)] = definition
        elif self.attributes(statement, file) != _NO_ATTRIBUTES:
            message = (
                "%extend adds alternatives, and attributes are those of the whole rule: write them where "
            )
            self.fail(f"{message}{str(token)!r} is defined, or use %override", file.position(token))
        elif definition.params != names or definition.parameterized != self.parameter(statement, file):
            self.fail(f"{str(token)!r} is defined with different parameters", file.position(token))
        definition.bodies.append((body, file))

    def load_import(self, statement: Any, file: File, importing: str) -> None:
        """Apply an ``%import``."""
        token, path, *rest = statement.children
        position = file.position(token)
        names = [str(name) for name in path.children if not hasattr(name, "children")]
        relative = len(names) < len(path.children)
        wanted = [str(name) for name in rest[0].children] if rest else []
        if rest and kind_of(rest[0]) == "names":
            imported = dict(zip(wanted, wanted, strict=True))
        else:
            last = names.pop()
            imported = {last: wanted[0] if wanted else last}
        library = ".".join(names)
        if not names:
            self.fail("%import names a library only: write %import library.NAME", position)
        if relative or len(names) > 1 or not self.ships(library):
            message = f"unknown library {library!r}: only the grammars that lark ships can be imported"
            self.fail(message, position, UnsupportedPatternError)
        imports = file.libraries.get(library)
        if imports is None:
            shipped = importlib.resources.files("lark").joinpath("grammars", f"{library}.lark")
            place = position if file.at is None else file.at
            imports = file.libraries[library] = File(shipped.read_text("utf-8"), place, importer=file)
            self.load(imports, f"{importing}.{library}" if importing else library)
        for name, alias in imported.items():
            definition = imports.scope.get(name)
            if definition is None:
                near = near_to(name, imports.scope)
                self.fail(f"the grammar {library!r} does not define {name!r}{near}", position)
            if alias in file.scope and imports.given.get(name) == alias:
                continue  # the same import again
            if alias in file.scope:
                self.fail(f"{alias!r} is defined twice", position)
            if is_terminal(alias) != is_terminal(name):
                self.fail(f"{name!r} and {alias!r} must both be rules or both be terminals", position)
            if name in imports.given:
                self.fail(
                    f"{name!r} is imported twice, as {imports.given[name]!r} and as {alias!r}", position
                )
            if file.at is None:
                definition.name = alias
            imports.given[name] = alias
            file.scope[alias] = definition

    def ships(self, library: str) -> bool:
        """Whether lark has a library of this name."""
        return (
            re.fullmatch(r"[a-z_]+", library) is not None
            and importlib.resources.files("lark").joinpath("grammars", f"{library}.lark").is_file()
        )

    def look_up(self, token: Token, file: File, *, in_terminal: bool = False) -> Definition:
        """The definition of a name that a rule of a file uses, or a terminal."""
        name, scope = str(token), file
        while not in_terminal and scope.importer is not None and name in scope.given:
            name, scope = scope.given[name], scope.importer
        definition = scope.scope.get(name)
        if definition is None:
            what = "terminal" if is_terminal(token) else "rule"
            if name in scope.declared:
                message = (
                    f"{str(token)!r} is made by a program's own lexer (%declare), and no grammar says where"
                )
                self.fail(message, file.position(token), UnsupportedPatternError)
            near = (
                f"; a class of characters is a regular expression, /[{token}]/"
                if _RANGE.fullmatch(token)
                else near_to(str(token), scope.scope)
            )
            self.fail(f"the {what} {str(token)!r} is not defined{near}", file.position(token))
        return definition

    def check_names(self, definition: Definition) -> None:
        """Check that the names that a rule uses are defined, without reading what they mean."""
        for tree, file in definition.bodies:
            for part in tree.iter_subtrees():
                tokens = [each for each in part.children if isinstance(each, Token)]
                for token in tokens if kind_of(part) != "alias" else ():
                    if token.type in ("RULE", "TERMINAL") and token not in definition.params:
                        self.look_up(token, file)


def _parameters(between: list[Any]) -> list[Token]:
    """The names of parameters among what stands between the name and the body of a rule or terminal."""
    return [token for part in between if kind_of(part) == "params" for token in part.children]


def kind_of(tree: Any) -> str:
    """The kind of a node of the tree."""
    return str(tree.data)


def kind_of_or_none(part: Any) -> str | None:
    """The kind of a node of the tree; None for a token."""
    return None if isinstance(part, Token) else kind_of(part)


def only_terminal(tree: Any) -> Token | None:
    """The name of a terminal, if the alternatives of a tree are nothing else."""
    parts = tree.children[0].children
    is_name = len(tree.children) == 1 and len(parts) == 1 and getattr(parts[0], "type", "") == "TERMINAL"
    return parts[0] if is_name else None


def is_terminal(name: str) -> bool:
    """Whether a name is that of a terminal: those are in capitals."""
    return name.lstrip("_")[:1].isupper()
