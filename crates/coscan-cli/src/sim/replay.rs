//! `coscan sim replay`: replays a decision log in core, decision by decision.

use std::path::PathBuf;

use clap::Args;
use coscan_core::log::{Log, Replayed};

use crate::Failure;

/// Replay a recorded run and check that its decisions are the same (record one with `coscan bench streams --record
/// FILE`).
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The decision log
    file: PathBuf,
}

impl Replay {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let name = self.file.display();
        let text = std::fs::read_to_string(&self.file)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        let log: Log = text.parse().map_err(|error| format!("{name}: {error}"))?;
        let Replayed { commands, decisions } =
            log.replay().map_err(|error| format!("{name}: {error}"))?;
        println!(
            "policy {}, {commands} commands; identical decisions: {decisions} of {decisions}",
            log.header.policy
        );
        Ok(())
    }
}
