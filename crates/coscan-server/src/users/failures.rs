//! Slows down the guessing of passwords, without locking out users who know theirs.
//!
//! After [`FREE_FAILURES`] failures in a row, logins are refused without checking the proof, at first for a second, and for
//! twice as long after each further failure, up to [`PAUSE_MAX`]. Failures count per address and per name. An address
//! from which a name has logged in before has its own count, so strangers cannot lock a user out.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row without consequence: people mistype.
const FREE_FAILURES: u32 = 5;
/// The first pause.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Failures are forgotten after this time without another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);
/// The most names, addresses and pairs of them that are kept, each.
const ENTRIES_MAX: usize = 10_000;
/// The length of the kept start of a name, in bytes: users have shorter names.
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
    pairs: HashMap<(String, IpAddr), Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    in_a_row: u32,
    last: Instant,
}

impl Failures {
    fn pause(&self) -> Duration {
        match self.in_a_row.checked_sub(FREE_FAILURES) {
            None => Duration::ZERO,
            Some(more) => PAUSE.saturating_mul(1 << more.min(10)).min(PAUSE_MAX),
        }
    }

    fn left(&self, now: Instant) -> Duration {
        (self.last + self.pause()).saturating_duration_since(now)
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) > FORGOTTEN_AFTER
    }
}

impl FailedLogins {
    /// Whether a login under this name from this address may be checked now. Call it before checking the proof.
    ///
    /// # Errors
    /// The time until the next login is checked.
    pub fn check(&self, name: &str, from: Option<IpAddr>) -> Result<(), Duration> {
        self.check_at(name, from, Instant::now())
    }

    /// Notes the outcome of a login, and decides whether it succeeds. Even a right proof is refused if meanwhile so
    /// many logins have failed that it would not have been checked: otherwise many guesses at once would be free.
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

    /// The logins with a wrong proof, and those refused without checking it, so far.
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
            Some(pair) => left(Some(pair)),
            None => {
                let address = from.and_then(|from| self.addresses.get(&from));
                left(self.names.get(name)).max(left(address))
            }
        }
    }

    fn failed(&mut self, name: &str, from: Option<IpAddr>, now: Instant) {
        if let Some(from) = from {
            if let Some(pair) = self.pairs.get_mut(&(name.to_owned(), from)) {
                count(pair, now);
                return;
            }
            add(&mut self.addresses, from, now);
        }
        add(&mut self.names, name.to_owned(), now);
    }

    fn succeeded(&mut self, name: &str, from: Option<IpAddr>, now: Instant) {
        let Some(from) = from else {
            self.names.remove(name);
            return;
        };
        let pair = (name.to_owned(), from);
        if !self.pairs.contains_key(&pair) {
            // The failures were the user's own, not those of strangers.
            self.addresses.remove(&from);
            self.names.remove(name);
            make_place(&mut self.pairs);
        }
        self.pairs.insert(pair, Failures { in_a_row: 0, last: now });
    }
}

fn count(failures: &mut Failures, now: Instant) {
    let before = if failures.is_forgotten(now) { 0 } else { failures.in_a_row };
    *failures = Failures { in_a_row: before.saturating_add(1), last: now };
}

fn add<K: Clone + Eq + Hash>(kept: &mut HashMap<K, Failures>, key: K, now: Instant) {
    if !kept.contains_key(&key) {
        make_place(kept);
    }
    count(kept.entry(key).or_insert(Failures { in_a_row: 0, last: now }), now);
}

/// If there are too many entries, drops the one with the fewest failures, the oldest of those.
fn make_place<K: Clone + Eq + Hash>(kept: &mut HashMap<K, Failures>) {
    if kept.len() >= ENTRIES_MAX
        && let Some(key) = kept.iter().min_by_key(|(_, f)| (f.in_a_row, f.last)).map(|(k, _)| k)
    {
        let key = key.clone();
        kept.remove(&key);
    }
}

fn start(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// One client may have all addresses of an IPv6 network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn from(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    /// Fails until logins are refused; for how long.
    fn guess(logins: &FailedLogins, name: &str, address: Option<IpAddr>, now: Instant) -> Duration {
        for _ in 0..FREE_FAILURES {
            assert_eq!(logins.check_at(name, address, now), Ok(()));
            logins.settle_at(name, address, false, now).unwrap();
        }
        logins.check_at(name, address, now).unwrap_err()
    }

    #[test]
    fn pauses_grow_end_and_are_forgotten() {
        let (logins, mut now) = (FailedLogins::default(), Instant::now());
        let mut pauses = vec![guess(&logins, "ann", from(1), now)];
        for _ in 0..8 {
            now += *pauses.last().unwrap();
            logins.settle_at("ann", from(1), false, now).unwrap();
            pauses.push(logins.check_at("ann", from(1), now).unwrap_err());
        }
        assert_eq!(pauses[..3], [PAUSE, PAUSE * 2, PAUSE * 4]);
        assert_eq!(*pauses.last().unwrap(), PAUSE_MAX);
        now += FORGOTTEN_AFTER + PAUSE;
        guess(&logins, "ann", from(1), now);
        now += PAUSE;
        logins.settle_at("ann", from(1), true, now).unwrap();
        guess(&logins, "ann", from(1), now);
    }

    #[test]
    fn failures_count_by_name_and_by_address() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        guess(&logins, "ann", from(1), now);
        assert!(logins.check_at("bob", from(1), now).is_err(), "the same address");
        assert!(logins.check_at("ann", from(2), now).is_err(), "the same name");
        assert!(logins.check_at("ann", None, now).is_err(), "the same name");
        assert_eq!(logins.check_at("bob", from(2), now), Ok(()));
        assert_eq!(logins.check_at("bob", None, now), Ok(()));
        assert_eq!(logins.counts(), (u64::from(FREE_FAILURES), 4));
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        let of = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        guess(&logins, "ann", of("2001:db8::1"), now);
        assert!(logins.check_at("bob", of("2001:db8::ffff:2"), now).is_err());
        assert_eq!(logins.check_at("bob", of("2001:db8:0:1::1"), now), Ok(()));
    }

    #[test]
    fn strangers_do_not_keep_a_user_out() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        logins.settle_at("ann", from(1), true, now).unwrap();
        guess(&logins, "ann", from(2), now);
        logins.settle_at("bob", from(1), false, now).unwrap();
        assert_eq!(logins.check_at("ann", from(1), now), Ok(()));
        guess(&logins, "ann", from(1), now);
    }

    #[test]
    fn guesses_at_once_are_counted_before_one_succeeds() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        guess(&logins, "ann", from(1), now);
        assert!(logins.settle_at("ann", from(1), true, now).is_err());
        logins.settle_at("ann", from(1), true, now + PAUSE).unwrap();
    }

    #[test]
    fn memory_has_a_bound_and_keeps_those_who_fail_most() {
        let (logins, now) = (FailedLogins::default(), Instant::now());
        guess(&logins, "ann", None, now);
        for stranger in 0..ENTRIES_MAX + 10 {
            let name = stranger.to_string();
            logins.settle_at(&name, None, false, now).unwrap();
        }
        assert_eq!(logins.tracked().names.len(), ENTRIES_MAX);
        assert!(logins.check_at("ann", None, now).is_err());
        for user in 0..ENTRIES_MAX + 10 {
            logins.settle_at(&user.to_string(), from(1), true, now).unwrap();
        }
        assert_eq!(logins.tracked().pairs.len(), ENTRIES_MAX);
    }
}
