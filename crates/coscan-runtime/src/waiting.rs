//! Who waits for memory to decode, and who is given it first.
//!
//! Whoever came first is asked first. Others pass if there is enough for them but not for the first one: it may be they
//! who have to go on before there can be enough. But once somebody has waited for half of the time that it may wait,
//! nobody behind it is given anything: what is given back adds up until it is enough.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::reservation::Reservation;

/// What a worker wants memory for. Those who hold some come first: others may wait for that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// For more of a chunk that it has opened.
    Working,
    /// To open a chunk. It holds nothing.
    Opening,
}

/// Whose turn it is: by stage, then as they came.
type Place = (Stage, u64);

/// The line of all who wait.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// Who has waited for so long is passed by nobody.
    timeout: Duration,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Place, Waiting>,
    next: u64,
    /// Somebody goes through the line.
    is_served: bool,
    /// Something was given back since it began to.
    serve_again: bool,
    /// Somebody looks at the line at intervals.
    is_watched: bool,
}

#[derive(Debug)]
struct Waiting {
    bytes: u64,
    since: Instant,
    grant: oneshot::Sender<Reservation>,
}

impl Line {
    /// Nobody waits. Whoever comes may wait for `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { state: Mutex::default(), timeout: timeout / 2 }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Whether somebody has waited for so long that nobody passes who wants memory for this.
    pub(crate) fn is_closed_to(&self, stage: Stage) -> bool {
        let state = self.lock();
        [Stage::Working, Stage::Opening].into_iter().filter(|&before| before <= stage).any(|it| {
            let first = state.waiting.range((it, 0)..=(it, u64::MAX)).next();
            first.is_some_and(|(_, first)| first.since.elapsed() >= self.timeout)
        })
    }

    /// Waits in line for so many bytes, until the result is dropped.
    pub(crate) fn enter(&self, stage: Stage, bytes: u64) -> InLine<'_> {
        let (grant, granted) = oneshot::channel();
        let mut state = self.lock();
        let place = (stage, state.next);
        state.next += 1;
        state.waiting.insert(place, Waiting { bytes, since: Instant::now(), grant });
        InLine { line: self, place, granted }
    }

    /// Whether the caller is to look at the line at intervals from now on, as nobody does.
    pub(crate) fn begin_watch(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_watched, true)
    }

    /// Whether nobody is left to look after; then the watch has ended.
    pub(crate) fn end_watch(&self) -> bool {
        let mut state = self.lock();
        state.is_watched = !state.waiting.is_empty();
        !state.is_watched
    }

    /// Gives memory to those in line, as far as `reserve` finds some. One goes through the line at a time: for whoever
    /// comes meanwhile it is gone through again.
    pub(crate) fn serve(&self, reserve: impl Fn(u64) -> Option<Reservation>) {
        {
            let mut state = self.lock();
            if state.waiting.is_empty() {
                return;
            }
            if std::mem::replace(&mut state.is_served, true) {
                state.serve_again = true;
                return;
            }
        }
        let served = Served(self);
        loop {
            self.serve_once(&reserve);
            let mut state = self.lock();
            if !std::mem::take(&mut state.serve_again) {
                state.is_served = false;
                break;
            }
        }
        std::mem::forget(served);
    }

    fn serve_once(&self, reserve: &impl Fn(u64) -> Option<Reservation>) {
        let mut refused_bytes = u64::MAX;
        let mut next = self.from((Stage::Working, 0));
        while let Some((place, bytes, since)) = next {
            // What there is not enough for there is not enough for more, either.
            let memory = if bytes < refused_bytes { reserve(bytes) } else { None };
            if let Some(memory) = memory {
                let waiting = self.lock().waiting.remove(&place);
                if let Some(waiting) = waiting {
                    // If it has gone, the memory is given back.
                    let _ = waiting.grant.send(memory);
                }
            } else {
                refused_bytes = refused_bytes.min(bytes);
                if since.elapsed() >= self.timeout {
                    return;
                }
            }
            next = self.from((place.0, place.1 + 1));
        }
    }

    /// The first in line from this place on.
    fn from(&self, place: Place) -> Option<(Place, u64, Instant)> {
        let state = self.lock();
        let next = state.waiting.range(place..).next();
        next.map(|(&place, waiting)| (place, waiting.bytes, waiting.since))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets others go through the line if what finds memory for it panics.
struct Served<'a>(&'a Line);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.lock().is_served = false;
    }
}

/// A place in line.
#[derive(Debug)]
pub(crate) struct InLine<'a> {
    line: &'a Line,
    place: Place,
    /// Where the memory comes.
    pub(crate) granted: oneshot::Receiver<Reservation>,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.line.lock().waiting.remove(&self.place);
    }
}
