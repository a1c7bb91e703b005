//! Scans give way to shorter ones at the processors.
//!
//! An async runtime does not take a processor from a task: whoever is ready waits until those before it stop by
//! themselves, and a query over batches that are all there may go on for a long time. So the workers of scans stop every
//! millisecond to let others in, and stand still while a shorter scan has a chunk to work on, at most half of their time.

use std::sync::Arc;
use std::time::Duration;

use coscan_core::ScanLength;
use futures::FutureExt;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a worker goes on before it lets others in.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// The longest that a worker stands still without going on for a turn.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The chunks at hand that longer scans give way to.
#[derive(Debug, Default)]
pub(crate) struct Processors {
    at_hand: watch::Sender<AtHand>,
}

/// How many chunks workers of scans of each length have at hand.
#[derive(Clone, Copy, Debug, Default)]
struct AtHand {
    tiny: usize,
    short: usize,
}

impl AtHand {
    /// How many there are that a scan of this length gives way to.
    fn before(self, length: ScanLength) -> usize {
        match length {
            ScanLength::Tiny => 0,
            ScanLength::Short => self.tiny,
            ScanLength::Long => self.tiny + self.short,
        }
    }

    fn of_length(&mut self, length: ScanLength) -> Option<&mut usize> {
        match length {
            ScanLength::Tiny => Some(&mut self.tiny),
            ScanLength::Short => Some(&mut self.short),
            ScanLength::Long => None,
        }
    }
}

impl Processors {
    /// A worker of a scan of this length has a chunk at hand until what this returns is dropped.
    pub(crate) fn work(self: &Arc<Self>, length: ScanLength) -> AtWork {
        self.change(length, |count| *count += 1);
        AtWork { processors: Arc::clone(self), length }
    }

    /// Waits until nobody has a chunk at hand that a scan of this length gives way to, or this time has passed.
    pub(crate) fn give_way(
        &self,
        length: ScanLength,
        pause: Duration,
    ) -> impl Future<Output = ()> + use<> {
        let mut at_hand = self.at_hand.subscribe();
        let over = async move {
            let _ = at_hand.wait_for(|at_hand| at_hand.before(length) == 0).await;
        };
        // Either way the worker goes on.
        timeout(pause, over).map(|_| ())
    }

    fn change(&self, length: ScanLength, change: impl FnOnce(&mut usize)) {
        self.at_hand.send_if_modified(|at_hand| at_hand.of_length(length).map(change).is_some());
    }
}

/// A worker has a chunk at hand, as far as others give way to it.
#[derive(Debug)]
pub(crate) struct AtWork {
    processors: Arc<Processors>,
    length: ScanLength,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.processors.change(self.length, |count| *count -= 1);
    }
}

/// The time of a worker.
#[derive(Debug)]
pub(crate) struct Turns {
    /// When it last went on after it had stopped.
    since: Instant,
    /// When it was last asked.
    asked: Instant,
    /// How much longer it has worked than stood still.
    ahead: Duration,
}

/// What a worker does before its next batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It goes on.
    Go,
    /// It lets others in.
    Yield,
    /// It stands still while shorter scans work, for this time at most.
    GiveWay(Duration),
}

impl Turns {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { since: now, asked: now, ahead: Duration::ZERO }
    }

    /// What the worker of a scan of this length does next.
    pub(crate) fn next(&mut self, processors: &Processors, length: ScanLength) -> Turn {
        let now = Instant::now();
        self.ahead += now - self.asked;
        self.asked = now;
        let waits_for = processors.at_hand.borrow().before(length);
        if waits_for > 0 && self.ahead > TURN {
            return Turn::GiveWay(self.ahead.min(PAUSE_MAX));
        }
        if now - self.since > TURN {
            self.since = now;
            return Turn::Yield;
        }
        Turn::Go
    }

    /// It goes on after it has waited.
    pub(crate) fn resume(&mut self, stood_still: bool) {
        let now = Instant::now();
        if stood_still {
            self.ahead = self.ahead.saturating_sub(now - self.asked);
        }
        (self.since, self.asked) = (now, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_scan_stands_still_while_a_short_one_works() {
        let processors = Arc::new(Processors::default());
        let mut turns = Turns::new();
        tokio::time::advance(TURN * 2).await;
        assert_eq!(turns.next(&processors, ScanLength::Long), Turn::Yield);
        let short = processors.work(ScanLength::Short);
        assert_eq!(turns.next(&processors, ScanLength::Short), Turn::Go, "not to its like");
        let tiny = processors.work(ScanLength::Tiny);
        assert!(matches!(turns.next(&processors, ScanLength::Short), Turn::GiveWay(_)));
        drop(tiny);
        let Turn::GiveWay(pause) = turns.next(&processors, ScanLength::Long) else {
            panic!("it goes on")
        };
        assert_eq!(pause, TURN * 2);
        let started = Instant::now();
        let ends = async {
            tokio::time::sleep(TURN * 3).await;
            drop(short);
        };
        tokio::join!(processors.give_way(ScanLength::Long, pause), ends);
        assert_eq!(started.elapsed(), TURN * 3);
        turns.resume(true);
        assert_eq!(turns.next(&processors, ScanLength::Long), Turn::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_for_half_of_its_time_at_most() {
        let processors = Arc::new(Processors::default());
        let _short = processors.work(ScanLength::Short);
        let mut turns = Turns::new();
        let (mut worked, mut stood) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1_000 {
            tokio::time::advance(TURN * 8).await;
            worked += TURN * 8;
            if let Turn::GiveWay(pause) = turns.next(&processors, ScanLength::Long) {
                let started = Instant::now();
                processors.give_way(ScanLength::Long, pause).await;
                stood += started.elapsed();
                turns.resume(true);
            }
        }
        // Timers have a resolution of a millisecond.
        assert!(stood > worked / 2 && stood <= worked * 5 / 4, "{stood:?} of {worked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn every_worker_lets_others_in_now_and_then() {
        let processors = Arc::new(Processors::default());
        let mut turns = Turns::new();
        let mut yields = 0;
        for _ in 0..100 {
            tokio::time::advance(TURN / 4).await;
            yields += usize::from(turns.next(&processors, ScanLength::Tiny) == Turn::Yield);
        }
        assert_eq!(yields, 20);
    }
}
