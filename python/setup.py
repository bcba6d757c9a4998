"""With TROUPE_WHEEL_BINARY, the path of a built `troupe`, the wheel carries that program and is one for its machine."""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

BINARY = os.environ.get("TROUPE_WHEEL_BINARY")


class BuildWithBinary(build_py):
    def run(self):
        super().run()
        if BINARY:
            target = Path(self.build_lib, "troupe", "bin", "troupe")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(BINARY, target)
            target.chmod(0o755)


class DistributionOfMachine(Distribution):
    def has_ext_modules(self):
        return bool(BINARY)


class WheelOfMachine(bdist_wheel):
    def get_tag(self):
        if not BINARY:
            return super().get_tag()
        # Of no Python, as the program is one of its own; of no manylinux, as it needs the libraries of its system.
        return "py3", "none", super().get_tag()[2]


setup(distclass=DistributionOfMachine, cmdclass={"build_py": BuildWithBinary, "bdist_wheel": WheelOfMachine})
