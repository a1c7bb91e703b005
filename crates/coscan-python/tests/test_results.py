"""Results: rows, values, parameters, errors."""

import contextlib
import datetime
import decimal
import enum
import io
import os
import threading
import types
import unittest
import unittest.mock

import coscan

from common import ENDLESS, ROWS, WithTable, has


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

    def test_threads_that_fetch_get_each_row_once(self) -> None:
        for result in (self.session.sql("SELECT id FROM numbers"), self.session.sql("SELECT id FROM numbers").collect()):
            rows: list[tuple[int]] = []

            def fetch() -> None:
                while some := result.fetchmany(997):
                    rows.extend(some)

            threads = [threading.Thread(target=fetch) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            self.assertEqual(sorted(rows), [(number,) for number in range(ROWS)])

    def test_rows_that_are_fetched_are_not_collected_as_well(self) -> None:
        result = self.session.sql("SELECT id FROM numbers")
        collecting = result._native.start_collecting()
        first, collected = result.fetchmany(3), threading.Event()
        while True:
            try:
                if collecting.poll(collected.set) is not None:
                    self.fail("the rows are kept and fetched")
            except coscan.Error as error:
                self.assertIn("already read", str(error))
                break
            self.assertTrue(collected.wait(60))
            collected.clear()
        self.assertEqual(len(first) + len(result.fetchall()), ROWS)

    def test_a_failed_result_does_not_look_empty(self) -> None:
        failing = "SELECT 1 / (id - 150000) FROM numbers"
        result, batches = self.session.sql(failing), iter(self.session.sql(failing))
        for _ in range(2):
            with self.assertRaises(coscan.DataError):
                while result.fetchmany(10_000):
                    pass
            with self.assertRaises(coscan.DataError):
                list(batches)
        late = self.session.sql("SELECT arrow_cast(CAST(id * 100000 AS INT), 'Date32') FROM numbers WHERE id < 50")
        with self.assertRaisesRegex(coscan.DataError, "Python has no such value"):
            late.fetchall()
        with self.assertRaisesRegex(coscan.Error, "the rows are lost"):
            late.fetchall()

    def test_statements_that_would_exhaust_the_stack_are_errors(self) -> None:
        for text in ["SELECT " + "+".join(["1"] * 100_000), " UNION ALL ".join(["SELECT 1"] * 5_000)]:
            for parameters in (None, [1]):
                with self.assertRaisesRegex(coscan.SqlError, "more than"):
                    self.session.sql(text, parameters)
        with self.assertRaisesRegex(coscan.SqlError, "more than"):
            self.session.scan("numbers", ["id"], " AND ".join(["id = 1"] * 100_000))

    def test_forgotten_and_misplaced_parameters_are_named(self) -> None:
        for text, parameters, expected in [
            ("SELECT $1, $2", None, "no values were given for the parameters .1, .2"),
            ("SELECT ?", {"a": 1}, "`.` takes a list of values, not a dict"),
            ("SELECT $a", [1], "the parameter .a: give a dict of names"),
        ]:
            with self.assertRaisesRegex(coscan.SqlError, expected):
                self.session.sql(text, parameters)
        with self.assertRaisesRegex(ValueError, "-1 rows: give 0 or more"):
            self.session.sql("SELECT 1").fetchmany(-1)

    def test_cancelled_while_it_is_explained(self) -> None:
        result = self.session.sql(ENDLESS)
        threading.Timer(0.2, result.cancel).start()
        with self.assertRaises(coscan.Cancelled):
            result.explain(analyze=True)

    def test_cancelled_by_another_thread(self) -> None:
        result = self.session.sql(ENDLESS)
        timer = threading.Timer(0.2, result.cancel)
        timer.start()
        with self.assertRaises(coscan.Cancelled):
            result.collect()
        with self.assertRaises(coscan.Cancelled):
            result.fetchall()

    def test_a_statement_without_rows_has_an_empty_result(self) -> None:
        result = self.session.sql("SET coscan.weight = 2")
        self.assertEqual((result.row_count, result.fetchall(), result._repr_html_()), (0, [], ""))
        result.show()

    def test_showing_reads_few_rows_and_keeps_few(self) -> None:
        many = self.session.sql("SELECT a.id, a.text FROM numbers a CROSS JOIN numbers b")
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            many.show(3)
        self.assertIn("the first 3 rows", shown.getvalue())
        self.assertEqual((many.row_count, len(many.fetchmany(5))), (None, 5))
        self.assertIn("the first 20 rows", many._repr_html_())
        few = self.session.sql("SELECT key, count(*) AS n FROM numbers GROUP BY key")
        self.assertNotIn("rows", few._repr_html_())
        self.assertEqual(few.row_count, 10)

    def test_slices_of_one_array_count_once(self) -> None:
        result = self.session.sql("SELECT id, count(*) AS n FROM numbers GROUP BY id").collect()
        self.assertLess(self.session._native.operator_memory, 2 * ROWS * 16)
        self.assertGreaterEqual(self.session._native.operator_memory, ROWS * 16)
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
        self.assertEqual(self.session.sql("SELECT map([[1]], ['a'])").fetchone(), ([([1], "a")],))
        with self.assertRaises(coscan.DataError):
            self.session.sql("SELECT arrow_cast(9223372036854775807, 'Timestamp(Second, None)')").fetchone()

    def test_parameters_are_values(self) -> None:
        for value in [
            None, True, -5, 2**63, 1.5, "o'clock", b"\x00", datetime.date(2024, 2, 29), decimal.Decimal("-0.001"),
            datetime.datetime(2024, 1, 1, 1, 2, 3), datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        ]:  # fmt: skip
            for text, parameters in [("SELECT $1 AS v", [value]), ("SELECT $v AS v", {"v": value})]:
                self.assertEqual(self.session.sql(text, parameters).fetchone(), (value,))
        query = "SELECT count(*) FROM numbers WHERE key = $1 AND id < $2"
        self.assertEqual(self.session.sql(query, (3, 100)).fetchone(), (10,))
        marked = """SELECT '?', ? AS "?", count(*) FROM numbers -- ?\nWHERE key = ? AND 'ä?' = 'ä?' AND id < ?"""
        self.assertEqual(self.session.sql(marked, ["ö", 3, 100]).fetchone(), ("?", "ö", 10))
        with self.assertRaises(coscan.SqlError):
            self.session.sql("SELECT ? + $1", [1])
        with self.assertRaisesRegex(coscan.SqlError, "3 parameters were given, and the statement has 2"):
            self.session.sql(query, [1, 2, 3])
        with self.assertRaisesRegex(coscan.SqlError, "no parameter .b"):
            self.session.sql("SELECT $a", {"a": 1, "b": 2})
        for text in ["SET datafusion.execution.batch_size = $1", "RESET datafusion.execution.batch_size"]:
            with self.assertRaisesRegex(coscan.SqlError, "takes no parameters"):
                self.session.sql(text, [100])
        mapping = types.MappingProxyType({"a": enum.IntEnum("Number", "ONE").ONE})
        self.assertEqual(self.session.sql("SELECT $a", mapping).fetchone(), (1,))
        for value in (2**64, decimal.Decimal("NaN"), decimal.Decimal("-Infinity")):
            with self.assertRaises(coscan.DataError):
                self.session.sql("SELECT ?", [value])
        if has("numpy"):
            import numpy

            values = [numpy.int32(-1), numpy.float64(1.5), numpy.datetime64("2024-02-29")]
            expected = (-1, 1.5, datetime.date(2024, 2, 29))
            self.assertEqual(self.session.sql("SELECT ?, ?, ?", values).fetchone(), expected)
        for wrong in ["text", b"bytes", 5, [object()]]:
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
        failing = "SELECT 1 / (id - id) FROM numbers"
        calls = [coscan.Result.fetchall, coscan.Result.collect, lambda result: self.session.register("failed", result)]
        if has("pyarrow") and has("polars"):
            calls += [coscan.Result.arrow, coscan.Result.pl]
        for call in calls:
            with self.assertRaises(coscan.DataError) as raised:
                call(self.session.sql(failing))
            self.assertEqual(raised.exception.sqlstate, "22012")
        for value in ("regexp_replace(text, '(', '')", "CAST(text AS INT)"):
            with self.assertRaises(coscan.DataError):
                self.session.sql(f"SELECT {value} FROM numbers").fetchall()
        self.assertEqual(self.session.sql("SELECT 1").fetchone(), (1,))

    def test_other_statements_run_at_once(self) -> None:
        self.session.sql("CREATE VIEW few AS SELECT * FROM numbers WHERE id < 5")
        self.session.sql("SET coscan.weight = 3")
        self.assertEqual(self.session.sql("SELECT count(*) FROM few").fetchone(), (5,))
        self.assertEqual(self.session.sql("SHOW coscan.weight").fetchone(), ("coscan.weight", "3"))

    def test_progress_is_that_of_the_scans(self) -> None:
        result = self.session.sql("SELECT sum(id) FROM numbers")
        self.assertEqual(result.progress, (0, 0))
        result.collect()
        done, needed = result.progress
        self.assertGreater(needed, 0)
        self.assertEqual(done, needed)

    def test_progress_is_shown_where_somebody_sees_it(self) -> None:
        entered, seen = threading.Event(), io.StringIO()

        def progress() -> tuple[int, int]:
            entered.set()
            return (3, 12)

        with contextlib.redirect_stderr(seen), unittest.mock.patch.object(coscan.progress, "_SECONDS_BEFORE", 0):
            with unittest.mock.patch.dict(os.environ, COSCAN_PROGRESS="0"), coscan.progress.ProgressLine(progress) as line:
                self.assertIsNone(line)
            self.assertFalse(entered.is_set())
            with unittest.mock.patch.dict(os.environ, COSCAN_PROGRESS="1"), coscan.progress.ProgressLine(progress):
                self.assertTrue(entered.wait(60))
        self.assertIn("25%: 3 of 12 chunks", seen.getvalue())

    def test_shown_and_explained(self) -> None:
        result = self.session.sql("SELECT '<b>' AS a, CAST(NULL AS INT) AS b")
        page = result._repr_html_()
        self.assertIn("&lt;b&gt;", page)
        self.assertIn("<i>NULL</i>", page)
        self.assertEqual(repr(result), "<coscan.Result: a Utf8, b Int32>")
        counted = self.session.sql("SELECT count(*) FROM numbers WHERE id > 5")
        self.assertIn("SharedScanExec", counted.explain())
        self.assertIn("output_rows=", counted.explain(analyze=True))


if __name__ == "__main__":
    unittest.main()
