//! The source of pages that others own, for a node that may choose.

use coscan_core::{PageIndex, Source, Time};
use coscan_ring::{Action, Choosing, Config, Message, Node, NodeId, RowGroup, StoreId};

use crate::node::common::{FILE, MIB, all_actions, load, messages, node, owned_by};

const PEER: NodeId = NodeId(1);
const SECOND: u64 = 1_000_000_000;

/// A node that reads pages from the store and from the other node, second by second.
struct World {
    node: Node,
    now: u64,
    loads: u64,
}

impl World {
    fn new(chooses: bool) -> Self {
        let chooses = chooses.then(Choosing::default);
        let config = Config { chooses, ..Config::default() };
        Self { node: node(0, 2, config), now: 0, loads: 0 }
    }

    /// Reads pages of 1 MiB for a second from each source, one after another, at these rates per second. Returns how many
    /// pages were requested from the other node.
    fn second(&mut self, (store, peer): (u64, u64)) -> u64 {
        let own = owned_by(0, &self.node)[0];
        for _ in 0..store {
            self.node.reads(Time(self.now), FILE, &[own]);
            self.now += SECOND / store;
            self.node.has_read(Time(self.now), FILE, own, true);
        }
        let page = owned_by(1, &self.node)[0];
        let mut asked = 0;
        for _ in 0..peer {
            self.loads += 1;
            self.node.load(Time(self.now), &load(self.loads, &[page]));
            let sent = messages(all_actions(&mut self.node)).into_iter();
            let gets = sent.filter_map(|(_, message)| match message {
                Message::Get { get, .. } => Some(get),
                _ => None,
            });
            self.now += SECOND / peer;
            for get in gets {
                asked += 1;
                let pages = Message::Pages { get, file: FILE, pages: vec![page] };
                self.node.handle(Time(self.now), PEER, pages);
            }
        }
        asked
    }

    fn seconds(&mut self, seconds: u64, rates: (u64, u64)) -> u64 {
        (0..seconds).map(|_| self.second(rates)).sum()
    }
}

#[test]
fn a_node_reads_alone_while_the_store_gives_as_much_and_tries_the_others_again() {
    let mut world = World::new(true);
    assert_eq!(world.seconds(4, (40, 40)), 160, "nothing is chosen within ten seconds");
    world.seconds(4, (40, 40));
    assert!(world.node.reads_alone(StoreId(0)));
    assert_eq!(world.seconds(10, (40, 40)), 0);
    // After a minute alone it measures again.
    world.seconds(20, (40, 40));
    assert!(!world.node.reads_alone(StoreId(0)), "it measures");
    world.seconds(10, (40, 40));
    assert!(world.node.reads_alone(StoreId(0)), "nothing has changed");
    // The others have become faster.
    world.seconds(60, (20, 100));
    assert!(!world.node.reads_alone(StoreId(0)));
    let asked = world.seconds(20, (20, 100));
    assert_eq!(asked, 2000, "as long as that is so, it asks");
}

#[test]
fn a_node_that_may_not_choose_always_asks() {
    let mut world = World::new(false);
    assert_eq!(world.seconds(40, (100, 10)), 400);
    assert!(!world.node.reads_alone(StoreId(0)));
}

#[test]
fn who_chooses_says_its_needs_again_and_where_pages_come_from() {
    let mut world = World::new(true);
    world.seconds(4, (40, 40));
    let page = owned_by(1, &world.node)[0];
    let own = owned_by(0, &world.node)[0];
    world.now += 10 * SECOND;
    world.node.load(Time(world.now), &load(10_000, &[page]));
    let actions = all_actions(&mut world.node);
    assert!(actions.contains(&Action::Choose { store: StoreId(0), reads_alone: true }));
    let source = |page: PageIndex| {
        let mut sources = actions.iter().filter_map(|action| match action {
            Action::SetSource { pages, source, .. } if pages.contains(&page) => Some(*source),
            _ => None,
        });
        sources.next_back()
    };
    assert_eq!((source(page), source(own)), (Some(Source::Device), Some(Source::Device)));
    assert!(
        actions.iter().any(|action| matches!(action, Action::Read(load) if load.pages == [page]))
    );
    // Owners need keep nothing for it.
    world.node.need(1, FILE, &[0], &[0..640]);
    assert_eq!(messages(all_actions(&mut world.node)), []);
}

#[test]
fn who_gets_nothing_from_the_others_reads_alone() {
    let mut world = World::new(true);
    let page = owned_by(1, &world.node)[0];
    for number in 0..40 {
        world.seconds(1, (40, 0));
        world.node.load(Time(world.now), &load(number, &[page]));
        world.now += SECOND;
        for (_, message) in messages(all_actions(&mut world.node)) {
            if let Message::Get { get, .. } = message {
                world.node.handle(Time(world.now), PEER, Message::NoRoom { get });
            }
        }
    }
    assert!(world.node.reads_alone(StoreId(0)));
}

#[test]
fn what_was_being_read_of_a_file_that_is_gone_is_not_waited_for() {
    let mut world = World::new(true);
    let own = owned_by(0, &world.node)[0];
    let other = world.node.add_file(
        8,
        StoreId(0),
        coscan_ring::Extents::cut(&[RowGroup { rows: 1, bytes: MIB }]),
        [(0, MIB)],
    );
    world.node.reads(Time(0), other, &[PageIndex(0)]);
    world.node.remove_file(Time(0), other);
    world.node.has_read(Time(0), other, PageIndex(0), true);
    world.node.reads(Time(0), other, &[PageIndex(0)]);
    // A read that begins now waits from now on, not from then.
    world.now = 3600 * SECOND;
    world.seconds(4, (40, 40));
    world.now += 10 * SECOND;
    world.node.load(Time(world.now), &load(1000, &[own]));
    assert!(world.node.reads_alone(StoreId(0)), "the store gives as much as the others");
}
