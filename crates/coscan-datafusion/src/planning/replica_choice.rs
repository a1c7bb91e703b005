//! The choice among the copies of a table: the table itself and its replicas [CS11 §8.2.1].

use std::fmt;
use std::sync::Arc;

use coscan_runtime::ScanBytes;

use crate::planning::selectivity::{is_worth_order, is_worth_replica, scan_cost};
use crate::tables::source::ScanSource;

/// A copy of a table, as a scan would read it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCopy {
    pub(crate) source: Arc<ScanSource>,
    /// Whether Bloom filters leave each zone. `None` if none were read.
    pub(crate) zones_left: Option<Arc<[bool]>>,
    /// The bytes of the columns that the filters leave.
    pub(crate) bytes: ScanBytes,
}

impl PlannedCopy {
    fn cost(&self) -> u64 {
        scan_cost(self.bytes)
    }
}

/// All copies of a table that a scan may read, and the one that it reads.
///
/// EXPLAIN shows `replica=by_day (1.2 MB; table 8.0 MB)` with the replica that is read, its bytes, and those of the
/// table. If the table itself is read, it shows `replica=none (8.0 MB; by_day 8.1 MB)` with the cheapest replica. Bytes
/// that are in the pool or needed by running scans are shown separately: `0 B + 1.2 MB shared`.
#[derive(Clone, Debug)]
pub(crate) struct CopyChoice {
    /// The copies, the first of which is the table itself.
    copies: Arc<[PlannedCopy]>,
    chosen: usize,
    /// Whether the copy was chosen for its order.
    saves_sort: bool,
}

impl CopyChoice {
    /// Chooses the copy that costs least, or the table itself if the difference is too small.
    ///
    /// # Panics
    /// If there are no copies.
    pub(crate) fn new(copies: Vec<PlannedCopy>) -> Self {
        let cheapest = cheapest_replica(&copies);
        let is_worth =
            |&replica: &usize| is_worth_replica(copies[replica].cost(), copies[0].cost());
        let chosen = cheapest.filter(is_worth).unwrap_or(0);
        Self { copies: copies.into(), chosen, saves_sort: false }
    }

    /// The name of the table.
    pub(crate) fn table_name(&self) -> &str {
        &self.copies[0].source.name
    }

    pub(crate) fn chosen(&self) -> &PlannedCopy {
        &self.copies[self.chosen]
    }

    /// The choices of other copies that are worth it if they save a sort, the cheapest first.
    pub(crate) fn others_for_order(&self) -> Vec<Self> {
        let cost = |copy: &usize| self.copies[*copy].cost();
        let others = (0..self.copies.len()).filter(|&copy| copy != self.chosen);
        let mut worth: Vec<_> =
            others.filter(|copy| is_worth_order(cost(copy), cost(&self.chosen))).collect();
        worth.sort_by_key(cost);
        let choice = |chosen| Self { chosen, saves_sort: true, ..self.clone() };
        worth.into_iter().map(choice).collect()
    }
}

/// The replica that costs least. If several do, the first one in the list of replicas.
fn cheapest_replica(copies: &[PlannedCopy]) -> Option<usize> {
    (1..copies.len()).min_by_key(|&replica| copies[replica].cost())
}

impl fmt::Display for CopyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, other, other_name) = match (self.chosen, cheapest_replica(&self.copies)) {
            (0, Some(replica)) => ("none", replica, self.copies[replica].source.name.as_str()),
            (chosen, _) => (self.copies[chosen].source.name.as_str(), 0, "table"),
        };
        let why = if self.saves_sort { "saves a sort: " } else { "" };
        let (read, not_read) = (Bytes(self.chosen().bytes), Bytes(self.copies[other].bytes));
        write!(f, "replica={name} ({why}{read}; {other_name} {not_read})")
    }
}

/// Stored bytes, formatted for users.
struct Bytes(ScanBytes);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanBytes { unshared, shared } = self.0;
        write_bytes(f, unshared)?;
        if shared > 0 {
            f.write_str(" + ")?;
            write_bytes(f, shared)?;
            f.write_str(" shared")?;
        }
        Ok(())
    }
}

fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    #[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let number = bytes as f64;
    match bytes {
        0..1_000 => write!(f, "{bytes} B"),
        1_000..1_000_000 => write!(f, "{:.1} kB", number / 1e3),
        1_000_000..1_000_000_000 => write!(f, "{:.1} MB", number / 1e6),
        _ => write!(f, "{:.1} GB", number / 1e9),
    }
}
