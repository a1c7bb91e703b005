//! `coscan sql`: SQL on shared tables, in a shell or from scripts.

mod advice;
mod blocks;
mod commands;
mod copy_from;
mod dialect;
mod jobs;
mod output;
mod refresh;
pub(crate) mod session;
mod settings;
mod shell;
mod statements;
mod tables;
mod warnings;

use std::io::{IsTerminal, Read, stdout};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use coscan_core::PolicyKind;

use crate::signals::interrupted;
use crate::sizes::parse_bytes;
use crate::table_argument::parse_table;
use crate::{Exit, Failure};
use output::Format;
use session::Session;

/// Run SQL on Parquet files and Delta Lake tables; queries that run at the same time share their reads.
///
/// Without -e and -f it is a shell, or reads statements from standard input if that is not a terminal. In the shell,
/// end a statement with `;` and type \? for help.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("scripts").args(["execute", "file"]).multiple(true),
    after_help = "\
Examples:
  coscan sql -t 'trips=trips/*.parquet'            a shell on your own files
  coscan sql -t trips=trips/ --replica trips=trips_by_city/
                                                   the same rows in two orders: each scan reads what takes fewer bytes
  coscan sql -t trips=trips/ --format csv -f daily.sql > daily.csv
  coscan sql -t trips=trips/ --jobs 8 -f daily.sql -f weekly.sql -f cities.sql
                                                   three scripts at the same time: data that all need is read once
  coscan sql -d trips.db -e \"CREATE TABLE trips AS SELECT * FROM 'trips/'\" -e \"DELETE FROM trips WHERE fare < 0\"
                                                   a database whose tables statements change
  coscan sql -e \"SELECT count(*) FROM 'trips/'\"    a query may name files, also as URLs: FROM 's3://bucket/trips/'

Statements in addition to those of DataFusion:
  REFRESH TABLE trips       list the files of a table again, or look for a newer version of a Delta Lake table
  SET coscan.refresh_interval = '5s'    list the files of a table again for each query if the last list is 5 s old or older
  SET coscan.weight = 4     give the queries of this session four times the weight of others
  SET coscan.sharing = false
                            read without sharing, as plain DataFusion does, to compare
  SET coscan.share_results = false
                            aggregate every chunk anew, even if another query has done so, to compare"
)]
pub(crate) struct Sql {
    /// Run this SQL and exit; may be given several times
    #[arg(short, long = "execute", value_name = "SQL")]
    execute: Vec<String>,
    /// Run the SQL in this file and exit; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Run up to N scripts (-e and -f) at the same time, so that they share what they read
    ///
    /// Each script has its own session: it sees the tables of --table, but not what other scripts create or set. Output
    /// is printed script by script, in the order of the arguments, -e before -f. A script that fails is named, and the
    /// others go on. Without --jobs the scripts run one after another in one session, and the first failure ends all.
    #[arg(short, long, value_name = "N", requires = "scripts")]
    jobs: Option<NonZeroUsize>,
    /// A table: its name, and a file, directory, pattern or URL of Parquet files, or the directory of a Delta Lake table
    #[arg(short, long = "table", value_name = "NAME=URL", value_parser = parse_table)]
    tables: Vec<(String, String)>,
    /// A directory with a database, whose tables statements change; it is created if it does not exist
    ///
    /// CREATE TABLE makes a table there, INSERT, UPDATE, DELETE, MERGE and TRUNCATE change it, DROP TABLE drops it. What a
    /// statement has changed is durable when it has returned. BEGIN, COMMIT and ROLLBACK make one transaction of several
    /// statements. One process has a database open at a time.
    #[arg(short, long, value_name = "DIRECTORY")]
    database: Option<PathBuf>,
    /// A replica of a table of --table: its name, and other files with the same rows, in another order or other row
    /// groups; may be given several times
    ///
    /// Each scan reads the copy that costs least: the bytes to read for its filters and columns, of which those in the
    /// pool count an eighth. EXPLAIN shows the choice, as replica=. Statistics of Parquet rule out more row groups of
    /// files that are sorted by a column of the filter. SQL: CREATE EXTERNAL TABLE … OPTIONS ('replicas' 'URL, URL').
    #[arg(long = "replica", value_name = "NAME=URL", value_parser = parse_table)]
    replicas: Vec<(String, String)>,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Rows of a result to print as a table; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_rows: usize,
    /// Do not print the time of each statement
    #[arg(short, long)]
    quiet: bool,
    /// Memory for pages, decoded columns, footers and operators [default: half of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    #[arg(long, default_value_t = PolicyKind::default(), help = policy_help())]
    policy: PolicyKind,
}

impl Sql {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        warnings::print();
        let mut session = Session::new(self.memory, self.policy)?;
        session.format = self.format;
        session.rows_max = (self.max_rows > 0).then_some(self.max_rows);
        session.timing = !self.quiet;
        if let Some((name, _)) = self.replicas.iter().find(|(name, _)| !self.has_table(name)) {
            return Err(
                format!("--replica names table {name}; add it with --table {name}=URL").into()
            );
        }
        if let Some(directory) = &self.database {
            session.open_database(directory).await?;
        }
        for (name, url) in &self.tables {
            let replicas = self.replicas.iter().filter(|(of, _)| of == name);
            let replicas: Vec<_> = replicas.map(|(_, url)| url.as_str()).collect();
            session.add_table(name, url, &replicas).await?;
        }
        let mut scripts = self.scripts()?;
        if let Some(jobs) = self.jobs {
            return jobs::run(&session, scripts, jobs).await;
        }
        if scripts.is_empty() {
            if std::io::stdin().is_terminal() {
                return shell::run(session).await;
            }
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            scripts.push(Script { name: "standard input".to_owned(), text });
        }
        tokio::select! {
            result = run_scripts(&mut session, &scripts) => result.map(|()| Exit::Success),
            () = interrupted() => {
                eprintln!("cancelled");
                Ok(Exit::Interrupted)
            }
        }
    }

    fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|(table, _)| table == name)
    }

    /// The scripts of the arguments.
    fn scripts(&self) -> Result<Vec<Script>, Failure> {
        let given = self.execute.iter().enumerate().map(|(index, text)| {
            Ok(Script { name: format!("-e number {}", index + 1), text: text.clone() })
        });
        let files = self.file.iter().map(|file| {
            let name = file.display().to_string();
            match std::fs::read_to_string(file) {
                Ok(text) => Ok(Script { name, text }),
                Err(error) => Err(format!("cannot read {name}: {error}").into()),
            }
        });
        given.chain(files).collect()
    }
}

/// Statements of the user.
#[derive(Debug)]
struct Script {
    /// Its name in messages.
    name: String,
    text: String,
}

/// Runs scripts one after another, up to the first that fails.
async fn run_scripts(session: &mut Session, scripts: &[Script]) -> Result<(), Failure> {
    for script in scripts {
        match run_script(session, &script.text).await {
            // The reader has closed the output, as with `| head`, which is not a failure.
            Err(error) if output::is_broken_pipe(&error) => break,
            result => result?,
        }
    }
    Ok(())
}

/// Runs the statements of a script, up to the first that fails.
async fn run_script(session: &mut Session, script: &str) -> Result<(), Failure> {
    for statement in statements::split(script)? {
        session.execute(&statement, stdout()).await?;
    }
    Ok(())
}

fn policy_help() -> String {
    format!(
        "Policy that decides what to read next: {}",
        PolicyKind::ALL.map(PolicyKind::name).join(", ")
    )
}
