//! The measures, and their text.

use serde::Serialize;

/// All measures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct UpdatesReport {
    /// The cost of scans over changed rows.
    pub merging: Vec<MergingReport>,
    /// A checkpoint of the table with about a quarter of its rows changed.
    pub checkpoint: CheckpointTimes,
    /// How many rows are changed in a second.
    pub rates: Vec<RateReport>,
    /// How long opening took after all these changes.
    pub opening: OpeningReport,
    /// Streams of queries beside changes.
    pub streams: StreamsReport,
    /// The streams of TPC-H beside its refresh functions.
    pub refresh: RefreshReport,
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

/// The measures as tables.
#[must_use]
pub fn table(report: &UpdatesReport) -> String {
    let mut text = String::new();
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    line(format!(
        "{:<6} {:<11} {:>13} {:>12} {:>12} {:>7}",
        "query", "changed rows", "", "at rest", "changed", "ratio"
    ));
    for MergingReport { query, kind, share, at_rest_s, changed_s } in &report.merging {
        let (share, ratio) = (format!("{:.1} %", share * 100.0), changed_s / at_rest_s);
        let (rest, changed) = (at_rest_s * 1e3, changed_s * 1e3);
        line(format!(
            "{query:<6} {kind:<11} {share:>13} {rest:>9.1} ms {changed:>9.1} ms {ratio:>7.3}"
        ));
    }
    line(format!(
        "\n{:<22} {:>8} {:>14} {:>14}",
        "statement", "sessions", "statements/s", "rows/s"
    ));
    for RateReport { statement, sessions, statements_per_second, rows_per_second } in &report.rates
    {
        line(format!(
            "{statement:<22} {sessions:>8} {statements_per_second:>14.0} {rows_per_second:>14.0}"
        ));
    }
    let CheckpointTimes { rows, seconds } = report.checkpoint;
    line(format!("\ncheckpoint: {rows} rows in {seconds:.2} s"));
    let OpeningReport { segment_bytes, seconds } = report.opening;
    line(format!("opening: {:.0} MB of segments in {seconds:.2} s", segment_bytes as f64 / 1e6));
    let StreamsReport {
        streams, queries, at_rest_s, beside_s, at_rest_bytes, beside_bytes, ..
    } = report.streams;
    let StreamsReport { updated_rows, appended_rows, checkpoints, .. } = report.streams;
    line(format!(
        "{streams} streams of {queries} queries: {at_rest_s:.1} s at rest, {beside_s:.1} s beside {updated_rows} updated and \
         {appended_rows} appended rows and {checkpoints} checkpoints ({:.2} times)",
        beside_s / at_rest_s
    ));
    line(format!(
        "read: {:.0} MB at rest, {:.0} MB beside ({:.2} times)",
        at_rest_bytes as f64 / 1e6,
        beside_bytes as f64 / 1e6,
        beside_bytes as f64 / at_rest_bytes as f64
    ));
    let RefreshReport { streams, at_rest_s, beside_s, insert_s, delete_s, .. } = report.refresh;
    let RefreshReport { inserted_rows, deleted_rows, .. } = report.refresh;
    line(format!(
        "TPC-H, {streams} streams: {at_rest_s:.1} s at rest, {beside_s:.1} s beside refresh functions ({:.2} times); RF1 {insert_s:.2} s, \
         RF2 {delete_s:.2} s, {inserted_rows} rows inserted, {deleted_rows} deleted",
        beside_s / at_rest_s
    ));
    text
}
