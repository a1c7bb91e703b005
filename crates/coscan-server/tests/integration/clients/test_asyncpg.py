"""The PostgreSQL protocol with asyncpg, which reads binary values and looks up types that it does not know."""

import asyncio
import datetime
import io
import os
import ssl
from decimal import Decimal

import asyncpg
import pytest
from conftest import KINDS, LONG, ROWS

UTC = datetime.timezone.utc


def connected(test, **options):
    """Runs a test with a connection."""

    async def run():
        connection = await asyncpg.connect(**where(), **options)
        try:
            return await test(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def where():
    """Asyncpg takes the address and the password from the environment, as libpq does."""
    return {"user": "bob", "timeout": 60}


def test_values_of_all_types():
    async def test(connection):
        return await connection.fetch("SELECT * FROM kinds ORDER BY large")

    low, first, nulls = connected(test)
    assert list(first.keys()) == KINDS
    assert tuple(first.values()) == (
        7, -70_000, 5_000_000_000, 1.5, -0.1, Decimal("-1234.50"), "é, a text of more than twelve bytes",
        datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
        datetime.datetime(2024, 2, 29, 10, 34, 56, tzinfo=UTC), True, b"\x00\xff", ["a", None, "b"],
    )
    assert low["list"] == [] and set(nulls.values()) == {None}


@pytest.mark.parametrize("sql, value", [
    ("SELECT $1::int[]", [1, None, -2]), ("SELECT $1::bigint[]", [2**40]), ("SELECT $1::text[]", ["a,b", None, '"']),
    ("SELECT $1::float8[]", [1.5, None]), ("SELECT $1::bool[]", [True, None]), ("SELECT $1::date[]", [datetime.date(2024, 2, 29)]),
    ("SELECT $1::interval", datetime.timedelta(days=1, seconds=2)), ("SELECT $1::date", datetime.date(2024, 2, 29)),
    ("SELECT $1::timestamptz", datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)), ("SELECT $1::bytea", b"\x00\xff"),
    ("SELECT $1::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), ("SELECT $1::json", '{"a": [1, null]}'),
    ("SELECT $1::text", "x"), ("SELECT $1::float8", -0.5),
])
def test_parameters_come_back(sql, value):
    assert connected(lambda connection: connection.fetchval(sql, value)) == value


def test_values_are_looked_for_in_arrays():
    sql = "SELECT count(*) FROM numbers WHERE id = ANY($1) AND word = ANY($2::text[])"
    assert connected(lambda connection: connection.fetchval(sql, [1, 2, 3], ["word 1", "word 2"])) == 2


def test_records_are_looked_up():
    row = connected(lambda connection: connection.fetchval("SELECT named_struct('a', 1, 'b', 'x')"))
    assert tuple(row) == (1, "x")


def test_a_row_limit_is_a_parameter():
    rows = connected(lambda connection: connection.fetch("SELECT id FROM numbers ORDER BY id LIMIT $1 OFFSET $2", 2, 5))
    assert [row["id"] for row in rows] == [5, 6]


def test_a_pool_gives_connections_back():
    async def test():
        async with asyncpg.create_pool(min_size=2, max_size=4, **where()) as pool:
            counts = [pool.fetchval("SELECT count(*) FROM numbers WHERE id >= $1", first) for first in range(64)]
            return await asyncio.gather(*counts)

    assert asyncio.run(test()) == [ROWS - first for first in range(64)]


def test_transactions_and_cursors():
    async def test(connection):
        async with connection.transaction(isolation="serializable", readonly=True):
            rows = [row["id"] async for row in connection.cursor("SELECT id FROM numbers", prefetch=1000)]
        with pytest.raises(asyncpg.UndefinedColumnError):
            async with connection.transaction():
                await connection.fetch("SELECT nothing FROM numbers")
        return sorted(rows)

    assert connected(test) == list(range(ROWS))


def test_results_are_copied():
    async def test(connection):
        copied = io.BytesIO()
        status = await connection.copy_from_query(
            "SELECT id, word FROM numbers WHERE id < $1 ORDER BY id", 2, output=copied, format="csv", header=True)
        whole = await connection.copy_from_table("numbers", output=io.BytesIO(), format="binary")
        return status, copied.getvalue(), whole

    assert connected(test) == ("COPY 2", b"id,word\n0,word 0\n1,word 1\n", f"COPY {ROWS}")


def test_a_query_is_cancelled():
    async def test(connection):
        with pytest.raises(asyncio.TimeoutError):
            await connection.fetch(LONG, timeout=0.3)
        return await connection.fetchval("SELECT count(*) FROM numbers")

    assert connected(test) == ROWS


def test_encryption():
    context = ssl.create_default_context(cafile=os.environ["CERTIFICATE"])
    options = {"host": "localhost", "port": int(os.environ["TLS_PORT"]), "ssl": context}
    assert connected(lambda connection: connection.fetchval("SELECT 1"), **options) == 1
    context.set_alpn_protocols(["postgresql"])
    assert connected(lambda connection: connection.fetchval("SELECT 1"), direct_tls=True, **options) == 1
