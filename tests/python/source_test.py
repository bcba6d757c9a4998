"""The package as pip installs it from this tree, without the program: it finds the program where python/README.md says."""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import troupe
from support import PROGRAM, TREE, entered

RUN = "import troupe; print(troupe.TorchDistributor(2, use_gpu=False).run(lambda x: x * 2, 21), troupe.__file__)"


def installed(folder):
    """-> where the package is, installed from a copy of its folder: setuptools writes into the folder that it builds."""
    source, target = Path(folder, "python"), Path(folder, "installed")
    shutil.copytree(TREE / "python", source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "TROUPE_WHEEL_BINARY"}
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-build-isolation",
                    "--no-deps", "--target", target, "./python"], cwd=folder, env=environment, check=True, timeout=300)
    return target


class SourceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            importlib.import_module("setuptools.command.bdist_wheel")  # pip may not fetch it here
        except ImportError:
            why = f"{sys.executable} has no setuptools of 70.1 or later, which builds the package"
            print(f"skipped: {why}", flush=True)
            raise unittest.SkipTest(why) from None
        folder = entered(tempfile.TemporaryDirectory(), cls.addClassCleanup)
        cls.package = installed(folder)
        cls.elsewhere = Path(folder, "elsewhere")
        cls.elsewhere.mkdir()

    def python(self, code, path, **more):
        """With the installed package, in a folder that has none of it, and with no variable of the tests."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
        return subprocess.run([sys.executable, "-c", code], cwd=self.elsewhere, capture_output=True, text=True, timeout=300,
                              env=environment | {"PYTHONPATH": str(self.package), "PATH": path} | more)

    def check_runs(self, path, **more):
        done = self.python(RUN, path, **more)
        self.assertEqual(done.stdout, f"42 {self.package}/troupe/__init__.py\n", done.stderr)

    def test_it_is_the_package_alone_which_imports_from_elsewhere(self):
        self.assertFalse(Path(self.package, "troupe", "bin").exists())
        done = self.python("import troupe; print(troupe.__version__)", path="/usr/bin:/bin")
        self.assertEqual(done.stdout, f"{troupe.__version__}\n", done.stderr)

    def test_the_program_is_the_one_in_path_and_not_the_packages_own_command(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(PROGRAM, Path(folder, "troupe"))
            self.check_runs(path=f"{self.package}/bin:{folder}:/usr/bin:/bin")

    def test_the_program_is_the_one_that_troupe_binary_names_before_that_in_path(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("/bin/false", Path(folder, "troupe"))
            self.check_runs(path=f"{folder}:/usr/bin:/bin", TROUPE_BINARY=PROGRAM)

    def test_its_command_becomes_the_program(self):
        environment = {"PYTHONPATH": str(self.package), "PATH": "/usr/bin:/bin", "TROUPE_BINARY": PROGRAM}
        done = subprocess.run([self.package / "bin" / "troupe", "--version"], cwd=self.elsewhere, env=environment, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.stdout, f"troupe {troupe.__version__}\n", done.stderr)

    def test_without_a_program_a_run_says_what_to_do(self):
        done = self.python(RUN, path=f"{self.package}/bin")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the program `troupe` is not there: this package was installed without it", done.stderr)


if __name__ == "__main__":
    unittest.main()
