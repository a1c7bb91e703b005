//! Reports of measurements, as text and as pages.
//!
//! [`table`] is CS07 Table 2 as plain text. [`html`] is the same with pictures as one page that
//! needs nothing else. The pictures are also available one by one, for a README: [`reads`] is CS07
//! Figure 4, [`latency`] and [`bytes`] show Table 2, [`flatness`] is CS07 Figure 7. [`mixed`] shows several runs beside
//! each other, [`rounds`] medians of runs, [`open`] arrivals, [`dashboard`] refreshes, [`small`] small queries, [`throughput`] those of TPC-H and [`partitions`] scans, as plain text.
//!
//! All of them take the reports in the order in which they are shown. The others are compared with the first.

mod blocks;
pub mod bytes;
pub mod dashboard;
pub mod flatness;
pub mod html;
pub mod latency;
pub mod mixed;
pub mod open;
pub mod partitions;
pub mod reads;
pub mod rounds;
mod rows;
pub mod small;
pub mod table;
pub mod throughput;

/// The head of a report: workload, data and device.
#[derive(Debug, Clone, Default)]
pub struct RunDescription {
    /// A few words, such as `16 streams of 4 queries`.
    pub title: String,
    /// A sentence or two on the experiment.
    pub summary: String,
    /// All parameters that are needed to repeat the run, as names and values with units.
    pub parameters: Vec<(String, String)>,
    /// The bytes of all columns and ranges that the queries touch, each counted once. This is the minimum that an
    /// engine can read with nothing in memory.
    pub touched_bytes: Option<u64>,
}
