"""The package, without and with other packages, in processes of its own where signals, forks and exits matter."""

import datetime
import decimal
import gc
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
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


class Results(WithTable):
    def test_rows_are_fetched_once(self) -> None:
        result = self.session.sql("SELECT id, text FROM numbers ORDER BY id")
        self.assertEqual(result.columns, ["id", "text"])
        self.assertEqual(result.fetchone(), (0, "text 0"))
        self.assertEqual(result.fetchmany(2), [(1, "text 1"), (2, "text 2")])
        self.assertEqual(len(result.fetchall()), ROWS - 3)
        self.assertEqual((result.fetchone(), result.fetchall()), (None, []))
        with self.assertRaisesRegex(coscan.Error, r"call \.collect\(\) first") as raised:
            next(iter(result))
        self.assertEqual(raised.exception.sqlstate, "XX000")
        del result
        self.assert_memory_is_freed()

    def test_collected_rows_are_read_again_and_again(self) -> None:
        result = self.session.sql("SELECT id FROM numbers").collect()
        self.assertGreaterEqual(self.session._native.operator_memory, ROWS * 8)
        for _ in range(2):
            self.assertEqual(sum(len(batch) for batch in result), ROWS)
        self.assertEqual(len(result.fetchmany(ROWS + 1)), ROWS)
        del result
        self.assert_memory_is_freed()

    def test_slices_of_one_array_count_once(self) -> None:
        result = self.session.sql("SELECT id, count(*) AS n FROM numbers GROUP BY id").collect()
        self.assertLess(self.session._native.operator_memory, 2 * ROWS * 16)
        del result

    def test_a_result_does_not_take_more_than_the_memory(self) -> None:
        small = coscan.Session(memory=32 << 20)
        small.register("numbers", self.file)
        with self.assertRaises(coscan.ResourceError) as raised:
            small.sql("SELECT a.text, b.text FROM numbers a CROSS JOIN (SELECT * FROM numbers WHERE id < 20) b").collect()
        self.assertEqual(raised.exception.sqlstate, "53200")

    def test_values_are_those_of_python(self) -> None:
        sql = """
            SELECT NULL, true, 1, 18446744073709551615, 1.5, 'ä', X'00ff', DATE '0001-01-02', DATE '1969-12-31',
                TIME '01:02:03.5', TIMESTAMP '1960-01-01 00:00:00.25', arrow_cast('2024-07-01T10:00:00Z', 'Timestamp(Microsecond, Some("+02:00"))'),
                arrow_cast(-12.30, 'Decimal128(10, 2)'), [1, NULL], named_struct('a', 1, 'b', [2]),
                arrow_cast('x', 'Dictionary(Int32, Utf8)'), map(['k'], [1])
        """
        summer = datetime.timezone(datetime.timedelta(hours=2))
        expected = (
            None, True, 1, 18446744073709551615, 1.5, "ä", b"\x00\xff", datetime.date(1, 1, 2), datetime.date(1969, 12, 31),
            datetime.time(1, 2, 3, 500_000), datetime.datetime(1960, 1, 1, 0, 0, 0, 250_000),
            datetime.datetime(2024, 7, 1, 12, tzinfo=summer), decimal.Decimal("-12.30"), [1, None], {"a": 1, "b": [2]},
            "x", {"k": 1},
        )  # fmt: skip
        self.assertEqual(self.session.sql(sql).fetchall(), [expected])

    def test_parameters_are_values(self) -> None:
        for value in [
            None, True, -5, 2**63, 1.5, "o'clock", b"\x00", datetime.date(2024, 2, 29), decimal.Decimal("-0.001"),
            datetime.datetime(2024, 1, 1, 1, 2, 3), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        ]:  # fmt: skip
            for text, parameters in [("SELECT $1 AS v", [value]), ("SELECT $v AS v", {"v": value})]:
                self.assertEqual(self.session.sql(text, parameters).fetchone(), (value,))
        query = "SELECT count(*) FROM numbers WHERE key = $1 AND id < $2"
        self.assertEqual(self.session.sql(query, (3, 100)).fetchone(), (10,))
        for wrong in ["text", 5, [object()]]:
            with self.assertRaises(TypeError):
                self.session.sql(query, wrong)

    def test_errors_say_what_to_do_next(self) -> None:
        for text, kind, state in [
            ("SELEC 1", coscan.SqlError, "42601"),
            ("SELECT nothing FROM numbers", coscan.SqlError, "42703"),
            ("SELECT * FROM nowhere", coscan.SqlError, "42P01"),
        ]:
            with self.assertRaises(kind) as raised:
                self.session.sql(text)
            self.assertEqual(raised.exception.sqlstate, state, text)
        with self.assertRaises(coscan.DataError):
            self.session.sql("SELECT 1 / (id - id) FROM numbers").fetchall()
        self.assertEqual(self.session.sql("SELECT 1").fetchone(), (1,))

    def test_other_statements_run_at_once(self) -> None:
        self.session.sql("CREATE VIEW few AS SELECT * FROM numbers WHERE id < 5")
        self.session.sql("SET coscan.weight = 3")
        self.assertEqual(self.session.sql("SELECT count(*) FROM few").fetchone(), (5,))
        self.assertEqual(self.session.sql("SHOW coscan.weight").fetchone(), ("coscan.weight", "3"))

    def test_shown_and_explained(self) -> None:
        result = self.session.sql("SELECT '<b>' AS a, CAST(NULL AS INT) AS b")
        page = result._repr_html_()
        self.assertIn("&lt;b&gt;", page)
        self.assertIn("<i>NULL</i>", page)
        self.assertEqual(repr(result), "<coscan.Result: a Utf8, b Int32>")
        counted = self.session.sql("SELECT count(*) FROM numbers WHERE id > 5")
        self.assertIn("SharedScanExec", counted.explain())
        self.assertIn("output_rows=", counted.explain(analyze=True))


class Sharing(WithTable):
    def test_results_become_tables(self) -> None:
        self.session.register("streamed", self.session.sql("SELECT id FROM numbers WHERE key = 1"))
        self.session.register("kept", self.session.sql("SELECT id FROM numbers WHERE key < 3").collect())
        joined = self.session.sql("SELECT count(*) FROM streamed JOIN kept ON streamed.id = kept.id")
        self.assertEqual(joined.fetchone(), (ROWS // 10,))
        self.session.deregister("kept")
        with self.assertRaises(coscan.SqlError):
            self.session.sql("SELECT * FROM kept")
        with self.assertRaisesRegex(TypeError, "a path, a pattern, a URL"):
            self.session.register("wrong", 5)

    def test_threads_run_at_once(self) -> None:
        query = "SELECT key, sum(id) FROM numbers WHERE text LIKE '%7%' GROUP BY key ORDER BY key"
        expected, answers = self.session.sql(query).fetchall(), []
        threads = [threading.Thread(target=lambda: answers.append(self.session.sql(query).fetchall())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(answers, [expected] * 16)

    @unittest.skipUnless(has("pyarrow"), "needs pyarrow")
    def test_pyarrow(self) -> None:
        import pyarrow

        table = self.session.sql("SELECT id, text FROM numbers").arrow()
        self.assertEqual((table.num_rows, table.column_names), (ROWS, ["id", "text"]))
        self.session.register("copied", table)
        self.assertEqual(self.session.sql("SELECT max(id) FROM copied").fetchone(), (ROWS - 1,))
        batch = next(iter(self.session.sql("SELECT id FROM numbers LIMIT 5")))
        self.assertEqual(pyarrow.record_batch(batch).num_rows, len(batch))
        with self.assertRaisesRegex(Exception, "Divide by zero"):
            self.session.sql("SELECT 1 / (id - id) FROM numbers").arrow()

    @unittest.skipUnless(has("polars"), "needs polars")
    def test_polars(self) -> None:
        self.assertEqual(self.session.sql("SELECT id FROM numbers").pl().shape, (ROWS, 1))


class Processes(unittest.TestCase):
    def assert_ends(self, process: "subprocess.Popen[str]", code: int) -> str:
        try:
            output, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"the process hangs: {process.communicate()}")
        self.assertEqual(process.returncode, code, errors)
        return output

    def test_the_import_starts_nothing(self) -> None:
        threads = self.assert_ends(python("""
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
            self.assertEqual(self.assert_ends(process, 0), "freed\n", call)

    def test_a_forked_process_has_sessions_of_its_own(self) -> None:
        output = self.assert_ends(python("""
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
        self.assert_ends(python(f"""
            import coscan, threading
            result = coscan.sql('''{ENDLESS}''')
            stream = iter(coscan.sql("SELECT value FROM range(0, 10000000)"))
            next(stream)
            threading.Thread(target=result.fetchall, daemon=True).start()
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
