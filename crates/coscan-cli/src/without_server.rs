//! Commands of servers in a build without the feature `server`, and `coscan cluster` without the feature `distributed`. They
//! report how to get them.

use std::ffi::OsString;

use clap::Args;

use crate::{Exit, Failure};

/// Not in this build: needs the features `server` and `distributed`
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct WithoutServer {
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    arguments: Vec<OsString>,
}

impl WithoutServer {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        Err("this coscan was built without its server, which is the feature `server`, or without queries over several workers, \
             the feature `distributed`; both are on unless `--no-default-features` is given: cargo install --locked \
             --path crates/coscan-cli"
            .into())
    }
}
