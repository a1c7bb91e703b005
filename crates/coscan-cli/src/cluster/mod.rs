//! `coscan cluster`: commands for queries over several workers.

mod demo;
mod engine;
mod servers;
mod system;

use clap::{Args, Subcommand};

use crate::{Exit, Failure};

/// Queries over several workers, each of which reads its part of every table once for all queries.
///
/// `coscan serve --help` lists the settings; docs/cluster.md says when workers pay.
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(Box<demo::Demo>),
    #[command(hide = true)]
    EngineWorker(engine::EngineWorker),
}

impl Cluster {
    pub(crate) async fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Command::Demo(demo) => demo.run().await,
            Command::EngineWorker(worker) => worker.run().await,
        }
    }
}
