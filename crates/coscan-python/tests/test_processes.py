"""Signals, forks and exits, in processes of their own."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from typing import Any

import coscan

from common import ENDLESS, assert_ends, has, python


class Processes(unittest.TestCase):
    def test_the_import_starts_nothing(self) -> None:
        threads = assert_ends(self, python("""
            import coscan, os
            for task in os.listdir("/proc/self/task"):
                print(open(f"/proc/self/task/{task}/comm").read().strip())
        """), 0).split("\n")  # fmt: skip
        # A build of the whole workspace has an allocator with a thread.
        self.assertEqual([thread for thread in threads if thread.startswith("coscan")], [])

    def test_ctrl_c_ends_a_query(self) -> None:
        calls = ["result.fetchall()", "result.collect()", "next(iter(result))"]
        if has("pyarrow"):
            calls.append("result.arrow()")
        for call in calls:
            process = python(f"""
                import coscan, importlib.util, time
                if importlib.util.find_spec("pyarrow"):
                    import pyarrow
                session = coscan.Session(memory=1 << 30)
                result = session.sql('''{ENDLESS}''')
                try:
                    print("runs", flush=True)
                    try:
                        {call}
                    except Exception:
                        # A consumer of the stream gets its error first, and the interpreter the signal when it looks.
                        while True:
                            time.sleep(0.01)
                except KeyboardInterrupt:
                    pass
                del result
                for _ in range(200):
                    if session._native.operator_memory == 0:
                        print("freed")
                        break
                    time.sleep(0.01)
            """)
            self.assertEqual(process.stdout.readline(), "runs\n")
            time.sleep(0.5)  # The call has most probably begun. If not, it is interrupted all the same.
            process.send_signal(signal.SIGINT)
            self.assertEqual(assert_ends(self, process, 0), "freed\n", call)

    @unittest.skipUnless(has("ipykernel"), "needs ipykernel")
    def test_interrupting_a_notebook_ends_a_query(self) -> None:
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(startup_timeout=60)
        try:
            client.execute_interactive("import coscan; session = coscan.Session(memory=1 << 30)", timeout=60)
            for cell in ("session.sql(query).fetchall()", "session.sql(query)"):
                begun = threading.Event()

                def output(message: "dict[str, Any]") -> None:
                    if message["msg_type"] == "stream":
                        begun.set()

                def interrupt() -> None:
                    begun.wait(60)
                    manager.interrupt_kernel()

                interrupting = threading.Thread(target=interrupt)
                interrupting.start()
                text = f"query = {ENDLESS!r}\nprint('begun', flush=True)\n{cell}"
                reply = client.execute_interactive(text, timeout=60, output_hook=output)
                interrupting.join()
                self.assertEqual(reply["content"].get("ename"), "KeyboardInterrupt", (cell, reply["content"]))
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)

    def test_a_forked_process_has_sessions_of_its_own(self) -> None:
        output = assert_ends(self, python("""
            import coscan, os
            session = coscan.Session(memory=1 << 29)
            stream = iter(session.sql("SELECT value FROM range(0, 10000000)"))
            next(stream)
            child = os.fork()
            if child == 0:
                for use in (lambda: session.sql("SELECT 1"), lambda: next(stream)):
                    try:
                        use()
                    except coscan.Error as error:
                        print(error)
                print(coscan.sql("SELECT 2").fetchone(), flush=True)
                raise SystemExit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), session.sql("SELECT 1").fetchone())
        """), 0)  # fmt: skip
        made = "made before fork: make a Session in the child\n"
        self.assertEqual(output, made + made + "(2,)\n3 (1,)\n")

    def test_the_interpreter_exits_while_queries_run(self) -> None:
        assert_ends(self, python(f"""
            import coscan, threading
            result = coscan.sql('''{ENDLESS}''')
            stream = iter(coscan.sql("SELECT value FROM range(0, 10000000)"))
            next(stream)
            threading.Thread(target=result.fetchall, daemon=True).start()
        """), 0)  # fmt: skip

    def test_the_interpreter_exits_while_many_threads_wait(self) -> None:
        for _ in range(5):
            assert_ends(self, python(f"""
                import coscan, threading, time
                for _ in range(16):
                    threading.Thread(target=lambda: coscan.sql('''{ENDLESS}''').fetchall(), daemon=True).start()
                time.sleep(0.2)
            """), 0)  # fmt: skip

    def test_the_command_line(self) -> None:
        def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run([sys.executable, "-m", "coscan", *arguments], capture_output=True, text=True, timeout=60)

        self.assertEqual(run("--version").stdout, f"coscan {coscan.__version__}\n")
        self.assertEqual(run("sql", "--format", "csv", "-e", "SELECT 1 AS a").stdout, "a\n1\n")
        failed = run("sql", "-e", "SELECT nothing")
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        wrong = run("no-such-command")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("Usage: coscan", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
