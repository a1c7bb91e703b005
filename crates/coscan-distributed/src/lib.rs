//! Queries over several machines: the engine `datafusion-distributed` plans, shuffles and transports; coscan reads, on
//! each worker with one buffer manager for the queries of all coordinators.
//!
//! A coordinator plans a statement ([`Cluster::plan`]) in a session whose operators can all be sent (`planning`; `sendable`
//! has the list of operators). The leaves of the plan become one [`TaskScan`] for each task, with the row groups that
//! its worker owns (`ownership`), and travel in their own form (`codec`, `wire`). A worker ([`worker`]) executes tasks
//! with the settings of the coordinator's session (`session_header`).

mod codec;
mod ownership;
mod planning;
mod sendable;
mod session_header;
mod task_scan;
mod wire;
mod worker;

pub use planning::{Cluster, ClusterOptions, DistributedPlan, NotDistributed};
pub use task_scan::TaskScan;
pub use worker::{WorkerOptions, worker};
