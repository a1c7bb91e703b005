//! The decisions of a node, one at a time.

use coscan_core::Time;
use coscan_ring::{
    Circulate, CirculateAction, CirculateConfig, CirculateMessage, FragmentHeader, NodeId, Request,
    WhyGivenUp,
};

use crate::circulate::world::{Node, World, owner, place};

const NOW: Time = Time(0);

fn node(id: usize, members: usize, config: CirculateConfig) -> Node {
    let mut node = Circulate::new(NodeId(id as u64), 7, config);
    node.set_ring(NOW, (0..members).map(place));
    node.set_room(9);
    node
}

fn actions(node: &mut Node) -> Vec<CirculateAction<u32>> {
    std::iter::from_fn(|| node.poll_action()).collect()
}

fn request(fragment: u32, owner: u64, origin: u64) -> Request<u32> {
    Request { fragment, owner: NodeId(owner), origin: NodeId(origin), hops: 0 }
}

fn requests(node: &mut Node, requests: &[Request<u32>]) -> Vec<CirculateAction<u32>> {
    node.handle(NOW, CirculateMessage::Requests(requests.to_vec()));
    actions(node)
}

fn header(fragment: u32, owner: u64) -> FragmentHeader<u32> {
    FragmentHeader {
        fragment,
        owner: NodeId(owner),
        incarnation: 7,
        sequence: 0,
        hops: 0,
        copies: 0,
        cycles: 1,
        interest: 0.0,
    }
}

fn comes(node: &mut Node, header: FragmentHeader<u32>) -> Vec<CirculateAction<u32>> {
    assert!(node.reserve());
    node.handle(NOW, CirculateMessage::Fragment(header));
    actions(node)
}

fn sent(action: &CirculateAction<u32>) -> FragmentHeader<u32> {
    match action {
        CirculateAction::Send { message: CirculateMessage::Fragment(header), .. } => *header,
        other => panic!("a fragment was to be sent, not {other:?}"),
    }
}

#[test]
fn requests_of_one_step_go_to_the_predecessor_in_one_message() {
    let mut node = node(1, 4, CirculateConfig::default());
    node.request(NOW, 8, NodeId(0));
    node.request(NOW, 12, NodeId(0));
    node.request(NOW, 12, NodeId(0));
    let [CirculateAction::Send { to, message }] = &actions(&mut node)[..] else { panic!() };
    assert_eq!(*to, NodeId(0));
    let both = vec![request(8, 0, 1), request(12, 0, 1)];
    assert_eq!(*message, CirculateMessage::Requests(both));
}

#[test]
fn a_request_has_six_outcomes() {
    let config = CirculateConfig { transit_buffers: 2, ..CirculateConfig::default() };
    let mut node = node(1, 4, config);
    assert_eq!(requests(&mut node, &[request(5, 1, 2)]), [CirculateAction::Read(5)]); // 3.
    assert_eq!(requests(&mut node, &[request(5, 1, 3)]), []); // 2.
    assert_eq!(requests(&mut node, &[request(9, 1, 3)]), []); // 4. It would take the last buffer.
    assert_eq!(node.status().pending, 1);
    node.request(NOW, 4, NodeId(0));
    assert_eq!(actions(&mut node).len(), 1);
    assert_eq!(requests(&mut node, &[request(4, 0, 2)]), []); // 5.
    let forwarded = requests(&mut node, &[request(8, 0, 2)]); // 6.
    let once_more = Request { hops: 1, ..request(8, 0, 2) };
    let message = CirculateMessage::Requests(vec![once_more]);
    assert_eq!(forwarded, [CirculateAction::Send { to: NodeId(0), message }]);
    assert_eq!(requests(&mut node, &[request(4, 0, 1)]), []); // 1., and it is asked for again.
    let given_up = CirculateAction::GiveUp(4, WhyGivenUp::NotOwned);
    assert_eq!(requests(&mut node, &[request(4, 0, 1)]), [given_up]);
}

#[test]
fn what_is_pending_is_read_when_a_buffer_is_free_the_oldest_first() {
    let config = CirculateConfig { transit_buffers: 2, ..CirculateConfig::default() };
    let mut node = node(1, 4, config);
    requests(&mut node, &[request(5, 1, 2), request(9, 1, 2), request(1, 1, 2)]);
    node.read(NOW, 5);
    assert_eq!(actions(&mut node).len(), 1);
    node.sent(NOW, NodeId(3), 5); // Not the successor.
    assert_eq!(actions(&mut node), []);
    node.sent(NOW, NodeId(2), 5);
    assert_eq!(actions(&mut node), [CirculateAction::Release(5), CirculateAction::Read(9)]);
}

/// A node that has sent its fragment 5 round.
fn with_fragment_under_way() -> (Node, FragmentHeader<u32>) {
    let mut node = node(1, 4, CirculateConfig::default());
    requests(&mut node, &[request(5, 1, 2)]);
    node.read(NOW, 5);
    let first = sent(&actions(&mut node)[0]);
    node.sent(NOW, NodeId(2), 5);
    actions(&mut node);
    (node, first)
}

#[test]
fn a_fragment_is_taken_where_it_is_wanted_and_sent_on() {
    let mut node = node(1, 4, CirculateConfig::default());
    node.request(NOW, 8, NodeId(0));
    actions(&mut node);
    let here = comes(&mut node, header(8, 0));
    assert_eq!(here[0], CirculateAction::Take(8));
    assert_eq!(sent(&here[1]), FragmentHeader { hops: 1, copies: 1, ..header(8, 0) });
    let unwanted = comes(&mut node, header(12, 0));
    assert_eq!(sent(&unwanted[0]), FragmentHeader { hops: 1, ..header(12, 0) });
    node.request(NOW, 12, NodeId(0));
    assert_eq!(actions(&mut node), [CirculateAction::Take(12)]); // It is still here.
}

#[test]
fn without_room_a_fragment_passes_and_its_request_stays_open_and_absorbs_no_other() {
    let mut node = node(1, 4, CirculateConfig::default());
    node.set_room(0);
    node.request(NOW, 8, NodeId(0));
    actions(&mut node);
    let passed = comes(&mut node, header(8, 0));
    assert_eq!(sent(&passed[0]), FragmentHeader { hops: 1, ..header(8, 0) });
    assert_eq!(node.status().requests, 1);
    assert_eq!(requests(&mut node, &[request(8, 0, 2)]).len(), 1);
    node.set_room(1);
    assert_eq!(actions(&mut node), [CirculateAction::Take(8)]);
}

#[test]
fn an_owner_sends_a_fragment_round_again_as_long_as_enough_nodes_take_it() {
    let (mut node, first) = with_fragment_under_way();
    let back = |header: FragmentHeader<u32>, copies| FragmentHeader { hops: 3, copies, ..header };
    let second = sent(&comes(&mut node, back(first, 2))[0]);
    let expected = FragmentHeader {
        sequence: 1,
        hops: 0,
        copies: 0,
        cycles: 2,
        interest: 0.5,
        ..header(5, 1)
    };
    assert_eq!(second, expected);
    node.sent(NOW, NodeId(2), 5);
    actions(&mut node);
    let third = sent(&comes(&mut node, back(second, 0))[0]);
    assert_eq!((third.interest, third.cycles), (0.25, 3));
    node.sent(NOW, NodeId(2), 5);
    actions(&mut node);
    // 0.25 ÷ 3 is below 0.1.
    assert_eq!(comes(&mut node, back(third, 0)), [CirculateAction::Release(5)]);
    assert_eq!(node.status().going_round, 0);
}

#[test]
fn an_owner_drops_what_it_did_not_send_and_anybody_what_has_no_owner() {
    let (mut node, first) = with_fragment_under_way();
    let other_start = FragmentHeader { incarnation: 6, copies: 3, ..first };
    assert_eq!(comes(&mut node, other_start), [CirculateAction::Release(5)]);
    let other_lap = FragmentHeader { sequence: 4, copies: 3, ..first };
    assert_eq!(comes(&mut node, other_lap), [CirculateAction::Release(5)]);
    let ownerless = FragmentHeader { hops: 7, copies: 3, ..header(8, 0) };
    assert_eq!(comes(&mut node, ownerless), [CirculateAction::Release(8)]);
    let request = Request { hops: 7, ..request(8, 0, 2) };
    assert_eq!(requests(&mut node, &[request]), []);
}

#[test]
fn a_request_without_an_answer_is_sent_again_and_a_lost_fragment_is_read_again() {
    let config = CirculateConfig { thresholds: [0.0; 3], ..CirculateConfig::default() };
    let mut world = World::new(3, config);
    let fragment = (0..).find(|&it| owner(it, &[0, 1, 2]) == NodeId(0)).unwrap();
    world.request(2, fragment);
    world.finish(2);
    assert_eq!((world.taken, world.reads_of[&fragment]), (1, 1));
    world.lose();
    world.request(1, fragment);
    world.finish(2);
    assert_eq!(world.taken, 1);
    world.wait(4 * config.first_lap_ns);
    world.finish(2);
    assert_eq!((world.taken, world.reads_of[&fragment]), (2, 2));
}

#[test]
fn all_who_want_what_cannot_be_read_are_told() {
    let mut world = World::new(4, CirculateConfig::default());
    for node in 0..4 {
        world.request(node, 5);
    }
    // All requests reach the owner or are absorbed. One that came later would have it read again.
    for _ in 0..4 {
        for ends in world.links.keys().copied().collect::<Vec<_>>() {
            world.deliver(ends);
        }
    }
    world.read(0, false);
    world.finish(1);
    assert_eq!((world.given_up, world.open.len()), (4, 0));
    assert!(world.links.values().all(|link| link.is_empty()));
}

#[test]
fn a_node_that_is_alone_reads_what_it_owns_and_gives_up_the_rest() {
    let mut world = World::new(1, CirculateConfig::default());
    world.request(0, 3);
    world.read(0, true);
    assert_eq!((world.taken, world.bytes[0].len()), (1, 0));
    world.nodes[0].request(world.now, 4, NodeId(5));
    world.open.insert((0, 4));
    for _ in 0..2 {
        world.wait(4 * world.config.first_lap_ns);
    }
    assert_eq!(world.given_up, 1);
}

#[test]
fn a_full_ring_moves() {
    let config =
        CirculateConfig { transit_buffers: 2, thresholds: [0.0; 3], ..CirculateConfig::default() };
    let mut world = World::new(4, config);
    for fragment in 0..32 {
        world.request((fragment as usize + 1) % 4, fragment);
    }
    // With a threshold of zero nothing ever leaves: what was injected goes round for ever, and the rest waits.
    world.finish(10);
    let (reads, delivered) = (world.reads_of.len(), world.delivered);
    world.finish(10);
    assert_eq!(world.reads_of.len(), reads);
    assert!(world.delivered >= delivered + 10, "{} fragments", world.delivered - delivered);
}

#[test]
fn what_was_asked_for_late_goes_round_once_more_unless_told_not_to() {
    let goes_on = |keeps_requested| {
        let config = CirculateConfig { keeps_requested, ..CirculateConfig::default() };
        let mut node = node(1, 4, config);
        requests(&mut node, &[request(5, 1, 2)]);
        node.read(NOW, 5);
        let first = sent(&actions(&mut node)[0]);
        node.sent(NOW, NodeId(2), 5);
        requests(&mut node, &[request(5, 1, 3)]);
        comes(&mut node, FragmentHeader { hops: 3, ..first }) != [CirculateAction::Release(5)]
    };
    assert!(goes_on(true) && !goes_on(false));
}

/// Node 0, in whose transit there is a copy of another owner, and which is to read the same fragment: views differ.
fn reading_what_another_owner_has_sent(buffers: usize) -> Node {
    let config = CirculateConfig { transit_buffers: buffers, ..CirculateConfig::default() };
    let mut node = node(0, 3, config);
    comes(&mut node, header(4, 1));
    requests(&mut node, &[request(6, 0, 2)]);
    comes(&mut node, header(5, 1));
    comes(&mut node, header(6, 1));
    node
}

#[test]
fn a_copy_of_another_owner_may_leave_while_the_fragment_is_read() {
    for is_readable in [false, true] {
        let mut alone = reading_what_another_owner_has_sent(8);
        alone.set_ring(NOW, [place(0)]);
        // It is full: the newest is dropped.
        let mut stuck = reading_what_another_owner_has_sent(4);
        let due = stuck.poll_timeout().unwrap();
        stuck.handle_timeout(due);
        for mut node in [alone, stuck] {
            match is_readable {
                true => node.read(due, 6),
                false => node.unreadable(due, 6),
            }
            actions(&mut node);
        }
    }
}

#[test]
fn a_fragment_that_was_off_the_ring_measures_no_lap() {
    let mut node = node(1, 3, CirculateConfig::default());
    let mut passes = |now, cycles| {
        assert!(node.reserve());
        let header = FragmentHeader { cycles, ..header(5, 0) };
        node.handle(Time(now), CirculateMessage::Fragment(header));
        node.sent(Time(now), NodeId(2), 5);
        actions(&mut node);
        node.status().lap_ns
    };
    passes(0, 1);
    assert_eq!(passes(2, 2), 2);
    assert_eq!(passes(4, 3), 2);
    assert_eq!(passes(3_600_000_000_000, 1), 2);
}

#[test]
fn what_makes_no_sense_goes_round_no_longer_than_anything_else() {
    for interest in [f64::NAN, f64::INFINITY] {
        let mut node = node(1, 3, CirculateConfig::default());
        requests(&mut node, &[request(5, 1, 2)]);
        node.read(NOW, 5);
        let mut laps = actions(&mut node).iter().map(sent).next();
        let mut count = 0;
        while let Some(lap) = laps {
            node.sent(NOW, NodeId(2), 5);
            actions(&mut node);
            let back = FragmentHeader { hops: 2, interest, ..lap };
            laps = comes(&mut node, back)
                .iter()
                .find(|action| matches!(action, CirculateAction::Send { .. }))
                .map(sent);
            count += 1;
            assert!(count < 100, "C5: it goes round for ever");
        }
    }
    let mut node = node(1, 3, CirculateConfig::default());
    let endless = Request { hops: u32::MAX, ..request(6, 0, 2) };
    assert_eq!(requests(&mut node, &[endless]), []);
    comes(&mut node, FragmentHeader { hops: u32::MAX, copies: u32::MAX, ..header(8, 0) });
    let (fragment, owner) = (9, NodeId(0));
    let unreadable = CirculateMessage::Unreadable { fragment, owner, hops: u32::MAX };
    node.handle(NOW, unreadable);
    assert_eq!(actions(&mut node), []);
}

#[test]
fn very_many_requests_are_several_messages() {
    let mut node = node(1, 3, CirculateConfig::default());
    for fragment in 0..25_000 {
        node.request(NOW, 3 * fragment, NodeId(0));
    }
    let sent = actions(&mut node);
    let counts = sent.iter().map(|action| match action {
        CirculateAction::Send { message: CirculateMessage::Requests(requests), .. } => {
            requests.len()
        }
        other => panic!("{other:?}"),
    });
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts.iter().sum::<usize>(), 25_000);
    assert!(counts.len() > 1 && counts.iter().all(|&count| count <= 10_000), "{counts:?}");
}
