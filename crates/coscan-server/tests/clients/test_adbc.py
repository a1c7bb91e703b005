"""The ADBC driver for Flight SQL, with pyarrow, pandas and polars, against a server with the tables of `--demo`.

    pip install adbc-driver-flightsql adbc-driver-manager pyarrow pandas polars
    coscan serve --demo --scale 0.01 --listen-flight 127.0.0.1:5434
    python adbc.py grpc://127.0.0.1:5434 [USER PASSWORD [CERTIFICATE]]
"""

import datetime
import decimal
import sys
import threading
import time

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import polars
import pyarrow


def connect():
    options = {}
    if len(sys.argv) > 3:
        options = {"username": sys.argv[2], "password": sys.argv[3]}
    if len(sys.argv) > 4:
        with open(sys.argv[4]) as file:
            options[adbc_driver_flightsql.DatabaseOptions.TLS_ROOT_CERTS.value] = file.read()
    return flightsql.connect(sys.argv[1], db_kwargs=options, autocommit=True)


TYPES = """
SELECT DATE '2024-02-29' AS day, CAST(-1.5 AS DECIMAL(10, 2)) AS amount,
       TIMESTAMP '2024-02-29T12:34:56.789' AS moment, CAST(NULL AS BIGINT) AS nothing, true AS yes,
       CAST(7 AS SMALLINT) AS small, 'a text that is longer than twelve bytes' AS words,
       ['a', NULL, 'another text that is longer than twelve bytes'] AS list, arrow_cast('é', 'Utf8View') AS view
"""


def types(cursor):
    cursor.execute(TYPES)
    table = cursor.fetch_arrow_table()
    assert table.schema.field("words").type == pyarrow.string(), table.schema
    assert table.schema.field("view").type == pyarrow.string(), table.schema
    [row] = table.to_pylist()
    assert row["day"] == datetime.date(2024, 2, 29), row
    assert row["amount"] == decimal.Decimal("-1.50"), row
    assert row["moment"] == datetime.datetime(2024, 2, 29, 12, 34, 56, 789000), row
    assert row["nothing"] is None and row["yes"] is True and row["small"] == 7, row
    assert row["list"] == ["a", None, "another text that is longer than twelve bytes"], row
    assert row["view"] == "é", row


def frames(cursor):
    cursor.execute("SELECT l_orderkey, l_comment, l_shipdate, l_quantity FROM lineitem")
    rows = cursor.fetch_arrow_table().num_rows
    cursor.execute("SELECT count(*) AS n FROM lineitem")
    assert cursor.fetchone() == (rows,), rows
    cursor.execute("SELECT l_returnflag AS flag, sum(l_quantity) AS quantity FROM lineitem GROUP BY 1 ORDER BY 1")
    frame = cursor.fetch_df()
    assert list(frame.flag) == ["A", "N", "R"], frame
    sql = "SELECT l_shipdate, l_extendedprice, l_comment FROM lineitem WHERE l_orderkey < 100"
    frame = polars.read_database(sql, cursor.connection)
    assert frame.schema["l_shipdate"] == polars.Date and frame.height > 0, frame
    cursor.execute("SELECT l_orderkey FROM lineitem WHERE l_orderkey < 0")
    assert cursor.fetch_arrow_table().num_rows == 0


def parameters(cursor):
    sql = "SELECT count(*) FROM lineitem WHERE l_returnflag = $1 AND l_shipdate < $2 AND l_quantity >= $3"
    cursor.execute(sql, ("R", datetime.date(1994, 1, 1), decimal.Decimal("10")))
    some = cursor.fetchone()[0]
    cursor.execute(sql, ("R", datetime.date(2000, 1, 1), 10))
    assert 0 < some < cursor.fetchone()[0]
    cursor.execute("SELECT $1::bigint + 1, $2::text", (41, None))
    assert cursor.fetchone() == (42, None)
    try:
        cursor.executemany("SELECT $1::bigint", [(1,), (2,)])
        raise AssertionError("an update was accepted")
    except adbc_driver_manager.NotSupportedError as error:
        assert "as queries" in str(error), error


def settings(connection, cursor):
    cursor.execute("SET statement_timeout = '7s'")
    cursor.execute("SHOW statement_timeout")
    assert cursor.fetchone() == ("7000ms",)
    connection.adbc_connection.set_options(**{"adbc.flight.sql.session.option.statement_timeout": "9s"})
    cursor.execute("SHOW statement_timeout")
    assert cursor.fetchone() == ("9000ms",)


def metadata(connection):
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "coscan", info
    assert set(connection.adbc_get_table_types()) == {"TABLE", "SYSTEM TABLE"}
    schema = connection.adbc_get_table_schema("lineitem", catalog_filter="coscan", db_schema_filter="public")
    assert schema.field("l_comment").type == pyarrow.string(), schema
    [catalog] = connection.adbc_get_objects(depth="columns").read_all().to_pylist()
    schemas = {schema["db_schema_name"]: schema for schema in catalog["catalog_db_schemas"]}
    tables = {table["table_name"]: table for table in schemas["public"]["db_schema_tables"]}
    assert any(column["column_name"] == "l_shipdate" for column in tables["lineitem"]["table_columns"])


def errors(cursor):
    for sql, error in [
        ("SELEC 1", adbc_driver_manager.ProgrammingError),
        ("SELECT * FROM nothing", adbc_driver_manager.ProgrammingError),
    ]:
        try:
            cursor.execute(sql)
            raise AssertionError(sql)
        except error:
            pass


def cancel(cursor):
    sql = "SELECT a.l_orderkey FROM lineitem a, lineitem b, lineitem c"
    cursor.execute(sql)
    reader = cursor.fetch_record_batch()
    reader.read_next_batch()
    stop = threading.Timer(0.2, cursor.adbc_cancel)
    stop.start()
    try:
        for _ in reader:
            pass
        raise AssertionError("it ended by itself")
    except (pyarrow.ArrowCancelled, OSError, adbc_driver_manager.Error) as error:
        assert "ancel" in str(error), error
    stop.join()


def main():
    with connect() as connection, connection.cursor() as cursor:
        types(cursor)
        frames(cursor)
        parameters(cursor)
        settings(connection, cursor)
        metadata(connection)
        errors(cursor)
    with connect() as connection, connection.cursor() as cursor:
        cancel(cursor)
    with connect() as connection, connection.cursor() as cursor:
        deadline = time.monotonic() + 60
        while True:
            cursor.execute("SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%lineitem c'")
            if cursor.fetchone() == (0,):
                break
            assert time.monotonic() < deadline, "the cancelled query still runs"
    print("ADBC: all is well")


main()
