//! Queries over several machines: the engine `datafusion-distributed` plans, shuffles and transports; coscan reads, on
//! each worker with one buffer manager for the queries of all coordinators.
//!
//! A [`Coordinator`] plans a statement (`planning`) in a session whose operators can all be sent. `sendable` lists these
//! operators, `window_order` says what windows need, `not_distributed` why a statement stays with the coordinator, `options` how
//! statements are divided. The leaves of the plan become one [`TaskScan`] for each task (`scan_tasks`), with the row groups that
//! its worker owns (`ownership`), and travel in their own form (`codec`, `wire`). `execution` starts the plan, and starts it again
//! if a worker is lost (`watched_channels`, `network_errors`) before the first rows. `final_metrics` ends EXPLAIN ANALYZE.
//!
//! A [`worker`] executes tasks with the settings of the coordinator's session (`session_header`), in the memory that the query and
//! its user may have (`query_description`, `query_pools`). Panics of its operators become errors (`task_errors`). `network` has
//! the connections between servers, with certificates on both sides, and the list of workers that answer. Their requests say which
//! task they are for (`task_key`).

mod codec;
mod coordinator;
mod execution;
mod final_metrics;
mod network;
mod network_errors;
mod not_distributed;
mod options;
mod ownership;
mod plan_size;
mod planning;
mod query_description;
mod query_pools;
mod scan_tasks;
mod sendable;
mod session_header;
mod task_errors;
mod task_key;
mod task_scan;
mod watched_channels;
mod window_order;
mod wire;
mod worker;

pub use coordinator::{Coordinator, WorkerList};
pub use execution::first_rows;
pub use network::{Connections, Health, RunningTasks, Security, WorkerHealth, WorkerServer};
pub use network_errors::{OVER_LIMIT, WorkerLost, WorkersBusy};
pub use not_distributed::NotDistributed;
pub use options::CoordinatorOptions;
pub use planning::DistributedPlan;
pub use query_description::QueryDescription;
pub use query_pools::MakeMemoryPool;
pub use task_scan::TaskScan;
pub use worker::{RegisterFunctions, WorkerOptions, worker};
