"""Tables of a session, and what shares them: threads, coroutines, other packages, servers."""

import asyncio
import os
import pathlib
import re
import threading
import unittest
import urllib.request
from collections.abc import Callable

import coscan

from common import ENDLESS, ROWS, WithTable, has


class Counted:
    """The rows of a query, which counts its executions, and waits before them."""

    def __init__(self, query: "Callable[[], coscan.Result]") -> None:
        self.query = query
        self.executions = 0
        self.may_start = threading.Event()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.executions += 1
        self.may_start.wait(60)
        return self.query().__arrow_c_stream__()


class Sharing(WithTable):
    def test_results_become_tables(self) -> None:
        self.session.register("streamed", self.session.sql("SELECT id FROM numbers WHERE key = 1"))
        self.session.register("kept", self.session.sql("SELECT id FROM numbers WHERE key < 3").collect())
        joined = self.session.sql("SELECT count(*) FROM streamed JOIN kept ON streamed.id = kept.id")
        self.assertEqual(joined.fetchone(), (ROWS // 10,))
        self.session.deregister("kept")
        with self.assertRaises(coscan.SqlError):
            self.session.sql("SELECT * FROM kept")
        with self.assertRaises(coscan.SqlError) as raised:
            self.session.deregister("kept")
        self.assertEqual(raised.exception.sqlstate, "42P01")
        for wrong in (5, [], [self.file, 5]):
            with self.assertRaisesRegex(TypeError, "a path, a pattern, a URL"):
                self.session.register("wrong", wrong)
        with self.assertRaises(TypeError):
            self.session.scan(5)
        for options in (["format"], {"format": 5}):
            with self.assertRaisesRegex(TypeError, "options"):
                self.session.register("wrong", self.file, options)

    def test_rows_of_tables_count_for_the_budget(self) -> None:
        wide = f"SELECT repeat('text', 16) AS text FROM numbers WHERE id < {ROWS // 2}"
        self.session.register("texts", self.session.sql(wide))
        self.assertGreaterEqual(self.session._native.operator_memory, ROWS // 2 * 64)
        self.session.deregister("texts")
        self.assertEqual(self.session._native.operator_memory, 0)
        small = coscan.Session(memory=32 << 20)
        with self.assertRaises(coscan.ResourceError) as raised:
            small.register("texts", self.session.sql("SELECT repeat('text', 16) AS text FROM range(0, 1000000)"))
        self.assertEqual(raised.exception.sqlstate, "53200")
        self.assertEqual(small._native.operator_memory, 0)

    def test_tables_of_several_locations(self) -> None:
        more = os.path.join(self.directory.name, "more.parquet")
        self.session.sql(f"COPY (SELECT -value AS id, value % 10 AS key, '' AS text FROM range(1, 11)) TO '{more}'")
        self.session.register("both", [self.file, pathlib.Path(more)])
        self.assertEqual(self.session.sql("SELECT count(*), min(id) FROM both").fetchone(), (ROWS + 10, -10))
        self.session.register("both", [more])
        self.assertEqual(self.session.sql("SELECT count(*) FROM both").fetchone(), (10,))
        self.session.register("both", [self.file, more])
        with self.assertRaises(coscan.StoreError):
            self.session.register("both", os.path.join(self.directory.name, "nothing.parquet"))
        self.assertEqual(self.session.sql("SELECT count(*) FROM both").fetchone(), (ROWS + 10,))
        for source in (more, [more], "both"):
            rows = [row for batch in self.session.scan(source, ["text", "id"], "id < -8") for row in batch.rows()]
            self.assertEqual(sorted(rows), [("", -10), ("", -9)])
        self.assertEqual(sum(map(len, self.session.scan([self.file, more]))), ROWS + 10)
        for columns, where, wrong in [(["nothing"], None, coscan.SqlError), (None, "nothing > 1", coscan.SqlError)]:
            with self.assertRaises(wrong):
                self.session.scan("both", columns, where)
        with self.assertRaises(TypeError):
            self.session.scan("both", "id")

    def test_queries_at_once_read_each_chunk_once(self) -> None:
        def bytes_read(explained: str) -> float:
            found = re.findall(r"bytes_read=([\d.]+) ?([KMG]?)", explained)
            return sum(float(number) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[unit] for number, unit in found)

        def session() -> coscan.Session:
            fresh = coscan.Session(memory=512 << 20)
            fresh.register("numbers", self.file)
            fresh.sql("SET coscan.share_results = false")
            return fresh

        query = "SELECT count(*), max(text) FROM numbers WHERE id % 16 = {}"
        alone = bytes_read(session().sql(query.format(0)).explain(analyze=True))
        self.assertGreater(alone, 0)
        together, answers = session(), []
        results = [together.sql(query.format(number)) for number in range(16)]
        threads = [threading.Thread(target=lambda result=result: answers.append(result.explain(analyze=True))) for result in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(answers), 16)
        self.assertLess(sum(map(bytes_read, answers)), 1.05 * alone)

    def test_threads_answer_as_one_does(self) -> None:
        query = "SELECT key, sum(id) FROM numbers WHERE text LIKE '%7%' GROUP BY key ORDER BY key"
        expected, answers = self.session.sql(query).fetchall(), []
        threads = [threading.Thread(target=lambda: answers.append(self.session.sql(query).fetchall())) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(answers, [expected] * 16)

    def test_coroutines_run_at_once(self) -> None:
        query = "SELECT key, sum(id) FROM numbers WHERE text LIKE '%7%' GROUP BY key ORDER BY key"
        expected = self.session.sql(query).fetchall()

        async def cells() -> None:
            results = await asyncio.gather(*(self.session.sql(query) for _ in range(100)))
            self.assertEqual([result.fetchall() for result in results], [expected] * 100)
            self.assertIs(await results[0], results[0])

        asyncio.run(cells())
        self.assert_memory_is_freed()

    def test_a_result_that_threads_collect_is_executed_once(self) -> None:
        rows, result = self.counted("SELECT id FROM numbers")
        threads = [threading.Thread(target=result.collect) for _ in range(20)]
        for thread in threads:
            thread.start()
        rows.may_start.set()
        for thread in threads:
            thread.join(60)
        self.assertEqual((result.row_count, rows.executions), (ROWS, 1))

    def test_a_result_that_coroutines_collect_is_executed_once(self) -> None:
        async def collect(rows: Counted, result: coscan.Result, cancelled: int) -> "list[coscan.Result | BaseException]":
            tasks = [asyncio.create_task(result.collect_async()) for _ in range(20)]
            await asyncio.sleep(0)  # All of them wait.
            for task in tasks[:cancelled]:
                task.cancel()
            await asyncio.sleep(0)
            rows.may_start.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

        for cancelled in (0, 1, 19):
            rows, result = self.counted("SELECT id FROM numbers")
            outcomes = asyncio.run(collect(rows, result, cancelled))
            self.assertEqual([type(outcome) for outcome in outcomes[:cancelled]], [asyncio.CancelledError] * cancelled)
            self.assertEqual(outcomes[cancelled:], [result] * (20 - cancelled))
            self.assertEqual((result.row_count, rows.executions), (ROWS, 1))
        rows, result = self.counted("SELECT 1 / (id - id) AS id FROM numbers")
        outcomes = asyncio.run(collect(rows, result, 0))
        self.assertTrue(all(isinstance(outcome, coscan.Error) for outcome in outcomes))
        self.assertEqual(rows.executions, 1)
        del outcomes, result
        self.assert_memory_is_freed()

    def counted(self, query: str) -> "tuple[Counted, coscan.Result]":
        rows = Counted(lambda: self.session.sql(query))
        return rows, coscan.Result(self.session._native.foreign(self.session.sql(query), rows, ""))

    def test_coroutines_stream(self) -> None:
        async def count() -> int:
            return sum([len(batch) async for batch in self.session.sql("SELECT id, text FROM numbers")])

        self.assertEqual(asyncio.run(count()), ROWS)

    def test_a_failed_statement_fails_its_coroutine_only(self) -> None:
        async def both() -> "list[coscan.Result | BaseException]":
            failing, other = self.session.sql("SELECT 1 / (id - id) FROM numbers"), self.session.sql("SELECT 1")
            return await asyncio.gather(failing, other, return_exceptions=True)

        failed, other = asyncio.run(both())
        self.assertIsInstance(failed, coscan.DataError)
        self.assertEqual(other.fetchone(), (1,))

    def test_a_cancelled_task_cancels_its_statement(self) -> None:
        async def cancel() -> None:
            async def wait(result: coscan.Result) -> None:
                await result

            async def stream(result: coscan.Result) -> None:
                async for _ in result:
                    pass

            for consume in (wait, stream, lambda result: result.collect_async()):
                task = asyncio.create_task(consume(self.session.sql(f"{ENDLESS} AND a.value + b.value < 0")))
                await asyncio.sleep(0.1)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(cancel())
        self.assert_memory_is_freed()

    def test_a_forgotten_task_holds_no_statement(self) -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(self.session.sql(ENDLESS).collect_async())
        loop.run_until_complete(asyncio.sleep(0.2))
        loop.close()
        task._log_destroy_pending = False
        del task, loop
        self.assert_memory_is_freed()

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

    @unittest.skipUnless(has("datafusion"), "needs datafusion")
    def test_queries_of_datafusion_are_executed_here(self) -> None:
        import datafusion

        context = datafusion.SessionContext()
        context.register_parquet("planned", self.file)
        shared = self.session.datafusion(context)
        result = shared.sql("SELECT key, count(*) AS n FROM planned WHERE id < 100 GROUP BY key ORDER BY key")
        self.assertIn("SharedScanExec", result.explain())
        self.assertEqual(result.fetchall(), [(key, 10) for key in range(10)])
        self.assertEqual(sum(map(len, shared.table("planned"))), ROWS)
        with self.assertRaisesRegex(TypeError, "a DataFrame of the package datafusion"):
            self.session.run("SELECT 1")

    @unittest.skipUnless(has("datafusion"), "needs datafusion")
    def test_what_only_datafusion_has_is_executed_there(self) -> None:
        import datafusion
        import pyarrow

        context = datafusion.SessionContext()
        context.register_parquet("planned", self.file)
        context.from_pydict({"a": [1, 2, 3]}, name="in_memory")
        twice = datafusion.udf(lambda a: pyarrow.compute.multiply(a, 2), [pyarrow.int64()], pyarrow.int64(), "immutable", "twice")
        context.register_udf(twice)
        shared = self.session.datafusion(context)
        for query, row in [("SELECT sum(a) FROM in_memory", (6,)), ("SELECT max(twice(id)) FROM planned", (2 * ROWS - 2,))]:
            with self.assertWarnsRegex(UserWarning, "shares nothing"):
                result = shared.sql(query)
            self.assertIn("executed by the package datafusion, and shares nothing", result.explain())
            self.assertNotIn(".rs:", result.explain())
            self.assertIn("StreamingTableExec", result.explain(analyze=True))
            self.assertEqual(result.fetchall(), [row])
        with self.assertWarns(UserWarning), self.assertRaisesRegex(coscan.Error, "zero"):
            shared.sql("SELECT 1 / (a - a) FROM in_memory").fetchall()
        with self.assertRaises(TypeError):
            self.session.datafusion(5)

    @unittest.skipUnless(has("datafusion"), "needs datafusion")
    def test_tables_go_to_contexts_of_datafusion(self) -> None:
        import datafusion

        context = datafusion.SessionContext()
        context.register_table("shared", self.session.table("numbers"))
        query = "SELECT count(*), max(id) FROM shared WHERE key = 3 AND text LIKE '%5%' AND id < 1000"
        expected = self.session.sql(query.replace("shared", "numbers")).fetchall()
        self.assertEqual([tuple(row.values()) for row in context.sql(query).to_pylist()], expected)
        self.assertIn("SharedScanExec", str(context.sql(query).execution_plan().display_indent()))
        with self.assertRaises(coscan.SqlError):
            self.session.table("nowhere")

    def test_a_server_has_the_files_of_its_session(self) -> None:
        self.session.register("copied", self.session.sql("SELECT 1 AS a"))
        with self.session.serve() as server:
            self.assertRegex(repr(server), "postgres 127.0.0.1:[0-9]+, http 127.0.0.1:[0-9]+")
            with urllib.request.urlopen(f"http://{server.http}/") as page:
                self.assertIn("frame-ancestors http://localhost:*", page.headers["Content-Security-Policy"])
            if has("psycopg"):
                import psycopg

                with psycopg.connect(server.url) as connection:
                    self.assertEqual(connection.execute("SELECT count(*) FROM numbers").fetchone(), (ROWS,))
                    with self.assertRaises(psycopg.errors.UndefinedTable):
                        connection.execute("SELECT * FROM copied")
            with self.assertRaisesRegex(ValueError, 'flight="127.0.0.1:0"'):
                server._listens("flight", server.flight)
        self.assertEqual((repr(server), server.is_running), ("<coscan.Server: stopped>", False))
        with self.assertRaises(OSError):
            urllib.request.urlopen(f"http://{server.http}/")
        for wrong, error in [
            ({"postgres": "nowhere"}, ValueError),
            ({"http": ""}, ValueError),
            ({"postgres": "0.0.0.0:0"}, coscan.Error),
        ]:
            with self.assertRaises(error):
                self.session.serve(**wrong)
        with coscan.Session() as closed:
            server = closed.serve(postgres="localhost:0")
            with self.assertRaises(ValueError):
                server.stop(-1)
            self.assertTrue(server.is_running)
        self.assertFalse(server.is_running)
        with self.assertRaisesRegex(coscan.Error, "the session is closed"):
            closed.sql("SELECT 1")


if __name__ == "__main__":
    unittest.main()
