//! Membership: servers on a simulated network that delays, loses and cuts.
use std::collections::{BTreeMap, BTreeSet};

use coscan_core::Time;
use coscan_ring::{Member, Membership, MembershipAction};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const SECOND: u64 = 1_000_000_000;

/// Servers by number, which is also their address.
struct Network {
    now: Time,
    random: SmallRng,
    servers: BTreeMap<u32, Membership>,
    /// Messages in flight: when they arrive, and at which server.
    in_flight: BTreeMap<(Time, u64), (u32, u32, Vec<u8>)>,
    sent: u64,
    /// Pairs of servers of which the first cannot send to the second.
    cut: BTreeSet<(u32, u32)>,
    /// The percentage of messages that get lost.
    lost: u32,
}

impl Network {
    fn of(count: u32, seed: u64) -> Self {
        let mut network = Self {
            now: Time(0),
            random: SmallRng::seed_from_u64(seed),
            servers: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            cut: BTreeSet::new(),
            lost: 0,
        };
        (0..count).for_each(|server| network.start(server, 1));
        // Each knows the one before it only.
        (1..count).for_each(|server| network.introduce(server, server - 1));
        network
    }

    fn start(&mut self, server: u32, incarnation: u64) {
        let own =
            Member { address: server.to_string(), incarnation, zone: String::new(), stores: 0 };
        let seed = self.random.random();
        self.servers.insert(server, Membership::new(own, seed));
    }

    fn introduce(&mut self, server: u32, to: u32) {
        let now = self.now;
        self.servers.get_mut(&server).unwrap().introduce(now, &to.to_string());
        self.send_all();
    }

    fn send_all(&mut self) {
        for (&from, membership) in &mut self.servers {
            while let Some(action) = membership.poll_action() {
                let MembershipAction::Send { to, message } = action else { continue };
                let delay = self.random.random_range(100_000..5_000_000);
                if self.random.random_range(0..100) >= self.lost {
                    let due = Time(self.now.0 + delay);
                    self.in_flight.insert((due, self.sent), (from, to.parse().unwrap(), message));
                    self.sent += 1;
                }
            }
        }
    }

    fn run(&mut self, nanoseconds: u64) {
        let end = Time(self.now.0 + nanoseconds);
        loop {
            let timers = self.servers.values().filter_map(Membership::poll_timeout);
            let messages = self.in_flight.keys().map(|&(due, _)| due);
            let Some(next) = timers.chain(messages).min().filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = next.max(self.now);
            for membership in self.servers.values_mut() {
                if membership.poll_timeout().is_some_and(|due| due <= self.now) {
                    membership.handle_timeout(self.now);
                }
            }
            let later = self.in_flight.split_off(&(self.now, u64::MAX));
            for (from, to, message) in std::mem::replace(&mut self.in_flight, later).into_values() {
                if !self.cut.contains(&(from, to))
                    && let Some(membership) = self.servers.get_mut(&to)
                {
                    membership.handle(self.now, &message).unwrap();
                }
            }
            self.send_all();
        }
    }

    fn alive(&self, server: u32) -> BTreeSet<u32> {
        self.servers[&server].alive().map(|member| member.address.parse().unwrap()).collect()
    }

    fn all_know_all(&self) -> bool {
        let all: BTreeSet<_> = self.servers.keys().copied().collect();
        all.iter().all(|&server| {
            let mut known = self.alive(server);
            known.insert(server) && known == all
        })
    }

    fn cut_both_ways(&mut self, some: &[u32], others: &[u32]) {
        for &one in some {
            self.cut.extend(others.iter().flat_map(|&other| [(one, other), (other, one)]));
        }
    }
}

#[test]
fn who_knows_one_learns_of_all() {
    for (servers, seed) in [(2, 1), (5, 2), (40, 3)] {
        let mut network = Network::of(servers, seed);
        network.run(15 * SECOND);
        assert!(network.all_know_all(), "{servers} servers");
    }
}

#[test]
fn nobody_counts_as_dead_because_messages_get_lost() {
    for seed in 0..10 {
        let mut network = Network::of(8, seed);
        network.run(15 * SECOND);
        network.lost = 10;
        for _ in 0..120 {
            network.run(SECOND);
            assert!(network.all_know_all(), "seed {seed}");
        }
    }
}

#[test]
fn a_link_that_is_cut_kills_nobody() {
    let mut network = Network::of(4, 1);
    network.run(15 * SECOND);
    network.cut_both_ways(&[0], &[1]);
    for _ in 0..60 {
        network.run(SECOND);
        assert!(network.all_know_all());
    }
}

#[test]
fn all_learn_of_a_crash_within_ten_seconds_and_of_the_next_start_at_once() {
    for seed in 0..10 {
        let mut network = Network::of(6, seed);
        network.run(15 * SECOND);
        network.servers.remove(&3);
        network.run(10 * SECOND);
        assert!(network.all_know_all(), "seed {seed}");
        network.start(3, 2);
        network.introduce(3, 0);
        network.run(3 * SECOND);
        assert!(network.all_know_all(), "seed {seed}");
    }
}

#[test]
fn who_leaves_is_gone_at_once() {
    let mut network = Network::of(6, 1);
    network.run(15 * SECOND);
    let now = network.now;
    network.servers.get_mut(&3).unwrap().leave(now);
    network.send_all();
    network.servers.remove(&3);
    network.run(2 * SECOND);
    assert!(network.all_know_all());
}

#[test]
fn halves_that_were_cut_find_each_other_again() {
    let mut network = Network::of(6, 1);
    network.run(15 * SECOND);
    network.cut_both_ways(&[0, 1, 2], &[3, 4, 5]);
    network.run(30 * SECOND);
    assert_eq!(network.alive(0), BTreeSet::from([1, 2]), "each half goes on");
    assert_eq!(network.alive(3), BTreeSet::from([4, 5]));
    network.cut.clear();
    network.run(60 * SECOND);
    assert!(network.all_know_all());
}

#[test]
fn a_server_whose_clock_was_set_back_comes_back() {
    let mut network = Network::of(3, 1);
    let hours = 3 * 3600 * 1000;
    network.servers.remove(&2);
    network.start(2, hours);
    network.introduce(2, 0);
    network.run(15 * SECOND);
    network.start(2, 1);
    network.introduce(2, 0);
    network.run(60 * SECOND);
    assert!(network.all_know_all());
}

#[test]
fn what_is_no_message_is_an_error_and_changes_nothing() {
    let mut network = Network::of(3, 1);
    network.run(15 * SECOND);
    let mut random = SmallRng::seed_from_u64(1);
    let now = network.now;
    let membership = network.servers.get_mut(&0).unwrap();
    for length in 0..2_000 {
        let message: Vec<u8> = (0..length % 100).map(|_| 0x80 | random.random::<u8>()).collect();
        assert!(membership.handle(now, &message).is_err(), "{message:?}");
    }
    assert!(membership.handle(now, &vec![0; 1 << 20]).is_err());
    assert!(network.all_know_all());
}
