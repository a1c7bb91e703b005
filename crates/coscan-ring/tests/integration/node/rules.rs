//! The rules of a node, whatever the network, the pools and the members do: messages are lost, come twice and in any
//! order; nodes take each other for gone; loads are cancelled.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{LoadId, PageIndex, Time};
use coscan_ring::{Action, Config, Load, Message, Node, NodeId, Served};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::node::common::{FILE, MIB, PAGES, load, node};

const NODES: usize = 3;
const TRANSIT_BYTES_MAX: u64 = 3 * MIB;

#[derive(Clone, Debug)]
enum Step {
    Load { node: usize, pages: BTreeSet<u32> },
    Cancel { load: usize },
    Deliver { message: usize },
    Lose { message: usize },
    Repeat { message: usize },
    Ready { request: usize },
    NoSpace { request: usize },
    Fail { request: usize },
    Bypassed { page: usize },
    Taken { page: usize },
    Wait { ms: u64 },
    Members { node: usize, alive: [bool; NODES] },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let nth = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 16));
    let pages = prop::collection::btree_set(0..PAGES, 1..5);
    let step = prop_oneof![
        4 => (0..NODES, pages).prop_map(|(node, pages)| Step::Load { node, pages }),
        1 => nth().prop_map(|load| Step::Cancel { load }),
        8 => nth().prop_map(|message| Step::Deliver { message }),
        1 => nth().prop_map(|message| Step::Lose { message }),
        1 => nth().prop_map(|message| Step::Repeat { message }),
        4 => nth().prop_map(|request| Step::Ready { request }),
        3 => nth().prop_map(|request| Step::NoSpace { request }),
        1 => nth().prop_map(|request| Step::Fail { request }),
        3 => nth().prop_map(|page| Step::Bypassed { page }),
        4 => nth().prop_map(|page| Step::Taken { page }),
        3 => (0..1_000_u64).prop_map(|ms| Step::Wait { ms }),
        1 => (0..NODES, any::<[bool; NODES]>())
            .prop_map(|(node, alive)| Step::Members { node, alive }),
    ];
    prop::collection::vec(step, 1..120)
}

/// Nodes, and everything in flight between and in them.
struct World {
    now: Time,
    nodes: Vec<Node>,
    messages: Vec<(usize, usize, Message)>,
    /// Requests that wait for their chunk.
    waiting: Vec<(usize, Served)>,
    /// Pages that are read for others, past the pool.
    bypassing: Vec<(usize, Served, PageIndex)>,
    /// Requests whose pages bypass the pool.
    past_the_pool: BTreeSet<(usize, Served)>,
    /// Pages that the network was given.
    sending: Vec<(usize, Served, PageIndex)>,
    /// The most bytes that a node has held for others outside of its pool, and the number of times that it had no room
    /// for more.
    held_bytes_max: u64,
    refusals: usize,
    /// The number of times that each page of a load has come, by node and load.
    loads: BTreeMap<(usize, u64), BTreeMap<PageIndex, usize>>,
    cancelled: BTreeSet<(usize, u64)>,
}

fn nth(index: usize, count: usize) -> Option<usize> {
    (count > 0).then(|| index % count)
}

impl World {
    fn new() -> Self {
        let config = Config { transit_bytes_max: TRANSIT_BYTES_MAX, ..Config::default() };
        let nodes = (0..NODES as u64).map(|id| node(id, NODES as u64, config));
        Self {
            now: Time(0),
            nodes: nodes.collect(),
            messages: Vec::new(),
            waiting: Vec::new(),
            bypassing: Vec::new(),
            past_the_pool: BTreeSet::new(),
            sending: Vec::new(),
            held_bytes_max: 0,
            refusals: 0,
            loads: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Load { node, pages } => {
                let number = self.loads.len() as u64;
                let pages: Vec<_> = pages.into_iter().map(PageIndex).collect();
                self.loads.insert((node, number), pages.iter().map(|&page| (page, 0)).collect());
                self.nodes[node].load(self.now, &load(number, &pages));
            }
            Step::Cancel { load } => {
                let Some(nth) = nth(load, self.loads.len()) else { return };
                let &(node, load) = self.loads.keys().nth(nth).unwrap();
                self.cancelled.insert((node, load));
                self.nodes[node].cancel_load(self.now, LoadId(load));
            }
            Step::Deliver { message } => {
                let Some(nth) = nth(message, self.messages.len()) else { return };
                let (from, to, message) = self.messages.swap_remove(nth);
                self.deliver(from, to, message);
            }
            Step::Lose { message } => {
                let Some(nth) = nth(message, self.messages.len()) else { return };
                self.messages.swap_remove(nth);
            }
            Step::Repeat { message } => {
                let Some(nth) = nth(message, self.messages.len()) else { return };
                self.messages.push(self.messages[nth].clone());
            }
            Step::Ready { request } => self.answer(request, Node::ready),
            Step::NoSpace { request } => self.answer(request, Node::no_space),
            Step::Fail { request } => self.answer(request, Node::failed),
            Step::Bypassed { page } => {
                let Some(nth) = nth(page, self.bypassing.len()) else { return };
                let (node, served, page) = self.bypassing.swap_remove(nth);
                self.nodes[node].bypassed(served, FILE, page);
            }
            Step::Taken { page } => {
                let Some(nth) = nth(page, self.sending.len()) else { return };
                let (node, served, page) = self.sending.swap_remove(nth);
                self.nodes[node].sent(served, page);
            }
            Step::Wait { ms } => {
                self.now = Time(self.now.0 + ms * 1_000_000);
                self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
            }
            Step::Members { node, alive } => {
                let members = (0..NODES as u64).filter(|&member| alive[member as usize]);
                self.nodes[node].set_members(self.now, members.map(NodeId));
            }
        }
        (0..NODES).for_each(|node| self.carry_out(node));
    }

    fn deliver(&mut self, from: usize, to: usize, message: Message) {
        let is_request = matches!(message, Message::Get { .. });
        self.nodes[to].handle(self.now, NodeId(from as u64), message);
        let before = self.messages.len();
        self.carry_out(to);
        let mut caused = self.messages[before..].iter();
        let forwarded = caused.find(|(_, _, message)| matches!(message, Message::Get { .. }));
        assert!(!is_request || forwarded.is_none(), "R3: {forwarded:?}");
    }

    fn answer(&mut self, request: usize, how: fn(&mut Node, Served)) {
        let Some(nth) = nth(request, self.waiting.len()) else { return };
        let (node, served) = self.waiting.swap_remove(nth);
        how(&mut self.nodes[node], served);
    }

    fn carry_out(&mut self, node: usize) {
        while let Some(action) = self.nodes[node].poll_action() {
            match action {
                Action::Send { to, message } => {
                    self.refusals += usize::from(matches!(message, Message::NoRoom { .. }));
                    if let Message::Pages { get, pages, .. } = &message {
                        let served = Served { node: to, get: *get };
                        self.sending.extend(pages.iter().map(|&page| (node, served, page)));
                    }
                    self.messages.push((node, to.0 as usize, message));
                }
                Action::Read(Load { load, pages, .. })
                | Action::ReadInstead(Load { load, pages, .. }) => {
                    pages.into_iter().for_each(|page| self.came(node, load, page));
                }
                Action::Arrived { load, page, .. } => self.came(node, load, page),
                Action::Serve { served, .. } => self.waiting.push((node, served)),
                Action::Bypass { served, pages, .. } => {
                    self.past_the_pool.insert((node, served));
                    self.bypassing.extend(pages.into_iter().map(|page| (node, served, page)));
                }
                Action::StopServing { served } => {
                    self.waiting.retain(|waiting| *waiting != (node, served));
                    self.past_the_pool.remove(&(node, served));
                    self.bypassing.retain(|(at, it, _)| (*at, *it) != (node, served));
                }
                // It makes no difference whether the buffer manager is told where pages come from.
                Action::Renew => _ = self.nodes[node].renew(1),
                Action::SetSource { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        let held_bytes = self.held_bytes(node);
        assert!(held_bytes <= TRANSIT_BYTES_MAX, "R2: {held_bytes}");
        assert_eq!(held_bytes, self.nodes[node].transit_bytes(), "R2");
        self.held_bytes_max = self.held_bytes_max.max(held_bytes);
    }

    /// The bytes that a node holds for others outside of its pool: pages that are to be read, and those that the
    /// network has not taken.
    fn held_bytes(&self, node: usize) -> u64 {
        let of_node =
            |at: usize, served: Served| at == node && self.past_the_pool.contains(&(node, served));
        let is_wanted = |served: Served| self.nodes[node].bypasses(served);
        let reading = self
            .bypassing
            .iter()
            .filter(|(at, served, _)| of_node(*at, *served) && is_wanted(*served));
        let sending = self.sending.iter().filter(|(at, served, _)| of_node(*at, *served));
        (reading.count() + sending.count()) as u64 * MIB
    }

    fn came(&mut self, node: usize, load: LoadId, page: PageIndex) {
        assert!(!self.cancelled.contains(&(node, load.0)), "{load:?} was given up");
        let count = self.loads.get_mut(&(node, load.0)).unwrap().get_mut(&page).unwrap();
        *count += 1;
        assert_eq!(*count, 1, "R1: {page:?} of {load:?} on node {node}");
    }

    /// Makes the network and the pools work correctly from now on.
    fn heal(&mut self) {
        (0..NODES).for_each(|node| self.step(Step::Members { node, alive: [true; NODES] }));
        let is_open = |world: &Self| {
            let mut loads = world.loads.iter();
            let missing = loads.any(|(load, pages)| {
                !world.cancelled.contains(load) && pages.values().any(|&count| count == 0)
            });
            missing || world.nodes.iter().any(|node| node.poll_timeout().is_some())
        };
        for _ in 0..40 {
            while let Some((from, to, message)) = self.messages.pop() {
                self.deliver(from, to, message);
            }
            for (node, served) in std::mem::take(&mut self.waiting) {
                self.nodes[node].ready(served);
                self.carry_out(node);
            }
            while let Some((node, served, page)) = self.bypassing.pop() {
                self.nodes[node].bypassed(served, FILE, page);
                self.carry_out(node);
            }
            while let Some((node, served, page)) = self.sending.pop() {
                self.nodes[node].sent(served, page);
                self.carry_out(node);
            }
            if !is_open(self) && self.messages.is_empty() {
                return;
            }
            self.step(Step::Wait { ms: 500 });
        }
        panic!("R4: {:?}", self.loads);
    }
}

#[test]
fn every_page_of_every_load_comes_once() {
    let config =
        ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() };
    let (held_bytes_max, refusals) = (Cell::new(0), Cell::new(0));
    let tested = TestRunner::new(config).run(&steps(), |steps| {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        world.heal();
        for (load, pages) in &world.loads {
            let once = pages.values().all(|&count| count == 1);
            prop_assert!(once || world.cancelled.contains(load), "R1: {load:?}: {pages:?}");
        }
        prop_assert!(world.nodes.iter().all(|node| node.transit_bytes() == 0), "R2");
        held_bytes_max.set(world.held_bytes_max.max(held_bytes_max.get()));
        refusals.set(refusals.get() + world.refusals);
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(held_bytes_max.get(), TRANSIT_BYTES_MAX, "the limit is reached");
    assert!(refusals.get() > 0);
}
