"""The PostgreSQL protocol with psycopg, and what is built on it: pandas, polars, SQLAlchemy."""

import concurrent.futures
import datetime
import os
import threading
import warnings
from decimal import Decimal

import pandas
import polars
import psycopg
import pytest
import sqlalchemy
from conftest import KINDS, LONG, ROWS, postgres
from psycopg import errors

UTC = datetime.timezone.utc

FIRST = (
    7, -70_000, 5_000_000_000, 1.5, -0.1, Decimal("-1234.50"), "é, a text of more than twelve bytes",
    datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
    datetime.datetime(2024, 2, 29, 10, 34, 56, tzinfo=UTC), True, b"\x00\xff", ["a", None, "b"],
)


@pytest.mark.parametrize("binary", [False, True])
def test_values_of_all_types(connection, binary):
    cursor = connection.cursor(binary=binary)
    cursor.execute("SELECT * FROM kinds ORDER BY large")
    assert [column.name for column in cursor.description] == KINDS
    types = [connection.adapters.types[column.type_code].name for column in cursor.description[:12]]
    assert types == [
        "int2", "int4", "int8", "float4", "float8", "numeric", "text", "date", "timestamp", "timestamptz", "bool",
        "bytea",
    ]
    low, first, nulls = cursor.fetchall()
    assert first == FIRST
    assert low[5] == Decimal("0.00") and low[12] == []
    assert nulls == (None,) * 13


@pytest.mark.parametrize("binary", [False, True])
def test_values_without_a_type_in_postgresql(connection, binary):
    cursor = connection.cursor(binary=binary)
    cursor.execute(
        """SELECT arrow_cast(-7, 'Int8'), arrow_cast(1.5, 'Float16'), arrow_cast(18446744073709551615, 'UInt64'),
                  CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)), CAST('-0.00001' AS DECIMAL(38, 10)),
                  [[1], [2, NULL]], map(['a'], [1]), NULL, INTERVAL '1 day 2 hours', TIME '12:34:56'""")
    assert cursor.fetchone() == (
        -7, 1.5, Decimal(18446744073709551615), Decimal("9" * 38), Decimal("-0.0000100000"), "[[1], [2, NULL]]",
        "{a: 1}", None, datetime.timedelta(days=1, hours=2), datetime.time(12, 34, 56),
    )


@pytest.mark.parametrize("place", ["%s", "%b", "%t"])
@pytest.mark.parametrize("value", [
    7, 2**40, 1.5, True, "x", None, Decimal("1.5"), Decimal(-(10**25)), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 1, 2, 3), datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC),
    datetime.time(1, 2), b"ab\x00", [1, 2], "", "it''s", "{a,b}", '"a"', " a ", "\\", "NULL",
])
def test_parameters_come_back(connection, place, value):
    [returned] = connection.execute(f"SELECT {place}", (value,)).fetchone()
    assert returned == value and type(returned) is type(value)


@pytest.mark.parametrize("place", ["%s", "%b"])
@pytest.mark.parametrize("condition, value, expected", [
    ("whole > {}", -1.5, 1), ("whole > {}", Decimal("-70000.5"), 2), ("amount > {}", Decimal("-1234.505"), 2),
    ("amount = {}", -1234.5, 1), ("amount < {}", 0, 1), ("day < {}", datetime.datetime(2024, 2, 29, 0, 0, 1), 2),
    ("moment > {}", datetime.date(2024, 2, 29), 1), ("word = {}", "", 1), ("large = ANY({})", [1, 5_000_000_000], 1),
    ("large IS NOT DISTINCT FROM {}", None, 1),
])
def test_parameters_are_compared_as_what_they_are(connection, place, condition, value, expected):
    sql = f"SELECT count(*) FROM kinds WHERE {condition.format(place)}"
    assert connection.execute(sql, (value,)).fetchone() == (expected,)


LISTS = [
    ("text", ["", "x"]), ("text", ["a,b", 'say "hi"', "back\\slash", "{brace}", " space ", "NULL", "null", "it''s", "é\n"]),
    ("text", [None, "", None]), ("text", []), ("int2", [1, None, -2]), ("int8", [2**40]), ("float8", [1.5, None, float("inf")]),
    ("bool", [True, None, False]), ("numeric", [Decimal("1.5"), None, Decimal(-(10**25))]),
    ("date", [datetime.date(2024, 2, 29), None]), ("time", [datetime.time(1, 2, 3)]),
    ("timestamp", [datetime.datetime(2024, 2, 29, 1, 2, 3), None]),
    ("timestamptz", [datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)]), ("bytea", [b"", b'\x00"\\', None]),
]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("place", ["%s", "%b", "%t"])
@pytest.mark.parametrize("of, value", LISTS)
def test_lists_come_back(connection, binary, place, of, value):
    cursor = connection.cursor(binary=binary)
    [returned] = cursor.execute(f"SELECT {place}::{of}[]", (value,)).fetchone()
    assert returned == value


@pytest.mark.parametrize("place", ["%s", "%b", "%t"])
@pytest.mark.parametrize("condition, value, expected", [
    ("word", [""], 1), ("word", ["", "x"], 1), ("word", ["é, a text of more than twelve bytes", None], 1), ("word", [], 0),
    ("word", ['"', "{", "NULL"], 0), ("large", [1, 5_000_000_000], 1), ("large", [None], 0), ("double", [-0.1], 1),
    ("amount", [Decimal("-1234.50"), Decimal("1.005")], 1), ("amount", [Decimal("-1234.5"), None], 1),
    ("yes", [True], 1), ("day", [datetime.date(2024, 2, 29)], 1),
    ("moment", [datetime.datetime(2024, 2, 29, 12, 34, 56, 789000), None], 1),
])
def test_values_are_looked_for_in_lists(connection, place, condition, value, expected):
    sql = f"SELECT count(*) FROM kinds WHERE {condition} = ANY({place})"
    assert connection.execute(sql, (value,)).fetchone() == (expected,)


def test_lists_that_cannot_be_parameters(connection):
    connection.autocommit = True
    with pytest.raises(errors.FeatureNotSupported, match="dimension"):
        connection.execute("SELECT %s", ([[1, 2], [3, 4]],))
    with pytest.raises(errors.InvalidTextRepresentation, match="malformed array"):
        connection.execute("SELECT %s::text[]", ("{a",))
    with pytest.raises(errors.InvalidTextRepresentation, match="int8"):
        connection.execute("SELECT %s::bigint[]", ("{a}",))


def test_a_prepared_statement_is_run_again_and_again(connection):
    sql = "SELECT count(*), min(word) FROM numbers WHERE id >= %s AND id < %s"
    for first in range(20):
        row = connection.execute(sql, (first, first + 7), prepare=True).fetchone()
        assert row == (7, "word 0")
    rows = connection.execute("SELECT id FROM numbers ORDER BY id LIMIT %s OFFSET %s", (2, 3)).fetchall()
    assert rows == [(3,), (4,)]
    with connection.pipeline():
        results = [connection.execute("SELECT %s + 1", (value,)) for value in range(5)]
    assert [result.fetchone() for result in results] == [(value + 1,) for value in range(5)]


def test_many_rows_at_once_and_one_by_one(connection):
    rows = connection.execute("SELECT id, word FROM numbers").fetchall()
    assert sorted(rows) == [(number, f"word {number % 7}") for number in range(ROWS)]
    streamed = connection.cursor(binary=True).stream("SELECT id FROM numbers")
    assert sum(number for number, in streamed) == ROWS * (ROWS - 1) // 2


@pytest.mark.parametrize("binary", [False, True])
def test_cursors_of_the_server(connection, binary):
    with connection.cursor("named", binary=binary) as cursor:
        cursor.itersize = 999
        cursor.execute("SELECT id FROM numbers WHERE id < %s", (20_000,))
        assert [column.name for column in cursor.description] == ["id"]
        assert sum(number for number, in cursor) == 20_000 * 19_999 // 2
        assert cursor.fetchone() is None
    with connection.cursor("endless") as cursor:
        cursor.execute(LONG)
        assert len(cursor.fetchmany(10)) == 10
    running = "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE 'DECLARE%'"
    assert connection.execute(running).fetchone() == (0,)
    connection.execute("DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id")
    assert connection.execute("FETCH 2 FROM c").fetchall() == [(0,), (1,)]
    assert connection.execute("FETCH NEXT FROM c").fetchall() == [(2,)]
    assert len(connection.execute("FETCH ALL FROM c").fetchall()) == ROWS - 3
    connection.execute("CLOSE c")
    with pytest.raises(errors.InvalidCursorName):
        connection.execute("FETCH 1 FROM c")


@pytest.mark.parametrize("sql, error", [
    ("DECLARE c SCROLL CURSOR FOR SELECT 1", errors.FeatureNotSupported),
    ("DECLARE c CURSOR FOR SELECT nothing", errors.UndefinedColumn),
    ("DECLARE c CURSOR FOR SELECT 1; FETCH PRIOR FROM c", errors.ObjectNotInPrerequisiteState),
    ("DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 2", errors.DuplicateCursor),
])
def test_cursors_that_cannot_be(connection, sql, error):
    with pytest.raises(error):
        connection.execute(sql)


def test_cursors_live_in_transactions():
    with postgres(autocommit=True) as connection:
        with pytest.raises(errors.NoActiveSqlTransaction):
            connection.execute("DECLARE c CURSOR FOR SELECT 1")
        with connection.transaction():
            connection.execute("DECLARE c CURSOR FOR SELECT 1")
        with connection.transaction(), pytest.raises(errors.InvalidCursorName):
            connection.execute("FETCH 1 FROM c")


@pytest.mark.parametrize("sql, error, words", [
    ("SELEC 1", errors.SyntaxError, "SELEC"),
    ("SELECT * FROM nothing", errors.UndefinedTable, "nothing"),
    ("SELECT nothing FROM numbers", errors.UndefinedColumn, "nothing"),
    ("SELECT nothing(id) FROM numbers", errors.UndefinedFunction, "nothing"),
    ("SELECT 1 / (id - id) FROM numbers", errors.DivisionByZero, "zero"),
    ("DROP TABLE numbers", errors.InsufficientPrivilege, "reads tables only"),
    ("INSERT INTO numbers VALUES (1, 'a')", errors.InsufficientPrivilege, "reads tables only"),
])
def test_errors_have_codes_and_words(connection, sql, error, words):
    with pytest.raises(error, match=words):
        connection.execute(sql)
    with pytest.raises(errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_transactions_and_savepoints(connection):
    status = psycopg.pq.TransactionStatus
    assert connection.info.transaction_status == status.IDLE
    connection.execute("SELECT 1")
    assert connection.info.transaction_status == status.INTRANS
    with pytest.raises(errors.DivisionByZero), connection.transaction():
        connection.execute("SELECT 1 / 0")
    assert connection.execute("SELECT 2").fetchone() == (2,), "only the savepoint was rolled back"
    connection.commit()
    assert connection.info.transaction_status == status.IDLE
    connection.read_only = True
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    connection.execute("SELECT 1")


def test_users_see_what_they_were_granted():
    with postgres("ann") as ann:
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
        assert ann.execute(names).fetchall() == [("numbers",)]
        with pytest.raises(errors.UndefinedTable):
            ann.execute("SELECT * FROM secrets")
    for user, password in [("ann", "wrong"), ("nobody", os.environ["PGPASSWORD"])]:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            postgres(user, password=password)


def test_a_query_is_cancelled(connection):
    rows = connection.cursor().stream(LONG)
    next(rows)
    connection.cancel_safe()
    with pytest.raises(errors.QueryCanceled):
        for _ in rows:
            pass
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (ROWS,)


def test_a_query_has_a_time_limit(connection):
    connection.execute("SET statement_timeout = '200ms'")
    with pytest.raises(errors.QueryCanceled, match="statement_timeout"):
        connection.execute(LONG)
    with pytest.raises(errors.QueryCanceled):
        postgres(options="-c statement_timeout=200ms").execute(LONG)


def test_64_connections_at_once():
    ready = threading.Barrier(64)

    def client(number):
        with postgres(autocommit=True) as connection:
            ready.wait()
            sql = "SELECT word, count(*), sum(id) FROM numbers WHERE id >= %s GROUP BY word ORDER BY word"
            return connection.execute(sql, (number,)).fetchall()

    with concurrent.futures.ThreadPoolExecutor(64) as threads:
        for number, rows in enumerate(threads.map(client, range(64))):
            assert len(rows) == 7
            assert sum(row[1] for row in rows) == ROWS - number
            assert sum(row[2] for row in rows) == sum(range(number, ROWS))


def test_encryption():
    options = {"port": os.environ["TLS_PORT"], "host": "localhost"}
    certificate = os.environ["CERTIFICATE"]
    with postgres(sslmode="verify-full", sslrootcert=certificate, **options) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with postgres(sslmode="verify-full", sslrootcert=certificate, channel_binding="require", **options) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="[Tt][Ll][Ss]|[Ss][Ss][Ll]"):
        postgres(sslmode="disable", **options)
    with pytest.raises(psycopg.OperationalError, match="certificate"):
        postgres(sslmode="verify-full", sslrootcert="system", **options)


def test_types_are_looked_up(connection):
    text = psycopg.types.TypeInfo.fetch(connection, "text")
    assert (text.oid, text.array_oid) == (25, 1009)
    assert psycopg.types.TypeInfo.fetch(connection, "double precision").oid == 701
    assert psycopg.types.TypeInfo.fetch(connection, "hstore") is None
    assert psycopg.types.composite.CompositeInfo.fetch(connection, "nothing") is None


def test_frames(connection):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Pandas asks for SQLAlchemy.
        frame = pandas.read_sql("SELECT word, sum(id) AS total FROM numbers GROUP BY 1 ORDER BY 1", connection)
    assert list(frame.columns) == ["word", "total"] and len(frame) == 7
    assert frame.total.sum() == ROWS * (ROWS - 1) // 2
    frame = polars.read_database("SELECT * FROM kinds ORDER BY large", connection)
    assert frame.columns == KINDS and frame.row(1)[:9] == FIRST[:9]
    frame = polars.read_database(
        "SELECT id FROM numbers WHERE id < %(id)s", connection, execute_options={"params": {"id": 3}})
    assert sorted(frame["id"]) == [0, 1, 2]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy(driver):
    engine = sqlalchemy.create_engine(f"postgresql+{driver}://bob@/coscan")
    with engine.connect() as connection:
        inspector = sqlalchemy.inspect(connection)
        assert inspector.get_table_names() == ["delta", "kinds", "numbers", "secrets"]
        columns = inspector.get_columns("numbers")
        assert [(column["name"], str(column["type"])) for column in columns] == [("id", "BIGINT"), ("word", "TEXT")]
        assert inspector.get_pk_constraint("numbers")["constrained_columns"] == []
        assert inspector.get_foreign_keys("numbers") == [] and inspector.get_indexes("numbers") == []
        frame = pandas.read_sql_table("kinds", connection, columns=["amount", "day"])
        assert len(frame) == 3
        table = sqlalchemy.Table("numbers", sqlalchemy.MetaData(), autoload_with=connection)
        query = sqlalchemy.select(sqlalchemy.func.count()).where(table.c.id > 9, table.c.word.in_(["word 1", "word 2"]))
        assert connection.execute(query).scalar() == sum(number % 7 in (1, 2) for number in range(10, ROWS))
