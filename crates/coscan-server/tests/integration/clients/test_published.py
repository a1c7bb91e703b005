"""Tables of the server's database, which other engines read as Delta tables: `deltalake`, polars, and ClickHouse's `chdb`
where it is installed."""

import glob
import os
import random
import time

import deltalake
import polars
import pyarrow as pa
import pytest
from conftest import postgres

COLUMNS = ["id", "amount", "price", "word", "day", "moment", "yes"]


@pytest.fixture
def cursor():
    port = os.environ["DATABASE_PORT"]
    with postgres(user="root", port=port, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS published")
        cursor.execute(
            "CREATE TABLE published (id BIGINT NOT NULL, amount DOUBLE, price DECIMAL(10, 2), word VARCHAR, day DATE, "
            "moment TIMESTAMP(6), yes BOOLEAN)"
        )
        yield cursor
        cursor.execute("DROP TABLE published")


def insert(cursor, first, count):
    cursor.execute(
        f"INSERT INTO published SELECT value, value / 4.0, value / 100.0, CASE WHEN value % 5 > 0 THEN 'word ' || value END, "
        f"DATE '2026-01-01' + CAST(value % 30 AS INTEGER), "
        f"arrow_cast(value * 1000003, 'Timestamp(Microsecond, None)'), value % 3 = 0 FROM range({first}, {first + count})"
    )


def directory():
    return os.path.join(os.environ["DATABASE_DIRECTORY"], "delta", "published")


def rows_of(table):
    return sorted(tuple(row[name] for name in COLUMNS) for row in table.select(COLUMNS).to_pylist())


def expected(cursor):
    cursor.execute("SELECT " + ", ".join(COLUMNS) + " FROM published")
    return sorted(cursor.fetchall(), key=lambda row: row[0])


def check(cursor):
    """Compares the rows of all engines with those of the server."""
    rows = expected(cursor)
    delta = deltalake.DeltaTable(directory())
    assert rows_of(delta.to_pyarrow_table()) == rows
    assert sorted(polars.read_delta(directory()).select(COLUMNS).rows(), key=lambda row: row[0]) == rows
    try:
        import chdb
    except ImportError:
        return
    read = f"SELECT {', '.join(COLUMNS)} FROM deltaLakeLocal('{directory()}')"
    arrow = chdb.query(read, "ArrowTable")
    count, total = arrow.num_rows, sum(arrow.column("id").to_pylist())
    assert (count, total) == (len(rows), sum(row[0] for row in rows))
    words = arrow.column("word")
    words = (words.cast(pa.string()) if pa.types.is_binary(words.type) else words).to_pylist()
    assert sorted(word for word in words if word) == sorted(row[3] for row in rows if row[3])


def test_checkpoints_are_read_by_other_engines(cursor):
    insert(cursor, 0, 10_000)
    cursor.execute("VACUUM FULL published")
    check(cursor)
    choose = random.Random(1)
    for _ in range(5):
        for _ in range(20):
            first = choose.randrange(12_000)
            cursor.execute(
                choose.choice([
                    f"UPDATE published SET word = 'changed', amount = amount + 1 WHERE id BETWEEN {first} AND {first + 20}",
                    f"DELETE FROM published WHERE id % 1000 = {first % 1000}",
                    f"UPDATE published SET moment = NULL, yes = NOT yes WHERE id = {first}",
                ])
            )
        insert(cursor, choose.randrange(20_000, 1_000_000_000), 50)
        cursor.execute("VACUUM FULL published")
        check(cursor)


def test_other_engines_may_compact_and_vacuum(cursor):
    for first in range(0, 3000, 1000):
        insert(cursor, first, 1000)
        cursor.execute("VACUUM FULL published")
    table = deltalake.DeltaTable(directory())
    assert table.optimize.compact()["numFilesRemoved"] > 1
    vacuum = dict(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert deltalake.DeltaTable(directory()).vacuum(**vacuum)
    check(cursor)
    cursor.execute("DELETE FROM published WHERE id < 10")
    insert(cursor, 5000, 10)
    # The database has its files, although they are gone from the Delta table.
    assert len(expected(cursor)) == 3000
    cursor.execute("VACUUM FULL published")
    check(cursor)
    deltalake.DeltaTable(directory()).create_checkpoint()
    deltalake.DeltaTable(directory()).vacuum(**vacuum)
    insert(cursor, 6000, 10)
    cursor.execute("VACUUM FULL published")
    check(cursor)


def test_versions_stay(cursor):
    insert(cursor, 0, 100)
    cursor.execute("VACUUM FULL published")
    before = expected(cursor)
    version = deltalake.DeltaTable(directory()).version()
    cursor.execute("UPDATE published SET amount = 0")
    cursor.execute("VACUUM FULL published")
    check(cursor)
    assert rows_of(deltalake.DeltaTable(directory(), version=version).to_pyarrow_table()) == before


def test_rows_of_other_engines_are_not_lost(cursor):
    insert(cursor, 0, 100)
    cursor.execute("VACUUM FULL published")
    more = deltalake.DeltaTable(directory()).to_pyarrow_table().slice(0, 1)
    deltalake.write_deltalake(directory(), more, mode="append")
    insert(cursor, 100, 1)
    with pytest.raises(Exception, match="another engine has changed the Delta table"):
        cursor.execute("VACUUM FULL published")
    assert len(expected(cursor)) == 101
    assert deltalake.DeltaTable(directory()).to_pyarrow_table().num_rows == 101
    os.rename(directory(), os.path.join(os.environ["DATABASE_DIRECTORY"], "by-others"))
    cursor.execute("VACUUM FULL published")
    check(cursor)


def test_rows_that_become_files_at_once_are_published(cursor):
    insert(cursor, 0, 100_000)
    log = os.path.join(directory(), "_delta_log", "*.json")
    deadline = time.monotonic() + 120
    while not glob.glob(log) or deltalake.DeltaTable(directory()).to_pyarrow_table().num_rows < 100_000:
        assert time.monotonic() < deadline
    check(cursor)
