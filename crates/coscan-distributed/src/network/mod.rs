//! Connections between servers: `connections` to workers, a list of the `healthy` ones, and the `server` of a worker, which
//! counts what is `running` and frees what has `ended`.

mod connection;
mod connections;
mod ended;
mod healthy;
mod running;
mod server;

pub use connections::{Connections, Security};
pub use healthy::{Health, HealthyWorkers};
pub use running::RunningTasks;
pub use server::WorkerServer;
