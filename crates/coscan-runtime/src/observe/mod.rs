//! Observation of a manager: counters, reports, events, recordings. It changes nothing.

pub(crate) mod events;
pub(crate) mod metrics;
pub(crate) mod recorder;
pub(crate) mod recording;
pub(crate) mod scan_report;
pub(crate) mod watching;
