//! The size to which results of functions may grow, and the work for them.

use arrow::array::AsArray;
use arrow::datatypes::IntervalMonthDayNanoType;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::lengths::{Numbers, bytes, lengths, numbers};

/// The bound on the result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// A text that is repeated a number of times.
    Repeat,
    /// A number of characters.
    Pad,
    /// A text in which each occurrence of another is replaced by a third.
    Replace,
    /// A text in which each match of an expression is replaced.
    ReplaceMatches,
    /// One element for each step between two bounds.
    Range,
    /// A value that is repeated a number of times.
    RepeatElement,
    /// A list with a number of elements.
    Resize,
    /// All arguments, concatenated.
    Concatenate,
    /// All arguments except the first, which separates them.
    Join,
    /// The elements of a list, separated by the other arguments.
    JoinElements,
    /// A list in which elements are replaced by another.
    ReplaceElements,
    /// The parts of a text.
    Split,
    /// A text in which characters may be escaped or doubled, in quotes.
    Escape,
    /// A small result. The work grows with the product of two lengths.
    Product,
    /// A small result. The work grows with the product of two lengths, which are bounded as in PostgreSQL.
    Distance,
    /// A small result. An expression may have to be compiled for each row.
    Matches,
}

/// The names of functions, with the bounds on their results. The results of all other functions are bounded by their
/// arguments.
pub(super) const GROWTH: [(&str, Growth); 35] = [
    ("repeat", Growth::Repeat),
    ("lpad", Growth::Pad),
    ("rpad", Growth::Pad),
    ("replace", Growth::Replace),
    ("regexp_replace", Growth::ReplaceMatches),
    ("range", Growth::Range),
    ("generate_series", Growth::Range),
    ("array_repeat", Growth::RepeatElement),
    ("array_resize", Growth::Resize),
    ("concat", Growth::Concatenate),
    ("concat_ws", Growth::Join),
    ("array_concat", Growth::Concatenate),
    ("array_append", Growth::Concatenate),
    ("array_prepend", Growth::Concatenate),
    ("make_array", Growth::Concatenate),
    ("array_to_string", Growth::JoinElements),
    ("string_to_array", Growth::Split),
    ("array_replace", Growth::ReplaceElements),
    ("array_replace_n", Growth::ReplaceElements),
    ("array_replace_all", Growth::ReplaceElements),
    ("byteain", Growth::Escape),
    ("json_in", Growth::Escape),
    ("like_escape", Growth::Escape),
    ("quote_ident", Growth::Escape),
    ("quote_literal", Growth::Escape),
    ("strpos", Growth::Product),
    ("translate", Growth::Product),
    ("array_has_all", Growth::Product),
    ("array_has_any", Growth::Product),
    ("levenshtein", Growth::Distance),
    ("regexp_like", Growth::Matches),
    ("regexp_match", Growth::Matches),
    ("regexp_count", Growth::Matches),
    ("regexp_instr", Growth::Matches),
    ("find_in_set", Growth::Product),
];

/// The maximum number of characters that `levenshtein` compares, as in PostgreSQL.
pub(super) const DISTANCE_MAX: i64 = 255;

/// The bytes of an element of a list.
const ELEMENT: i64 = 16;

/// The maximum bytes of the result for each row.
pub(super) type BytesOfRow = Box<dyn Fn(usize) -> u64>;

impl Growth {
    /// The maximum bytes of the results. `None` if the arguments do not determine it, or it is small.
    pub(super) fn bytes(self, arguments: &[ColumnarValue]) -> Result<Option<BytesOfRow>> {
        let length = |at: usize| arguments.get(at).map(lengths).transpose();
        let number = |at: usize| arguments.get(at).map_or(Ok(None), numbers);
        let positive = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(match self {
            Self::Repeat => both(length(0)?, number(1)?, positive),
            Self::Pad => number(1)?.map(|count| {
                // Each character has at most four bytes.
                Box::new(move |row| positive(count.at(row)).saturating_mul(4)) as BytesOfRow
            }),
            Self::Escape => length(0)?.map(|text| {
                Box::new(move |row| positive(text.at(row)).saturating_mul(2).saturating_add(3))
                    as BytesOfRow
            }),
            Self::Replace => match (length(0)?, length(1)?, length(2)?) {
                (Some(text), Some(from), Some(to)) => Some(Box::new(move |row| {
                    let [text, from, to] = [&text, &from, &to].map(|it| positive(it.at(row)));
                    let count = text.checked_div(from).unwrap_or(text + 1);
                    text.saturating_add(count.saturating_mul(to))
                })),
                _ => None,
            },
            Self::ReplaceMatches => match (length(0)?, length(2)?) {
                (Some(text), Some(to)) => Some(Box::new(move |row| {
                    // There is at most one match at each place, and at most one mention of the
                    // match in two bytes.
                    let [text, to] = [&text, &to].map(|it| positive(it.at(row)));
                    let mentions = text.saturating_mul(to / 2);
                    text.saturating_add((text + 1).saturating_mul(to)).saturating_add(mentions)
                })),
                _ => None,
            },
            Self::Range => steps(arguments)?,
            Self::RepeatElement | Self::Resize => {
                let repeated =
                    if self == Self::Resize { arguments.get(2) } else { arguments.first() };
                let value = repeated.map(bytes).transpose()?.unwrap_or(Numbers::Same(ELEMENT));
                number(1)?.map(|count| {
                    Box::new(move |row| {
                        positive(value.at(row).max(ELEMENT).saturating_mul(count.at(row)))
                    }) as BytesOfRow
                })
            }
            Self::Concatenate => {
                let values = arguments.iter().map(bytes).collect::<Result<Vec<_>>>()?;
                Some(Box::new(move |row| {
                    let values = values.iter().map(|value| positive(value.at(row)));
                    values.fold(0, u64::saturating_add)
                }))
            }
            Self::Join => {
                let values = arguments.iter().map(bytes).collect::<Result<Vec<_>>>()?;
                Some(Box::new(move |row| {
                    let [separator, values @ ..] = &values[..] else { return 0 };
                    let separators =
                        positive(separator.at(row)).saturating_mul(values.len() as u64);
                    let values = values.iter().map(|value| positive(value.at(row)));
                    values.fold(separators, u64::saturating_add)
                }))
            }
            Self::JoinElements => {
                let values = arguments.iter().map(bytes).collect::<Result<Vec<_>>>()?;
                length(0)?.map(|count| {
                    Box::new(move |row| {
                        let [list, others @ ..] = &values[..] else { return 0 };
                        let others = others.iter().map(|other| positive(other.at(row)));
                        let others = others.fold(0, u64::saturating_add);
                        let others = others.saturating_mul(positive(count.at(row)));
                        positive(list.at(row)).saturating_add(others)
                    }) as BytesOfRow
                })
            }
            Self::ReplaceElements => {
                let values = arguments.iter().map(bytes).collect::<Result<Vec<_>>>()?;
                let count = length(0)?;
                count.map(|count| {
                    Box::new(move |row| {
                        let list = values.first().map_or(0, |list| positive(list.at(row)));
                        let to = values.get(2).map_or(0, |to| positive(to.at(row)));
                        list.saturating_add(positive(count.at(row)).saturating_mul(to))
                    }) as BytesOfRow
                })
            }
            Self::Split => length(0)?.map(|text| {
                Box::new(move |row| positive(text.at(row)).saturating_mul(17)) as BytesOfRow
            }),
            Self::Product | Self::Distance | Self::Matches => None,
        })
    }
}

fn both(
    left: Option<Numbers>,
    right: Option<Numbers>,
    positive: impl Fn(i64) -> u64 + 'static,
) -> Option<BytesOfRow> {
    let (left, right) = (left?, right?);
    Some(Box::new(move |row| positive(left.at(row)).saturating_mul(positive(right.at(row)))))
}

/// The elements of `range(stop)`, `range(start, stop)`, `range(start, stop, step)` for numbers or points in time.
fn steps(arguments: &[ColumnarValue]) -> Result<Option<BytesOfRow>> {
    let number = |at: usize| arguments.get(at).map_or(Ok(None), numbers);
    let (start, stop) = match arguments {
        [_stop] => (Some(Numbers::Same(0)), number(0)?),
        _ => (number(0)?, number(1)?),
    };
    let step = match arguments.get(2) {
        None => Some(Numbers::Same(1)),
        Some(step) => match numbers(step)? {
            Some(step) => Some(step),
            None => shortest_interval(step)?.map(Numbers::Same),
        },
    };
    let (Some(start), Some(stop), Some(step)) = (start, stop, step) else { return Ok(None) };
    Ok(Some(Box::new(move |row| {
        let distance = stop.at(row).abs_diff(start.at(row));
        let count = distance / step.at(row).unsigned_abs().max(1);
        count.saturating_add(1).saturating_mul(ELEMENT.unsigned_abs())
    })))
}

/// The shortest of some intervals, in microseconds. A month has at least 28 days.
fn shortest_interval(value: &ColumnarValue) -> Result<Option<i64>> {
    const DAY: i128 = 86_400_000_000;
    let array = value.to_array(1)?;
    let Some(intervals) = array.as_primitive_opt::<IntervalMonthDayNanoType>() else {
        return Ok(None);
    };
    let micros = intervals.iter().flatten().map(|interval| {
        let parts = [interval.months.signum(), interval.days.signum()];
        let parts = [parts[0], parts[1], interval.nanoseconds.signum() as i32];
        if parts.contains(&1) && parts.contains(&-1) {
            return 0; // The parts may cancel, so that there is no end.
        }
        let days = i128::from(interval.months) * 28 + i128::from(interval.days);
        (days * DAY + i128::from(interval.nanoseconds) / 1000).abs()
    });
    Ok(micros.min().map(|shortest| i64::try_from(shortest).unwrap_or(i64::MAX)))
}
