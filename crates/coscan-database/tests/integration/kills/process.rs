//! The process that is killed, as its parent sees it, and what the two say to each other: a line at a time on the standard
//! error, which is not buffered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};

use super::writers::{Done, Progress};

/// What the process says: that a transaction of a thread starts, that it was acknowledged, that a file is retired durably,
/// that some files are being forgotten, how often a step came, that the process is to be killed, and that it has ended its
/// work.
pub(super) const START: &str = "start";
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
pub(super) const RETIRED: &str = "retired";
pub(super) const FORGET: &str = "forget";
pub(super) const COUNT: &str = "count";
pub(super) const KILL: &str = "kill";
pub(super) const END: &str = "end";

/// What the process is told.
pub(super) const DIRECTORY: &str = "COSCAN_KILLS_CHILD_DIRECTORY";
pub(super) const SEED: &str = "COSCAN_KILLS_CHILD_SEED";
pub(super) const NUMBER: &str = "COSCAN_KILLS_CHILD_NUMBER";
pub(super) const DONE: &str = "COSCAN_KILLS_CHILD_DONE";
pub(super) const STEP: &str = "COSCAN_KILLS_CHILD_STEP";

/// The exit code of a process that found something wrong.
const FAILED: i32 = 3;

/// The signal that no process can handle.
const SIGKILL: i32 = 9;

/// Whoever starts a process writes this, and whoever has a database open reads it: until its program has begun, a new process
/// has all files of its parent open, also the lock of a database that the parent closes meanwhile.
pub(super) static STARTING: RwLock<()> = RwLock::new(());

/// Says something, at once.
pub(super) fn say(line: &str) {
    if io::stderr().write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(FAILED); // Nobody listens.
    }
}

/// Ends the process with an error, for the parent to report.
pub(super) fn fail(error: impl fmt::Display) -> ! {
    say(&format!("the process failed: {error}"));
    std::process::exit(FAILED);
}

/// A process, and at which step it is to be killed.
pub(super) struct Case<'a> {
    pub(super) directory: &'a Path,
    pub(super) seed: u64,
    /// The number of the process among those of its database.
    pub(super) kill: u64,
    /// What the database has when it starts.
    pub(super) done: Done,
    /// The name of the step, and at which time.
    pub(super) step: Option<(&'a str, u64)>,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, process {}", self.seed, self.kill)?;
        match self.step {
            Some((step, nth)) => write!(f, ", killed \"{step}\" at its time {nth}"),
            None => write!(f, ", not killed"),
        }
    }
}

/// What a process has done.
pub(super) struct Ended {
    pub(super) progress: Progress,
    /// The paths of files that must be retired.
    pub(super) retired: BTreeSet<String>,
    pub(super) is_killed: bool,
    /// How often each step came, if it was not killed.
    pub(super) counts: BTreeMap<String, u64>,
}

impl Case<'_> {
    /// Runs the process to its end.
    pub(super) fn run(&self) -> Ended {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["kills::process", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        let done = self.done.map(|done| done.to_string()).join(" ");
        command.env(DIRECTORY, self.directory).env(DONE, done);
        command.env(SEED, self.seed.to_string()).env(NUMBER, self.kill.to_string());
        if let Some((step, nth)) = self.step {
            command.env(STEP, format!("{nth} {step}"));
        }
        // The input ends when this process does, and with it the one that waits for its kill.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = {
            let _starting = STARTING.write().unwrap_or_else(PoisonError::into_inner);
            command.spawn().unwrap()
        };
        let mut heard = Heard::new(self.done);
        for line in BufReader::new(child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            if line == KILL {
                child.kill().unwrap();
            }
            heard.hear(&line);
        }
        let status = child.wait().unwrap();
        heard.end(status).unwrap_or_else(|error| panic!("{self}: {error}"))
    }
}

/// What was heard of a process.
struct Heard {
    ended: Ended,
    is_at_end: bool,
    /// Lines that are none of its words.
    others: Vec<String>,
}

impl Heard {
    fn new(done: Done) -> Self {
        let progress = Progress { started: done, acknowledged: done };
        let (retired, counts) = (BTreeSet::new(), BTreeMap::new());
        let ended = Ended { progress, retired, is_killed: false, counts };
        Self { ended, is_at_end: false, others: Vec::new() }
    }

    fn hear(&mut self, line: &str) {
        if self.understand(line).is_none() {
            self.others.push(line.to_owned());
        }
    }

    fn understand(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let Ended { progress, retired, is_killed, counts } = &mut self.ended;
        match word {
            START | ACKNOWLEDGED => {
                let (writer, number) = rest.split_once(' ')?;
                let numbers = match word {
                    START => &mut progress.started,
                    _ => &mut progress.acknowledged,
                };
                *numbers.get_mut(writer.parse::<usize>().ok()?)? = number.parse().ok()?;
            }
            COUNT => {
                let (count, step) = rest.split_once(' ')?;
                counts.insert(step.to_owned(), count.parse().ok()?);
            }
            RETIRED => drop(retired.insert(rest.to_owned())),
            // Each of them may be forgotten durably before that is said.
            FORGET => retired.clear(),
            KILL => *is_killed = true,
            END => self.is_at_end = true,
            _ => return None,
        }
        Some(())
    }

    /// What the process has done, unless it did not end as it should.
    fn end(self, status: ExitStatus) -> Result<Ended, String> {
        let Self { ended, is_at_end, others } = self;
        let is_right = match ended.is_killed {
            true => status.signal() == Some(SIGKILL),
            false => status.success() && is_at_end,
        };
        if is_right && others.is_empty() {
            return Ok(ended);
        }
        Err(format!("the process ended with {status}: {}", others.join("\n")))
    }
}
