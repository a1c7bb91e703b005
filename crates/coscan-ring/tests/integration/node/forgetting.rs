//! Knowledge that a node drops when a file is gone, or a node is there again.

use coscan_core::{PageIndex, RemoteQuery, Source, Time};
use coscan_ring::{Action, Config, GetId, Message, NodeId, RemoteInterest, Served};

use crate::node::common::{FILE, NOW, actions, all_actions, load, messages, node, owned_by};

const PEER: NodeId = NodeId(1);
const SERVED: Served = Served { node: PEER, get: GetId(7) };

fn get() -> Message {
    let query = RemoteQuery::default();
    Message::Get { get: SERVED.get, file: FILE, pages: vec![PageIndex(3)], query }
}

#[test]
fn what_was_asked_of_a_file_that_is_gone_is_read_and_what_others_asked_they_read() {
    let mut node = node(0, 2, Config::default());
    let of_peer = owned_by(1, &node);
    node.load(Time(0), &load(1, &of_peer));
    node.handle(Time(0), PEER, get());
    actions(&mut node);
    node.remove_file(NOW, FILE);
    let (mut reads, mut told) = (Vec::new(), Vec::new());
    for action in actions(&mut node) {
        match action {
            Action::ReadInstead(load) => reads.extend(load.pages),
            Action::Send { to: PEER, message } => told.push(message),
            Action::StopServing { served } => assert_eq!(served, SERVED),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reads, of_peer);
    let cancels = told.iter().filter(|message| matches!(message, Message::Cancel { .. })).count();
    assert_eq!((cancels, told.contains(&Message::Failed { get: SERVED.get })), (1, true));
    assert_eq!((node.poll_timeout(), node.transit_bytes()), (None, 0));
    // The file does not exist any more, whichever node names it.
    node.handle(Time(1), PEER, get());
    assert_eq!(messages(actions(&mut node)), [(PEER, Message::Failed { get: SERVED.get })]);
}

#[test]
fn pages_that_bypass_the_pool_count_no_longer_when_their_file_is_gone() {
    let mut node = node(0, 2, Config::default());
    node.handle(Time(0), PEER, get());
    node.no_space(SERVED);
    node.bypassed(SERVED, FILE, PageIndex(3));
    assert!(node.transit_bytes() > 0);
    node.remove_file(NOW, FILE);
    assert_eq!(node.transit_bytes(), 0);
    node.sent(SERVED, PageIndex(3));
    assert_eq!(node.transit_bytes(), 0);
}

#[test]
fn what_a_node_wanted_had_and_asked_for_before_it_came_again_is_forgotten() {
    let mut node = node(0, 2, Config::default());
    let interest = RemoteInterest { node: PEER, scan: 5 };
    let rows = vec![0..10];
    node.handle(Time(0), PEER, Message::Need { scan: 5, file: FILE, columns: vec![0], rows });
    node.handle(Time(0), PEER, get());
    let had = owned_by(1, &node)[0];
    node.handle(Time(0), PEER, Message::Have { file: FILE, pages: vec![had] });
    all_actions(&mut node);
    node.reconnected(PEER);
    let done = all_actions(&mut node);
    let pages = had..PageIndex(had.0 + 1);
    let far = Action::SetSource { file: FILE, pages, source: Source::Peer };
    for action in [Action::Forget { interest }, Action::StopServing { served: SERVED }, far] {
        assert!(done.contains(&action), "{action:?} of {done:?}");
    }
}
