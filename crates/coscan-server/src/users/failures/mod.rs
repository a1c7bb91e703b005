//! Slows down the guessing of passwords, without locking out users who know theirs.
//!
//! After [`FREE_FAILURES`] failures, logins are refused without checking the proof, at first for a second, and for twice
//! as long after each further failure, up to [`PAUSE_MAX`]. Failures count per address and per name. An address from
//! which a name has logged in before makes a *pair* with it and has its own count, so strangers elsewhere cannot lock a
//! user out. A pair forgets one failure every [`PAIR_FORGETS_ONE_IN`], and is let in while it has fewer than
//! [`FREE_FAILURES`].
//!
//! A success clears no failures, else the logins of a busy client would pay for those of a guesser behind the same
//! address. A pair is not refused for longer and longer: only a guesser who is faster than it forgets, behind the very
//! address of a user, can keep that user from logging in there, as long as the guesses last.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of failures without consequence, since people mistype.
const FREE_FAILURES: u32 = 5;
/// The first pause.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The interval at which a pair forgets a failure, which is the rate of guesses that it allows.
const PAIR_FORGETS_ONE_IN: Duration = Duration::from_secs(10);
/// Failures of a name or an address are forgotten after this time without another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// The maximum number of names, of addresses, and of pairs that are kept.
const ENTRIES_MAX: usize = 10_000;
/// The length of the kept start of a name, in bytes. Names of users are shorter.
const NAME_BYTES: usize = 64;

/// Failed logins by name and by address, in bounded memory.
#[derive(Debug, Default)]
pub struct FailedLogins {
    tracked: Mutex<Tracked>,
    wrong: AtomicU64,
    early: AtomicU64,
}

#[derive(Debug, Default)]
struct Tracked {
    names: HashMap<String, Failures>,
    addresses: HashMap<IpAddr, Failures>,
    /// Names with the addresses from which they have logged in.
    pairs: HashMap<(String, IpAddr), PairFailures>,
}

/// Failures of a name or of an address.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn left(&self, now: Instant) -> Duration {
        let pause = match self.count.checked_sub(FREE_FAILURES) {
            None => Duration::ZERO,
            Some(more) => PAUSE.saturating_mul(1 << more.min(10)).min(PAUSE_MAX),
        };
        (self.last + pause).saturating_duration_since(now)
    }

    fn add(&mut self, now: Instant) {
        let before = if self.is_forgotten(now) { 0 } else { self.count };
        *self = Self { count: before.saturating_add(1), last: now };
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) > FORGOTTEN_AFTER
    }
}

/// Failures of a pair.
#[derive(Clone, Copy, Debug)]
struct PairFailures {
    /// The time at which all failures will be forgotten, one after another.
    forgotten_at: Instant,
    /// The time of the last success.
    used: Instant,
}

impl PairFailures {
    /// The time until the last of [`FREE_FAILURES`] is forgotten.
    fn left(&self, now: Instant) -> Duration {
        let all = self.forgotten_at.saturating_duration_since(now);
        all.saturating_sub(PAIR_FORGETS_ONE_IN * (FREE_FAILURES - 1))
    }

    fn add(&mut self, now: Instant) {
        self.forgotten_at = self.forgotten_at.max(now) + PAIR_FORGETS_ONE_IN;
    }
}

impl FailedLogins {
    /// Checks whether a login under this name from this address may be checked now. It must be called before the proof
    /// is checked.
    ///
    /// # Errors
    /// The time until the next login is checked.
    pub fn check(&self, name: &str, from: Option<IpAddr>) -> Result<(), Duration> {
        self.check_at(name, from, Instant::now())
    }

    /// Records the outcome of a login, and decides whether it succeeds. Even a right proof is refused if meanwhile so
    /// many logins have failed that it would not have been checked. Otherwise many simultaneous guesses would have no
    /// consequence.
    ///
    /// # Errors
    /// The time until the next login is checked.
    pub(crate) fn settle(
        &self,
        name: &str,
        from: Option<IpAddr>,
        is_right: bool,
    ) -> Result<(), Duration> {
        self.settle_at(name, from, is_right, Instant::now())
    }

    /// The numbers of logins with a wrong proof, and of those refused without a check, so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.wrong.load(Ordering::Relaxed), self.early.load(Ordering::Relaxed))
    }

    fn check_at(&self, name: &str, from: Option<IpAddr>, now: Instant) -> Result<(), Duration> {
        let left = self.tracked().left(start(name), from.map(network), now);
        if left.is_zero() {
            return Ok(());
        }
        self.early.fetch_add(1, Ordering::Relaxed);
        Err(left)
    }

    fn settle_at(
        &self,
        name: &str,
        from: Option<IpAddr>,
        is_right: bool,
        now: Instant,
    ) -> Result<(), Duration> {
        let mut tracked = self.tracked();
        let (name, from) = (start(name), from.map(network));
        let left = tracked.left(name, from, now);
        match (left.is_zero(), is_right) {
            (true, true) => tracked.succeeded(name, from, now),
            (true, false) => tracked.failed(name, from, now),
            (false, _) => {
                self.early.fetch_add(1, Ordering::Relaxed);
                return Err(left);
            }
        }
        if !is_right {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn tracked(&self) -> MutexGuard<'_, Tracked> {
        self.tracked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracked {
    fn left(&self, name: &str, from: Option<IpAddr>, now: Instant) -> Duration {
        let left = |failures: Option<&Failures>| failures.map_or(Duration::ZERO, |f| f.left(now));
        match from.and_then(|from| self.pairs.get(&(name.to_owned(), from))) {
            Some(pair) => pair.left(now),
            None => {
                let address = from.and_then(|from| self.addresses.get(&from));
                left(self.names.get(name)).max(left(address))
            }
        }
    }

    fn failed(&mut self, name: &str, from: Option<IpAddr>, now: Instant) {
        if let Some(from) = from {
            if let Some(pair) = self.pairs.get_mut(&(name.to_owned(), from)) {
                pair.add(now);
                return;
            }
            add(&mut self.addresses, from, now);
        }
        add(&mut self.names, name.to_owned(), now);
    }

    fn succeeded(&mut self, name: &str, from: Option<IpAddr>, now: Instant) {
        let Some(from) = from else { return };
        let pair = (name.to_owned(), from);
        if !self.pairs.contains_key(&pair) {
            // Pairs with failures stay, since a new pair would have none.
            make_place(&mut self.pairs, |pair| (pair.forgotten_at.max(now), pair.used));
        }
        self.pairs.entry(pair).or_insert(PairFailures { forgotten_at: now, used: now }).used = now;
    }
}

fn add<K: Clone + Eq + Hash>(kept: &mut HashMap<K, Failures>, key: K, now: Instant) {
    let mut start = Failures { count: 0, last: now };
    if !kept.contains_key(&key)
        && let Some(dropped) = make_place(kept, |f| (!f.is_forgotten(now), f.count, f.last))
        && !dropped.is_forgotten(now)
    {
        // Otherwise clients that fill the places could have an entry dropped, and repeatedly start
        // again with it.
        start = dropped;
    }
    kept.entry(key).or_insert(start).add(now);
}

/// If there are too many entries, drops the first in an order. Returns the dropped entry.
fn make_place<K: Clone + Eq + Hash, F, O: Ord>(
    kept: &mut HashMap<K, F>,
    order: impl Fn(&F) -> O,
) -> Option<F> {
    if kept.len() < ENTRIES_MAX {
        return None;
    }
    let first = kept.iter().min_by_key(|(_, f)| order(f)).map(|(key, _)| key.clone())?;
    kept.remove(&first)
}

fn start(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// The network of an address, since one client may have all addresses of an IPv6 network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}
