"""What the tests have in common."""

import gc
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import coscan

ROWS = 200_000
# It runs until it is cancelled.
ENDLESS = "SELECT count(*) FROM range(0, 1000000000) a JOIN range(0, 1000000000) b ON a.value < b.value"


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def python(program: str, **options: object) -> "subprocess.Popen[str]":
    """An interpreter that runs a program."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class WithTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.file = os.path.join(cls.directory.name, "numbers.parquet")
        make = f"COPY (SELECT value AS id, value % 10 AS key, 'text ' || value AS text FROM range(0, {ROWS})) TO '{cls.file}'"
        coscan.sql(make)

    def setUp(self) -> None:
        self.session = coscan.Session(memory=512 << 20)
        self.session.register("numbers", self.file)

    def assert_memory_is_freed(self) -> None:
        gc.collect()
        for _ in range(200):
            if self.session._native.operator_memory == 0:
                return
            time.sleep(0.01)
        self.fail(f"{self.session._native.operator_memory} bytes are left")


def assert_ends(test: unittest.TestCase, process: "subprocess.Popen[str]", code: int) -> str:
    """Waits for the end of a process, and returns its output."""
    try:
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        test.fail(f"the process hangs: {process.communicate()}")
    test.assertEqual(process.returncode, code, errors)
    return output
