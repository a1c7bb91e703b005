//! A server, as the others know it.

use serde::{Deserialize, Serialize};

/// The milliseconds by which a server that is called dead though it is alive raises its incarnation above the reported
/// one: a minute. So it comes back even if its clock was set back by hours, after a few such calls.
const RENEWAL_MS: u64 = 60_000;

/// A server, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// The address by which all others reach it, `host:port`. No two servers have the same.
    pub address: String,
    /// A number that is higher for each start: milliseconds of its clock.
    pub incarnation: u64,
    /// The zone that it is in. Pages do not travel between zones.
    pub zone: String,
    /// A digest of what it shares. Servers share with those that have the same.
    pub stores: u64,
}

impl Member {
    /// A server of which only the address is known.
    pub(super) fn at(address: &str) -> Self {
        Self { address: address.to_owned(), incarnation: 0, zone: String::new(), stores: 0 }
    }

    /// Whether pages travel between the two.
    #[must_use]
    pub fn shares_with(&self, other: &Self) -> bool {
        self.zone == other.zone && self.stores == other.stores
    }
}

impl foca::Identity for Member {
    type Addr = String;

    fn renew(&self) -> Option<Self> {
        let incarnation = self.incarnation.saturating_add(RENEWAL_MS);
        Some(Self { incarnation, ..self.clone() })
    }

    fn addr(&self) -> String {
        self.address.clone()
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        let order = |member: &Self| (member.incarnation, member.zone.clone(), member.stores);
        order(self) > order(adversary)
    }
}
