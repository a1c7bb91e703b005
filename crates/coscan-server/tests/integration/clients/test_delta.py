"""A Delta table that the package `deltalake` writes while the server reads it: equal rows in all versions."""

import datetime
import os
import sys

import deltalake
import pyarrow as pa
import pytest
from conftest import postgres

COLUMNS = "id, amount, city, day"


def rows(first, count):
    """Rows of the table, in three partitions, some of them NULL."""
    ids = range(first, first + count)
    days = [datetime.date(2026, 1, 1 + number % 3) if number % 7 else None for number in ids]
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "amount": pa.array([number / 4 for number in ids], pa.float64()),
        "city": pa.array([None if number % 5 == 0 else f"city {number % 11}" for number in ids]),
        "day": pa.array(days, pa.date32()),
    })


def create(directory):
    """The first version."""
    deltalake.write_deltalake(directory, rows(0, 1000), partition_by=["day"])


def written(directory, version=None, columns=COLUMNS):
    """The rows of a version as its writer sees them."""
    table = deltalake.DeltaTable(directory, version=version).to_pyarrow_table()
    lists = table.select(columns.split(", ")).to_pylist()
    return sorted((tuple(row.values()) for row in lists), key=repr)


def read(cursor, clause="", columns=COLUMNS):
    """The rows of a version as the server sees them."""
    cursor.execute(f"SELECT {columns} FROM delta {clause}")
    return sorted(cursor.fetchall(), key=repr)


@pytest.fixture(scope="module")
def directory():
    return os.environ["DELTA_DIRECTORY"]


def test_each_change_of_the_table_is_seen(directory):
    table = lambda: deltalake.DeltaTable(directory)
    changes = [
        lambda: deltalake.write_deltalake(directory, rows(1000, 500), mode="append"),
        lambda: table().delete("id % 10 = 3"),
        lambda: table().update(predicate="id < 50", updates={"city": "'moved'"}),
        lambda: table().merge(rows(1400, 200), predicate="t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all().when_not_matched_insert_all().execute(),
        lambda: table().optimize.compact(),
        lambda: table().create_checkpoint(),
        lambda: deltalake.write_deltalake(directory, rows(0, 10), mode="append"),
        lambda: deltalake.write_deltalake(directory, rows(5000, 100), mode="overwrite"),
    ]
    with postgres(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET coscan.refresh_interval = '0s'")
        assert read(cursor) == written(directory)
        for change in changes:
            change()
            assert read(cursor) == written(directory)
            cursor.execute("SELECT count(*), count(city), min(id), max(id) FROM delta WHERE day = '2026-01-03'")
            expected = [row for row in written(directory) if row[3] == datetime.date(2026, 1, 3)]
            ids, cities = [row[0] for row in expected], [row[2] for row in expected if row[2] is not None]
            assert cursor.fetchone() == (len(ids), len(cities), min(ids), max(ids))
        for version in range(table().version() + 1):
            assert read(cursor, f"VERSION AS OF {version}") == written(directory, version)


def test_columns_may_be_added(directory):
    more = rows(9000, 10).append_column("note", pa.array([f"note {number}" for number in range(10)]))
    with postgres(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET coscan.refresh_interval = '0s'")
        deltalake.write_deltalake(directory, more, mode="append", schema_mode="merge")
        read(cursor)  # Finds the version.
        columns = COLUMNS + ", note"
        assert read(cursor, columns=columns) == written(directory, columns=columns)


def test_what_a_version_needs_is_still_there_or_an_error(directory):
    table = deltalake.DeltaTable(directory)
    with postgres(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET coscan.refresh_interval = '0s'")
        expected = written(directory)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        assert read(cursor) == expected
        with pytest.raises(Exception, match="cannot be read|does not exist|not found"):
            read(cursor, "VERSION AS OF 1")
        assert read(cursor) == expected


if __name__ == "__main__":
    create(sys.argv[1])
