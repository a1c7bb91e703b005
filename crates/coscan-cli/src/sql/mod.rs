//! `coscan sql`: SQL on shared tables, one statement after another.

mod commands;
mod output;
mod session;
mod shell;
mod statements;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use coscan_core::PolicyKind;

use crate::interrupt::interrupted;
use crate::sizes::parse_bytes;
use crate::table_argument::parse_table;
use crate::{Failure, INTERRUPTED};
use output::Format;
use session::Session;

/// Run SQL on Parquet files; queries that run at the same time share their reads.
///
/// Without -e and -f it reads statements from the terminal (or from standard input, if that is no terminal). In the
/// shell, end a statement with `;` and type \? for help.
#[derive(Debug, Args)]
pub(crate) struct Sql {
    /// Run this SQL and end; may be given several times
    #[arg(short, long = "execute", value_name = "SQL")]
    execute: Vec<String>,
    /// Run the SQL in this file and end; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// A table: its name, and a file, directory, pattern or URL of Parquet files
    #[arg(short, long = "table", value_name = "NAME=URL", value_parser = parse_table)]
    tables: Vec<(String, String)>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The most rows that are printed in a table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_rows: usize,
    /// Do not print how long statements took
    #[arg(short, long)]
    quiet: bool,
    /// Memory for everything: pages, decoded columns, operators [default: half of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// What to read next: normal, attach, elevator or relevance
    #[arg(long, default_value_t = PolicyKind::default())]
    policy: PolicyKind,
}

impl Sql {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let mut session = Session::new(self.memory, self.policy)?;
        session.format = self.format;
        session.rows_max = (self.max_rows > 0).then_some(self.max_rows);
        session.timing = !self.quiet;
        for (name, url) in &self.tables {
            session.add_table(name, url).await?;
        }
        let mut scripts = self.execute;
        for file in &self.file {
            let script = std::fs::read_to_string(file)
                .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            scripts.push(script);
        }
        if scripts.is_empty() {
            if std::io::stdin().is_terminal() {
                return shell::run(session).await;
            }
            let mut script = String::new();
            std::io::stdin().read_to_string(&mut script)?;
            scripts.push(script);
        }
        for script in scripts {
            match run_script(&mut session, &script).await {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Interrupted) => return Ok(ExitCode::from(INTERRUPTED)),
                // Nobody reads the rest, as with `| head`: that is no failure.
                Err(error) if output::is_broken_pipe(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Interrupted,
}

/// Runs the statements of a script; the first that fails, or Ctrl-C, ends it.
async fn run_script(session: &mut Session, script: &str) -> Result<Outcome, Failure> {
    let mut interrupt = std::pin::pin!(interrupted());
    for statement in statements::split(script)? {
        tokio::select! {
            result = session.execute(&statement) => result?,
            () = &mut interrupt => {
                eprintln!("cancelled");
                return Ok(Outcome::Interrupted);
            }
        }
    }
    Ok(Outcome::Done)
}
