//! The Active Buffer Manager in virtual time: `coscan-core`, unchanged, on simulated disks and processors.
//!
//! A [`Workload`] has the queries and the tables that they run on; a [`Machine`] is the hardware. [`run`] drives the
//! buffer manager through all of it under one policy, checks the safety rules after every step and returns an
//! [`Outcome`]: the time of each query, the reads and their times. [`bound`] has lower bounds for the bytes that any
//! schedule reads. [`Faults`] makes loads and queries fail, at times that follow from a seed.
//!
//! Everything is a value and every time is virtual: equal workload, machine, policy and seed give the same run on every
//! computer. The papers are cited as in `coscan-core`; `[CS04]` is Cooperative Scans, CWI report INS-E0411, 2004.
//!
//! # Example
//! Two scans of the same four chunks, on a disk that reads a chunk per second and a processor that needs no time. The
//! second one starts while the first one runs and shares its reads:
//! ```
//! use coscan_core::{GroupIndex, Layout, PolicyKind, Time};
//! use coscan_sim::{Disk, Machine, Options, Query, Stream, Table, Workload, run};
//! use std::sync::Arc;
//!
//! let mut layout = Layout::builder(1);
//! for _ in 0..4 {
//!     let page = layout.add_page(GroupIndex(0), 100);
//!     layout.add_chunk(10, vec![vec![page]]);
//! }
//! let table = Table::at_rest("orders", Arc::new(layout.build()));
//! let query = Query::scan("all", 0, vec![GroupIndex(0)], 0..40);
//! let stream = |start| Stream { start: Time(start), queries: vec![query.clone()], ..Stream::default() };
//! let workload = Workload {
//!     tables: vec![table],
//!     streams: vec![stream(0), stream(1_500_000_000)],
//!     pool_bytes: 200,
//!     pool_changes: Vec::new(),
//!     table_changes: Vec::new(),
//! };
//! let machine = Machine::new(Disk::Perfect { ns_per_chunk: 1_000_000_000 }, 1);
//! let outcome = run(&workload, &machine, PolicyKind::Relevance.build(), Options::default()).unwrap();
//! assert_eq!(outcome.requests, 5); // One chunk went by before the second scan came.
//! ```

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod bound;
pub mod claim;
mod cluster;
pub mod cyclotron;
mod disk;
pub mod experiment;
pub mod faults;
mod ledger;
mod library;
mod machine;
mod metric;
mod outcome;
mod processor_sharing;
mod random;
pub mod recorded;
pub mod report;
mod simulation;
pub mod spec;
mod standalone;
mod table;
mod violation;
mod workload;

pub use cluster::{Cluster, ClusterOutcome, Incident, Network, Racks, run_cluster};
pub use faults::{Faults, Rates};
pub use machine::{Disk, Machine};
pub use metric::{Metric, UnknownMetric};
pub use outcome::{End, EventKind, MemoryOutcome, Outcome, QueryOutcome, Step};
pub use random::Random;
pub use simulation::{MemoryWorkload, Options, SharedFiles, run};
pub use spec::{Case, Spec, SpecError};
pub use standalone::standalone;
pub use table::{Snapshot, Table, TableChange};
pub use violation::{Rule, Violation};
pub use workload::{Cost, Query, Stream, Workload};
