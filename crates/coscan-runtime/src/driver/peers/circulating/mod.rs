//! Pages that go round a ring of servers: the Data Cyclotron, beside requests to owners.
//!
//! [`Circulate`] decides what goes round and which server takes it. Here its fragments are pages, with their bytes. The
//! ring's reads of this server's files are requested from the [node](super::Peers), as another server would do. So the
//! pages come from the pool, from a load that is in flight, or from a new load of core.
//!
//! This file has the state of a server. `acting` carries out the actions of the ring, `awaiting` has the loads that
//! wait for fragments to pass, `reading` the reads for the ring, `receiving` the messages of neighbours.

mod acting;
mod awaiting;
mod reading;
mod receiving;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use coscan_core::{LoadId, PageId, PageIndex, Time};
use coscan_ring::{Circulate, CirculateConfig, FileId, GetId, NodeId, RingPosition};

use crate::peers::{ClusterOptions, FileName, FragmentId};

/// The transit buffers of a server: with the default of 32 MiB each holds up to 1 MiB. Our choice; [DC §5.4] has 64 of
/// 128 MB.
const TRANSIT_BUFFERS: usize = 32;

/// The most fragments that a server reads for the ring at once: enough to hide the latency of a store.
const READS_MAX: usize = 8;

/// The circulating fragments, as this server sees them.
#[derive(Debug)]
pub(in crate::driver) struct Circulating {
    ring: Circulate<FragmentId>,
    /// The most bytes of a fragment. Larger pages are requested instead.
    bytes_max: u64,
    /// The bytes of fragments in transit. What is queued for the successor is not sent if these are gone or replaced.
    in_transit: BTreeMap<FragmentId, Arc<Bytes>>,
    /// The fragments that loads here wait for.
    wanted: BTreeMap<FragmentId, WaitingLoad>,
    /// The requests to this server's own node.
    reading: BTreeMap<GetId, FragmentId>,
    next_get: u64,
    /// Files of requests that have passed, by identity.
    names: BTreeMap<u64, PassedName>,
    /// Tasks that wait for space for what the predecessor sends.
    waiting: Vec<Waker>,
}

/// The name of a file of which a request has passed.
#[derive(Debug)]
struct PassedName {
    name: FileName,
    /// Whether a request has passed since this was last looked at.
    was_used: bool,
}

/// A load, and the page that it waits for.
#[derive(Clone, Copy, Debug)]
struct WaitingLoad {
    load: LoadId,
    file: FileId,
    page: PageIndex,
    id: PageId,
}

impl Circulating {
    /// A ring of this server alone, if anything is to go round.
    pub(super) fn new(id: NodeId, incarnation: u64, options: &ClusterOptions) -> Option<Self> {
        let bytes_max = options.ring.transit_bytes_max / TRANSIT_BUFFERS as u64;
        let config = CirculateConfig {
            transit_buffers: TRANSIT_BUFFERS,
            reads_max: READS_MAX,
            ..CirculateConfig::default()
        };
        options.circulates.then(|| {
            let mut ring = Circulate::new(id, incarnation, config);
            // A load has reserved the space of the page that it waits for.
            ring.set_room(usize::MAX);
            Self {
                ring,
                bytes_max,
                in_transit: BTreeMap::new(),
                wanted: BTreeMap::new(),
                reading: BTreeMap::new(),
                next_get: 0,
                names: BTreeMap::new(),
                waiting: Vec::new(),
            }
        })
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        self.ring.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.ring.handle_timeout(now);
    }

    /// Pages that loads wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (LoadId, PageId)> {
        self.wanted.values().map(|wanted| (wanted.load, wanted.id))
    }

    /// Cancels a load.
    pub(super) fn cancel_load(&mut self, load: LoadId) {
        let Self { wanted, ring, .. } = self;
        for (fragment, _) in wanted.extract_if(.., |_, wanted| wanted.load == load) {
            ring.withdraw(fragment);
        }
    }

    /// Forgets names that no request has had since the last call.
    pub(super) fn forget_idle(&mut self) {
        self.names.retain(|_, passed| mem::take(&mut passed.was_used));
    }

    /// Sets the members. The place of each is its number, which is random enough.
    fn set_members(&mut self, now: Time, id: NodeId, members: &[NodeId]) {
        let members = members.iter().copied().chain([id]);
        let place = |node: NodeId| (RingPosition(u128::from(node.0) << 64), node);
        self.ring.set_ring(now, members.map(place));
    }
}
