//! Totals of queries since the start, for monitoring.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::queries::registration::{QueryReport, QueryState};

/// Counts and times of queries that have ended. Clones share them.
#[derive(Clone, Debug)]
pub struct Totals {
    /// The number of queries, by the `state` in which they ended.
    pub ended: Family<[(&'static str, &'static str); 1], Counter>,
    /// The times for which they waited for a slot, in seconds.
    pub waited: Histogram,
    /// The times for which they ran, including the time that clients took to read results, in seconds.
    pub ran: Histogram,
    /// The number of rows that they returned.
    pub rows: Counter,
}

impl Totals {
    pub(super) fn new() -> Self {
        // The buckets range from a millisecond to more than an hour.
        let seconds = || Histogram::new(exponential_buckets(0.001, 4.0, 12));
        let ended = Family::default();
        for state in QueryState::ENDS {
            let _zero = ended.get_or_create(&[("state", state.name())]); // Zero is shown, too.
        }
        Self { ended, waited: seconds(), ran: seconds(), rows: Counter::default() }
    }

    pub(super) fn count(&self, report: &QueryReport) {
        self.ended.get_or_create(&[("state", report.state.name())]).inc();
        self.waited.observe(report.waited.as_secs_f64());
        self.ran.observe(report.ran.as_secs_f64());
        self.rows.inc_by(report.rows);
    }
}

/// Logs one line for a query that has ended, without its SQL, which may contain confidential values.
pub(super) fn log_end(report: &QueryReport) {
    let QueryReport { id, user, state, rows, waited, ran, error, .. } = report;
    let (waited, ran) = (waited.as_secs_f64(), ran.as_secs_f64());
    let (user, state) = (user.as_str(), state.name());
    match error {
        None => log::info!(
            query_id = id.0, user, state, rows, seconds = ran, waited_seconds = waited;
            "query ended"
        ),
        Some(error) => log::info!(
            query_id = id.0, user, state, rows, seconds = ran, waited_seconds = waited,
            error = error.as_str();
            "query ended"
        ),
    }
}
