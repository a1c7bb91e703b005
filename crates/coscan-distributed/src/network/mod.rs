//! Connections between servers: `connections` to workers, a list of the `healthy` ones, and the `server` of a worker, which
//! counts `running_tasks` and frees those that have ended (`task_cleanup`).

mod connection;
mod connections;
mod healthy;
mod running_tasks;
mod server;
mod task_cleanup;

pub use connections::{Connections, Security};
pub use healthy::{Health, HealthyWorkers};
pub use running_tasks::RunningTasks;
pub use server::WorkerServer;
