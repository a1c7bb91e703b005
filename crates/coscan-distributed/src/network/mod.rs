//! Connections between servers: `connections` to workers, a list of the `healthy` ones, and the `server` of a worker, which
//! counts `running_tasks`, and keeps them in the engine's cache until they have ended (`task_cache`).

mod connection;
mod connections;
mod healthy;
mod running_tasks;
mod server;
mod task_cache;

pub use connections::{Connections, Security};
pub use healthy::{Health, HealthyWorkers};
pub use running_tasks::RunningTasks;
pub use server::WorkerServer;
