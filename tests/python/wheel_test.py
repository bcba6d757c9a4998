"""The wheel that `./run package` makes: it carries the program, and is used without anything else."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import troupe
from support import PROGRAM, TREE


class WheelTest(unittest.TestCase):
    def test_what_it_installs_runs_functions_with_its_own_program(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", TREE / "python" / "make_wheel.py", "--binary", PROGRAM, "--out", folder], check=True)
            wheel, = Path(folder).glob("*.whl")
            self.assertRegex(wheel.name, rf"^troupe-{troupe.__version__}-py3-none-linux_\w+\.whl$")
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
                            "--target", f"{folder}/installed", wheel], check=True)
            environment = {name: value for name, value in os.environ.items() if name != "TROUPE_BINARY"}
            environment |= {"PYTHONPATH": f"{folder}/installed", "PATH": "/usr/bin:/bin"}
            code = "import troupe; print(troupe.TorchDistributor(2, use_gpu=False).run(lambda x: x * 2, 21), troupe.__file__)"
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.stdout, f"42 {folder}/installed/troupe/__init__.py\n", done.stderr)
            version = subprocess.run([f"{folder}/installed/bin/troupe", "--version"], env=environment, capture_output=True, text=True,
                                     timeout=300)
            self.assertEqual(version.stdout, f"troupe {troupe.__version__}\n", version.stderr)

    def test_without_the_program_it_is_a_wheel_of_any_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", TREE / "python", f"{folder}/python"], check=True)
            environment = {name: value for name, value in os.environ.items() if name != "TROUPE_WHEEL_BINARY"}
            subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                            "--no-build-isolation", "--wheel-dir", folder, f"{folder}/python"], env=environment, check=True)
            wheel, = Path(folder).glob("*.whl")
            self.assertEqual(wheel.name, f"troupe-{troupe.__version__}-py3-none-any.whl")


if __name__ == "__main__":
    unittest.main()
