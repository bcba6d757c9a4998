#!/usr/bin/env python3
"""Each check passes what is right and finds what is wrong."""

import json
import shutil
import tempfile
import unittest
from pathlib import Path

from checks import arrows, batches, floors, headers, layout, links, promises, python_blocks, sizes, snippets, words
from checks.tree import Tree

REPOSITORY = Path(__file__).resolve().parents[2]


class LintTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="troupe-lint-"))
        self.addCleanup(shutil.rmtree, self.root)

    def tree(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(self.root, tuple(sorted(Path(name) for name in files)))

    def assert_problems(self, problems, *expected):
        texts = [str(problem) for problem in problems]
        self.assertEqual(len(texts), len(expected), texts)
        for text, part in zip(texts, expected):
            self.assertIn(part, text)


class Promises(LintTest):
    def test_a_promise_names_a_test_that_is_there(self):
        self.assert_problems(promises.check(self.tree({
            "docs/promises.md": "# What\n* It holds. Test: \"it holds\".\n* So does this. Tests: \"it holds\", \"two\n  lines\".\n",
            "tests/a_test.cpp": "TEST_CASE(\"it holds\", \"[a]\") {}\nTEST_CASE(\"two \"\n          \"lines\", \"[a]\") {}\n",
        })))

    def test_a_test_that_is_not_there_and_a_promise_without_one_are_found(self):
        self.assert_problems(
            promises.check(self.tree({
                "docs/promises.md": "* It holds. Test: \"it held\".\n* Nobody shows this.\n",
                "tests/a_test.cpp": "TEST_CASE(\"it holds\", \"[a]\") {}\n",
            })),
            "there is no test \"it held\"", "names no test: * Nobody shows this.")

    def test_another_page_names_tests_that_are_there_and_need_not_name_one(self):
        self.assert_problems(
            promises.check(self.tree({
                "docs/debugging.md": "* It holds. Test: \"it holds\".\n* A step.\n\nTwo hold. Tests: \"it holds\", \"it\nheld\".\n",
                "tests/a_test.cpp": "TEST_CASE(\"it holds\", \"[a]\") {}\n",
            })),
            "docs/debugging.md: there is no test \"it held\"")


class Snippets(LintTest):
    SOURCE = "int main() {\n  // [one]\n  int a = 1;\n  // [inner]\n  if (a) a = 2;\n  // [/inner]\n  // [/one]\n}\n// [two]\nint b;\n// [/two]\n"
    CMAKE = "add_executable(program a.cpp)\n"

    def problems(self, page):
        return snippets.check(self.tree({"docs/a.md": page, "x/a.cpp": self.SOURCE, "x/CMakeLists.txt": self.CMAKE}))

    def test_a_block_is_a_region_several_or_the_file_or_says_why_it_is_none(self):
        self.assert_problems(self.problems(
            "# A\n\n<!-- from x/a.cpp: one -->\n```cpp\nint a = 1;\nif (a) a = 2;\n```\n"
            "<!-- from x/a.cpp: inner, two -->\n```cpp\nif (a) a = 2;\n\nint b;\n```\n"
            f"<!-- from x/a.cpp -->\n```cpp\n{self.SOURCE}```\n<!-- plain: it must not compile -->\n```cpp\nint* a;\n```\n"
            "```\nno code\n```\n```sh\nls\n```\n"))

    def test_a_block_that_differs_or_comes_from_nowhere_is_found(self):
        self.assert_problems(
            self.problems("```cpp\nint a;\n```\n<!-- from x/a.cpp: one -->\n```cpp\nint a = 2;\n```\n"
                          "<!-- from x/b.cpp: one -->\n```cpp\nint a = 2;\n```\n<!-- from x/a.cpp: three -->\n```cpp\nint a;\n```\n"
                          "<!-- from x/a.cpp -->\n```cpp\nint a;\n```\n<!-- plain: -->\n```cmake\nproject(a)\n```\n"),
            "docs/a.md:1: a block of code needs a line above", "docs/a.md:5: the block is not what x/a.cpp has in one",
            "docs/a.md:9: there is no file x/b.cpp", "docs/a.md:13: x/a.cpp has not one region [three]",
            "docs/a.md:17: the block is not the text of x/a.cpp", "docs/a.md:21: a block of code needs a line above")

    def test_a_file_that_nothing_builds_is_found(self):
        self.assert_problems(
            snippets.check(self.tree({"README.md": "<!-- from x/a.cpp: two -->\n```cpp\nint b;\n```\n", "x/a.cpp": self.SOURCE})),
            "README.md:2: no CMakeLists.txt builds x/a.cpp")


class Links(LintTest):
    PAGES = {
        "README.md": "# A program\n## What it does, and why\n## Twice\n## Twice\n",
        "docs/a.md": "# A\n[the page](../README.md) [its part](../README.md#what-it-does-and-why) [the second](../README.md#twice-1)\n"
                     "[here](#a) [a folder](../x) [a source](../x/a.cpp) [elsewhere](https://example.org/a)\n"
                     "`[](int x)` is code, and so is:\n```cpp\nauto f = [](Missing x) {};\n```\n",
        "x/a.cpp": "",
    }

    def test_links_to_files_folders_and_headings_are_allowed_and_code_is_no_link(self):
        self.assert_problems(links.check(self.tree(self.PAGES)))

    def test_links_that_lead_nowhere_are_found(self):
        page = "# B\n\n[gone](../x/b.cpp)\n[outside](../../b.md) [no part](a.md#b)\n[nor here](#a)\n[twice](../README.md#twice-2)\n"
        self.assert_problems(
            links.check(self.tree({**self.PAGES, "docs/b.md": page})),
            "docs/b.md:3: the link leads to x/b.cpp, which is not there", "docs/b.md:4: the link leads to ../b.md, which is not there",
            "docs/b.md:4: the link leads to #b, and docs/a.md has no such heading",
            "docs/b.md:5: the link leads to #a, and docs/b.md has no such heading",
            "docs/b.md:6: the link leads to #twice-2, and README.md has no such heading")


class PythonBlocks(LintTest):
    PACKAGE = {
        "python/troupe/__init__.py": "from ._a import Options, Runner, report\n__all__ = [\"Options\", \"Runner\", \"report\"]\n",
        "python/troupe/_a.py": "class Options:\n    env: dict\n\n\nclass Runner:\n    def __init__(self, size=1, *, options=None):\n        pass\n\n\n"
                               "def report(metrics=None, **more):\n    pass\n",
    }

    def problems(self, code):
        page = f"# A\n```python\n{code}```\n```cpp\nint a;\n```\n"
        return python_blocks.check(self.tree({**self.PACKAGE, "python/README.md": page}))

    def test_a_block_that_uses_the_package_as_it_is_is_allowed(self):
        self.assert_problems(self.problems(
            "import troupe\nfrom troupe import Runner as R, Runner\nRunner(size=2, options=troupe.Options(env={})).run(loud=True)\n"
            "troupe.report(loss=1)\ndef train():\n    ...\n"))

    def test_names_and_parameters_that_the_package_lacks_and_what_is_no_python_are_found(self):
        self.assert_problems(self.problems("def train(:\n"), "python/README.md:2: the block is no Python")
        self.assert_problems(
            self.problems("import troupe\nfrom troupe import Walker, Runner\ntroupe.tell()\nRunner(ranks=2)\ntroupe.Options(envs={})\n"),
            "has no Walker", "has no tell", "Runner of the package troupe has no parameter ranks", "has no parameter envs")


class Arrows(LintTest):
    def test_down_is_allowed(self):
        self.assert_problems(arrows.check(self.tree({
            "runtime/src/head/head.hpp": "#include <troupe/scheduler/state.hpp>\n#include \"wire/message.capnp.h\"\n",
            "runtime/include/troupe/task.hpp": "#include <troupe/ref.hpp>\n#include <cereal/cereal.hpp>\n",
            "train/src/run.cpp": "#include <troupe/gang.hpp>\n#include <torch/types.h>\n#include \"head/head.hpp\"\n",
            "cli/main.cpp": "#include \"head/head.hpp\"\n#include <troupe/tune.hpp>\n",
        })))

    def test_up_and_sideways_are_found(self):
        self.assert_problems(
            arrows.check(self.tree({
                "runtime/src/head/head.cpp": "\n#include <troupe/train/run.hpp>\n",
                "runtime/src/head/head.hpp": "",
                "scheduler/src/state.cpp": "#include <troupe/ref.hpp>\n",
                "scheduler/src/state.hpp": "#include \"head/head.hpp\"\n",
                "train/src/a.cpp": "#include <troupe/tune.hpp>\n",
                "tune/include/troupe/tune/schedulers/asha.hpp": "#include <troupe/train/context.hpp>\n",
            })),
            "runtime/src/head/head.cpp:2: runtime may not include train",
            "scheduler/src/state.cpp:1: scheduler may not include runtime",
            "scheduler/src/state.hpp:1: scheduler may not include \"head/head.hpp\" of runtime",
            "train/src/a.cpp:1: train may not include tune",
            "tune/include/troupe/tune/schedulers/asha.hpp:1: tune may not include train")

    def test_private_things_in_public_headers_are_found(self):
        self.assert_problems(
            arrows.check(self.tree({
                "runtime/include/troupe/a.hpp": "#include <boost/asio/post.hpp>\n#include <nlohmann/json.hpp>\n"
                                                "#include <spdlog/spdlog.h>\n#include <capnp/message.h>\n",
                "runtime/include/troupe/b.hpp": "#include \"head/head.hpp\"\n#include <head/head.hpp>\n#include \"c.hpp\"\n",
                "runtime/src/head/head.hpp": "#include <boost/asio/post.hpp>\n",
            })),
            "a.hpp:1", "a.hpp:2", "a.hpp:3", "a.hpp:4", "b.hpp:1", "b.hpp:2", "b.hpp:3")

    def test_only_train_knows_libtorch(self):
        self.assert_problems(
            arrows.check(self.tree({
                "runtime/src/a.cpp": "#include <torch/torch.h>\n",
                "train/include/troupe/train/a.hpp": "#include <torch/types.h>\n",
                "tune/src/a.cpp": "#include <nccl.h>\n",
            })),
            "runtime/src/a.cpp:1", "tune/src/a.cpp:1")


class Floors(LintTest):
    def test_down_and_between_rooms_is_allowed(self):
        self.assert_problems(floors.check(self.tree({
            "runtime/src/head/control.cpp": "#include \"store/types.hpp\"\n#include <troupe/errors.hpp>\n",
            "runtime/src/store/client/client.cpp": "#include \"store/memory/arena.hpp\"\n#include \"os/futex.hpp\"\n",
        })))

    def test_up_a_folder_without_a_floor_and_a_full_one_are_found(self):
        full = {f"tune/src/run/file_{number}.cpp": "" for number in range(21)}
        self.assert_problems(
            floors.check(self.tree({
                "runtime/src/store/client/client.cpp": "\n#include \"calls/executor.hpp\"\n",
                "runtime/src/attic/old.cpp": "",
                **full,
            })),
            "runtime/src/attic/old.cpp: runtime/src/attic has no place",
            "runtime/src/store/client/client.cpp:2: store may not include \"calls/executor.hpp\"",
            "tune/src/run: 21 files")


class Sizes(LintTest):
    def function(self, lines, head="int f(int a)"):
        return head + " {\n" + "  work();\n" * (lines - 2) + "}\n"

    def test_limits_are_allowed(self):
        self.assert_problems(sizes.check(self.tree({
            "a.cpp": self.function(60),
            "b.hpp": "\n" * 800,
            "c.hpp": "namespace a {\nclass B {\n" + "  int x;\n" * 100 + "};\n}\n",
            "d.cpp": "const std::map<int, int> table = {\n" + "  {1, 2},\n" * 100 + "};\n",
        })))

    def test_a_long_file_is_found(self):
        self.assert_problems(sizes.check(self.tree({"a.hpp": "\n" * 801})), "a.hpp: 801 lines")

    def test_a_long_function_is_found(self):
        heads = ("int f(int a)", "void A::f() const noexcept", "A::A(int x)\n    : x_(x), y_{1}", "auto f() -> int",
                 "TEST_CASE(\"a ) { b\", \"[c]\")", "template <class T>\n  requires(sizeof(T) > 1)\nbool operator==(T a)")
        for head in heads:
            with self.subTest(head):
                text = "namespace {\n// }\n" + self.function(61, head) + "}\n" + self.function(10)
                self.assert_problems(sizes.check(self.tree({"a.cpp": text})), f"a function of {61 + head.count(chr(10))} lines")

    def test_blocks_and_lambdas_are_part_of_their_function(self):
        inner = "  if (x) {\n    g([&](int y) { return y; });\n  }\n"
        text = "void f() {\n" + inner * 20 + "}\n"
        self.assert_problems(sizes.check(self.tree({"a.cpp": text})), "a.cpp:1: a function of 62 lines")

    def test_literals_hide_nothing(self):
        text = "const char a = '{';\nconst char* b = R\"({{{)\";\nint c = 1'000'000;\n" + self.function(61)
        self.assert_problems(sizes.check(self.tree({"a.cpp": text})), "a.cpp:4")


class Batches(LintTest):
    def check(self, files, manifest="troupe_tests(a\n  NAME b\n  SOURCES\n    x_test.cpp\n    y_test.cpp)\n"):
        return batches.check(self.tree({"tests/a/CMakeLists.txt": manifest} | {f"tests/a/{name}": text for name, text in files.items()}))

    def test_what_two_sources_name_alike_is_found(self):
        alike = {"function": "int f(int x = {}) { return x; }", "overload": "int f(double);", "constant": "constexpr int f = 1;",
                 "type": "struct f {\n  int a;\n};", "alias": "using f = int;", "braces": "const std::map<int, int> f{{1, 2}};",
                 "template": "template <class T>\nstd::vector<T> f(const T& g) {\n  return {g};\n}"}
        for what, text in alike.items():
            with self.subTest(what):
                self.assert_problems(
                    self.check({"x_test.cpp": "static void f(char) {}\n", "y_test.cpp": f"namespace {{\n{text}\n}}\n"}),
                    "tests/a/y_test.cpp:2: f is also in tests/a/x_test.cpp, and test_b compiles both together")

    def test_names_that_are_apart_are_allowed(self):
        mine = "namespace {\nint f() { return 1; }\n}\n"
        for text in ("namespace y_test {\n" + mine + "}\n", "namespace {\nint g() {\n  int f = 1;\n  return f;\n}\n}\n",
                     "namespace {\nstruct A {\n  int f();\n};\nint A::f() { return 1; }\nstruct f;\n}\n",
                     "// namespace { int f();\nTEST_CASE(\"int f() {\", \"[f]\") {}\n"):
            self.assert_problems(self.check({"x_test.cpp": mine, "y_test.cpp": text}))
        defaults = "namespace {{\nvoid {}(P first = {{}}, P second = {{}}) {{}}\n}}\n"
        self.assert_problems(self.check({"x_test.cpp": defaults.format("f"), "y_test.cpp": defaults.format("g")}))

    def test_a_name_of_a_header_that_only_another_source_includes_is_found(self):
        header = {"h.hpp": "#pragma once\nnamespace t {\ninline int f() { return 1; }\n}\n",
                  "x_test.cpp": "#include \"h.hpp\"\n"}
        mine = "using namespace t;\nnamespace {\nint f(int x) { return x; }\n}\n"
        self.assert_problems(self.check(header | {"y_test.cpp": mine}), "tests/a/y_test.cpp:3: f is also in tests/a/h.hpp")
        self.assert_problems(self.check(header | {"y_test.cpp": "#include \"h.hpp\"\n" + mine}))
        self.assert_problems(self.check(header | {"y_test.cpp": "namespace y_test {\n" + mine + "}\n"}))

    def test_what_is_compiled_alone_or_in_another_target_is_allowed(self):
        mine = "namespace {\nint f() { return 1; }\n}\n"
        for manifest in ("troupe_tests(a SOURCES x_test.cpp)\ntroupe_tests(a NAME b SOURCES y_test.cpp)\n",
                         "troupe_tests(a SOURCES x_test.cpp y_test.cpp)\n"
                         "set_source_files_properties(y_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n"):
            self.assert_problems(self.check({"x_test.cpp": mine, "y_test.cpp": mine}, manifest))


class Words(LintTest):
    def test_unfinished_work_is_found(self):
        for word in words.WORDS:
            self.assert_problems(words.check(self.tree({"a.cpp": f"int a;\n// {word}: later\n"})), "a.cpp:2")
        self.assert_problems(words.check(self.tree({"a.cpp": "int mastodon;\n"})))


class Layout(LintTest):
    def test_a_badly_laid_out_file_is_found(self):
        if not layout.find_tool("clang-format", layout.VERSION):
            self.skipTest("clang-format 14 is not here; ./run setup installs it")
        shutil.copy(REPOSITORY / ".clang-format", self.root)
        tree = self.tree({"good.cpp": "int a() { return 1; }\n", "bad.cpp": "int  a( ) { return 1;}\n"})
        self.assert_problems(layout.check(tree), "bad.cpp:1")
        self.assertEqual(layout.fix(tree), 2)
        self.assert_problems(layout.check(tree))


class Headers(LintTest):
    def check(self, files):
        tree = self.tree(files)
        build = self.root / "build"
        build.mkdir()
        command = f"g++ -I{self.root}/runtime/include -I{self.root}/runtime/src -std=gnu++20 -o a.o -c {self.root}/runtime/src/a.cpp"
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": str(build), "command": command, "file": str(self.root / "runtime/src/a.cpp")}]))
        return headers.check(tree, build)

    def test_a_header_that_leans_on_another_is_found(self):
        self.assert_problems(
            self.check({
                "runtime/include/troupe/good.hpp": "#pragma once\n#include <string>\nstruct A { std::string a; };\n",
                "runtime/include/troupe/leans.hpp": "#pragma once\nstruct B { std::vector<int> a; };\n",
                "runtime/include/troupe/private.hpp": "#pragma once\n#include <inner.hpp>\n",
                "runtime/include/troupe/unguarded.hpp": "struct C {};\n",
                "runtime/src/inner.hpp": "",
            }),
            "leans.hpp: does not compile alone", "private.hpp: does not compile alone",
            "unguarded.hpp: does not compile alone")

    def test_a_header_that_was_not_compiled_is_said(self):
        self.assert_problems(self.check({"train/include/troupe/train/a.hpp": "#pragma once\n"}), "not part of")


if __name__ == "__main__":
    unittest.main()
