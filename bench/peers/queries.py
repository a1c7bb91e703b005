"""The texts of queries, and their draws. Equal seeds give equal queries."""

import re
from dataclasses import dataclass

from options import ROOT

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
TPCH = ROOT / "crates/coscan-bench/queries/tpch"


@dataclass(frozen=True)
class Query:
    name: str
    sql: str


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

    def unit(self) -> float:
        """A number above 0 and at most 1."""
        return (self.below(2**53) + 1) / 2**53

    def shuffled(self, items: list) -> list:
        items = list(items)
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
        return items


FAST = """\
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24{keys}"""

SLOW = """\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
  sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
  avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM lineitem
WHERE l_shipdate <= DATE '1998-09-02'{keys}
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus"""

PERCENTS = (1, 10, 50, 100)


def scan(random: Random, keys: tuple[int, int]) -> Query:
    """TPC-H Q6 (F) or Q1 (S) over 1, 10, 50 or 100 % of lineitem, at a random place."""
    letter, template = (("F", FAST), ("S", SLOW))[random.below(2)]
    percent = PERCENTS[random.below(len(PERCENTS))]
    condition = ""
    if percent < 100:
        total = keys[1] - keys[0] + 1
        read = max(1, (total * percent + 50) // 100)
        low = keys[0] + random.below(total - read + 1)
        condition = f"\n  AND l_orderkey BETWEEN {low} AND {low + read - 1}"
    return Query(f"{letter}-{percent:02}", template.format(keys=condition))


def warm_scans(keys: tuple[int, int]) -> list[Query]:
    """Scans that read all rows and columns that other scans do."""
    whole = f"\n  AND l_orderkey BETWEEN {keys[0]} AND {keys[1]}"
    return [Query("F-100", FAST.format(keys="")), Query("S-100", SLOW.format(keys=whole))]


def tpch(number: int, scale: float) -> Query:
    """A query of TPC-H with the parameters of the validation run, which its comments state."""
    text = (TPCH / f"q{number:02}.sql").read_text()
    for name, value in re.findall(r"^-- (\{\w+\}): (.*)$", text, re.MULTILINE):
        if value.endswith(" / scale factor"):
            value = f"{float(value.split()[0]) / scale:f}"
        text = text.replace(name, value)
    # Constants, since ClickHouse computes with floats, where 0.06 + 0.01 is below 0.07.
    text = text.replace("0.06 - 0.01 AND 0.06 + 0.01", "0.05 AND 0.07")
    return Query(f"Q{number}", re.sub(r"^--.*\n", "", text, flags=re.MULTILINE).strip())


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
