//! The Data Cyclotron as published, in virtual time: `coscan-ring`'s [`Circulate`](coscan_ring::Circulate), unchanged, on a
//! ring of simulated nodes that run the queries of `[DC §5.4]`.
//!
//! A query **requests** its fragments. A **pin** executes when its fragment has come; a select then runs on it. An
//! **unpin** follows when the select has run or, if it has made a view of the fragment, when the operator behind the
//! pack has. Queries of one node that hold what the others wait for block each other: that is an outcome, not an error.
//!
//! The queue of queries goes round counter-clockwise in well under a millisecond. So a free picker gets the oldest one
//! at once. Nothing else of that queue could be seen in these experiments.

mod document;
mod experiment;
mod library;
mod machine;
mod memory;
mod metric;
mod outcome;
mod query;
mod report;
mod setup;
mod simulation;

pub use experiment::{CyclotronCase, CyclotronResults, CyclotronSpec};
pub use library::{file, find, names};
pub use metric::CyclotronMetric;
pub use outcome::{CyclotronOutcome, CyclotronQuery};
pub use report::{report, verdicts};
pub use setup::{Cyclotron, Ownership, Queries};
pub use simulation::run_cyclotron;
