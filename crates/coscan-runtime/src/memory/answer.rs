//! The answer to a request for memory, until it is fetched.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::reservation::Reservation;

/// What comes of a request for memory.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The memory.
    Granted(Reservation),
    /// It was granted but not fetched for long, and others needed it: ask again.
    TakenBack,
    /// It could not be met in time.
    TimedOut,
    /// Nobody will answer.
    Closed,
}

/// Where the answer to a request for memory waits until the worker is polled.
#[derive(Debug, Default)]
pub(crate) struct AnswerSlot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl AnswerSlot {
    /// Puts the answer in. Returns whom to wake, once no lock is held.
    pub(crate) fn fill(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.lock();
        state.answer = Some(answer);
        state.waker.take()
    }

    /// Takes memory back that was not fetched: then the worker asks again. `None` if there is none.
    pub(crate) fn take_back(&self) -> Option<Reservation> {
        let mut state = self.lock();
        match state.answer.take() {
            Some(Answer::Granted(memory)) => {
                state.answer = Some(Answer::TakenBack);
                Some(memory)
            }
            answer => {
                state.answer = answer;
                None
            }
        }
    }

    /// There will be no answer, unless there is one already. Returns whom to wake, once no lock is held.
    pub(crate) fn close(&self) -> Option<Waker> {
        let mut state = self.lock();
        state.answer.get_or_insert(Answer::Closed);
        state.waker.take()
    }

    /// The answer, once it is there.
    pub(crate) fn poll_fetch(&self, context: &mut Context<'_>) -> Poll<Answer> {
        let waker = context.waker().clone(); // Others' code: not under the lock.
        let mut state = self.lock();
        let (answer, replaced) = match state.answer.take() {
            Some(answer) => (Poll::Ready(answer), Some(waker)),
            None => (Poll::Pending, state.waker.replace(waker)),
        };
        drop(state);
        drop(replaced); // Nor this.
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
