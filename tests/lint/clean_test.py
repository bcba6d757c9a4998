#!/usr/bin/env python3
"""What was found clean is not checked again, and everything else is."""

import json
import os
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from checks import headers, tidy
from checks.clean import UNUSED_DAYS, CleanResults
from checks.commands import compile_commands
from checks.inputs import Inputs
from lint_test import LintTest

# Stands for clang-tidy: a source says in its text what comes of it.
TIDY = """#!/usr/bin/env python3
import pathlib, re, sys
if "--version" in sys.argv:
    sys.exit(print("LLVM version 14.0.6"))
status = 0
for source in re.findall('"(.*)"', pathlib.Path(sys.argv[2]).read_text()):
    text = pathlib.Path(source).read_text()
    with open("CALLS", "a") as calls:
        calls.write(pathlib.Path(source).name + "\\n")
    if "finding" in text:
        print(f"{source}:1:1: warning: a finding [some-check]")
    if "unknown" in text:
        print(f"{source}:1:1: error: clang does not know it [clang-diagnostic-error]")
        status = 1
    if "crash" in text:
        sys.exit(139)
sys.exit(status)
"""


class CleanTest(LintTest):
    def setUp(self):
        super().setUp()
        self.outside = Path(tempfile.mkdtemp(prefix="troupe-lint-"))
        self.addCleanup(shutil.rmtree, self.outside)
        self.folder = self.outside / "clean"

    def build(self, sources, flags="", root=None):
        """A build folder whose compilation database has these sources."""
        root = root or self.root
        build = root / "build"
        generated = build / "generated"
        generated.mkdir(parents=True, exist_ok=True)
        (generated / "message.capnp.h").write_text("struct Message {};\n")
        command = f"g++ -I{root}/runtime/include -I{root}/runtime/src -I{generated} {flags} -ffile-prefix-map={root}=. -o a.o -c"
        (build / "compile_commands.json").write_text(json.dumps(
            [{"directory": str(build), "command": f"{command} {root / name}", "file": str(root / name)} for name in sources]))
        return build

    def clean(self, folder=None):
        return CleanResults("sources", folder or self.folder)


class Keys(CleanTest):
    FILES = {
        "runtime/src/a.cpp": "#include \"b.hpp\"\n#include <vector>\n",
        "runtime/src/b.hpp": "#include \"../src/wire/./c.hpp\"\n#include <troupe/d.hpp>\n",
        "runtime/src/wire/c.hpp": "#include \"message.capnp.h\"\n#include \"../a.cpp\"\n",
        "runtime/include/troupe/d.hpp": "",
        "runtime/src/e.hpp": "",
        "docs/b.hpp.md": "",
    }

    def inputs(self, files=None, flags="", context=()):
        tree = self.tree(files or self.FILES)
        build = self.build(["runtime/src/a.cpp"], flags)
        return Inputs(tree, build, compile_commands(build), tidy.__file__, [], context)

    def key(self, files=None, flags="", context=()):
        inputs = self.inputs(files, flags, context)
        command, = compile_commands(self.root / "build")
        return inputs.key("runtime/src/a.cpp", tidy._flags(command))

    def test_a_file_that_is_included_changes_the_key_and_another_does_not(self):
        key = self.key()
        for name in self.FILES:
            with self.subTest(name):
                changed = self.key({**self.FILES, name: self.FILES[name] + "int a;\n"})
                if name in ("runtime/src/e.hpp", "docs/b.hpp.md"):
                    self.assertEqual(changed, key)
                else:
                    self.assertNotEqual(changed, key)
        self.assertEqual(self.key(), key)

    def test_a_generated_file_that_is_included_changes_the_key(self):
        key = self.key()
        inputs = self.inputs()
        (self.root / "build/generated/message.capnp.h").write_text("struct Another {};\n")
        command, = compile_commands(self.root / "build")
        self.assertNotEqual(inputs.key("runtime/src/a.cpp", tidy._flags(command)), key)

    def test_a_new_file_that_an_include_may_mean_changes_the_key(self):
        self.assertNotEqual(self.key({**self.FILES, "tune/src/b.hpp": ""}), self.key())

    def test_flags_and_context_change_the_key(self):
        self.assertEqual(len({self.key(), self.key(flags="-O2"), self.key(context=["a"])}), 3)

    def test_another_clone_has_the_same_key(self):
        key = self.key()
        self.root = self.outside / "another-clone"
        self.assertEqual(self.key(), key)

    def test_a_file_that_is_written_after_the_key_was_made_is_noticed(self):
        inputs = self.inputs()
        inputs.key("runtime/src/a.cpp", [])
        self.assertTrue(inputs.is_unchanged("runtime/src/a.cpp"))
        (self.root / "runtime/src/e.hpp").write_text("int e;\n")
        self.assertTrue(inputs.is_unchanged("runtime/src/a.cpp"))
        (self.root / "runtime/include/troupe/d.hpp").write_text("int d;\n")
        self.assertFalse(inputs.is_unchanged("runtime/src/a.cpp"))


class Results(CleanTest):
    KEYS = ["00" + "a" * 62, "00" + "b" * 62, "11" + "c" * 62]

    def unknown(self, clean):
        return clean.unknown(self.KEYS, lambda key: key)

    def test_what_was_remembered_is_known_to_the_next_run(self):
        clean = self.clean()
        self.assertEqual(self.unknown(clean), self.KEYS)
        clean.remember(self.KEYS[1])
        self.assertEqual(clean.summary(), "3 sources checked, 0 known to be clean")
        again = self.clean()
        self.assertEqual(self.unknown(again), [self.KEYS[0], self.KEYS[2]])
        self.assertEqual(again.summary(), "2 sources checked, 1 known to be clean")

    def test_without_a_folder_nothing_is_known(self):
        clean = CleanResults("sources")
        clean.remember(self.KEYS[0])
        self.assertEqual(self.unknown(clean), self.KEYS)

    def test_a_folder_that_cannot_be_written_knows_nothing(self):
        (self.outside / "file").write_text("")
        clean = self.clean(self.outside / "file")
        clean.remember(self.KEYS[0])
        self.assertEqual(self.unknown(clean), self.KEYS)

    def test_a_damaged_folder_loses_only_what_is_damaged(self):
        self.folder.mkdir()
        (self.folder / "00").write_text("not a folder")
        clean = self.clean()
        for key in self.KEYS:
            clean.remember(key)
        self.assertEqual(self.unknown(clean), self.KEYS[:2])

    def test_a_key_that_nobody_used_for_long_is_removed_and_a_used_one_stays(self):
        clean = self.clean()
        for key in self.KEYS[:2]:
            clean.remember(key)
        old = time.time() - (UNUSED_DAYS + 1) * 24 * 3600
        for key in self.KEYS[:2]:
            os.utime(self.folder / "00" / key, (old, old))
        clean.unknown(self.KEYS[:1], lambda key: key)
        clean.remember("00" + "d" * 62)
        self.assertEqual(self.unknown(self.clean()), self.KEYS[1:])


class Tidy(CleanTest):
    def setUp(self):
        super().setUp()
        programs = self.outside / "programs"
        programs.mkdir()
        self.calls = self.outside / "calls"
        (programs / "clang-tidy-14").write_text(TIDY.replace("CALLS", str(self.calls)))
        (programs / "clang-tidy-14").chmod(0o755)
        path = mock.patch.dict(os.environ, {"PATH": f"{programs}:{os.environ['PATH']}"})
        path.start()
        self.addCleanup(path.stop)

    def check(self, files, clean):
        """The problems, and the names of the sources that the tool was given."""
        files = {f"runtime/src/{name}": text for name, text in files.items()}
        tree = self.tree({".clang-tidy": "Checks: some-check\n", **files})
        self.calls.write_text("")
        problems = tidy.check(tree, self.build([name for name in files if name.endswith(".cpp")]), clean)
        return problems, sorted(self.calls.read_text().split())

    def test_only_sources_that_changed_are_checked_again(self):
        files = {"a.cpp": "#include \"a.hpp\"\n", "a.hpp": "", "b.cpp": ""}
        self.assertEqual(self.check(files, self.clean()), ([], ["a.cpp", "b.cpp"]))
        self.assertEqual(self.check(files, self.clean()), ([], []))
        self.assertEqual(self.check({**files, "a.hpp": "int a;\n"}, self.clean()), ([], ["a.cpp"]))
        self.assertEqual(self.check(files, CleanResults("sources")), ([], ["a.cpp", "b.cpp"]))

    def test_a_batch_with_a_finding_is_checked_again_until_there_is_none(self):
        files = {"a.cpp": "// finding\n", "b.cpp": ""}
        for _ in range(2):
            problems, checked = self.check(files, self.clean())
            self.assert_problems(problems, "runtime/src/a.cpp:1: a finding")
            self.assertEqual(checked, ["a.cpp", "b.cpp"])
        self.check({**files, "a.cpp": ""}, self.clean())
        self.assertEqual(self.check({**files, "a.cpp": ""}, self.clean()), ([], []))

    def test_a_tool_that_crashes_is_a_problem_each_time(self):
        for _ in range(2):
            problems, checked = self.check({"a.cpp": "// crash\n", "b.cpp": ""}, self.clean())
            self.assert_problems(problems, "runtime/src/a.cpp: clang-tidy crashed (exit code 139) on a.cpp, b.cpp")
            self.assertEqual(checked, ["a.cpp"])

    def test_a_build_folder_of_another_place_is_a_problem(self):
        tree = self.tree({".clang-tidy": "Checks: some-check\n", "runtime/src/a.cpp": ""})
        build = self.build(["runtime/src/a.cpp"], root=self.outside / "another-clone")
        problems = tidy.check(tree, build, self.clean())
        self.assert_problems(problems, f".clang-tidy: {build} compiles no source of {self.root}, so none was checked")

    def test_a_source_that_the_tool_cannot_compile_is_checked_again_and_those_beside_it_are_not(self):
        files = {"a.cpp": "// unknown\n", "b.cpp": "", "c.cpp": ""}
        self.assertEqual(self.check(files, self.clean()), ([], ["a.cpp", "b.cpp", "b.cpp", "c.cpp", "c.cpp"]))
        self.assertEqual(self.check(files, self.clean()), ([], ["a.cpp"]))

    def test_an_error_does_not_hide_what_is_found_beside_it(self):
        problems, _ = self.check({"a.cpp": "// unknown, finding\n", "b.cpp": ""}, self.clean())
        self.assert_problems(problems, "runtime/src/a.cpp:1: a finding")
        self.assertEqual(self.check({"a.cpp": "", "b.cpp": ""}, self.clean()), ([], ["a.cpp", "b.cpp"]))

    def test_a_folder_that_cannot_be_written_has_everything_checked(self):
        self.folder.write_text("")
        for _ in range(2):
            self.assertEqual(self.check({"a.cpp": ""}, self.clean()), ([], ["a.cpp"]))


class Headers(CleanTest):
    def test_only_headers_that_changed_or_did_not_compile_are_compiled_again(self):
        files = {
            "runtime/src/a.cpp": "",
            "runtime/include/troupe/good.hpp": "#pragma once\n#include <troupe/inner.hpp>\n",
            "runtime/include/troupe/inner.hpp": "#pragma once\n",
            "runtime/include/troupe/leans.hpp": "#pragma once\nMissing a;\n",
        }
        for inner, checked, known in (("", 3, 0), ("", 1, 2), ("struct Inner {};\n", 3, 0)):
            tree = self.tree({**files, "runtime/include/troupe/inner.hpp": "#pragma once\n" + inner})
            clean = CleanResults("headers", self.folder)
            self.assert_problems(headers.check(tree, self.build(["runtime/src/a.cpp"]), clean), "leans.hpp: does not compile alone")
            self.assertEqual(clean.summary(), f"{checked} headers checked, {known} known to be clean")


if __name__ == "__main__":
    unittest.main()
