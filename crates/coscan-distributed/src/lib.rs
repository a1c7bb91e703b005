//! Queries over several machines: the engine `datafusion-distributed` plans, shuffles and transports; coscan reads, on
//! each worker with one buffer manager for the queries of all coordinators.
//!
//! A coordinator plans a statement ([`Cluster::plan`]) in a session whose operators can all be sent: `planning`; `sendable` has the
//! list of operators, `window_order` what windows need, `not_distributed` the reasons why a statement stays with the
//! coordinator. The leaves of the plan become one [`TaskScan`] for each task (`scan_tasks`), with the row groups that its worker
//! owns (`ownership`), and travel in their own form (`codec`, `wire`). `execution` starts it, and starts it again if a worker is lost
//! (`watched_channels`, `network_errors`) before the first rows.
//!
//! A worker ([`worker`]) executes tasks with the settings of the coordinator's session (`session_header`). Panics of its
//! operators become errors (`task_errors`). `network` has the connections between servers, with certificates on both sides, and
//! the list of workers that answer.

mod codec;
mod execution;
mod final_metrics;
mod network;
mod network_errors;
mod not_distributed;
mod options;
mod ownership;
mod planning;
mod scan_tasks;
mod sendable;
mod session_header;
mod task_errors;
mod task_scan;
mod watched_channels;
mod window_order;
mod wire;
mod worker;

pub use network::{Connections, Health, HealthyWorkers, RunningTasks, Security, WorkerServer};
pub use network_errors::{WorkerLost, WorkersBusy};
pub use not_distributed::NotDistributed;
pub use options::ClusterOptions;
pub use planning::{Cluster, DistributedPlan, WorkerList};
pub use task_scan::TaskScan;
pub use worker::{RegisterFunctions, WorkerOptions, worker};
