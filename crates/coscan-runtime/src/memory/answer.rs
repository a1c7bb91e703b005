//! The answer to a request for memory, until it is fetched.

use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::reservation::Reservation;
use crate::sync::{Mutex, MutexGuard};

/// The result of a request for memory.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The memory was granted.
    Granted(Reservation),
    /// The memory was granted but not fetched for long, and others needed it: the worker asks again.
    TakenBack,
    /// The request could not be met in time.
    TimedOut,
    /// The request will not be answered.
    Closed,
}

/// The place where the answer to a request for memory waits until the worker is polled.
#[derive(Debug, Default)]
pub(crate) struct AnswerSlot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl AnswerSlot {
    /// Puts the answer in. Returns the waker to wake once no lock is held.
    pub(crate) fn fill(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.lock();
        state.answer = Some(answer);
        state.waker.take()
    }

    /// Takes back memory that was not fetched, so that the worker asks again; `None` if there is none.
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

    /// Closes the slot without an answer, unless there is one already. Returns the waker to wake once no lock is held.
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

/// Tests under random schedules, see [`crate::sync`].
#[cfg(all(test, feature = "shuttle"))]
#[allow(clippy::unwrap_used)]
mod model {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;
    use crate::memory::credit::Credit;
    use crate::sync::{RUNS, check};
    use shuttle::future::block_on;
    use shuttle::thread;

    const BYTES: u64 = 10;

    fn wake(waker: Option<Waker>) {
        waker.into_iter().for_each(Waker::wake);
    }

    #[test]
    fn a_worker_is_answered_once_and_memory_has_one_owner() {
        check(RUNS, || {
            let credit = Arc::new(Credit::new(100, Arc::default()));
            let slot = Arc::new(AnswerSlot::default());
            let filler = {
                let (credit, slot) = (Arc::clone(&credit), Arc::clone(&slot));
                thread::spawn(move || {
                    let memory = Reservation::granted(&credit, BYTES);
                    wake(slot.fill(Answer::Granted(memory)));
                    slot.take_back()
                })
            };
            let answer = block_on(poll_fn(|context| slot.poll_fetch(context)));
            let taken_back = filler.join().unwrap();
            match (answer, taken_back) {
                (Answer::Granted(memory), None) => assert_eq!(memory.left_bytes(), BYTES),
                (Answer::TakenBack, Some(memory)) => assert_eq!(memory.left_bytes(), BYTES),
                answers => panic!("{answers:?}"),
            }
            drop(slot);
            assert_eq!(credit.usage().total_bytes(), 0);
        });
    }

    #[test]
    fn a_worker_learns_that_nobody_will_answer_unless_somebody_has() {
        check(RUNS, || {
            let slot = Arc::new(AnswerSlot::default());
            let others = [true, false].map(|closes| {
                let slot = Arc::clone(&slot);
                thread::spawn(move || match closes {
                    true => wake(slot.close()),
                    false => wake(slot.fill(Answer::TimedOut)),
                })
            });
            let answer = block_on(poll_fn(|context| slot.poll_fetch(context)));
            assert!(matches!(answer, Answer::Closed | Answer::TimedOut), "{answer:?}");
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }
}
