"""Scans and small queries, and their draws. Equal seeds give equal queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@dataclass(frozen=True)
class Query:
    """A statement, and what tables and failures call it: the same for other constants."""
    name: str
    sql: str
    refresh: int = 0
    """Equal statements of different refreshes of a dashboard have different answers, since a file has arrived."""


class Random:
    """SplitMix64, as in crates/coscan-bench/src/workload: the same seed draws the same streams as `coscan bench`."""

    MASK = 2**64 - 1

    def __init__(self, seed: int):
        self._state = seed & self.MASK

    def next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & self.MASK
        z = self._state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & self.MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & self.MASK
        return z ^ (z >> 31)

    def below(self, limit: int) -> int:
        """A number from 0 to `limit - 1`."""
        return self.next() * limit >> 64

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return low + self.below(high - low + 1)

    def choose(self, items: Sequence):
        return items[self.below(len(items))]

    def unit(self) -> float:
        """A number above 0 and at most 1."""
        return (self.below(2**53) + 1) / 2**53

    def shuffled(self, items: Sequence) -> list:
        items = list(items)
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
        return items


FAST = """\
SELECT sum(l_extendedprice * {discount}) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '{since}' AND l_shipdate < DATE '{until}'
  AND {discount} BETWEEN {low} AND {high} AND l_quantity < {quantity}{keys}"""

SLOW = """\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
  sum(l_extendedprice * ({one} - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * ({one} - l_discount) * ({one} + l_tax)) AS sum_charge,
  avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem
WHERE l_shipdate <= DATE '{shipped}'{keys}
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus"""

PERCENTS = (1, 10, 50, 100)

# Those of TPC-H's validation run, and of the papers.
CONSTANTS = {"discount": "l_discount", "low": "0.05", "high": "0.07", "quantity": "24", "since": "1994-01-01",
             "until": "1995-01-01", "one": "1", "shipped": "1998-09-02"}


def own_constants(index: int) -> dict[str, str]:
    """Constants that no other index below 64 has, nor has [`CONSTANTS`]: about as many rows, of the same columns.

    A discount is a whole number of cents up to 10, of which no 64 ranges differ: the column is shifted by a whole
    number, as in the product. Decimals have the scale of the columns, so that no engine needs wider ones. Whole
    numbers, since ClickHouse computes with floats, which add these exactly enough."""
    shift, later = 25 + index, timedelta(days=1 + index)
    return {"discount": f"(l_discount + {shift}.00)", "low": f"{shift}.05", "high": f"{shift}.07",
            "quantity": f"23.{1 + index:02}", "since": str(date(1994, 1, 1) + later),
            "until": str(date(1995, 1, 1) + later), "one": f"{shift}.00", "shipped": str(date(1998, 9, 2) - later)}


@dataclass(frozen=True)
class Scan:
    """TPC-H Q6 (F) or Q1 (S) over 1, 10, 50 or 100 % of lineitem."""
    letter: str
    percent: int
    low: int
    high: int

    def moved(self, random: Random, keys: tuple[int, int]) -> "Scan":
        """The same over keys at a random place."""
        if self.percent == 100:
            return self
        total = keys[1] - keys[0] + 1
        read = max(1, (total * self.percent + 50) // 100)
        low = keys[0] + random.below(total - read + 1)
        return replace(self, low=low, high=low + read - 1)

    def query(self, constants: dict[str, str] = CONSTANTS) -> Query:
        keys = f"\n  AND l_orderkey BETWEEN {self.low} AND {self.high}" if self.percent < 100 else ""
        template = FAST if self.letter == "F" else SLOW
        return Query(f"{self.letter}-{self.percent:02}", template.format(keys=keys, **constants))


def scan(random: Random, keys: tuple[int, int]) -> Scan:
    """A scan at random."""
    letter, percent = random.choose("FS"), random.choose(PERCENTS)
    return Scan(letter, percent, *keys).moved(random, keys)


def warm_scans(keys: tuple[int, int]) -> list[Query]:
    """Scans that read all rows and columns that other scans do."""
    whole = f"\n  AND l_orderkey BETWEEN {keys[0]} AND {keys[1]}"
    return [Query("F-100", FAST.format(keys="", **CONSTANTS)), Query("S-100", SLOW.format(keys=whole, **CONSTANTS))]


def small(random: Random, scale: float) -> Query:
    """A lookup, or an aggregate over a narrow range of keys, in a table of at most 0.8 million rows at scale 1."""
    customers, parts = (max(1, int(count * scale)) for count in (150_000, 200_000))
    first_customer, first_part = 1 + random.below(customers), 1 + random.below(parts)
    drawn = random.below(4)
    return (
        Query("a customer", "SELECT c_custkey, c_name, c_address, c_phone, c_acctbal FROM customer "
              f"WHERE c_custkey = {first_customer}"),
        Query("1,000 customers", "SELECT c_mktsegment, count(*), sum(c_acctbal) FROM customer "
              f"WHERE c_custkey BETWEEN {first_customer} AND {first_customer + 999} GROUP BY c_mktsegment"),
        Query("1,000 parts", "SELECT count(*), max(p_retailprice), min(p_size) FROM part "
              f"WHERE p_partkey BETWEEN {first_part} AND {first_part + 999}"),
        Query("supplies of 100 parts", "SELECT count(*), sum(ps_availqty), min(ps_supplycost) FROM partsupp "
              f"WHERE ps_partkey BETWEEN {first_part} AND {first_part + 99}"),
    )[drawn]
