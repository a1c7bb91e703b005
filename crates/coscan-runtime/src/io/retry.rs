//! Retries of failed reads: in halves, after pauses, and page by page only at the last attempt.

use std::time::Duration;

use coscan_storage::stores::Jitter;
use tokio::time::Instant;

use crate::error::ScanError;

/// The longest pause before the first retry. It doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause before a store that asks to slow down is asked again.
const SLOW_DOWN_PAUSE: Duration = Duration::from_secs(1);
const SLOW_DOWN_PAUSE_MAX: Duration = Duration::from_secs(2);

/// The settings of retries.
#[derive(Debug)]
pub(crate) struct RetryPolicy {
    /// The number of attempts.
    pub(crate) attempts: u32,
    /// The time for which a store may ask to slow down.
    pub(crate) slow_down_max: Duration,
    pub(crate) jitter: Jitter,
}

/// An attempt to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// The number of the attempt, counted from 1.
    number: u32,
    /// The longest pause before the next.
    pause: Duration,
    /// The time since which the store has asked to slow down, and the longest pause before it is asked again.
    slow_down: Option<(Instant, Duration)>,
}

/// The reaction to a failed attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) attempt: Attempt,
    pub(crate) pause: Duration,
    pub(crate) split: Split,
}

/// The split of a request that is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// The request is sent again whole, since the store refused all of it.
    Whole,
    Halves,
    /// Each page is requested alone. Only pages that fail again count as failed.
    Pages,
}

impl Attempt {
    pub(crate) const FIRST: Self = Self { number: 1, pause: PAUSE_FIRST, slow_down: None };
}

impl RetryPolicy {
    /// The next attempt after an error; `None` if there is none.
    pub(crate) fn after(&self, attempt: Attempt, error: &ScanError) -> Option<Retry> {
        if !error.is_retryable() {
            return None;
        }
        if error.is_throttling() {
            let (since, pause) = attempt.slow_down.unwrap_or((Instant::now(), SLOW_DOWN_PAUSE));
            let slow_down = Some((since, (pause * 2).min(SLOW_DOWN_PAUSE_MAX)));
            let attempt = Attempt { slow_down, ..attempt };
            let retry = Retry { attempt, pause: self.jitter.up_to(pause), split: Split::Whole };
            return (since.elapsed() < self.slow_down_max).then_some(retry);
        }
        let Attempt { number, pause, .. } = attempt;
        let next = Attempt { number: number + 1, pause: pause * 2, slow_down: None };
        let split = if next.number == self.attempts { Split::Pages } else { Split::Halves };
        let retry = Retry { attempt: next, pause: self.jitter.up_to(pause), split };
        (number < self.attempts).then_some(retry)
    }
}

impl Split {
    /// The groups of pages that are requested next.
    pub(crate) fn groups<T>(self, mut pages: Vec<T>) -> Vec<Vec<T>> {
        match self {
            Self::Whole => vec![pages],
            Self::Pages => pages.into_iter().map(|page| vec![page]).collect(),
            Self::Halves if pages.len() < 2 => vec![pages],
            Self::Halves => {
                let second = pages.split_off(pages.len().div_ceil(2));
                vec![pages, second]
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use coscan_storage::table::ReadError;

    use super::*;

    fn policy() -> RetryPolicy {
        let slow_down_max = Duration::from_secs(60);
        RetryPolicy { attempts: 4, slow_down_max, jitter: Jitter::new(Some(7)) }
    }

    fn error(text: &str) -> ScanError {
        let source = object_store::Error::Generic { store: "test", source: text.into() };
        ReadError::Store { file: "file".into(), source: source.into() }.into()
    }

    #[test]
    fn requests_are_halved_and_read_page_by_page_at_last() {
        let (policy, mut attempt) = (policy(), Attempt::FIRST);
        let mut groups = vec![(0..16).collect::<Vec<_>>()];
        let mut sizes = Vec::new();
        while let Some(retry) = policy.after(attempt, &error("connection reset")) {
            assert!(retry.pause <= attempt.pause && retry.pause >= attempt.pause / 2);
            attempt = retry.attempt;
            groups = groups.into_iter().flat_map(|group| retry.split.groups(group)).collect();
            sizes.push(groups.iter().map(Vec::len).max().unwrap());
        }
        assert_eq!(sizes, [8, 4, 1]);
        assert!(groups.concat().into_iter().eq(0..16));
        assert!(policy.after(Attempt::FIRST, &ScanError::Cancelled).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_asks_to_slow_down_gets_the_same_request_seconds_later() {
        let (policy, mut attempt) = (policy(), Attempt::FIRST);
        let started = Instant::now();
        let error = error("503 Service Unavailable: SlowDown");
        let mut count = 0;
        while let Some(retry) = policy.after(attempt, &error) {
            assert_eq!(retry.split, Split::Whole);
            assert!(retry.pause >= SLOW_DOWN_PAUSE / 2 && retry.pause <= SLOW_DOWN_PAUSE_MAX);
            tokio::time::sleep(retry.pause).await;
            (attempt, count) = (retry.attempt, count + 1);
        }
        assert!(started.elapsed() >= policy.slow_down_max && count > 30, "{count}");
        assert_eq!(attempt.number, 1, "it is not the fault of the request");
    }
}
