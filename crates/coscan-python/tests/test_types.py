"""The types that the package declares."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import coscan

from common import has


@unittest.skipUnless(has("mypy"), "needs mypy")
class Types(unittest.TestCase):
    def run_module(self, *arguments: str) -> None:
        package = pathlib.Path(coscan.__file__).parent.parent
        environment = {**os.environ, "MYPYPATH": str(package), "PYTHONPATH": str(package)}
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", *arguments]
            checked = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_mypy_accepts_the_package(self) -> None:
        self.run_module("mypy", "--strict", "-p", "coscan")

    def test_the_stubs_are_those_of_the_native_part(self) -> None:
        self.run_module("mypy.stubtest", "coscan._native")


if __name__ == "__main__":
    unittest.main()
