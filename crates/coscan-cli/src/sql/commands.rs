//! Commands of the shell: lines that begin with a backslash.

use std::io::stdout;

use clap::ValueEnum;
use coscan_runtime::ManagerReport;

use crate::Failure;
use crate::sizes::show_bytes;
use crate::sql::output::Format;
use crate::sql::session::Session;

const HELP: &str = r"End a statement with ; to run it. Ctrl-C stops a query, Ctrl-D ends the shell.

  \d               list the tables
  \d NAME          show the columns of a table
  \table NAME URL  add a table of Parquet files: a file, directory, pattern or URL; either may be in quotes
  \format FORMAT   print results as table, csv or json
  \timing          switch the time of each statement on or off
  \pool            show the memory and the load of the buffer manager
  \?               this help
  \q               end the shell

CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'URL' also adds a shared table, STORED AS DELTA a Delta Lake table.
SELECT … FROM t VERSION AS OF 12, or TIMESTAMP AS OF '2026-11-01', reads an earlier version of a Delta Lake table.
SELECT … FROM 'trips/2024.parquet' reads a file, FROM 'trips/' a directory; such queries share their reads, too.
REFRESH TABLE t lists the files of a table again.
SET coscan.refresh_interval = '5s' lists them again for each query if the last list is 5 s old or older.
SET coscan.weight = 4 gives the queries of this session four times the weight of others.
SET coscan.sharing = false reads without sharing, as plain DataFusion does, to compare.
SET coscan.share_results = false aggregates every chunk anew, even if another query has done so.
EXPLAIN ANALYZE SELECT … shows what a query read, and what it found in memory because others had read it.";

/// Whether the shell continues after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// Runs a line that begins with a backslash.
pub(super) async fn run(session: &mut Session, line: &str) -> Result<Next, Failure> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (command, rest.trim()) {
        (r"\q" | r"\quit", "") => return Ok(Next::Quit),
        (r"\?" | r"\h" | r"\help", _) => println!("{HELP}"),
        (r"\d", "") => session.execute("SHOW TABLES", stdout()).await?,
        (r"\d", name) => session.execute(&format!("DESCRIBE {name}"), stdout()).await?,
        (r"\table", table) => {
            let (name, url) = name_and_url(table).ok_or(r"write \table NAME URL")?;
            session.add_table(name, url, &[]).await?;
        }
        (r"\timing", "") => {
            session.timing = !session.timing;
            println!("timing is {}", if session.timing { "on" } else { "off" });
        }
        (r"\format", name) if !name.is_empty() => session.format = Format::from_str(name, true)?,
        (r"\pool", "") => println!("{}", pool_text(&session.report())),
        _ => return Err(format!(r"`{line}` is not a command; type \? for help").into()),
    }
    Ok(Next::GoOn)
}

/// The name and the location of a table, either of which may be in quotes. All text after the name is the location.
fn name_and_url(text: &str) -> Option<(&str, &str)> {
    let (name, url) = match text.chars().next()? {
        quote @ ('"' | '\'') => text[1..].split_once(quote)?,
        _ => text.split_once(char::is_whitespace)?,
    };
    let url = url.trim();
    let inner = |quote| url.strip_prefix(quote).and_then(|url| url.strip_suffix(quote));
    let url = inner('"').or_else(|| inner('\'')).unwrap_or(url);
    (!name.is_empty() && !url.is_empty()).then_some((name, url))
}

fn pool_text(report: &ManagerReport) -> String {
    let idle = match report.decoded_idle_bytes {
        0 => String::new(),
        bytes => format!(", {} of them idle", show_bytes(bytes)),
    };
    format!(
        "stored pages      {} of {}\ndecoded columns   {}{idle}\nmetadata          {}\noperators         {}\n\
         all, at most      {} of {}\nrunning scans     {}\nloads in flight   {}",
        show_bytes(report.pool_held_bytes),
        show_bytes(report.pool_limit_bytes),
        show_bytes(report.decoded_bytes),
        show_bytes(report.metadata_bytes),
        show_bytes(report.operator_bytes),
        show_bytes(report.held_bytes_max),
        show_bytes(report.memory_bytes),
        report.scans,
        report.loads_in_flight,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use coscan_runtime::{BufferManager, Options};

    use super::*;

    #[test]
    fn names_and_locations_may_be_in_quotes_and_have_spaces() {
        let expected = Some(("Trips", "my data/a.parquet"));
        for text in [
            "Trips my data/a.parquet",
            "Trips  'my data/a.parquet'",
            "\"Trips\" \"my data/a.parquet\"",
            "'Trips' my data/a.parquet",
        ] {
            assert_eq!(name_and_url(text), expected, "{text}");
        }
        for text in ["", "Trips", "\"Trips", "Trips ''"] {
            assert_eq!(name_and_url(text), None, "{text}");
        }
    }

    #[test]
    fn the_pool_shows_all_that_is_held() {
        let manager = BufferManager::new(Options::with_memory_bytes(1 << 20)).unwrap();
        let mut report = manager.report();
        (report.pool_held_bytes, report.decoded_bytes) = (1_000_000, 2_000_000);
        (report.metadata_bytes, report.operator_bytes) = (3_000_000, 4_000_000);
        let text = pool_text(&report);
        let lines = text.lines().filter_map(|line| line.split_once("   "));
        let held: Vec<_> = lines.map(|(name, held)| (name, held.trim())).collect();
        for (name, bytes) in
            [("decoded columns", 2_000_000), ("metadata", 3_000_000), ("operators", 4_000_000)]
        {
            assert!(held.contains(&(name, show_bytes(bytes).as_str())), "{text}");
        }
    }
}
