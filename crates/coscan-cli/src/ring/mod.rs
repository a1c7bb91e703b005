//! `coscan ring`: commands for servers that share reads.

mod demo;
mod node;
mod nodes;
mod report;
mod streams;

use clap::{Args, Subcommand};

use crate::{Exit, Failure};

/// Servers that share what they read: each page is read once for all of them.
///
/// `coscan serve --help` has the settings, docs/ring.md when it pays.
#[derive(Debug, Args)]
pub(crate) struct Ring {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a new key. Servers that have the same key trust each other fully: they read each other's pages, whatever the
    /// rights of the users who ask
    #[command(after_help = "\
Example, for two servers on one bucket:
  (umask 077; coscan ring key > ring.key)          # copy ring.key to both machines
  coscan serve --config coscan.toml --ring-key ring.key --ring-store s3://bucket/sales/ \\
      --ring-listen 10.0.0.1:5440                  # on the other: 10.0.0.2:5440, and --ring-join 10.0.0.1:5440")]
    Key,
    Demo(Box<demo::Demo>),
    #[command(hide = true)]
    Node(Box<node::Node>),
}

impl Ring {
    pub(crate) async fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Command::Key => {
                print!("{}", coscan_server::new_ring_key()?);
                Ok(Exit::Success)
            }
            Command::Demo(demo) => demo.run().await,
            Command::Node(node) => node.run().await,
        }
    }
}
