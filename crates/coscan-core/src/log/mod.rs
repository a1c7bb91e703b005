//! The decision log: everything that went into an Active Buffer Manager and everything that came out, in order.
//!
//! A [`RecordedManager`] records; [`Log::replay`] runs the same commands again and compares every decision. A log is
//! text: a line of JSON for the [`Header`], then one for each [`Entry`].
//!
//! ```text
//! {"coscan_log":4,"policy":"relevance","cores":2,"config":{…}}
//! {"in":{"register_layout":{"layout":{…},"device":0}}}
//! {"reply":{"layout":[0,0]}}
//! {"in":{"start_scan":{"now":5,"spec":{…}}}}
//! {"reply":{"scan":0}}
//! {"in":{"request_chunk":{"now":7,"scan":0,"worker":0}}}
//! {"out":{"load":{"load":0,"scan":0,"table":0,"chunk":0,"pages":[0]}}}
//! {"settled":{"until":null}}
//! ```

mod commands;
mod layouts;
mod replay;
mod replies;

use std::fmt;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::ids::Time;
use crate::manager::Config;

pub use commands::{Command, RecordedManager};
pub use replay::{ReplayError, Replayed};
pub use replies::Reply;

/// The version of the format that is written and read here. It changes when an older log would be misread.
pub const VERSION: u32 = 4;

/// A recorded run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// The policy and configuration of the manager.
    pub header: Header,
    /// Inputs and outputs, in order.
    pub entries: Vec<Entry>,
}

/// The policy and configuration of a recorded manager.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The [`VERSION`] of the format.
    #[serde(rename = "coscan_log")]
    pub version: u32,
    /// The name of the policy, with its usual parameters.
    pub policy: String,
    /// The number of processors of the machine. No decision depends on it; a simulation of the run does.
    pub cores: usize,
    /// The limits.
    pub config: Config,
}

impl Header {
    /// The header of a log that is recorded now, on a machine with this many processors.
    #[must_use]
    pub fn new(policy: &str, config: Config, cores: usize) -> Self {
        Self { version: VERSION, policy: policy.to_owned(), cores, config }
    }
}

/// An input or output of the manager.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Entry {
    /// A command or event.
    #[serde(rename = "in")]
    Command(Command),
    /// The return value of the command before it, if it has one.
    #[serde(rename = "reply")]
    Reply(Reply),
    /// An action.
    #[serde(rename = "out")]
    Action(Action),
    /// There was no other action until the next command.
    #[serde(rename = "settled")]
    Settled {
        /// The time of [`poll_timeout`](crate::ActiveBufferManager::poll_timeout).
        until: Option<Time>,
    },
}

/// Why a text cannot be read as a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadLogError {
    /// The first line is not the header of a log.
    #[error("this is no decision log: its first line does not say `coscan_log`")]
    NotALog,
    /// Another version of coscan wrote it.
    #[error(
        "the log has format {found}, this coscan reads format {VERSION}: \
         read it with the coscan that wrote it, or record it again"
    )]
    Version {
        /// The version of the log.
        found: u32,
    },
    /// A line is malformed: the file was changed or cut.
    #[error("line {line} of the log cannot be read: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The problem.
        reason: serde_json::Error,
    },
}

impl FromStr for Log {
    type Err = ReadLogError;

    fn from_str(text: &str) -> Result<Self, ReadLogError> {
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().ok_or(ReadLogError::NotALog)?;
        #[derive(Deserialize)]
        struct Format {
            coscan_log: u32,
        }
        let Ok(Format { coscan_log: found }) = serde_json::from_str(first) else {
            return Err(ReadLogError::NotALog);
        };
        if found != VERSION {
            return Err(ReadLogError::Version { found });
        }
        let header = parse((0, first))?;
        let entries = lines.map(parse).collect::<Result<_, _>>()?;
        Ok(Self { header, entries })
    }
}

fn parse<T: DeserializeOwned>((index, line): (usize, &str)) -> Result<T, ReadLogError> {
    serde_json::from_str(line).map_err(|reason| ReadLogError::Line { line: index + 1, reason })
}

/// The text of the log.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.header)?;
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

/// Writes the line of the header in a log, without the end of line.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, self)
    }
}

/// Writes the line of the entry in a log, without the end of line.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, self)
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, value: &impl Serialize) -> fmt::Result {
    f.write_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?)
}
