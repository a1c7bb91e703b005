//! `coscan user`: entries of the users file of `coscan serve`.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::{Command, Stdio};

use clap::Args;
use coscan_server::users::{Verifier, entry, entry_of_writes};

use crate::{Exit, Failure};

/// Print an entry for the users file of `coscan serve`, with a password read from the terminal or standard input.
///
/// The entry holds no password, but a verifier as PostgreSQL keeps it (SCRAM-SHA-256).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, which keep the file from other users of the machine:
  (umask 077; coscan user ann >> users.toml)                            may read all tables
  (umask 077; coscan user ben --table trips --table cities >> users.toml)")]
pub(crate) struct User {
    /// The name to log in with
    name: String,
    /// A table that the user may read; may be given several times [default: all]
    #[arg(short, long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// A table of the server's database that the user may change, among those that the user may read; '*' for all and for
    /// creating and dropping tables; may be given several times [default: none]
    #[arg(short, long = "write", value_name = "NAME")]
    writes: Vec<String>,
}

impl User {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let password = if stdin().is_terminal() { self.asked_twice()? } else { line()? };
        if password.is_empty() {
            return Err("the password is empty".into());
        }
        print!("{}", entry(&self.name, &Verifier::of_password(&password)?, &self.tables));
        if !self.writes.is_empty() {
            print!("{}", entry_of_writes(&self.writes));
        }
        Ok(Exit::Success)
    }

    fn asked_twice(&self) -> Result<String, Failure> {
        let _hidden = Hidden::new();
        let password = ask(&format!("Password of {}: ", self.name))?;
        if ask("Repeat password: ")? == password {
            Ok(password)
        } else {
            Err("the two passwords differ".into())
        }
    }
}

fn ask(question: &str) -> Result<String, Failure> {
    eprint!("{question}");
    stderr().flush()?;
    let answer = line()?;
    eprintln!();
    Ok(answer)
}

fn line() -> Result<String, Failure> {
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Hides typed text on the terminal until it is dropped, if `stty` supports it.
struct Hidden;

impl Hidden {
    fn new() -> Self {
        stty("-echo");
        Self
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        stty("echo");
    }
}

fn stty(mode: &str) {
    // Without it, the password is shown.
    Command::new("stty").arg(mode).stderr(Stdio::null()).status().ok();
}
