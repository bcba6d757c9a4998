"""Sources of tests that are compiled together name things apart.

A batch is one translation unit: a function of one source becomes an overload of another source's, and a call may go to
it without a word. So no two sources of a target have a function, type or constant of one name in anonymous namespaces
(or `static`) of one namespace, and no source has one that is named like something in a header that only other sources
of the target include. A namespace of its own keeps the names of a source apart from all others. The rule holds for a
whole target and not for one batch, since where a batch ends changes with each source that is added.
"""

import posixpath
import re
from pathlib import Path

from .sizes import blank_literals
from .tree import Problem, includes

_COMMENT = re.compile(r"#[^\n]*")
_ALONE = re.compile(r"\bset_source_files_properties\(([^()]*)\bPROPERTIES[^()]*\bSKIP_UNITY_BUILD_INCLUSION ON")
_CALL = re.compile(r"\btroupe_tests\(([^()]*)\)")
_KEYWORD = re.compile(r"[A-Z][A-Z_]+$")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\b\s*([\w:]*)\s*$")
_TYPE = re.compile(r"^(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(\w+)\s*(?:final\b|:|$)")
_ALIAS = re.compile(r"^using\s+(\w+)\s*=")
# What has parentheses before the name of a function, or none of its own.
_SPECIFIERS = re.compile(r"\b(?:decltype|alignas|noexcept|requires|explicit)\s*\([^()]*\)|\[\[[^\]]*\]\]")
_FUNCTION = re.compile(r"(?:^|[\s*&>])(\w+)\s*\(")
_VARIABLE = re.compile(r"[\s*&>](\w+)\s*(?:\[[^\]]*\]\s*)*$")


def _without_template_arguments(text):
    kept, depth = [], 0
    for position, character in enumerate(text):
        if character == "<":
            depth += 1
        elif character == ">" and text[position - 1] != "-":
            depth = max(0, depth - 1)
            kept.append(" ")
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def _declared(head, is_body):
    """The name that `head` declares, what stands before the brace or semicolon of a declaration; None: it declares none."""
    if alias := _ALIAS.match(head):
        return alias.group(1)
    if re.match(r"(?:using|friend|extern|typedef|static_assert|namespace)\b", head):
        return None
    plain = re.sub(r"^\s*template\b\s*", "", _without_template_arguments(_SPECIFIERS.sub(" ", head))).strip()
    if re.match(r"(?:struct|class|union|enum)\b", plain):
        found = _TYPE.match(plain) if is_body else None
        return found.group(1) if found else None
    left = plain.split("=")[0].rstrip()
    if "operator" in left:
        return None
    if "(" in left:
        found = _FUNCTION.search(left)
        return found.group(1) if found and left.find("(") == found.end() - 1 and not _KEYWORD.match(found.group(1)) else None
    found = _VARIABLE.search(left)
    return found.group(1) if found else None


def declarations(text):
    """(namespace, name, line, whether no other translation unit sees it) of what a file declares outside types and functions."""
    code = _DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), blank_literals(text))
    found, stack, start = [], [], 0
    depth, parentheses = 0, 0  # depth: of braces that are no namespace's

    def add(end, is_body):
        head = code[start:end].strip()
        name = _declared(head, is_body) if head else None
        if name:
            line = code.count("\n", 0, end - len(code[start:end].lstrip())) + 1
            is_local = "" in stack or re.match(r"(?:template\s*<.*>\s*)?(?:inline\s+)?static\b", head) is not None
            found.append(("::".join(part for part in stack if part), name, line, is_local))

    for mark in re.finditer(r"[{}();]", code):
        if mark.group() in "()":
            parentheses += 0 if depth else {"(": 1, ")": -1}[mark.group()]
            continue
        if parentheses:  # a default argument may have braces
            continue
        if depth:
            depth += {"{": 1, "}": -1, ";": 0}[mark.group()]
        elif mark.group() == "{":
            head = code[start:mark.start()].strip()
            if namespace := _NAMESPACE.match(head):
                stack.append(namespace.group(1))
            else:
                add(mark.start(), True)
                depth = 1
        elif mark.group() == "}":
            if stack:
                stack.pop()
        else:
            add(mark.start(), False)
        start = mark.end()
    return found


def _targets(tree):
    """(folder, name, sources) of each target of tests, without the sources that are compiled one by one."""
    for path in tree.files:
        if path.name != "CMakeLists.txt" or path.parts[0] != "tests":
            continue
        text = _COMMENT.sub("", tree.text(path))
        alone = {word for listed in _ALONE.findall(text) for word in listed.split()}
        for call in _CALL.findall(text):
            words = call.split()
            name = words[words.index("NAME") + 1] if "NAME" in words else words[0]
            listed = [Path(posixpath.normpath(path.parent / word)) for word in words if word.endswith(".cpp") and word not in alone]
            yield path.parent, name, [source for source in listed if source in set(tree.files)]


class _Files:
    def __init__(self, tree):
        self.tree = tree
        self.known = set(tree.files)
        self.declared = {}
        self.included = {}

    def declarations(self, path):
        if path not in self.declared:
            self.declared[path] = declarations(self.tree.text(path))
        return self.declared[path]

    def headers(self, path, folder, seen=None):
        """The headers of tests that a file includes, also through others."""
        seen = set() if seen is None else seen
        if path not in self.included:
            self.included[path] = [name for _, mark, name in includes(self.tree.text(path)) if mark == '"']
        for name in self.included[path]:
            for start in (path.parent, folder, Path("tests/support"), Path("tests")):
                header = Path(posixpath.normpath(start / name))
                if header in self.known:
                    if header not in seen:
                        seen.add(header)
                        self.headers(header, folder, seen)
                    break
        return seen


def check(tree):
    files = _Files(tree)
    problems = {}
    for folder, target, sources in _targets(tree):
        headers = {source: files.headers(source, folder) for source in sources}
        in_headers = {}
        for header in sorted(set().union(*headers.values())):
            for namespace, name, _, _ in files.declarations(header):
                in_headers.setdefault(name, set()).add((header, namespace))
        seen = {}
        for source in sources:
            for namespace, name, line, is_local in files.declarations(source):
                if not is_local:
                    continue
                first = seen.setdefault((namespace, name), source)
                others = [header for header, its in sorted(in_headers.get(name, ()))
                          if header not in headers[source] and namespace in ("", its)]
                if first != source or others:
                    other = first if first != source else others[0]
                    problem = Problem(source, line, f"{name} is also in {other}, and test_{target} compiles both together: "
                                                    "rename or share it, or give the source a namespace of its own")
                    problems.setdefault((source, name), problem)
    return [problems[key] for key in sorted(problems)]
