//! Pages that go round a ring of servers: the Data Cyclotron, beside requests to owners.
//!
//! [`Circulate`] decides what goes round and who takes it. Here its fragments are pages, with their bytes. What the ring
//! wants of this server's files it asks of the [node](super::Peers), as another server would: so its pages come from the pool,
//! by a load that is under way, or by one of core's.
//!
//! Here is what a server knows of it. `acting` carries out what the ring wants, `awaiting` has the loads that wait for fragments to pass, `reading` what is read for the ring, `receiving` what neighbours
//! send.

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

/// Transit buffers of a server: with the default of 32 MiB each holds up to 1 MiB. Our choice; [DC §5.4] has 64 of 128 MB.
const TRANSIT_BUFFERS: usize = 32;

/// Fragments that a server reads for the ring at once: enough to hide the latency of a store.
const READS_MAX: usize = 8;

/// What goes round, as this server sees it.
#[derive(Debug)]
pub(in crate::driver) struct Circulating {
    ring: Circulate<FragmentId>,
    /// Of a fragment. Larger pages are asked for.
    bytes_max: u64,
    /// The bytes of what is in transit. What is queued for the successor is not sent if these are gone or replaced.
    in_transit: BTreeMap<FragmentId, Arc<Bytes>>,
    /// What loads here wait for.
    wanted: BTreeMap<FragmentId, WaitingLoad>,
    /// What was asked of this server's own node.
    reading: BTreeMap<GetId, FragmentId>,
    next_get: u64,
    /// Files of requests that have passed, by identity.
    names: BTreeMap<u64, PassedName>,
    /// Who waits for space for what the predecessor sends.
    waiting: Vec<Waker>,
}

/// The name of a file of which a request has passed.
#[derive(Debug)]
struct PassedName {
    name: FileName,
    /// Whether one has since this was last looked at.
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
            // A load has reserved the space of what it waits for.
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

    /// A load is given up.
    pub(super) fn cancel_load(&mut self, load: LoadId) {
        let Self { wanted, ring, .. } = self;
        for (fragment, _) in wanted.extract_if(.., |_, wanted| wanted.load == load) {
            ring.withdraw(fragment);
        }
    }

    /// Names that no request has had since this was last called are forgotten.
    pub(super) fn forget_idle(&mut self) {
        self.names.retain(|_, passed| mem::take(&mut passed.was_used));
    }

    /// Members have changed: the place of each is its number, which is random enough.
    fn set_members(&mut self, now: Time, id: NodeId, members: &[NodeId]) {
        let members = members.iter().copied().chain([id]);
        let place = |node: NodeId| (RingPosition(u128::from(node.0) << 64), node);
        self.ring.set_ring(now, members.map(place));
    }
}
