//! Connections from servers that are not known yet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The most strangers at a time.
pub(crate) const STRANGERS_MAX: usize = 256;

/// The most addresses for which a warning is remembered.
const WARNED_MAX: usize = 1_000;

/// Connections that have not introduced themselves, and the addresses that were refused.
///
/// When there are too many, the oldest from the place that has most makes room. So those who flood a server exclude
/// themselves, not those at other addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strangers(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// The waiting connections, by place and order.
    waiting: BTreeMap<IpAddr, BTreeMap<u64, CancellationToken>>,
    count: usize,
    next: u64,
    warned: BTreeSet<IpAddr>,
}

/// A stranger. It [leaves](Strangers::leave) in the end.
#[derive(Debug)]
pub(crate) struct Stranger {
    place: IpAddr,
    number: u64,
    /// Cancelled when it is to make room for another.
    pub(crate) sent_away: CancellationToken,
}

impl Strangers {
    /// Adds a stranger.
    pub(crate) fn enter(&self, address: IpAddr) -> Stranger {
        let (place, sent_away) = (place_of(address), CancellationToken::new());
        let mut inner = self.lock();
        if inner.count == STRANGERS_MAX {
            inner.make_room();
        }
        let number = inner.next;
        inner.next += 1;
        inner.count += 1;
        inner.waiting.entry(place).or_default().insert(number, sent_away.clone());
        Stranger { place, number, sent_away }
    }

    /// Removes a stranger that is gone, or is no stranger any more.
    pub(crate) fn leave(&self, stranger: &Stranger) {
        self.lock().leave(stranger.place, stranger.number);
    }

    /// Whether a refusal is to be reported: once for each address, until one is welcome there. Any client can cause it.
    pub(crate) fn is_news(&self, address: IpAddr) -> bool {
        let mut inner = self.lock();
        inner.warned.len() < WARNED_MAX && inner.warned.insert(address)
    }

    /// Notes that a stranger was welcome.
    pub(crate) fn welcome(&self, address: IpAddr) {
        self.lock().warned.remove(&address);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn make_room(&mut self) {
        let most = self.waiting.iter().max_by_key(|(_, waiting)| waiting.len());
        let oldest = most.and_then(|(&place, waiting)| Some((place, *waiting.keys().next()?)));
        if let Some((place, number)) = oldest
            && let Some(sent_away) = self.leave(place, number)
        {
            sent_away.cancel();
        }
    }

    fn leave(&mut self, place: IpAddr, number: u64) -> Option<CancellationToken> {
        let waiting = self.waiting.get_mut(&place)?;
        let left = waiting.remove(&number)?;
        self.count -= 1;
        if waiting.is_empty() {
            self.waiting.remove(&place);
        }
        Some(left)
    }
}

/// The place of an address. A client with one address of IPv6 has all of its network.
fn place_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            const HOST_BITS: u32 = 64;
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS))
        }
        address @ IpAddr::V4(_) => address,
    }
}
