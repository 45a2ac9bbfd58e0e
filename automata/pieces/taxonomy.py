"""Taxonomies: one label of a set, several different labels, or a path through a hierarchy.

The labels become a minimal acyclic automaton (native/words/acyclic.hpp; Daciuk et al. 2000) that the engine walks
directly: a sparse table that is never determinized, copied or expanded, however many labels there are. Each state has
the number of words below it, so a path identifies a range of labels in byte order. ``multi_choice`` uses this: its
states are (state, position, labels used), created when they are first reached, and one binary search decides whether a
path still leads to an unused label. So "no label twice" is exact, and the cost is proportional to the states visited.

Invariant: the text before a separator is one label. A label is rejected if it contains the separator, or ends with a
prefix of the separator such that a separator could start inside it. So ``text.split(separator)`` recovers the labels.

Rejected: a union of literals (a derivative of 100,000 of them is sorted at every step); dense tables of a minimal
automaton (states times byte classes). For ``unique``: an automaton of sets (2^n states), and masks that forbid the
first token of a used label (they also forbid another label that begins with this token, and allow the used label with
another tokenization).

Cost: sorting, then linear in the total length of the labels; 9 bytes for each arc and 13 for each state of the minimal
automaton.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from tokenfst._native import Lexicon
from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode, refuse_large
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but, shown
from tokenfst.common.plurals import counted
from tokenfst.errors import ArgumentTypeError, BudgetExceeded, ConstraintError, LabelError

Label: TypeAlias = str | bytes
LeadingSpace: TypeAlias = Literal["none", "optional", "required"]
Tree: TypeAlias = "Mapping[str, Tree] | Iterable[str | Mapping[str, Tree]] | None"
"""A hierarchy: a mapping from names to the trees below them; or the names of one level, some of which may be such
mappings; or None, which is the empty tree.
"""


@checked_but("labels")
def choices(
    labels: Iterable[Label], *, leading_space: LeadingSpace = "none", budget: Budget | None = None
) -> Language:
    """Exactly one of ``labels`` (text in UTF-8).

    ``leading_space``: whether one space precedes the label, as it does where a text continues after a word: ``"none"``,
    ``"optional"`` or ``"required"``. Linear in the total length, after sorting. Raises LabelError for an empty or
    repeated label and one with a lone surrogate, ConstraintError if there are no labels, BudgetExceeded.
    """
    lexicon = _lexicon(labels, Deadline(budget or Budget(), "the labels"))
    source = f"choices of {counted(len(lexicon), 'label')}"
    return Language(_after_space(expression.words(lexicon), leading_space), source, budget)


@checked_but("labels", "separator")
def multi_choice(
    labels: Iterable[Label],
    separator: Label = ", ",
    *,
    min: int = 1,
    max: int | None = None,
    unique: bool = True,
    leading_space: LeadingSpace = "none",
    budget: Budget | None = None,
) -> Language:
    """``min`` to ``max`` of ``labels``, separated by ``separator``.

    With ``unique`` no label occurs twice. ``max=None``: with ``unique`` the number of labels, otherwise no bound.
    States are created when they are reached. They contain the set of used labels, so ``expand()``, and queries that
    visit all states, are practical for small sets only. Raises the errors of ``choices``; LabelError for a label that
    contains the separator, or ends with a prefix of it such that the text could be split in two ways; ConstraintError
    for an empty separator and for bounds that no selection satisfies.
    """
    deadline = Deadline(budget or Budget(), "the labels")
    lexicon = _lexicon(labels, deadline)
    between = _encoded(separator, "the separator")
    if not between:
        raise ConstraintError("the separator is empty: there would be no telling where a label ends")
    most = len(lexicon) if unique and (max is None or max > len(lexicon)) else max
    if min < 0 or (most is not None and not min <= most):
        wanted = f"{min} or more" if max is None else f"{min} to {max}"
        raise ConstraintError(
            f"there is no selection of {wanted} of {counted(len(lexicon), 'label')}: the least number is from 0 "
            "to the largest, "
            "and to the number of labels where none may be used twice"
        )
    refuse_large("multi_choice", min=min, max=most)
    if most == 0:
        raise ConstraintError("a selection of no label at all has nothing to choose: let max be 1 or more")
    for word in lexicon.words():
        deadline.tick()
        _check_separable(word, between)
    label, gap = expression.words(lexicon), expression.literal(between)
    low = 1 if min == 0 else min
    source = f"multi_choice of {min} to {max} of {counted(len(lexicon), 'label')}"
    if most == 1:
        chosen = label
    elif unique:
        chosen = expression.selection(lexicon, gap, low, most, source)
    else:
        more = expression.concat(gap, label)
        chosen = expression.concat(
            label, expression.repeat(more, low - 1, None if most is None else most - 1, source)
        )
    chosen = _after_space(chosen, leading_space)
    return Language(expression.optional(chosen) if min == 0 else chosen, source, budget)


@checked_but("tree")
def hierarchy(
    tree: Tree,
    separator: str = " > ",
    *,
    leaf_only: bool = False,
    leading_space: LeadingSpace = "none",
    budget: Budget | None = None,
) -> Language:
    """A path from the top of ``tree``: names joined by ``separator``, down to any node, or with ``leaf_only`` to a
    leaf.

    ``hierarchy({"animal": {"dog": ["poodle"]}, "plant": None})`` contains ``animal``, ``animal > dog``, ``animal > dog
    > poodle`` and ``plant``. Raises the errors of ``hierarchy_labels`` and ``choices``.
    """
    deadline = Deadline(budget or Budget(), "a hierarchy")
    paths = _paths(tree, separator, leaf_only, deadline)
    lexicon = _lexicon(paths, deadline)
    source = f"hierarchy of {counted(len(lexicon), 'path')}"
    return Language(_after_space(expression.words(lexicon), leading_space), source, budget)


@checked_but("tree")
def hierarchy_labels(
    tree: Tree, separator: str = " > ", *, leaf_only: bool = False, budget: Budget | None = None
) -> list[str]:
    """The paths of ``hierarchy`` as a list, for ``multi_choice`` and for interpreting results. Parents precede their
    children.

    Linear in the output. Raises LabelError for an empty name, a name that occurs twice below one parent, and a name
    that contains the separator; ConstraintError for an empty separator, for a tree of other types and for a tree that
    contains itself; BudgetExceeded if there are more names than ``budget.positions``, or if the paths exceed
    ``budget.bytes``.
    """
    return _paths(tree, separator, leaf_only, Deadline(budget or Budget(), "a hierarchy"))


def _paths(tree: Tree, separator: str, leaf_only: bool, deadline: Deadline) -> list[str]:
    between = _encoded(separator, "the separator")
    if not between:
        raise ConstraintError("the separator is empty: there would be no telling where a name ends")
    if tree is None:
        raise ConstraintError("tree must be a mapping of names, or names, not None: there is nothing to name")
    limits = deadline.budget
    found: list[str] = []
    seen = held = 0
    levels: list[Iterator[tuple[str, str, Tree]]] = [_level("", tree, separator)]
    above = [id(tree)]
    while levels:
        deadline.tick(4)
        step = next(levels[-1], None)
        if step is None:
            levels.pop()
            above.pop()
            continue
        path, name, below = step
        _check_separable(_encoded(name, "the name"), between)
        seen, held = seen + 1, held + len(path)
        if seen > limits.positions or held > limits.bytes:
            resource, limit = (
                ("positions", limits.positions) if seen > limits.positions else ("bytes", limits.bytes)
            )
            raise BudgetExceeded(resource, limit, "a hierarchy (does a part of it hold itself?)")
        if below is not None and not isinstance(below, Sequence | Mapping):
            below = list(below) if isinstance(below, Iterable) else below
        below = None if _names_nothing(below) else below
        if not (leaf_only and below):
            found.append(path)
        if below:
            if id(below) in above:
                raise ConstraintError(
                    f"what is below {_shown(path.encode())} holds itself: paths would never end"
                )
            levels.append(_level(path, below, separator))
            above.append(id(below))
    return found


def _level(parent: str, tree: Tree, separator: str) -> Iterator[tuple[str, str, Tree]]:
    """The names directly below ``parent``: path, name, and the tree below it."""
    names: set[str] = set()
    for part in (tree,) if isinstance(tree, Mapping) else _parts(parent, tree):
        for name, below in part.items() if isinstance(part, Mapping) else ((part, None),):
            if not isinstance(name, str):
                raise ConstraintError(f"names must be text, not {type(name).__name__} (below {parent!r})")
            path = f"{parent}{separator}{name}" if parent else name
            if not name:
                raise LabelError("", f"there is an empty name below {parent!r}")
            if name in names:
                raise LabelError(path, f"{path!r} occurs twice in the hierarchy")
            names.add(name)
            yield path, name, below


def _names_nothing(tree: Tree) -> bool:
    """Whether a tree is empty: it is nothing, or a sequence of empty mappings."""
    if not isinstance(tree, Sequence) or isinstance(tree, str):
        return not tree
    return all(isinstance(part, Mapping) and not part for part in tree)


def _parts(parent: str, tree: Tree) -> Iterable[object]:
    if tree is None:
        return ()
    if isinstance(tree, str | bytes) or not isinstance(tree, Iterable):
        raise ConstraintError(
            f"what is below a name must be a mapping, a list or None, not {type(tree).__name__} (below {parent!r})"
        )
    return tree


def _lexicon(labels: Iterable[Label], deadline: Deadline) -> Lexicon:
    if isinstance(labels, str | bytes):
        raise ConstraintError(
            f"labels must be several texts, not one {type(labels).__name__}: put it in a list"
        )
    if not isinstance(labels, Iterable):
        raise ArgumentTypeError(f"labels must be several texts, not {shown(labels)}")
    encoded: list[bytes] = []
    for label in labels:
        deadline.tick()
        encoded.append(_encoded(label, "the label"))
    if not encoded:
        raise ConstraintError("there are no labels to choose from")
    if not all(encoded):
        raise LabelError("", f"label {encoded.index(b'') + 1} of {len(encoded):,} is empty")
    with deadline.part() as limits:
        lexicon = Lexicon(encoded, limits.bytes, limits.seconds)
    if len(lexicon) < len(encoded):
        word, times = Counter(encoded).most_common(1)[0]
        raise LabelError(word, f"the label {_shown(word)} occurs {times} times; choose each once")
    return lexicon


def _encoded(label: Label, what: str) -> bytes:
    if not isinstance(label, str | bytes):
        raise ConstraintError(f"{what} must be text or bytes, not {type(label).__name__}: {label!r}")
    data = encode(label)
    if data is None:
        raise LabelError(label, f"{what} {label!r} contains a lone surrogate, which UTF-8 cannot encode")
    return data


def _check_separable(label: bytes, separator: bytes) -> None:
    if (label + separator).find(separator) < len(label):
        raise LabelError(
            label,
            f"the label {_shown(label)} holds the separator {_shown(separator)}, or ends in its beginning: the text "
            "could be cut in two ways. Choose another separator",
        )


def _shown(word: bytes) -> str:
    return repr(word.decode("utf-8", "backslashreplace"))


def _after_space(label: Expr, leading_space: LeadingSpace) -> Expr:
    space = expression.literal(b" ")
    match leading_space:
        case "none":
            return label
        case "optional":
            return expression.concat(expression.optional(space), label)
        case "required":
            return expression.concat(space, label)
    raise ConstraintError(
        f"leading_space must be one of 'none', 'optional', 'required', not {leading_space!r}"
    )
