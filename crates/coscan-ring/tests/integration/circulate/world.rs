//! Nodes on a ring, and everything in flight between and in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coscan_core::Time;
use coscan_ring::{
    Circulate, CirculateAction, CirculateConfig, CirculateMessage, NodeId, RingPosition,
};

pub(crate) type Node = Circulate<u32>;

/// The owner of a fragment, among these members.
pub(crate) fn owner(fragment: u32, members: &[usize]) -> NodeId {
    let nodes = members.iter().map(|&node| NodeId(node as u64));
    coscan_ring::owners_of(nodes, u64::from(fragment), 0).unwrap().owner
}

pub(crate) fn place(node: usize) -> (RingPosition, NodeId) {
    (RingPosition(node as u128 * 10), NodeId(node as u64))
}

/// A link: messages that were sent and have not come, in order.
type Link = VecDeque<CirculateMessage<u32>>;

fn fragment_of(message: &CirculateMessage<u32>) -> Option<u32> {
    match message {
        CirculateMessage::Fragment(header) => Some(header.fragment),
        _ => None,
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) config: CirculateConfig,
    pub(crate) nodes: Vec<Node>,
    /// The members, as each node sees them.
    pub(crate) views: Vec<Vec<usize>>,
    pub(crate) alive: BTreeSet<usize>,
    pub(crate) links: BTreeMap<(usize, usize), Link>,
    /// Reads in flight, by node.
    pub(crate) reads: Vec<(usize, u32)>,
    /// Open requests, by node.
    pub(crate) open: BTreeSet<(usize, u32)>,
    /// The bytes of fragments in transit, by node.
    pub(crate) bytes: Vec<BTreeSet<u32>>,
    pub(crate) taken: usize,
    pub(crate) given_up: usize,
    /// Fragments that have come from a neighbour.
    pub(crate) delivered: usize,
    pub(crate) reads_of: BTreeMap<u32, usize>,
}

impl World {
    pub(crate) fn new(count: usize, config: CirculateConfig) -> Self {
        let node = |id| Circulate::new(NodeId(id as u64), 0, config);
        let mut world = Self {
            now: Time(0),
            config,
            nodes: (0..count).map(node).collect(),
            views: (0..count).map(|node| vec![node]).collect(),
            alive: (0..count).collect(),
            links: BTreeMap::new(),
            reads: Vec::new(),
            open: BTreeSet::new(),
            bytes: vec![BTreeSet::new(); count],
            taken: 0,
            given_up: 0,
            delivered: 0,
            reads_of: BTreeMap::new(),
        };
        world.settle();
        world
    }

    /// Tells all live nodes of each other, and gives them room.
    pub(crate) fn settle(&mut self) {
        for node in self.alive.clone() {
            self.nodes[node].set_room(usize::MAX);
            self.run(node);
            self.view(node, self.alive.iter().copied().collect());
        }
    }

    /// Gives a node other members. As the driver does, it asks the current owners.
    pub(crate) fn view(&mut self, node: usize, members: Vec<usize>) {
        self.nodes[node].set_ring(self.now, members.iter().copied().map(place));
        self.views[node] = members;
        for &(_, fragment) in self.open.iter().filter(|(of, _)| *of == node) {
            self.nodes[node].request(self.now, fragment, owner(fragment, &self.views[node]));
        }
        self.run(node);
    }

    pub(crate) fn request(&mut self, node: usize, fragment: u32) {
        if self.open.insert((node, fragment)) {
            let owner = owner(fragment, &self.views[node]);
            self.nodes[node].request(self.now, fragment, owner);
            self.run(node);
        }
    }

    /// Carries out the actions of a node.
    pub(crate) fn run(&mut self, node: usize) {
        while let Some(action) = self.nodes[node].poll_action() {
            match action {
                CirculateAction::Send { to, message } => {
                    let link = self.links.entry((node, to.0 as usize)).or_default();
                    link.push_back(message);
                }
                CirculateAction::Read(fragment) => {
                    let used = self.nodes[node].status().transit_buffers;
                    assert!(used < self.config.transit_buffers, "C2: a buffer stays free");
                    self.reads.push((node, fragment));
                    *self.reads_of.entry(fragment).or_default() += 1;
                }
                CirculateAction::Take(fragment) => {
                    assert!(self.bytes[node].contains(&fragment), "what is taken is here");
                    assert!(self.open.remove(&(node, fragment)), "C3: taken once");
                    self.taken += 1;
                }
                CirculateAction::Release(fragment) => {
                    assert!(self.bytes[node].remove(&fragment), "C4: released once");
                    for (_, link) in self.links.iter_mut().filter(|((from, _), _)| *from == node) {
                        link.retain(|message| fragment_of(message) != Some(fragment));
                    }
                }
                CirculateAction::GiveUp(fragment, _) => {
                    assert!(self.open.remove(&(node, fragment)), "C3: given up once");
                    self.given_up += 1;
                }
            }
        }
        let used = self.nodes[node].status().transit_buffers;
        assert!(used <= self.config.transit_buffers, "C1: {used} buffers in use");
        assert!(self.bytes[node].len() <= used, "C1: what is in transit has a buffer");
    }

    /// Ends a read.
    pub(crate) fn read(&mut self, nth: usize, is_readable: bool) {
        let (node, fragment) = self.reads.remove(nth);
        if is_readable {
            self.bytes[node].insert(fragment);
            self.nodes[node].read(self.now, fragment);
        } else {
            self.nodes[node].unreadable(self.now, fragment);
        }
        self.run(node);
    }

    /// Delivers the first message on a link. A fragment stays there as long as no buffer is free.
    pub(crate) fn deliver(&mut self, (from, to): (usize, usize)) -> bool {
        let link = self.links.get_mut(&(from, to)).unwrap();
        let Some(message) = link.front().cloned() else { return false };
        let is_there = self.alive.contains(&to);
        let fragment = fragment_of(&message);
        if is_there && fragment.is_some() && !self.nodes[to].reserve() {
            return false;
        }
        self.links.get_mut(&(from, to)).unwrap().pop_front();
        if is_there {
            self.bytes[to].extend(fragment);
            self.delivered += usize::from(fragment.is_some());
            self.nodes[to].handle(self.now, message);
            self.run(to);
        }
        if let Some(fragment) = fragment.filter(|_| self.alive.contains(&from)) {
            self.nodes[from].sent(self.now, NodeId(to as u64), fragment);
            self.run(from);
        }
        true
    }

    /// Loses a fragment with the node that held it, if one is on a link.
    pub(crate) fn lose(&mut self) {
        let is_fragment = |link: &Link| link.front().is_some_and(|it| fragment_of(it).is_some());
        let ends = self.links.iter().find(|(_, link)| is_fragment(link)).map(|(&ends, _)| ends);
        let Some((from, to)) = ends else { return };
        let message = self.links.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        self.nodes[from].sent(self.now, NodeId(to as u64), fragment_of(&message).unwrap());
        self.run(from);
    }

    /// Lets time pass, and handles timeouts that are due.
    pub(crate) fn wait(&mut self, ns: u64) {
        self.now = Time(self.now.0 + ns);
        for node in self.alive.clone() {
            self.nodes[node].handle_timeout(self.now);
            self.run(node);
        }
    }

    /// Lets everything in flight end, except for fragments that go round: those make this number of laps.
    pub(crate) fn finish(&mut self, laps: usize) {
        for _ in 0..laps * self.nodes.len() {
            while !self.reads.is_empty() {
                self.read(0, true);
            }
            for ends in self.links.keys().copied().collect::<Vec<_>>() {
                for _ in 0..self.links[&ends].len() {
                    self.deliver(ends);
                }
            }
            self.wait(1_000);
        }
    }
}
