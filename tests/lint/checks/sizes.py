"""A file is at most 800 lines, a function (a TEST_CASE too) at most 60: past that it has found its second job."""

import re

from .tree import Problem

FILE_LINES = 800
FUNCTION_LINES = 60

_LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
# What stands before the brace of a body: parameters, then qualifiers, a trailing return type or member initialisers.
_BODY = re.compile(
    r"\)\s*(?:const|noexcept(?:\([^()]*\))?|override|final|mutable|&{1,2}|try|->\s*[\w:<>,&*\s]+|\s)*$|"
    r"\)\s*(?:noexcept\s*)?:[^;?]*[)}]\s*$")
# A brace that belongs to a member initialiser: "A(int x) : x_{x} {".
_INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:[^;?]*[\w>]\s*$")
_CONTROL = re.compile(r"(?:^|[^\w])(?:if|for|while|switch|catch|if\s+constexpr)\s*$")


def blank_literals(text):
    """Comments and literals replaced by blanks, so that braces in them do not count. Lines stay where they are."""
    return _LITERALS.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def _opening_parenthesis(text, closing):
    depth = 0
    for position in range(closing, -1, -1):
        if text[position] == ")":
            depth += 1
        elif text[position] == "(":
            depth -= 1
            if depth == 0:
                return position
    return 0


def _opens_function(head):
    """Whether `head`, the text between the last ; { or } and a brace, is that of a function or a lambda."""
    if not _BODY.search(head):
        return False
    return not _CONTROL.search(head[:_opening_parenthesis(head, head.rfind(")"))])


def functions(text):
    """(first line, number of lines) of each outermost function body."""
    code = blank_literals(text)
    found, stack, head_start, line = [], [], 0, 1
    for position, character in enumerate(code):
        if character == "\n":
            line += 1
        elif character == "{":
            head = code[head_start:position]
            inside = any(is_function for is_function, _, _ in stack)
            is_function = not inside and _opens_function(head)
            is_initialiser = not inside and not is_function and _INITIALISER.search(head) is not None
            first = line - head.lstrip().count("\n")
            stack.append((is_function, first, is_initialiser))
            if not is_initialiser:
                head_start = position + 1
        elif character == "}":
            is_function, first, is_initialiser = stack.pop() if stack else (False, 0, False)
            if is_function:
                found.append((first, line - first + 1))
            if not is_initialiser:
                head_start = position + 1
        elif character == ";":
            head_start = position + 1
    return found


def check(tree):
    problems = []
    for path in tree.cpp_files():
        text = tree.text(path)
        count = text.count("\n")
        if count > FILE_LINES:
            problems.append(Problem(path, 0, f"{count} lines, at most {FILE_LINES}"))
        for first, lines in functions(text):
            if lines > FUNCTION_LINES:
                problems.append(Problem(path, first, f"a function of {lines} lines, at most {FUNCTION_LINES}"))
    return problems
