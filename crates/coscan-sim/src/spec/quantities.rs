//! Checked quantities: parts of tables, and costs.

use super::error::{SpecError, wrong};
use super::units::{CostText, Hertz};
use crate::workload::Cost;

/// Checks a part of a table.
pub(super) fn check_percent(key: &str, percent: f64) -> Result<(), SpecError> {
    if percent > 0.0 && percent <= 100.0 {
        return Ok(());
    }
    Err(wrong(key, format!("{percent} percent of a table: write more than 0 and at most 100")))
}

/// The cost for each row of the layout and each byte. The text is about rows of the table, which has `own` rows where the
/// layout has `of_layout`.
pub(super) fn cost(
    key: &str,
    text: CostText,
    (own, of_layout): (u64, u64),
    clock: Option<Hertz>,
) -> Result<Cost, SpecError> {
    let cycles = text.cycles_per_row + text.cycles_per_byte;
    let ns_per_cycle = match clock {
        Some(clock) => 1e9 / clock.0,
        None if cycles == 0.0 => 0.0,
        None => {
            let problem = "a cost in cycles needs `clock`, such as \"2 GHz\", in [machine]";
            return Err(wrong(format!("{key}.cost"), problem));
        }
    };
    let own = own as f64;
    let row_ns = text.ns_per_row + text.ns_per_table / own + text.cycles_per_row * ns_per_cycle;
    let row_ns = row_ns * (own / of_layout as f64);
    let byte_ns = text.ns_per_byte + text.cycles_per_byte * ns_per_cycle;
    let picoseconds = |ns: f64| (ns * 1e3).round() as u64;
    Ok(Cost { row_ps: picoseconds(row_ns), byte_ps: picoseconds(byte_ns) })
}
