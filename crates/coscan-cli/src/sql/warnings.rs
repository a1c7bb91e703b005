//! Warnings of coscan on standard error.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// The number of different warnings after which each may be printed again.
const REMEMBERED: usize = 1000;

/// Prints each warning once, however many statements cause it.
#[derive(Default)]
struct Warnings(Mutex<HashSet<String>>);

impl Warnings {
    /// Whether a warning is new.
    fn remember(&self, text: String) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(text)
    }
}

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("coscan")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) && self.remember(record.args().to_string()) {
            eprintln!("warning: {}", record.args());
        }
    }

    fn flush(&self) {}
}

/// Prints warnings from now on.
pub(super) fn print() {
    if log::set_boxed_logger(Box::<Warnings>::default()).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
