//! The measures, and their text.

use std::fmt;

use serde::Serialize;

/// All measures of a run; none of sections that were left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UpdatesReport {
    /// The cost of scans over changed rows.
    pub merging: Vec<MergingReport>,
    /// A checkpoint of the table with about a quarter of its rows changed.
    pub checkpoint: Option<CheckpointTimes>,
    /// How many rows are changed in a second.
    pub rates: Vec<RateReport>,
    /// How long opening took after all these changes.
    pub opening: Option<OpeningReport>,
    /// Streams of queries beside changes.
    pub streams: Option<StreamsReport>,
    /// The streams of TPC-H beside its refresh functions.
    pub refresh: Option<RefreshReport>,
}

/// The processor time of a query over a table with changed rows.
#[derive(Clone, Debug, Serialize)]
pub struct MergingReport {
    /// The query.
    pub query: String,
    /// Where the changed rows are: `random` or `clustered`.
    pub kind: String,
    /// The part of the rows that are changed.
    pub share: f64,
    /// The processor time over the table at rest, in seconds.
    pub at_rest_s: f64,
    /// The processor time over the changed table, in seconds.
    pub changed_s: f64,
    /// With shared results: the part of the chunks of the changed table that the first query after the change takes from queries
    /// before it.
    pub taken_first: f64,
    /// The part that the same query takes when it runs again.
    pub taken_again: f64,
}

/// A checkpoint.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CheckpointTimes {
    /// The rows that were written.
    pub rows: u64,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

/// Statements in a second.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// The statement.
    pub statement: String,
    /// The sessions that sent it at the same time.
    pub sessions: usize,
    /// Statements in a second.
    pub statements_per_second: f64,
    /// Rows in a second.
    pub rows_per_second: f64,
}

/// The opening of a database.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OpeningReport {
    /// The bytes of the log's segments.
    pub segment_bytes: u64,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

/// Streams of queries at rest and beside changes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StreamsReport {
    /// The number of streams.
    pub streams: usize,
    /// The queries of each.
    pub queries: usize,
    /// The time of all streams at rest, in seconds.
    pub at_rest_s: f64,
    /// Their time beside changes, in seconds.
    pub beside_s: f64,
    /// What was read at rest, in bytes.
    pub at_rest_bytes: u64,
    /// What was read beside changes, in bytes, also by them.
    pub beside_bytes: u64,
    /// The rows that were updated meanwhile.
    pub updated_rows: u64,
    /// The rows that were appended meanwhile.
    pub appended_rows: u64,
    /// The checkpoints that wrote something meanwhile.
    pub checkpoints: u32,
}

/// The throughput test of TPC-H at rest and beside refresh functions, a pair for each stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RefreshReport {
    /// The number of streams.
    pub streams: usize,
    /// The time of all streams at rest, in seconds.
    pub at_rest_s: f64,
    /// Their time beside the refresh functions, in seconds.
    pub beside_s: f64,
    /// The mean time of RF1, which inserts orders and their lines, in seconds.
    pub insert_s: f64,
    /// The mean time of RF2, which deletes orders and their lines, in seconds.
    pub delete_s: f64,
    /// The orders and lines that were inserted.
    pub inserted_rows: u64,
    /// The orders and lines that were deleted.
    pub deleted_rows: u64,
}

impl MergingReport {
    /// The costs as a table.
    #[must_use]
    pub fn table(reports: &[Self]) -> String {
        let header = format!(
            "{:<6} {:<12} {:>8} {:>12} {:>12} {:>7} {:>14} {:>6}",
            "query", "changed rows", "", "at rest", "changed", "ratio", "shared: first", "again"
        );
        let line = |report: &Self| {
            let Self { query, kind, share, at_rest_s, changed_s, .. } = report;
            let (share, ratio) = (format!("{:.1} %", share * 100.0), changed_s / at_rest_s);
            let (rest, changed) = (at_rest_s * 1e3, changed_s * 1e3);
            let [first, again] = [report.taken_first, report.taken_again]
                .map(|taken| format!("{:.0} %", taken * 100.0));
            format!(
                "{query:<6} {kind:<12} {share:>8} {rest:>9.1} ms {changed:>9.1} ms {ratio:>7.3} {first:>14} {again:>6}"
            )
        };
        [header].into_iter().chain(reports.iter().map(line)).collect::<Vec<_>>().join("\n")
    }
}

impl RateReport {
    /// The rates as a table.
    #[must_use]
    pub fn table(reports: &[Self]) -> String {
        let [statement, sessions, statements, rows] =
            ["statement", "sessions", "statements/s", "rows/s"];
        let header = format!("{statement:<22} {sessions:>8} {statements:>14} {rows:>14}");
        let line = |report: &Self| {
            let Self { statement, sessions, statements_per_second, rows_per_second } = report;
            format!(
                "{statement:<22} {sessions:>8} {statements_per_second:>14.0} {rows_per_second:>14.0}"
            )
        };
        [header].into_iter().chain(reports.iter().map(line)).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for CheckpointTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checkpoint: {} rows in {:.2} s", self.rows, self.seconds)
    }
}

impl fmt::Display for OpeningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.segment_bytes as f64 / 1e6;
        write!(f, "opening: {megabytes:.0} MB of segments in {:.2} s", self.seconds)
    }
}

impl fmt::Display for StreamsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, queries, at_rest_s, beside_s, at_rest_bytes, beside_bytes, .. } = self;
        let Self { updated_rows, appended_rows, checkpoints, .. } = self;
        let [rest, beside] = [at_rest_bytes, beside_bytes].map(|&bytes| bytes as f64 / 1e6);
        write!(
            f,
            "{streams} streams of {queries} queries: {at_rest_s:.1} s at rest, {beside_s:.1} s beside {updated_rows} updated \
             and {appended_rows} appended rows and {checkpoints} checkpoints ({:.2} times)\n\
             read: {rest:.0} MB at rest, {beside:.0} MB beside ({:.2} times)",
            beside_s / at_rest_s,
            beside / rest
        )
    }
}

impl fmt::Display for RefreshReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, at_rest_s, beside_s, insert_s, delete_s, .. } = self;
        let Self { inserted_rows, deleted_rows, .. } = self;
        write!(
            f,
            "TPC-H, {streams} streams: {at_rest_s:.1} s at rest, {beside_s:.1} s beside refresh functions ({:.2} times); RF1 \
             {insert_s:.2} s, RF2 {delete_s:.2} s, {inserted_rows} rows inserted, {deleted_rows} deleted",
            beside_s / at_rest_s
        )
    }
}
