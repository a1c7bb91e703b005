//! The workloads of the papers on real engines, and their reports.
//!
//! [`tpch`] makes the tables, [`workload`] draws the queries, [`engines`] answers them with plain
//! DataFusion or with coscan (or `clients` of a server), [`runner`] runs them, [`experiment`] does all of that in order,
//! [`answers`] compares what engines answered, [`metrics`] holds what was measured, and [`report`]
//! shows it as text and as a page with pictures.
//!
//! [`rounds`] has what runs that are compared several times have in common. [`alone`] and [`small`] measure the cost of coscan where sharing gains little: queries that run alone, and streams
//! of small queries. [`open`] lets queries arrive whether or not earlier queries have finished. [`throughput`] measures whole queries: streams of all 22 of TPC-H. [`partitions`] measures one scan on
//! several numbers of partitions, [`updates`] tables that change, [`dashboard`] the same
//! queries again and again over a directory to which files are added.
//!
//! This crate decides nothing about scheduling, and has no command line.

pub mod alone;
pub mod answers;
#[cfg(feature = "clients")]
pub mod clients;
pub mod dashboard;
pub mod engines;
pub mod experiment;
pub mod metrics;
pub mod open;
pub mod partitions;
pub mod process;
pub mod report;
pub mod rounds;
pub mod runner;
pub mod small;
pub mod throughput;
pub mod tpch;
pub mod updates;
pub mod workload;
