"""Drivers that read with COPY: the ADBC driver for PostgreSQL, ConnectorX, and polars with either."""

import os
from decimal import Decimal

import adbc_driver_postgresql.dbapi as adbc_postgresql
import connectorx
import pandas
import polars
import pytest
from conftest import KINDS, ROWS

URL = f"postgresql://bob:{os.environ['PGPASSWORD']}@{os.environ['PGHOST']}:{os.environ['PGPORT']}/coscan"


@pytest.fixture
def cursor():
    with adbc_postgresql.connect(URL, autocommit=True) as connection, connection.cursor() as cursor:
        yield cursor


def test_adbc_reads_values_of_all_types(cursor):
    cursor.execute("SELECT * FROM kinds ORDER BY large")
    table = cursor.fetch_arrow_table()
    assert table.column_names == KINDS
    assert [str(field.type) for field in table.schema][:12] == [
        "int16", "int32", "int64", "float", "double", "extension<arrow.opaque[storage_type=string, type_name=numeric, vendor_name=PostgreSQL]>",
        "string", "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]", "bool", "binary",
    ]
    low, first, nulls = table.to_pylist()
    assert first["large"] == 5_000_000_000 and first["amount"] == "-1234.50" and first["bytes"] == b"\x00\xff"
    assert first["list"] == ["a", None, "b"] and low["list"] == []
    assert set(nulls.values()) == {None}


def test_adbc_reads_all_rows(cursor):
    cursor.execute("SELECT id FROM numbers")
    assert sorted(cursor.fetch_arrow_table()["id"].to_pylist()) == list(range(ROWS))
    cursor.execute("SELECT id FROM numbers WHERE id < 0")
    assert cursor.fetch_arrow_table().num_rows == 0


def test_adbc_takes_parameters(cursor):
    cursor.execute("SELECT count(*) FROM numbers WHERE id < $1 AND word = $2", (70, "word 3"))
    assert cursor.fetchone() == (10,)


def test_adbc_metadata():
    with adbc_postgresql.connect(URL) as connection:
        assert connection.adbc_get_table_schema("numbers").names == ["id", "word"]
        [catalog] = connection.adbc_get_objects(depth="all", catalog_filter="coscan").read_all().to_pylist()
        schemas = {schema["db_schema_name"]: schema for schema in catalog["catalog_db_schemas"]}
        tables = {table["table_name"]: table for table in schemas["public"]["db_schema_tables"]}
        assert set(tables) == {"delta", "kinds", "numbers", "secrets"}
        assert [column["column_name"] for column in tables["numbers"]["table_columns"]] == ["id", "word"]
        assert tables["numbers"]["table_constraints"] == []


def test_adbc_in_a_transaction():
    with adbc_postgresql.connect(URL) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 AS one")
        assert cursor.fetchall() == [(1,)]
        connection.commit()
        assert len(pandas.read_sql("SELECT * FROM kinds", connection)) == 3
        connection.rollback()


@pytest.mark.parametrize("protocol", ["binary", "cursor", "csv", "simple"])
def test_connectorx(protocol):
    frame = connectorx.read_sql(URL, "SELECT * FROM numbers", protocol=protocol, return_type="polars")
    assert sorted(frame["id"]) == list(range(ROWS)) and frame["word"].n_unique() == 7
    kinds = "SELECT small, large, double, amount, word, day, moment, yes, bytes FROM kinds WHERE large > 0"
    frame = connectorx.read_sql(URL, kinds, protocol=protocol, return_type="polars")
    row = frame.row(0)
    assert row[:3] == (7, 5_000_000_000, -0.1) and row[3] == Decimal("-1234.5") and row[8] == b"\x00\xff"


def test_connectorx_in_partitions():
    frame = connectorx.read_sql(URL, "SELECT * FROM numbers", partition_on="id", partition_num=3, return_type="polars")
    assert sorted(frame["id"]) == list(range(ROWS))


@pytest.mark.parametrize("engine", ["connectorx", "adbc"])
def test_polars(engine):
    frame = polars.read_database_uri("SELECT word, sum(id)::bigint AS total FROM numbers GROUP BY word", URL, engine=engine)
    assert frame["total"].sum() == ROWS * (ROWS - 1) // 2 and len(frame) == 7
    frame = polars.read_database_uri("SELECT id, day, moment FROM numbers JOIN kinds ON id = small", URL, engine=engine)
    assert len(frame) == 2 and frame.schema["day"] == polars.Date
