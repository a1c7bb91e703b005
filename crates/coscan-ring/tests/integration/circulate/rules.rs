//! The rules, whatever the network, the stores and the members do: links are cut, nodes crash and start again, reads
//! fail, views of the membership differ. `World` checks C1 to C4 and C6 after each step.

use coscan_ring::{Circulate, CirculateConfig, NodeId};
use proptest::prelude::*;

use crate::circulate::world::World;

const NODES: usize = 4;
const FRAGMENTS: u32 = 12;

#[derive(Clone, Debug)]
enum Step {
    Request {
        node: usize,
        fragment: u32,
    },
    Withdraw {
        nth: usize,
    },
    Room {
        node: usize,
        fragments: usize,
    },
    Deliver {
        link: usize,
    },
    Read {
        nth: usize,
        is_readable: bool,
    },
    Wait {
        ns: u64,
    },
    /// A connection is lost, with what it carried.
    Cut {
        link: usize,
    },
    Crash {
        node: usize,
    },
    Start {
        node: usize,
    },
    /// A node has its own view of the membership.
    View {
        node: usize,
        alive: [bool; NODES],
    },
    Settle,
}

fn steps(has_incidents: bool) -> impl Strategy<Value = Vec<Step>> {
    let nth = || 0..1_000_usize;
    let node = || 0..NODES;
    let usual = prop_oneof![
        6 => (node(), 0..FRAGMENTS).prop_map(|(node, fragment)| Step::Request { node, fragment }),
        1 => nth().prop_map(|nth| Step::Withdraw { nth }),
        24 => nth().prop_map(|link| Step::Deliver { link }),
        6 => nth().prop_map(|nth| Step::Read { nth, is_readable: true }),
    ];
    let incident = prop_oneof![
        2 => (node(), 0..3_usize).prop_map(|(node, fragments)| Step::Room { node, fragments }),
        1 => nth().prop_map(|nth| Step::Read { nth, is_readable: false }),
        2 => (0..3_000_000_000_u64).prop_map(|ns| Step::Wait { ns }),
        1 => nth().prop_map(|link| Step::Cut { link }),
        1 => node().prop_map(|node| Step::Crash { node }),
        2 => node().prop_map(|node| Step::Start { node }),
        1 => (node(), any::<[bool; NODES]>()).prop_map(|(node, alive)| Step::View { node, alive }),
        2 => Just(Step::Settle),
    ];
    let rate = f64::from(u8::from(has_incidents)) / 4.0;
    let step = prop::bool::weighted(rate).prop_flat_map(move |is_incident| match is_incident {
        true => incident.clone().boxed(),
        false => usual.clone().boxed(),
    });
    prop::collection::vec(step, 1..250)
}

struct Story {
    world: World,
    incarnation: u64,
}

impl Story {
    fn apply(&mut self, step: Step) {
        let world = &mut self.world;
        match step {
            Step::Request { node, fragment } if world.alive.contains(&node) => {
                world.request(node, fragment);
            }
            Step::Withdraw { nth } if !world.open.is_empty() => {
                let open = *world.open.iter().nth(nth % world.open.len()).unwrap();
                world.open.remove(&open);
                world.nodes[open.0].withdraw(open.1);
            }
            Step::Room { node, fragments } if world.alive.contains(&node) => {
                world.nodes[node].set_room(fragments);
                world.run(node);
            }
            Step::Deliver { link } if !world.links.is_empty() => {
                let ends = *world.links.keys().nth(link % world.links.len()).unwrap();
                world.deliver(ends);
            }
            Step::Read { nth, is_readable } if !world.reads.is_empty() => {
                world.read(nth % world.reads.len(), is_readable);
            }
            Step::Wait { ns } => world.wait(ns),
            Step::Cut { link } if !world.links.is_empty() => {
                let ends = *world.links.keys().nth(link % world.links.len()).unwrap();
                self.cut(ends);
            }
            Step::Crash { node } if world.alive.len() > 1 && world.alive.remove(&node) => {
                world.open.retain(|&(of, _)| of != node);
                world.reads.retain(|&(of, _)| of != node);
                world.bytes[node].clear();
                world.links.retain(|&(from, to), _| from != node && to != node);
            }
            Step::Start { node } if world.alive.insert(node) => {
                self.incarnation += 1;
                let fresh = Circulate::new(NodeId(node as u64), self.incarnation, world.config);
                world.nodes[node] = fresh;
                world.views[node] = vec![node];
                world.settle();
            }
            Step::View { node, alive } if world.alive.contains(&node) => {
                let is_member = |&other: &usize| alive[other] || other == node;
                let members = (0..NODES).filter(is_member);
                world.view(node, members.collect());
            }
            Step::Settle => self.heal(),
            _ => {}
        }
    }

    fn cut(&mut self, (from, to): (usize, usize)) {
        self.world.links.remove(&(from, to));
        if self.world.alive.contains(&from) {
            self.world.nodes[from].reconnected(self.world.now);
            self.world.run(from);
        }
    }

    /// Makes all connections anew, and gives all nodes the right view of the membership.
    fn heal(&mut self) {
        self.world.settle();
        self.world.links.clear();
        for node in self.world.alive.clone() {
            self.world.nodes[node].reconnected(self.world.now);
            self.world.run(node);
        }
    }
}

fn story(config: CirculateConfig) -> Story {
    Story { world: World::new(NODES, config), incarnation: 0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_rule_is_broken_and_every_request_ends_whatever_goes_wrong(steps in steps(true)) {
        let config = CirculateConfig { transit_buffers: 3, ..CirculateConfig::default() };
        let mut story = story(config);
        for step in steps {
            story.apply(step);
        }
        story.heal();
        let world = &mut story.world;
        for _ in 0..4 {
            world.finish(6);
            world.wait(config.patience_ns / 3);
        }
        prop_assert!(world.open.is_empty(), "C3: left are {:?}", world.open);
        // C5: the last requests have ended, so no fragment is of interest.
        world.finish(60);
        prop_assert!(world.links.values().all(|link| link.is_empty()), "C5: {:?}", world.links);
        let held = world.alive.iter().map(|&node| world.bytes[node].len());
        prop_assert_eq!(held.sum::<usize>(), 0);
        let used = world.alive.iter().map(|&it| world.nodes[it].status().transit_buffers);
        prop_assert_eq!(used.sum::<usize>(), 0);
    }

    #[test]
    fn without_incidents_every_request_ends_with_its_fragment(
        steps in steps(false)
    ) {
        let config = CirculateConfig {
            transit_buffers: 3,
            resend_laps: 1_000,
            patience_ns: u64::MAX,
            ..CirculateConfig::default()
        };
        let mut story = story(config);
        for step in steps {
            story.apply(step);
        }
        let world = &mut story.world;
        for _ in 0..4 {
            world.finish(30);
            world.wait(config.first_lap_ns * 1_001);
        }
        prop_assert!(world.open.is_empty(), "C3: left are {:?}", world.open);
        prop_assert_eq!(world.given_up, 0);
    }
}
