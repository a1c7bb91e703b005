"""Arrow Flight SQL with the ADBC driver, and pyarrow, pandas and polars on it."""

import concurrent.futures
import datetime
import os
import threading
from decimal import Decimal

import adbc_driver_manager
import pandas
import polars
import pyarrow
import pytest
from conftest import KINDS, LONG, ROWS, flight

UTC = datetime.timezone.utc

TYPES = """
SELECT arrow_cast('é', 'Utf8View') AS view, arrow_cast('word', 'Dictionary(Int32, Utf8)') AS dictionary,
       [[1], [2, NULL]] AS nested, named_struct('a', 1, 'b', 'x') AS struct, arrow_cast(-7, 'Int8') AS tiny,
       CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) AS number,
       ['a', NULL, 'another text that is longer than twelve bytes'] AS list, NULL AS nothing
"""


def test_values_of_all_types(cursor):
    cursor.execute("SELECT * FROM kinds ORDER BY large")
    table = cursor.fetch_arrow_table()
    assert table.column_names == KINDS
    assert [str(field.type) for field in table.schema][:12] == [
        "int16", "int32", "int64", "float", "double", "decimal128(10, 2)", "string", "date32[day]", "timestamp[us]",
        "timestamp[us, tz=UTC]", "bool", "binary",
    ]
    low, first, nulls = table.to_pylist()
    assert first == {
        "small": 7, "whole": -70_000, "large": 5_000_000_000, "single": 1.5, "double": -0.1,
        "amount": Decimal("-1234.50"), "word": "é, a text of more than twelve bytes",
        "day": datetime.date(2024, 2, 29), "moment": datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
        "instant": datetime.datetime(2024, 2, 29, 10, 34, 56, tzinfo=UTC), "yes": True, "bytes": b"\x00\xff",
        "list": ["a", None, "b"],
    }
    assert low["amount"] == Decimal("0.00") and low["list"] == []
    assert set(nulls.values()) == {None}


def test_values_of_other_types(cursor):
    cursor.execute(TYPES)
    table = cursor.fetch_arrow_table()
    assert table.schema.field("view").type == pyarrow.string(), table.schema
    assert table.to_pylist() == [{
        "view": "é", "dictionary": "word", "nested": [[1], [2, None]], "struct": {"a": 1, "b": "x"}, "tiny": -7,
        "number": Decimal("9" * 38), "list": ["a", None, "another text that is longer than twelve bytes"],
        "nothing": None,
    }]


def test_frames(adbc, cursor):
    cursor.execute("SELECT id, word FROM numbers")
    table = cursor.fetch_arrow_table()
    assert sorted(table["id"].to_pylist()) == list(range(ROWS))
    cursor.execute("SELECT word, sum(id) AS total FROM numbers GROUP BY 1 ORDER BY 1")
    frame = cursor.fetch_df()
    assert list(frame.columns) == ["word", "total"] and len(frame) == 7
    assert frame.total.sum() == ROWS * (ROWS - 1) // 2
    frame = pandas.read_sql("SELECT * FROM kinds ORDER BY large", adbc)
    assert frame.amount[1] == Decimal("-1234.50") and frame.word.isna()[2]
    frame = polars.read_database("SELECT * FROM kinds ORDER BY large", adbc)
    assert frame.schema["day"] == polars.Date and frame.schema["list"] == polars.List(polars.String)
    assert frame.row(1)[:3] == (7, -70_000, 5_000_000_000) and frame.row(2) == (None,) * 13
    cursor.execute("SELECT id FROM numbers WHERE id < 0")
    assert cursor.fetch_arrow_table().num_rows == 0


@pytest.mark.parametrize("condition, value, expected", [
    ("whole > $1", -70_000, 1), ("whole > $1", -1.5, 1), ("amount > $1", Decimal("-1234.505"), 2), ("amount < $1", 0, 1),
    ("day < $1", datetime.date(2024, 2, 29), 1), ("moment <= $1", datetime.datetime(2024, 2, 29, 12, 34, 57), 2),
    ("word = $1", "", 1), ("yes = $1", True, 1), ("large IS NOT DISTINCT FROM $1", None, 1),
])
def test_parameters_are_compared_as_what_they_are(cursor, condition, value, expected):
    cursor.execute(f"SELECT count(*) FROM kinds WHERE {condition}", (value,))
    assert cursor.fetchone() == (expected,)


def test_a_prepared_statement_is_run_again_and_again(cursor):
    sql = "SELECT count(*), min(word) FROM numbers WHERE id >= $1 AND id < $2"
    for first in range(20):
        cursor.execute(sql, (first, first + 7))
        assert cursor.fetchone() == (7, "word 0")
    cursor.execute("SELECT $1::bigint + 1, $2::text", (41, None))
    assert cursor.fetchone() == (42, None)
    with pytest.raises(adbc_driver_manager.NotSupportedError, match="as a query"):
        cursor.executemany("SELECT $1::bigint", [(1,), (2,)])


def test_settings(adbc, cursor):
    cursor.execute("SET statement_timeout = '7s'")
    cursor.execute("SHOW statement_timeout")
    assert cursor.fetchone() == ("7000ms",)
    adbc.adbc_connection.set_options(**{"adbc.flight.sql.session.option.statement_timeout": "9s"})
    cursor.execute("SHOW statement_timeout")
    assert cursor.fetchone() == ("9000ms",)


def test_metadata(adbc):
    assert adbc.adbc_get_info()["vendor_name"] == "coscan"
    assert set(adbc.adbc_get_table_types()) == {"TABLE", "SYSTEM TABLE"}
    schema = adbc.adbc_get_table_schema("kinds", catalog_filter="coscan", db_schema_filter="public")
    assert schema.names == KINDS and schema.field("word").type == pyarrow.string()
    [catalog] = adbc.adbc_get_objects(depth="columns").read_all().to_pylist()
    schemas = {schema["db_schema_name"]: schema for schema in catalog["catalog_db_schemas"]}
    tables = {table["table_name"]: table for table in schemas["public"]["db_schema_tables"]}
    assert set(tables) == {"delta", "kinds", "numbers", "secrets"}
    assert [column["column_name"] for column in tables["numbers"]["table_columns"]] == ["id", "word"]
    assert [column["ordinal_position"] for column in tables["numbers"]["table_columns"]] == [1, 2]
    [catalog] = adbc.adbc_get_objects(depth="tables", table_name_filter="num%").read_all().to_pylist()
    names = [table["table_name"] for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]]
    assert names == ["numbers"]


@pytest.mark.parametrize("sql, words", [
    ("SELEC 1", "SELEC"), ("SELECT * FROM nothing", "nothing"), ("SELECT nothing FROM numbers", "nothing"),
    ("DROP TABLE numbers", "reads tables only"),
])
def test_errors_have_words(cursor, sql, words):
    with pytest.raises(adbc_driver_manager.Error, match=words):
        cursor.execute(sql)
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,)


def test_users_see_what_they_were_granted():
    with flight("ann") as connection, connection.cursor() as cursor:
        [catalog] = connection.adbc_get_objects(depth="tables", db_schema_filter="public").read_all().to_pylist()
        [schema] = catalog["catalog_db_schemas"]
        assert [table["table_name"] for table in schema["db_schema_tables"]] == ["numbers"]
        with pytest.raises(adbc_driver_manager.ProgrammingError, match="secrets"):
            cursor.execute("SELECT * FROM secrets")
    with pytest.raises(adbc_driver_manager.Error, match="wrong user or password"):
        flight("ann", "wrong")


def test_a_query_is_cancelled(cursor):
    cursor.execute(LONG)
    reader = cursor.fetch_record_batch()
    reader.read_next_batch()
    cancelling = threading.Thread(target=cursor.adbc_cancel)
    cancelling.start()
    with pytest.raises((pyarrow.ArrowCancelled, OSError, adbc_driver_manager.Error), match="ancel"):
        for _ in reader:
            pass
    cancelling.join()
    with flight() as connection, connection.cursor() as other:
        count = (1,)
        while count != (0,):  # The runner of this test ends it if it hangs.
            other.execute(f"SELECT count(*) FROM system.queries WHERE state = 'running' AND sql = '{LONG}'")
            count = other.fetchone()


def test_a_query_has_a_time_limit(cursor):
    cursor.execute("SET statement_timeout = '200ms'")
    with pytest.raises((OSError, adbc_driver_manager.Error), match="statement_timeout"):
        cursor.execute(LONG)
        cursor.fetch_arrow_table()


def test_64_connections_at_once():
    ready = threading.Barrier(64)

    def client(number):
        with flight() as connection, connection.cursor() as cursor:
            ready.wait()
            cursor.execute(f"SELECT count(*), sum(id) FROM numbers WHERE id >= {number}")
            return cursor.fetchone()

    with concurrent.futures.ThreadPoolExecutor(64) as threads:
        for number, row in enumerate(threads.map(client, range(64))):
            assert row == (ROWS - number, sum(range(number, ROWS)))


def test_encryption():
    url = os.environ["FLIGHT_TLS_URL"]
    with open(os.environ["CERTIFICATE"]) as file:
        certificate = file.read()
    with flight(url=url, certificate=certificate) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    with pytest.raises(adbc_driver_manager.Error, match="certificate"):
        flight(url=url)
