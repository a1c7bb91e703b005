"""The engines, each as its users run it with several clients in one machine. Runs in a worker process."""

import ctypes
import os
import re
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable
from functools import partial

from engine import Engine, Setup

# Loaded here: between fork and exec a process should do little.
LIBC = ctypes.CDLL(None)


def columns_to_rows(table) -> list[tuple]:
    """The rows of an Arrow table or batch, whose columns may share a name."""
    return list(zip(*(column.to_pylist() for column in table.columns)))


def end_with_parent() -> None:
    """Lets this process end when its parent does, however that ends: prctl(PR_SET_PDEATHSIG)."""
    LIBC.prctl(1, signal.SIGKILL)


class Coscan(Engine):
    """A server, and a connection of the PostgreSQL protocol for each client."""

    def __init__(self, setup: Setup, share_results: str):
        import psycopg
        self._psycopg = psycopg
        self._share_results = share_results
        # A folder is listed by each query, as the other engines do. By default, REFRESH TABLE has to be said.
        self._settings = "-c coscan.refresh_interval=0s" if setup.folders else ""
        arguments = [setup.coscan, "serve", "--insecure", "--listen-postgres", "127.0.0.1:0", "--log-level", "error",
                     "--memory-bytes", str(setup.memory_bytes), "--stop-grace", "1s"]
        for name, location in (setup.files | setup.folders).items():
            arguments += ["--table", f"{name}={location}"]
        if setup.pool_bytes:
            arguments += ["--pool-bytes", str(setup.pool_bytes)]
        self._server = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        preexec_fn=end_with_parent)
        self._port = self._wait_until_ready()
        self.pids = [os.getpid(), self._server.pid]

    def _wait_until_ready(self) -> int:
        said = []
        for line in self._server.stderr:
            said.append(line)
            if match := re.search(r"PostgreSQL clients connect with: psql .*-p (\d+)", line):
                # Whoever does not read on stops the server when the pipe is full.
                threading.Thread(target=self._server.stderr.read, daemon=True).start()
                return int(match[1])
        raise RuntimeError(f"coscan serve ended: {''.join(said)}")

    def client(self) -> Callable[[str], object]:
        return self._connected(self._share_results)

    def client_alone(self) -> Callable[[str], object]:
        return self._connected("false")

    def _connected(self, share_results: str) -> Callable[[str], object]:
        connection = self._psycopg.connect(
            host="127.0.0.1", port=self._port, user="anyone", dbname="coscan", autocommit=True, prepare_threshold=None,
            options=f"-c coscan.share_results={share_results} {self._settings}")
        return lambda sql: connection.execute(sql).fetchall()

    def close(self) -> None:
        self._server.send_signal(signal.SIGTERM)
        self._server.wait(timeout=60)


class DuckDb(Engine):
    """One database in memory with a view of each file, and a cursor for each client."""

    def __init__(self, setup: Setup):
        import duckdb
        self._connection = duckdb.connect(config={
            "memory_limit": f"{setup.memory_bytes}B", "threads": setup.cores, "temp_directory": setup.scratch})
        # The files do not change. coscan, DataFusion and ClickHouse keep footers by default.
        self._connection.execute("SET GLOBAL parquet_metadata_cache = true")
        for name, file in setup.files.items():
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}')")
        for name, folder in setup.folders.items():
            self._connection.execute(f"CREATE VIEW {name} AS SELECT * FROM "
                                     f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)")

    def client(self) -> Callable[[str], object]:
        cursor = self._connection.cursor()
        return lambda sql: cursor.execute(sql).fetchall()

    def close(self) -> None:
        self._connection.close()


class ChDb(Engine):
    """ClickHouse in the process: one database in memory, and a connection for each client."""

    def __init__(self, setup: Setup):
        warnings.simplefilter("ignore")
        import chdb
        self._chdb = chdb
        # SQL's NULLs; reads that /proc counts, from pages that can leave the cache (by default files are mapped).
        settings = ["join_use_nulls=1", "aggregate_functions_null_for_empty=1", "storage_file_read_method=pread",
                    f"max_threads={setup.cores}", f"max_server_memory_usage={setup.memory_bytes}"]
        self._address = ":memory:?" + "&".join(settings)
        self._first = chdb.connect(self._address)
        for name, file in setup.files.items():
            self._first.query(f"CREATE TABLE {name} ENGINE = File(Parquet, '{file}')")
        for name, folder in setup.folders.items():
            # A table would list its files once.
            self._first.query(f"CREATE VIEW {name} AS SELECT * FROM file('{folder}/**/*.parquet', Parquet)")

    def client(self) -> Callable[[str], object]:
        # Statements on one connection wait for each other; those on connections of their own run side by side.
        connection = self._chdb.connect(self._address)
        return lambda sql: connection.query(self._dialect(sql), "ArrowStream")

    @staticmethod
    def _dialect(sql: str) -> str:
        # A quotient of decimals has the scale of the dividend in ClickHouse: Q8 needs more digits.
        return sql.replace("/ sum(volume)", "/ toFloat64(sum(volume))")

    @staticmethod
    def rows(result) -> list[tuple]:
        import pyarrow
        content = result.bytes()
        return columns_to_rows(pyarrow.ipc.open_stream(content).read_all()) if content else []

    def close(self) -> None:
        self._first.close()


class DataFusion(Engine):
    """One session of Apache DataFusion's Python package for all clients."""

    def __init__(self, setup: Setup):
        import datafusion
        import pyarrow
        runtime = (datafusion.RuntimeEnvBuilder().with_disk_manager_specified(setup.scratch)
                   .with_greedy_memory_pool(setup.memory_bytes))
        config = datafusion.SessionConfig().with_target_partitions(setup.cores)
        self._context = datafusion.SessionContext(config, runtime)
        for name, file in setup.files.items():
            self._context.register_parquet(name, file)
        if setup.folders:
            # It keeps lists of files, too, for ever by default.
            self._context.sql("SET datafusion.runtime.list_files_cache_limit = '0K'").collect()
        for name, folder in setup.folders.items():
            self._context.register_parquet(name, folder, table_partition_cols=[(setup.partition, pyarrow.string())])

    def client(self) -> Callable[[str], object]:
        return lambda sql: self._context.sql(sql).collect()

    @staticmethod
    def rows(result) -> list[tuple]:
        return [row for batch in result for row in columns_to_rows(batch)]


ENGINES = {
    "coscan": partial(Coscan, share_results="true"),
    "coscan-no-results": partial(Coscan, share_results="false"),
    "coscan-running": partial(Coscan, share_results="running"),
    "duckdb": DuckDb, "chdb": ChDb, "datafusion": DataFusion,
}
