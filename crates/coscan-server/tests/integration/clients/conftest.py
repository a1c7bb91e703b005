"""Where the server is, from the environment that main.rs sets.

Tables: `numbers` (id from 0 on, word), `secrets` (the same), `kinds` (a column of each type; a row of values, one of
others and one of NULLs), `delta` (a Delta table). Ann reads `numbers`, Bob all tables, Root is an administrator.
"""

import os

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as flightsql
import psycopg
import pytest

ROWS = 30_000

# Gives rows at once, and takes hours.
LONG = "SELECT a.id FROM numbers a, numbers b, numbers c"

KINDS = [
    "small", "whole", "large", "single", "double", "amount", "word", "day", "moment", "instant", "yes", "bytes", "list",
]


def postgres(user="bob", **options):
    """A connection of psycopg; libpq takes the address and the password from the environment."""
    return psycopg.connect(user=user, connect_timeout=60, **options)


def flight(user="bob", password=None, url=None, certificate=None):
    """A connection of ADBC."""
    options = {"username": user, "password": password or os.environ["PGPASSWORD"]}
    if certificate:
        options[adbc_driver_flightsql.DatabaseOptions.TLS_ROOT_CERTS.value] = certificate
    return flightsql.connect(url or os.environ["FLIGHT_URL"], db_kwargs=options, autocommit=True)


@pytest.fixture
def connection():
    """Psycopg as it is by default: the first statement opens a transaction."""
    with postgres() as connection:
        yield connection


@pytest.fixture
def adbc():
    with flight() as connection:
        yield connection


@pytest.fixture
def cursor(adbc):
    with adbc.cursor() as cursor:
        yield cursor
