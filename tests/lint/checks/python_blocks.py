"""Each block of Python in a page parses, and uses the package `troupe` as python/troupe has it: names, and keywords of calls."""

import ast
import textwrap
from pathlib import Path

from .snippets import blocks
from .tree import Problem

PACKAGE = Path("python/troupe")


def _parameters(function):
    """None where it takes any keyword."""
    arguments = function.args
    if arguments.kwarg:
        return None
    return {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}


def _keywords_of_class(definition):
    """Of its constructor, or of the fields of a dataclass."""
    for part in definition.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _parameters(part)
    return {part.target.id for part in definition.body if isinstance(part, ast.AnnAssign)}


def exports(tree):
    """name -> the keywords that a call of it may have, None for any, of each name in __all__."""
    initial = ast.parse(tree.text(PACKAGE / "__init__.py"))
    names = set()
    for part in initial.body:
        if isinstance(part, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "__all__" for target in part.targets):
            names = set(ast.literal_eval(part.value))
    found = dict.fromkeys(names)
    for path in tree.files:
        if path.parent != PACKAGE or path.suffix != ".py":
            continue
        for part in ast.parse(tree.text(path)).body:
            if getattr(part, "name", None) not in names:
                continue
            found[part.name] = _keywords_of_class(part) if isinstance(part, ast.ClassDef) else _parameters(part)
    return found


def _used_name(node, imported):
    """The name of the package that an expression is, or None."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "troupe":
        return node.attr
    return node.id if isinstance(node, ast.Name) and node.id in imported else None


def problems_of(code, known):
    """What is wrong with a block."""
    try:
        parsed = ast.parse(textwrap.dedent(code))
    except SyntaxError as error:
        return [f"the block is no Python: {error.msg}"]
    nodes = list(ast.walk(parsed))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "troupe" for alias in node.names}
    used = imported | {name for node in nodes if (name := _used_name(node, imported))}
    problems = [f"the package troupe has no {name}" for name in sorted(used - set(known))]
    for node in nodes:
        name = _used_name(node.func, imported) if isinstance(node, ast.Call) else None
        if known.get(name) is None:
            continue
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in known[name]:
                problems.append(f"{name} of the package troupe has no parameter {keyword.arg}")
    return problems


def check(tree):
    if PACKAGE / "__init__.py" not in tree.files:
        return []
    known = exports(tree)
    return [Problem(page, line, problem) for page in tree.files if page.suffix == ".md"
            for line, _, language, code in blocks(tree.text(page)) if language == "python" for problem in problems_of(code, known)]
