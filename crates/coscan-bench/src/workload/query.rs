//! One query.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::constants::{Constants, SlowConstants, date};
use super::percent::Percent;

/// The computation of a query: the two queries of CS07 §5.1, a query that needs its rows in order, a lookup of one key,
/// and the four queries of CS11 Figure 6.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// TPC-H Q6: three comparisons and one sum, limited by I/O.
    #[serde(rename = "F")]
    Fast,
    /// TPC-H Q1: eight aggregates in four groups, limited by the processor.
    #[serde(rename = "S")]
    Slow,
    /// The revenue of the first orders from a key on, which needs rows in order until a limit.
    #[serde(rename = "O")]
    Ordered,
    /// The rows of one order.
    #[serde(rename = "P")]
    Point,
    /// A join of `lineitem` and `orders` after TPC-H Q4.
    #[serde(rename = "CMJ1")]
    JoinByPriority,
    /// A join of `lineitem` and `orders` after TPC-H Q12.
    #[serde(rename = "CMJ2")]
    JoinByMode,
    /// Sums over `lineitem`.
    #[serde(rename = "L1")]
    Lines,
    /// Sums over `orders`.
    #[serde(rename = "O1")]
    Orders,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Fast,
        Kind::Slow,
        Kind::Ordered,
        Kind::Point,
        Kind::JoinByPriority,
        Kind::JoinByMode,
        Kind::Lines,
        Kind::Orders,
    ];

    /// The name of the kind in labels and JSON. Names of one letter are also used in mixes.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fast => "F",
            Kind::Slow => "S",
            Kind::Ordered => "O",
            Kind::Point => "P",
            Kind::JoinByPriority => "CMJ1",
            Kind::JoinByMode => "CMJ2",
            Kind::Lines => "L1",
            Kind::Orders => "O1",
        }
    }

    /// A few words on the kind.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Fast => "TPC-H Q6",
            Kind::Slow => "TPC-H Q1",
            Kind::Ordered => "in order, until a limit",
            Kind::Point => "one key",
            Kind::JoinByPriority => "orders and lineitem, by priority",
            Kind::JoinByMode => "orders and lineitem, by ship mode",
            Kind::Lines => "sums over lineitem",
            Kind::Orders => "sums over orders",
        }
    }

    /// Whether the query joins tables.
    pub fn is_join(self) -> bool {
        matches!(self, Kind::JoinByPriority | Kind::JoinByMode)
    }

    /// Whether the query reads `orders`.
    pub fn reads_orders(self) -> bool {
        self.is_join() || self == Kind::Orders
    }
}

/// One query, with its computation and the part of the table that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The kind of the query.
    pub kind: Kind,
    /// The part of the table that it reads.
    pub percent: Percent,
    /// The keys that it reads. `None` reads the whole table, without a predicate.
    pub keys: Option<RangeInclusive<i64>>,
    /// The constants in its text, other than keys.
    pub constants: Constants,
}

impl Query {
    /// A query that reads the whole table.
    pub fn whole(kind: Kind) -> Self {
        Self::new(kind, Percent::WHOLE, None)
    }

    /// A query that reads these keys, with the constants of TPC-H's validation run.
    pub fn new(kind: Kind, percent: Percent, keys: Option<RangeInclusive<i64>>) -> Self {
        Self { kind, percent, keys, constants: Constants::Validation }
    }

    /// The name of the kind of query as in CS07 §5.1: `F-01`, `S-100`, or `P` for a point.
    pub fn label(&self) -> String {
        label(self.kind, self.percent)
    }

    /// The text of the query over `table`, or over [`in_order_table`] where rows are needed in order, and over
    /// [`ORDERS`].
    ///
    /// FAST is TPC-H Q6 and SLOW is TPC-H Q1, with the [constants](Self::constants) of the query. CS07 adds further arithmetic to Q1 to slow it down, which is left out here.
    ///
    /// The joins are TPC-H Q4 and Q12 without their dates, so that keys alone limit the range, and with more columns
    /// (CS11 §6.7). Which columns those of the paper read is not known; see the simulator's `cs11-figure6.7-joins`.
    ///
    /// The answer to each is determined: a limit counts orders, never rows of one order.
    pub fn sql(&self, table: &str) -> String {
        match self.kind {
            Kind::Fast => self.fast_sql(table),
            Kind::Slow => self.slow_sql(table),
            Kind::Ordered => self.ordered_sql(&in_order_table(table)),
            Kind::Point => format!(
                "SELECT l_orderkey, l_quantity, l_extendedprice, l_discount, l_shipdate
FROM {table}{}",
                self.keys_after("\nWHERE", KEY)
            ),
            Kind::JoinByPriority => format!(
                "SELECT o_orderpriority, count(*) AS line_count, sum(o_totalprice) AS sum_price, sum(l_discount) AS sum_disc
FROM {ORDERS}, {table}
WHERE o_orderkey = l_orderkey
  AND l_commitdate < l_receiptdate{}
GROUP BY o_orderpriority
ORDER BY o_orderpriority",
                self.keys_after("\n  AND", KEY)
            ),
            Kind::JoinByMode => format!(
                "SELECT l_shipmode,
  sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
  sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count
FROM {ORDERS}, {table}
WHERE o_orderkey = l_orderkey
  AND l_shipmode IN ('MAIL', 'SHIP')
  AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate{}
GROUP BY l_shipmode
ORDER BY l_shipmode",
                self.keys_after("\n  AND", KEY)
            ),
            Kind::Lines => format!(
                "SELECT count(*) AS line_count, sum(l_extendedprice) AS sum_price, max(l_shipdate) AS last_date
FROM {table}{}",
                self.keys_after("\nWHERE", KEY)
            ),
            Kind::Orders => format!(
                "SELECT count(*) AS order_count, sum(o_totalprice) AS sum_price, max(o_clerk) AS last_clerk
FROM {ORDERS}{}",
                self.keys_after("\nWHERE", ORDERS_KEY)
            ),
        }
    }

    /// The condition on the key, if there is one, after `WHERE` or `AND`.
    fn keys_after(&self, word: &str, key: &str) -> String {
        match self.keys.as_ref().map(|keys| (keys.start(), keys.end())) {
            None => String::new(),
            Some((first, last)) if first == last => format!("{word} {key} = {first}"),
            Some((first, last)) => format!("{word} {key} BETWEEN {first} AND {last}"),
        }
    }

    fn fast_sql(&self, table: &str) -> String {
        let constants = self.constants.fast();
        let (factor, conditions) = (constants.factor(), constants.conditions());
        format!(
            "SELECT sum(l_extendedprice * {factor}) AS revenue
FROM {table}
WHERE {conditions}{}",
            self.keys_after("\n  AND", KEY)
        )
    }

    fn slow_sql(&self, table: &str) -> String {
        let SlowConstants { last_day, minuend, addend } = self.constants.slow();
        format!(
            "SELECT l_returnflag, l_linestatus,
  sum(l_quantity) AS sum_qty,
  sum(l_extendedprice) AS sum_base_price,
  sum(l_extendedprice * ({minuend} - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * ({minuend} - l_discount) * ({addend} + l_tax)) AS sum_charge,
  avg(l_quantity) AS avg_qty,
  avg(l_extendedprice) AS avg_price,
  avg(l_discount) AS avg_disc,
  count(*) AS count_order
FROM {table}
WHERE l_shipdate <= {}{}
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus",
            date(*last_day),
            self.keys_after("\n  AND", KEY)
        )
    }

    /// The query starts at the first key and ends at the limit instead of the last key, so that the scan cannot know
    /// its end. Over the whole table there is no limit.
    fn ordered_sql(&self, table: &str) -> String {
        let (from, limit) = self.keys.as_ref().map_or_else(Default::default, |keys| {
            let key_count = keys.end().abs_diff(*keys.start()).saturating_add(1);
            let orders = (key_count / KEYS_PER_ORDER).max(1);
            (format!("\n  WHERE l_orderkey >= {}", keys.start()), format!("\n  LIMIT {orders}"))
        });
        format!(
            "SELECT count(*) AS orders, max(l_orderkey) AS last_order, sum(revenue) AS revenue
FROM (
  SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue
  FROM {table}{from}
  GROUP BY l_orderkey
  ORDER BY l_orderkey{limit}
) AS first_orders"
        )
    }
}

/// A query that streams may run.
pub trait StreamQuery: Clone + PartialEq + Send + Sync + 'static {
    /// A few words on it, for errors.
    fn label(&self) -> String;

    /// The text of the query over `table`.
    fn sql(&self, table: &str) -> String;

    /// The columns that sort its rows. Empty if they may come in any order.
    fn order_columns(&self) -> &[&'static str] {
        &[]
    }
}

impl StreamQuery for Query {
    fn label(&self) -> String {
        Query::label(self)
    }

    fn sql(&self, table: &str) -> String {
        Query::sql(self, table)
    }
}

/// The key column, whose ranges queries read, and by which the rows are ordered.
pub const KEY: &str = "l_orderkey";

/// The second table of joins. Its key has the same values in the same order as that of `lineitem`.
pub const ORDERS: &str = "orders";
pub(crate) const ORDERS_KEY: &str = "o_orderkey";

/// TPC-H uses the first eight of every 32 keys.
const KEYS_PER_ORDER: u64 = 4;

/// The largest key that TPC-H uses and that does not exceed this one.
pub(crate) fn used_key(key: i128) -> i128 {
    key - key.rem_euclid(32) + key.rem_euclid(8)
}

/// The name of a table that declares the order of its rows by `l_orderkey`.
pub fn in_order_table(table: &str) -> String {
    format!("{table}_in_order")
}

/// The label of a kind of query and a range, as CS07 writes it: `F-01`, `S-100`, or `P` for one key.
pub fn label(kind: Kind, percent: Percent) -> String {
    match percent {
        Percent::ONE_KEY => kind.name().to_string(),
        percent => format!("{}-{:02}", kind.name(), percent.get()),
    }
}
