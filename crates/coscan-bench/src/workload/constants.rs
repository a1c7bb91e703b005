//! The constants in queries of kinds F and S.
//!
//! Equal ones let queries share results of chunks, so that they measure the best case; distinct ones leave them reads and
//! decoding alone. In call order: [`ConstantChoice`] says how constants are drawn, and [`Constants`] are those of a query.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use arrow::temporal_conversions::date32_to_datetime;
use coscan_sim::Random;

use super::{Kind, Query, Stream, WorkloadError};
use crate::tpch::Parameters;
use crate::tpch::queries::TEMPLATES;

/// How the constants of queries of kinds F (TPC-H Q6) and S (Q1) are drawn. Other kinds are not affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConstantChoice {
    /// All queries have those of TPC-H's validation run.
    #[default]
    Equal,
    /// Drawn as TPC-H draws the parameters of both queries, from few values.
    Tpch,
    /// With this probability, in percent, a query has constants of its own; otherwise it has those of the validation run. No
    /// two queries with constants of their own share a constant or an expression that has one.
    Distinct(u32),
}

impl FromStr for ConstantChoice {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        match text {
            "equal" => Ok(Self::Equal),
            "tpch" => Ok(Self::Tpch),
            "distinct" => Ok(Self::Distinct(100)),
            _ => {
                let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
                let percent = percent.filter(|percent| (0..=100).contains(percent));
                let percent = percent.ok_or_else(|| WorkloadError::Constants(text.to_owned()))?;
                Ok(Self::Distinct(percent))
            }
        }
    }
}

impl fmt::Display for ConstantChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Tpch => f.write_str("tpch"),
            Self::Distinct(100) => f.write_str("distinct"),
            Self::Distinct(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The constants in the text of one query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Constants {
    /// Those of TPC-H's validation run.
    #[default]
    Validation,
    /// Others, of a query of kind F.
    Fast(FastConstants),
    /// Others, of a query of kind S.
    Slow(SlowConstants),
}

/// The constants of a query of kind F. Dates are days since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastConstants {
    pub(super) first_day: i32,
    /// The day after the last one.
    pub(super) end_day: i32,
    pub(super) range: FastRange,
    /// `l_quantity` is below this, in hundredths.
    pub(super) quantity_end: i64,
    /// What is added to `l_discount` before it is multiplied with the price.
    pub(super) addend: i64,
}

/// What a query of kind F selects beside dates and quantities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FastRange {
    /// From the first to the second `l_discount`, in hundredths.
    Discounts(i64, i64),
    /// From the first to the second `l_extendedprice`, in hundredths.
    Prices(i64, i64),
}

/// The constants of a query of kind S.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowConstants {
    /// The last day, in days since 1970.
    pub(super) last_day: i32,
    /// What `l_discount` is subtracted from.
    pub(super) minuend: i64,
    /// What is added to `l_tax`.
    pub(super) addend: i64,
}

impl FastConstants {
    /// TPC-H 2.4.6.3.
    pub(super) const VALIDATION: Self = Self {
        first_day: 8766,
        end_day: 9131,
        range: FastRange::Discounts(5, 7),
        quantity_end: 2400,
        addend: 0,
    };
}

impl SlowConstants {
    /// TPC-H 2.4.1.3.
    pub(super) const VALIDATION: Self =
        Self { last_day: LAST_ORDER_DAY - 90, minuend: 1, addend: 1 };
}

/// 1998-12-01, from which TPC-H counts back in Q1.
const LAST_ORDER_DAY: i32 = 10_561;
/// Ship dates are spread evenly from the first to the second day: 1992-05-01 and 1998-08-02.
const EVEN_DAYS: (i32, i32) = (8156, 10_440);
/// The most queries of kind S with days of their own. The first of these days is then in 1997.
const SLOW_MAX: usize = 690;
/// The ends of a range of `l_extendedprice` in which as many rows have a quantity below 24, about one of eight, as of the
/// discounts of the validation run. In hundredths.
const PRICES: (i64, i64) = (2_300_000, 4_100_000);

impl Constants {
    pub(super) fn fast(&self) -> &FastConstants {
        if let Self::Fast(constants) = self { constants } else { &FastConstants::VALIDATION }
    }

    pub(super) fn slow(&self) -> &SlowConstants {
        if let Self::Slow(constants) = self { constants } else { &SlowConstants::VALIDATION }
    }
}

impl FastConstants {
    /// What the price is multiplied with.
    pub(super) fn factor(&self) -> String {
        match self.addend {
            0 => "l_discount".to_owned(),
            addend => format!("(l_discount + {addend})"),
        }
    }

    /// The conditions on all columns but the key.
    pub(super) fn conditions(&self) -> String {
        let (column, low, high) = match self.range {
            FastRange::Discounts(low, high) => ("l_discount", low, high),
            FastRange::Prices(low, high) => ("l_extendedprice", low, high),
        };
        format!(
            "l_shipdate >= {}
  AND l_shipdate < {}
  AND {column} BETWEEN {} AND {}
  AND l_quantity < {}",
            date(self.first_day),
            date(self.end_day),
            hundredths(low),
            hundredths(high),
            hundredths(self.quantity_end)
        )
    }
}

/// The day as an SQL literal, such as `DATE '1994-01-01'`.
pub(super) fn date(day: i32) -> String {
    let date = date32_to_datetime(day).map(|time| time.date().to_string());
    format!("DATE '{}'", date.unwrap_or_default())
}

/// Hundredths as a number, without a point if it is whole.
fn hundredths(value: i64) -> String {
    match value % 100 {
        0 => (value / 100).to_string(),
        part => format!("{}.{part:02}", value / 100),
    }
}

impl ConstantChoice {
    /// Gives the queries of the streams their constants. The random numbers are of a generator of its own, so that the
    /// streams are otherwise those of any other choice.
    pub(super) fn assign(self, streams: &mut [Stream], seed: u64) -> Result<(), WorkloadError> {
        let mut random = Random::new(seed).fork();
        let queries = streams.iter_mut().flat_map(|stream| &mut stream.queries);
        let queries = queries.filter(|query| matches!(query.kind, Kind::Fast | Kind::Slow));
        match self {
            Self::Equal => {}
            Self::Tpch => {
                let mut parameters = Parameters::new(random.next_u64(), 1.0);
                queries.for_each(|query| query.constants = of_tpch(query.kind, &mut parameters));
            }
            Self::Distinct(percent) => {
                let distinct = queries.filter(|_| random.percent(percent.into())).collect();
                assign_distinct(distinct, &mut random)?;
            }
        }
        Ok(())
    }
}

fn of_tpch(kind: Kind, parameters: &mut Parameters) -> Constants {
    let number = if kind == Kind::Fast { 6 } else { 1 };
    let values = parameters.draw(&TEMPLATES[number - 1]);
    let value = |name: &str| {
        let value = values.iter().find(|(given, _)| *given == name);
        value.map_or("", |(_, value)| value)
    };
    let digits = |text: &str| text.parse().expect("TPC-H draws a number");
    if kind == Kind::Slow {
        let last_day = LAST_ORDER_DAY - digits(value("delta")) as i32;
        return Constants::Slow(SlowConstants { last_day, ..SlowConstants::VALIDATION });
    }
    let year: i64 = digits(&value("date")[..4]);
    // Of the years that TPC-H draws, 1996 has 366 days.
    let first_day = |year: i64| (year - 1970) * 365 + (year - 1969) / 4;
    let discount: i64 = digits(&value("discount")[2..]);
    Constants::Fast(FastConstants {
        first_day: first_day(year) as i32,
        end_day: first_day(year + 1) as i32,
        range: FastRange::Discounts(discount - 1, discount + 1),
        quantity_end: digits(value("quantity")) * 100,
        addend: 0,
    })
}

/// Gives each query constants that no other has, and that select about as much as those of the validation run.
///
/// `l_discount` has eleven values only, so that few ranges of it differ: the third condition of F is on the price instead.
/// Addends are whole numbers, as in TPC-H, of which the engine makes decimals of the column's scale.
fn assign_distinct(queries: Vec<&mut Query>, random: &mut Random) -> Result<(), WorkloadError> {
    let too_many = WorkloadError::DistinctConstants(queries.len());
    let (fast, slow): (Vec<_>, Vec<_>) =
        queries.into_iter().partition(|query| query.kind == Kind::Fast);
    if slow.len() > SLOW_MAX {
        return Err(too_many);
    }
    // Above the constants of the validation run.
    let mut addends: Vec<i64> = (25..).take(fast.len() + 2 * slow.len()).collect();
    random.shuffle(&mut addends);
    let mut addends = addends.into_iter();
    let mut addend = || addends.next().expect("one for each use");

    let validation = FastConstants::VALIDATION;
    let mut used = BTreeSet::from([validation.first_day, validation.end_day]);
    let last_day = i64::from(SlowConstants::VALIDATION.last_day);
    // All rows are shipped by the end of November.
    let last_days = around(last_day, slow.len(), 89, random);
    for (query, last_day) in slow.into_iter().zip(last_days) {
        let constants =
            SlowConstants { last_day: last_day as i32, minuend: addend(), addend: addend() };
        used.insert(constants.last_day);
        query.constants = Constants::Slow(constants);
    }

    let mut first_days: Vec<i32> = (EVEN_DAYS.0..EVEN_DAYS.1 - 365).collect();
    random.shuffle(&mut first_days);
    let mut first_days = first_days.into_iter();
    let count = fast.len();
    let mut prices = |center| around(center, count, i64::MAX, random);
    let (lows, highs) = (prices(PRICES.0), prices(PRICES.1));
    // Whole numbers may be addends.
    let mut quantities = around(validation.quantity_end, count + count / 50 + 1, i64::MAX, random);
    quantities.retain(|quantity| quantity % 100 != 0);
    let ranges = lows.into_iter().zip(highs).map(|(low, high)| FastRange::Prices(low, high));
    for ((query, range), quantity_end) in fast.into_iter().zip(ranges).zip(quantities) {
        let is_free = |day: &i32| !used.contains(day) && !used.contains(&(day + 365));
        let first_day = first_days.find(is_free).ok_or_else(|| too_many.clone())?;
        let end_day = first_day + 365;
        used.extend([first_day, end_day]);
        let addend = addend();
        let constants = FastConstants { first_day, end_day, range, quantity_end, addend };
        query.constants = Constants::Fast(constants);
    }
    Ok(())
}

/// The numbers around `center` without itself, at most `above_max` of them above it, in random order.
fn around(center: i64, count: usize, above_max: i64, random: &mut Random) -> Vec<i64> {
    let count = count as i64;
    let above = (count / 2).min(above_max);
    let numbers = center - (count - above)..=center + above;
    let mut numbers: Vec<_> = numbers.filter(|number| *number != center).collect();
    random.shuffle(&mut numbers);
    numbers
}
