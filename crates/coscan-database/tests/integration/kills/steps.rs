//! The steps at which a process is killed.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

use super::process::{KILL, fail, say};

/// The operations of the disk, and on what the process does them. Nothing of the two crates renames.
const OPERATIONS: [(&str, &[&str]); 9] = [
    ("create", &["segment", "state", "file"]),
    ("preallocate", &["segment"]),
    ("write", &["segment", "state", "file"]),
    ("sync", &["segment", "state", "file"]),
    ("truncate", &["segment"]),
    ("link", &["segment", "state", "file"]),
    (
        "remove",
        &["segment", "state", "file", "temporary segment", "temporary state", "temporary file"],
    ),
    ("create directory", &["wal", "files"]),
    ("sync directory", &["root", "wal", "files"]),
];

/// The names of all steps.
pub(super) fn all() -> Vec<String> {
    let mut names =
        vec!["before an acknowledgement".to_owned(), "after an acknowledgement".to_owned()];
    for (operation, whats) in OPERATIONS {
        for what in whats {
            names.push(format!("before {operation} {what}"));
            if operation == "write" {
                names.push(format!("amid {operation} {what}"));
            }
            names.push(format!("after {operation} {what}"));
        }
    }
    names
}

/// The steps of this process.
#[derive(Debug)]
pub(super) struct Steps {
    /// The step at which it is killed, and at which time.
    chosen: Option<(String, u64)>,
    /// How often each step came. Whoever is killed keeps the lock, so that nobody else goes on.
    counts: Mutex<BTreeMap<String, u64>>,
}

impl Steps {
    pub(super) fn new(chosen: Option<(String, u64)>) -> Self {
        let counts = all().into_iter().map(|name| (name, 0)).collect();
        Self { chosen, counts: Mutex::new(counts) }
    }

    /// Comes to a step.
    pub(super) fn reach(&self, name: &str) {
        self.reach_and(name, || {});
    }

    /// Comes to a step, and does something there only if it is the last one.
    pub(super) fn reach_and(&self, name: &str, at_last: impl FnOnce()) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = counts.get_mut(name) else {
            fail(format_args!("the step \"{name}\" is not in the list"));
        };
        *count += 1;
        if self.chosen.as_ref().is_some_and(|(chosen, nth)| chosen == name && nth == count) {
            at_last();
            say(KILL);
            wait_for_the_kill();
        }
    }

    /// The steps that came, and how often.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let came = counts.iter().filter(|(_, count)| **count > 0);
        came.map(|(name, count)| (name.clone(), *count)).collect()
    }
}

/// The input ends only if the parent does, which then cannot kill.
fn wait_for_the_kill() -> ! {
    let read = std::io::stdin().read(&mut [0]);
    fail(format_args!("nobody kills this process: {read:?}"))
}
