//! Pages that go round a ring of servers: the Data Cyclotron, beside requests to owners.
//!
//! [`Circulate`] decides what goes round and who takes it. Here its fragments are pages, with their bytes. What the ring
//! wants of this server's files it asks of the [node](super::Peers), as another server would: so its pages come from the pool,
//! by a load that is under way, or by one of core's.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use coscan_core::{LoadId, PageId, PageIndex, RemoteQuery, Time};
use coscan_ring::{
    Circulate, CirculateAction, CirculateConfig, CirculateMessage, FileId, Fragment, GetId,
    Message, NodeId, RingPosition, Served,
};

use super::Peers;
use crate::driver::handle::Driver;
use crate::driver::state::State;
use crate::peers::{ClusterOptions, FileName, FragmentId, OutgoingFragment, RingMessage};

/// Fragments in transit. [DC §5.4]
const TRANSIT_BUFFERS: usize = 32;

/// Fragments that a server reads for the ring at once: enough to hide the latency of a store.
const READS_MAX: usize = 8;

/// Files of other servers' requests whose names are kept.
const FILES_MAX: usize = 4096;

/// What goes round, as this server sees it.
#[derive(Debug)]
pub(in crate::driver) struct Circulating {
    ring: Circulate<FragmentId>,
    /// Of a fragment. Larger pages are asked for.
    bytes_max: u64,
    /// The bytes of what is in transit. What is queued for the successor is not sent if these are gone or replaced.
    in_transit: BTreeMap<FragmentId, Arc<Bytes>>,
    /// What loads here wait for.
    wanted: BTreeMap<FragmentId, Wanted>,
    /// What was asked of this server's own node.
    reading: BTreeMap<GetId, FragmentId>,
    next_get: u64,
    /// Files of requests that have passed, by identity, and whether one has since this was last looked at.
    names: BTreeMap<u64, (FileName, bool)>,
    /// Who waits for space for what the predecessor sends.
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
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
        self.names.retain(|_, (_, was_used)| mem::take(was_used));
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
        let passed = self.circulating.as_ref().and_then(|ring| ring.names.get(&file));
        self.files.by_identity(file).map(|file| &*file.name).or(passed.map(|(name, _)| name))
    }

    /// The page of a shared file as it goes round, if it is small enough.
    fn fragment(&self, file: FileId, page: PageIndex) -> Option<FragmentId> {
        let (shared, ring) = (self.files.get(file)?, self.circulating.as_ref()?);
        let range = shared.range(page);
        let fragment =
            FragmentId { file: shared.name.identity(), start: range.start, end: range.end };
        (fragment.bytes() <= ring.bytes_max).then_some(fragment)
    }
}

impl State {
    /// Waits for those of these pages to pass that go round. Returns the others.
    pub(super) fn await_fragments(
        &mut self,
        load: LoadId,
        file: FileId,
        mut pages: Vec<PageIndex>,
        now: Time,
    ) -> Vec<PageIndex> {
        let Some(peers) = self.peers.as_deref_mut() else { return pages };
        if peers.circulating.as_ref().is_none_or(|circulating| circulating.ring.is_alone()) {
            return pages;
        }
        pages.retain(|&page| {
            let fragment = peers.fragment(file, page);
            let owner = peers.node.owner_of(file, page);
            let (Some(fragment), Some(circulating), Some(shared)) =
                (fragment, &mut peers.circulating, peers.files.get(file))
            else {
                return true;
            };
            // What is its own a server reads itself, unless it comes by.
            if owner == peers.node.id() && !circulating.ring.goes_round(fragment) {
                return true;
            }
            let wanted = Wanted { load, file, page, id: shared.page_id(page) };
            circulating.wanted.insert(fragment, wanted);
            circulating.ring.request(now, fragment, owner);
            false
        });
        pages
    }

    /// Carries out what the ring wants; false if there was nothing.
    pub(super) fn settle_ring(&mut self, now: Time) -> bool {
        let mut was_any = false;
        while let Some(action) = self.circulating().and_then(|it| it.ring.poll_action()) {
            was_any = true;
            match action {
                CirculateAction::Send { to, message } => self.send_on_ring(to, message),
                CirculateAction::Read(fragment) => self.read_for_ring(fragment, now),
                CirculateAction::Take(fragment) => self.fragment_taken(fragment, now),
                CirculateAction::Release(fragment) => {
                    let released =
                        self.circulating().and_then(|it| it.in_transit.remove(&fragment));
                    self.effects.released.extend(released);
                }
                CirculateAction::GiveUp(fragment, _) => self.read_fragment_instead(fragment, now),
            }
        }
        self.wake_predecessor();
        was_any
    }

    fn circulating(&mut self) -> Option<&mut Circulating> {
        self.peers.as_mut()?.circulating.as_mut()
    }

    /// There may be space now for what the predecessor sends.
    fn wake_predecessor(&mut self) {
        let Some(circulating) = self.circulating() else { return };
        if circulating.waiting.is_empty() {
            return;
        }
        if circulating.ring.status().transit_buffers < TRANSIT_BUFFERS {
            let waiting = mem::take(&mut circulating.waiting);
            self.effects.woken.extend(waiting);
        }
    }

    fn send_on_ring(&mut self, to: NodeId, message: CirculateMessage<FragmentId>) {
        let Some(peers) = &mut self.peers else { return };
        self.effects.network.get_or_insert_with(|| Arc::clone(&peers.network));
        if let CirculateMessage::Fragment(header) = message {
            let Some(circulating) = &mut peers.circulating else { return };
            let held = circulating.in_transit.get_mut(&header.fragment);
            let held = held.expect("what is in transit has its bytes");
            peers.report.bytes_sent += held.len() as u64;
            // If it was queued before, for another successor perhaps, that no longer counts.
            *held = Arc::new(Bytes::clone(held));
            let (bytes, driver) = (Arc::downgrade(held), peers.driver.clone());
            self.effects.fragments.push(OutgoingFragment { to, header, bytes, driver });
            return;
        }
        let requests = match &message {
            CirculateMessage::Requests(requests) => &requests[..],
            _ => &[],
        };
        let mut files: Vec<_> = requests.iter().map(|request| request.fragment.file).collect();
        files.sort_unstable();
        files.dedup();
        let files = files.into_iter().filter_map(|file| peers.name_of(file).cloned()).collect();
        self.effects.ring_messages.push((to, RingMessage { files, message }));
    }

    /// Asks this server's own node for a page, as another server would.
    fn read_for_ring(&mut self, fragment: FragmentId, now: Time) {
        if let Some(circulating) = self.circulating()
            && let Some(Wanted { load, id, .. }) = circulating.wanted.remove(&fragment)
        {
            // It was to come by, and got lost. The node would wait for this load.
            circulating.ring.withdraw(fragment);
            self.read(load, &[id], now);
        }
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let (id, name) = (peers.node.id(), peers.name_of(fragment.file).cloned());
        let Some(circulating) = &mut peers.circulating else { return };
        let Some(file) = name else { return circulating.ring.unreadable(now, fragment) };
        let get = GetId(circulating.next_get);
        circulating.next_get += 1;
        circulating.reading.insert(get, fragment);
        let (pages, query) = (vec![fragment.start..fragment.end], RemoteQuery::default());
        self.receive(id, Message::Get { get, file, pages, query }, Vec::new(), now);
    }

    /// What this server's own node says to the ring.
    pub(super) fn answer_ring(&mut self, message: Message) {
        let now = self.core.state().now();
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        match message {
            Message::Pages { get, file, pages } => {
                let served = Served { node: peers.node.id(), get };
                let Some(shared) = peers.files.get(file) else { return };
                for page in pages {
                    let bypassed = peers.bypassing.remove(&(served, page));
                    let cached = || self.frames.get(&shared.page_id(page)).cloned();
                    let bytes = bypassed.or_else(cached).expect("what is sent is held until then");
                    if let Some(fragment) = circulating.reading.remove(&get) {
                        // A copy by another owner may be in transit, and queued.
                        circulating.in_transit.entry(fragment).or_insert_with(|| Arc::new(bytes));
                        circulating.ring.read(now, fragment);
                    }
                    peers.node.sent(served, page);
                }
            }
            Message::NoRoom { get } | Message::Failed { get } => {
                if let Some(fragment) = circulating.reading.remove(&get) {
                    circulating.ring.unreadable(now, fragment);
                }
            }
            _ => {}
        }
    }

    /// What a load waits for passes.
    fn fragment_taken(&mut self, fragment: FragmentId, now: Time) {
        let Some(circulating) = self.circulating() else { return };
        let bytes = circulating.in_transit.get(&fragment).expect("it is in transit");
        let bytes = Bytes::clone(bytes);
        let Some(Wanted { load, id, .. }) = circulating.wanted.remove(&fragment) else { return };
        if let Some(in_flight) = self.loads.get(&load) {
            in_flight.counters.count_from_peer(&bytes);
        }
        self.pages_came(load, vec![(id, Ok(bytes))], now);
    }

    /// What a load waits for does not come.
    fn read_fragment_instead(&mut self, fragment: FragmentId, now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        let Some(Wanted { load, id, .. }) = circulating.wanted.remove(&fragment) else { return };
        peers.report.bytes_read_instead += fragment.bytes();
        self.read(load, &[id], now);
    }

    /// A file is no longer shared: what loads wait for is read from its store.
    pub(super) fn await_no_more(&mut self, file: FileId, now: Time) {
        let Some(circulating) = self.circulating() else { return };
        let of_file = circulating.wanted.iter().filter(|(_, wanted)| wanted.file == file);
        let fragments: Vec<_> = of_file.map(|(&fragment, _)| fragment).collect();
        for &fragment in &fragments {
            circulating.ring.withdraw(fragment);
        }
        // What has passed meanwhile is taken first.
        self.settle_ring(now);
        fragments.into_iter().for_each(|fragment| self.read_fragment_instead(fragment, now));
    }

    /// The members are others now: extents may have other owners, who are asked.
    pub(super) fn set_ring(&mut self, members: &[NodeId], now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        circulating.set_members(now, peers.node.id(), members);
        for (&fragment, &Wanted { file, page, .. }) in &circulating.wanted {
            circulating.ring.request(now, fragment, peers.node.owner_of(file, page));
        }
    }

    /// A message of a neighbour that is no fragment.
    fn receive_ring(&mut self, RingMessage { files, message }: RingMessage, now: Time) {
        let Some(circulating) = self.circulating() else { return };
        if matches!(message, CirculateMessage::Fragment(_)) {
            return; // It has no space, and its bytes are missing.
        }
        let room = FILES_MAX.saturating_sub(circulating.names.len());
        for file in files.into_iter().take(room) {
            circulating.names.insert(file.identity(), (file, true));
        }
        circulating.ring.handle(now, message);
    }

    fn poll_fragment_space(&mut self, waker: &Waker) -> Poll<Option<u64>> {
        let Some(circulating) = self.circulating() else { return Poll::Ready(None) };
        if circulating.ring.reserve() {
            return Poll::Ready(Some(circulating.bytes_max));
        }
        if !circulating.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            circulating.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    fn fragment_came(&mut self, header: Fragment<FragmentId>, bytes: Bytes, now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        peers.report.bytes_received += bytes.len() as u64;
        // If it is in transit already, those bytes stay: they may be on their way.
        circulating.in_transit.entry(header.fragment).or_insert_with(|| Arc::new(bytes));
        circulating.ring.handle(now, CirculateMessage::Fragment(header));
    }

    pub(in crate::driver) fn fragment_sent(&mut self, to: NodeId, fragment: FragmentId, now: Time) {
        if let Some(circulating) = self.circulating() {
            circulating.ring.sent(now, to, fragment);
        }
    }

    pub(in crate::driver) fn fragment_lost(&mut self, now: Time) {
        if let Some(circulating) = self.circulating() {
            circulating.ring.unreserve(now);
        }
    }
}

impl Driver {
    pub(crate) fn receive_ring(self: &Arc<Self>, message: RingMessage) {
        self.call(|state, now| state.receive_ring(message, now));
    }

    /// Reserves space for the next fragment of the predecessor, or wakes whoever waits for it later. Returns the most bytes
    /// that it may have; `None` if nothing goes round here.
    pub(crate) fn poll_fragment_space(self: &Arc<Self>, waker: &Waker) -> Poll<Option<u64>> {
        self.call(|state, _| state.poll_fragment_space(waker))
    }

    pub(crate) fn fragment_came(self: &Arc<Self>, header: Fragment<FragmentId>, bytes: Bytes) {
        self.call(|state, now| state.fragment_came(header, bytes, now));
    }
}
