//! Limits the number of connections. Connections of logged-in users are counted. Those of strangers, which have not
//! logged in, have a separate limit, so that silent connections keep no user out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::listen::SentBytes;
use crate::users::User;

/// The minimum number of strangers. Otherwise their limit is half of that of users.
const STRANGERS_MIN: usize = 64;

/// One place in this many is not available to the user who has most.
const OF_OTHERS: usize = 4;

/// The number of places that only administrators get, when all others are taken.
const OF_ADMINISTRATORS: usize = 3;

/// The connections of all protocols.
#[derive(Clone, Debug)]
pub struct ConnectionLimit {
    places: Arc<Places>,
    sent: SentBytes,
}

#[derive(Debug)]
struct Places {
    state: Mutex<State>,
    users_max: usize,
    of_user_max: usize,
    strangers_max: usize,
    strangers_of_address_max: usize,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    users: usize,
    /// The numbers of connections of users whose names are proved, by name.
    of_users: HashMap<String, usize>,
    administrators: usize,
    entered: u64,
    /// The connections that have not logged in, by the numbers of their arrival. The oldest make place for others.
    strangers: BTreeMap<u64, (IpAddr, CancellationToken)>,
    of_addresses: HashMap<IpAddr, BTreeSet<u64>>,
}

impl State {
    fn forget(&mut self, number: u64) -> Option<CancellationToken> {
        let (address, must_leave) = self.strangers.remove(&number)?;
        if let Some(others) = self.of_addresses.get_mut(&address) {
            others.remove(&number);
            if others.is_empty() {
                self.of_addresses.remove(&address);
            }
        }
        Some(must_leave)
    }

    fn user_leaves(&mut self, name: Option<&str>) {
        self.users -= 1;
        if let Some(name) = name
            && let Some(own) = self.of_users.get_mut(name)
        {
            *own -= 1;
            if *own == 0 {
                self.of_users.remove(name);
            }
        }
    }

    /// The stranger who leaves next, which is the oldest of an address, or of the address with most.
    fn oldest(&self, of: Option<IpAddr>) -> Option<u64> {
        let numbers = match of {
            Some(address) => self.of_addresses.get(&address)?,
            None => {
                let oldest = |numbers: &BTreeSet<u64>| numbers.first().copied();
                let key = |numbers: &&BTreeSet<u64>| (numbers.len(), Reverse(oldest(numbers)));
                self.of_addresses.values().max_by_key(key)?
            }
        };
        numbers.first().copied()
    }
}

impl Places {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection. It belongs to a stranger until a user is admitted, and is free once this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    must_leave: CancellationToken,
    taken: Mutex<Taken>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Taken {
    Stranger,
    /// The place belongs to a user, whose name is given if it is proved.
    User(Option<String>),
    Administrator,
}

/// The reason why a user gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManyConnections {
    /// All connections that the server admits are taken.
    #[error("there are too many connections; try again later")]
    OfAll,
    /// The remaining connections are for other users.
    #[error("you have too many connections, and those left are for other users; close some")]
    OfUser,
}

impl ConnectionLimit {
    /// Creates a limit for this many simultaneous connections of logged-in users.
    #[must_use]
    pub fn new(users_max: usize) -> Self {
        let strangers_max = (users_max / 2).max(STRANGERS_MIN);
        let places = Places {
            state: Mutex::default(),
            users_max,
            of_user_max: users_max - users_max / OF_OTHERS,
            strangers_max,
            strangers_of_address_max: strangers_max - strangers_max / 4,
            left: Notify::new(),
        };
        Self { places: Arc::new(places), sent: SentBytes::default() }
    }

    /// Takes a place for a connection from this address. If there are too many strangers, the oldest one of this
    /// address, or of the address with most of them, must leave.
    #[must_use]
    pub fn enter(&self, address: IpAddr) -> Place {
        let address = network(address);
        let mut state = self.places.state();
        let of_address = state.of_addresses.get(&address).map_or(0, BTreeSet::len);
        let leaves = if of_address >= self.places.strangers_of_address_max {
            state.oldest(Some(address))
        } else if state.strangers.len() >= self.places.strangers_max {
            state.oldest(None)
        } else {
            None
        };
        let leaves = leaves.and_then(|number| state.forget(number));
        state.entered += 1;
        let (number, must_leave) = (state.entered, CancellationToken::new());
        state.strangers.insert(number, (address, must_leave.clone()));
        state.of_addresses.entry(address).or_default().insert(number);
        drop(state);
        if let Some(leaves) = leaves {
            leaves.cancel(); // Outside of the lock: it wakes a task.
        }
        let taken = Mutex::new(Taken::Stranger);
        Place { places: Arc::clone(&self.places), number, must_leave, taken }
    }

    /// The limit on connections of users.
    #[must_use]
    pub fn connections_max(&self) -> usize {
        self.places.users_max
    }

    /// The current number of connections, including those of strangers.
    #[must_use]
    pub fn connections(&self) -> usize {
        let state = self.places.state();
        state.users + state.administrators + state.strangers.len()
    }

    /// The current number of connections whose users have logged in.
    #[must_use]
    pub fn logged_in(&self) -> usize {
        let state = self.places.state();
        state.users + state.administrators
    }

    /// Completes once there is no connection.
    pub async fn emptied(&self) {
        loop {
            let left = self.places.left.notified();
            if self.connections() == 0 {
                return;
            }
            left.await;
        }
    }

    /// The bytes that were sent over all connections.
    #[must_use]
    pub fn sent(&self) -> &SentBytes {
        &self.sent
    }
}

/// The addresses that one client may use at will. In IPv6, these share their first 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

impl Place {
    /// Counts the connection as a user's from now on.
    ///
    /// # Errors
    /// If there are too many.
    pub fn admit(&self, user: &User) -> Result<(), TooManyConnections> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if *taken != Taken::Stranger {
            return Ok(());
        }
        let mut state = self.places.state();
        let name = user.verifier().map(|_| user.name.clone());
        let own = name.as_ref().and_then(|name| state.of_users.get(name)).copied().unwrap_or(0);
        let refused = if state.users >= self.places.users_max {
            Some(TooManyConnections::OfAll)
        } else if own >= self.places.of_user_max {
            Some(TooManyConnections::OfUser)
        } else {
            None
        };
        match refused {
            None => {
                state.users += 1;
                if let Some(name) = name.clone() {
                    *state.of_users.entry(name).or_default() += 1;
                }
                *taken = Taken::User(name);
            }
            Some(_)
                if user.is_known_administrator() && state.administrators < OF_ADMINISTRATORS =>
            {
                state.administrators += 1;
                *taken = Taken::Administrator;
            }
            Some(refused) => return Err(refused),
        }
        state.forget(self.number);
        Ok(())
    }

    /// Completes once the connection must make place for others.
    pub async fn must_leave(&self) {
        self.must_leave.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state();
        match self.taken.get_mut().unwrap_or_else(PoisonError::into_inner) {
            Taken::Stranger => drop(state.forget(self.number)),
            Taken::User(name) => state.user_leaves(name.as_deref()),
            Taken::Administrator => state.administrators -= 1,
        }
        drop(state);
        self.places.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
