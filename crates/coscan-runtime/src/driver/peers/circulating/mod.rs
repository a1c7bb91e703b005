//! Pages that go round a ring of servers: the Data Cyclotron, beside requests to owners.
//!
//! [`Circulate`] decides what goes round and who takes it. Here its fragments are pages, with their bytes. What the ring
//! wants of this server's files it asks of the [node](super::Peers), as another server would: so its pages come from the pool,
//! by a load that is under way, or by one of core's.
//!
//! `awaiting` has the loads that wait for fragments to pass, `reading` what is read for the ring, `receiving` what neighbours
//! send.

mod awaiting;
mod reading;
mod receiving;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use coscan_core::{LoadId, PageId, PageIndex, Time};
use coscan_ring::{
    Circulate, CirculateAction, CirculateConfig, CirculateMessage, FileId, FragmentHeader, GetId,
    NodeId, RingPosition,
};

use super::Peers;
use crate::driver::state::State;
use crate::peers::{CirculatingMessage, ClusterOptions, FileName, FragmentId, OutgoingFragment};

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

impl Peers {
    /// The name of the file with that identity.
    fn name_of(&self, file: u64) -> Option<&FileName> {
        let circulating = self.circulating.as_ref();
        let passed = circulating.and_then(|circulating| circulating.names.get(&file));
        let open = self.files.by_identity(file);
        open.map(|file| &*file.name).or(passed.map(|passed| &passed.name))
    }

    /// The page of a shared file as it goes round, if it is small enough.
    fn fragment(&self, file: FileId, page: PageIndex) -> Option<FragmentId> {
        let (shared, circulating) = (self.files.get(file)?, self.circulating.as_ref()?);
        let range = shared.range(page);
        let fragment =
            FragmentId { file: shared.name.identity(), start: range.start, end: range.end };
        (fragment.len_bytes() <= circulating.bytes_max).then_some(fragment)
    }
}

impl State {
    /// Carries out what the ring wants; false if there was nothing.
    pub(super) fn settle_circulating(&mut self, now: Time) -> bool {
        let mut was_any = false;
        while let Some(action) = self.circulating().and_then(|it| it.ring.poll_action()) {
            was_any = true;
            match action {
                CirculateAction::Send { to, message } => self.send_to_neighbour(to, message),
                CirculateAction::Read(fragment) => self.read_to_inject(fragment, now),
                CirculateAction::Take(fragment) => self.fragment_taken(fragment, now),
                CirculateAction::Release(fragment) => {
                    let released =
                        self.circulating().and_then(|it| it.in_transit.remove(&fragment));
                    self.effects.released.extend(released);
                }
                CirculateAction::GiveUp(fragment, _) => self.read_fragment_instead(fragment, now),
            }
        }
        self.wake_receivers();
        was_any
    }

    fn circulating(&mut self) -> Option<&mut Circulating> {
        self.peers.as_mut()?.circulating.as_mut()
    }

    /// There may be space now for what the predecessor sends: who waits to read it is woken.
    fn wake_receivers(&mut self) {
        let Some(circulating) = self.circulating() else { return };
        if circulating.waiting.is_empty() {
            return;
        }
        if circulating.ring.status().transit_buffers < TRANSIT_BUFFERS {
            let waiting = mem::take(&mut circulating.waiting);
            self.effects.woken.extend(waiting);
        }
    }

    /// All who wait for space find that there is no ring any more.
    pub(in crate::driver) fn wake_receivers_of_fragments(&mut self) {
        let waiting = self.circulating().map(|circulating| mem::take(&mut circulating.waiting));
        self.effects.woken.extend(waiting.into_iter().flatten());
    }

    fn send_to_neighbour(&mut self, to: NodeId, message: CirculateMessage<FragmentId>) {
        let Some(peers) = &mut self.peers else { return };
        self.effects.network.get_or_insert_with(|| Arc::clone(&peers.network));
        let requests = match &message {
            CirculateMessage::Fragment(header) => return self.send_fragment(to, *header),
            CirculateMessage::Requests(requests) => &requests[..],
            CirculateMessage::Unreadable { .. } => &[],
        };
        let files: BTreeSet<_> = requests.iter().map(|request| request.fragment.file).collect();
        let files = files.into_iter().filter_map(|file| peers.name_of(file).cloned()).collect();
        self.effects.circulating.push((to, CirculatingMessage { files, message }));
    }

    fn send_fragment(&mut self, to: NodeId, header: FragmentHeader<FragmentId>) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        let held = circulating.in_transit.get_mut(&header.fragment);
        let held = held.expect("what is in transit has its bytes");
        peers.report.bytes_sent += held.len() as u64;
        // If it was queued before, for another successor perhaps, that no longer counts.
        *held = Arc::new(Bytes::clone(held));
        let (bytes, driver) = (Arc::downgrade(held), peers.driver.clone());
        self.effects.fragments.push(OutgoingFragment { to, header, bytes, driver });
    }

    /// The members are others now: extents may have other owners, who are asked.
    pub(super) fn set_circulating_members(&mut self, members: &[NodeId], now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        circulating.set_members(now, peers.node.id(), members);
        let mut own = Vec::new();
        for (&fragment, &WaitingLoad { file, page, .. }) in &circulating.wanted {
            let owner = peers.node.owner_of(file, page);
            if owner == peers.node.id() {
                own.push(fragment);
            } else {
                circulating.ring.request(now, fragment, owner);
            }
        }
        // The ring may be about to read it, which would wait for the load that waits for the ring.
        for fragment in own {
            self.read_awaited(fragment, now);
        }
    }
}
