//! Connections between servers: `connections` to workers, what is known of their health (`worker_health`), and the `server` of a worker, which
//! counts `running_tasks`, and keeps them in the engine's cache until they have ended (`task_cache`).

mod connection;
mod connections;
mod running_tasks;
mod server;
mod task_cache;
mod worker_health;

pub use connections::{Connections, Security};
pub use running_tasks::RunningTasks;
pub(crate) use server::MESSAGE_BYTES_MAX;
pub use server::WorkerServer;
pub use worker_health::{Health, WorkerHealth};
