//! The requests of a node to others, and its reaction when they do not answer.

use coscan_core::{LoadId, PageIndex, Time};
use coscan_ring::{Action, Config, Message, Node, NodeId, Sharing};

use crate::node::common::{FILE, NOW, actions, ask, load, messages, node, owned_by};

const MS: u64 = 1_000_000;
/// More than the silence after which an owner counts as gone.
const LATE: Time = Time(1_600 * MS);

fn pages(node: &Node, owner: u64) -> Vec<PageIndex> {
    owned_by(owner, node)[..2].to_vec()
}

fn get_of(message: &Message) -> (coscan_ring::GetId, Vec<PageIndex>) {
    let Message::Get { get, pages, .. } = message else { panic!("no request: {message:?}") };
    (*get, pages.clone())
}

/// A node that has asked another for two pages of load 1.
struct Asked {
    asker: Node,
    pages: Vec<PageIndex>,
    to: NodeId,
    get: coscan_ring::GetId,
}

fn asked(members: u64) -> Asked {
    let mut asker = node(0, members, Config::default());
    let pages = pages(&asker, 1);
    let (to, message) = ask(&mut asker, Time(0), &load(1, &pages));
    Asked { asker, pages, to, get: get_of(&message).0 }
}

#[test]
fn each_page_of_a_load_comes_from_its_owner() {
    let mut asker = node(0, 3, Config::default());
    let (own, first, second) = (pages(&asker, 0), pages(&asker, 1), pages(&asker, 2));
    asker.load(Time(0), &load(1, &[own.clone(), first.clone(), second.clone()].concat()));
    let actions = actions(&mut asker);
    assert!(actions.contains(&Action::Read(load(1, &own))), "{actions:?}");
    let sent = messages(actions);
    let asked: Vec<_> = sent.iter().map(|(to, message)| (to.0, get_of(message).1)).collect();
    assert_eq!(asked, [(1, first), (2, second)]);
}

#[test]
fn a_node_that_shares_nothing_asks_nobody() {
    let mut asker = node(0, 3, Config { sharing: Sharing::Off, ..Config::default() });
    let load = load(1, &(0..9).map(PageIndex).collect::<Vec<_>>());
    asker.load(Time(0), &load);
    asker.need(1, FILE, &[0], &[0..640]);
    assert_eq!(actions(&mut asker), [Action::Read(load)]);
}

#[test]
fn pages_arrive_once_however_often_they_come() {
    let Asked { mut asker, pages, to, get } = asked(3);
    for part in [&pages[..1], &pages[..], &pages[..]] {
        asker.handle(Time(1), to, Message::Pages { get, file: FILE, pages: part.to_vec() });
    }
    let arrived = |page| Action::Arrived { load: LoadId(1), file: FILE, page };
    assert_eq!(actions(&mut asker), [arrived(pages[0]), arrived(pages[1])]);
    assert_eq!(asker.poll_timeout(), None, "nothing is awaited any more");
}

#[test]
fn only_the_node_that_was_asked_can_answer() {
    let Asked { mut asker, pages, get, .. } = asked(3);
    asker.handle(Time(1), NodeId(2), Message::Pages { get, file: FILE, pages });
    asker.handle(Time(1), NodeId(2), Message::NoRoom { get });
    assert_eq!(actions(&mut asker), []);
}

#[test]
fn what_the_owner_cannot_read_is_read_here() {
    for refuse in [|get| Message::NoRoom { get }, |get| Message::Failed { get }] {
        let Asked { mut asker, pages, to, get } = asked(3);
        let first = Message::Pages { get, file: FILE, pages: pages[..1].to_vec() };
        asker.handle(Time(1), to, first);
        actions(&mut asker);
        asker.handle(Time(2), to, refuse(get));
        assert_eq!(actions(&mut asker), [Action::ReadInstead(load(1, &pages[1..]))]);
    }
}

#[test]
fn a_silent_owner_is_replaced_by_its_runner_up_and_that_by_the_store() {
    let mut asker = node(0, 3, Config::default());
    // Pages for which this node is not the runner-up: without node 1, node 2 owns them.
    let mut without = node(0, 3, Config::default());
    without.set_members(Time(0), [NodeId(2)]);
    let of_runner_up = |page: &PageIndex| without.owner_of(FILE, *page) == NodeId(2);
    let pages: Vec<_> = owned_by(1, &asker).into_iter().filter(of_runner_up).take(2).collect();
    let (first, message) = ask(&mut asker, Time(0), &load(1, &pages));
    assert_eq!(asker.poll_timeout(), Some(Time(1_500 * MS)));
    asker.handle_timeout(LATE);
    let sent = messages(actions(&mut asker));
    assert_eq!(sent[0], (first, Message::Cancel { get: get_of(&message).0 }));
    let (runner_up, again) = &sent[1];
    assert_eq!((runner_up.0, get_of(again).1), (2, pages.clone()));
    // Pages that the first one sends after all are not taken, since those of the runner-up are on
    // their way.
    let late = Message::Pages { get: get_of(&message).0, file: FILE, pages: pages.clone() };
    asker.handle(LATE, first, late);
    assert_eq!(actions(&mut asker), []);
    asker.handle_timeout(Time(LATE.0 * 2));
    assert!(actions(&mut asker).contains(&Action::ReadInstead(load(1, &pages))));
    assert_eq!(asker.poll_timeout(), None);
}

#[test]
fn a_busy_owner_is_no_silent_one() {
    let Asked { mut asker, to, get, .. } = asked(2);
    for second in 1..15 {
        asker.handle(Time(second * 1_000 * MS), to, Message::Queued { get });
        asker.handle_timeout(Time(second * 1_000 * MS + 400 * MS));
    }
    assert_eq!(actions(&mut asker), []);
}

/// Its store may hang, and this node's may not.
#[test]
fn patience_with_a_busy_owner_ends() {
    let Asked { mut asker, pages, to, get } = asked(2);
    for second in 1..20 {
        asker.handle(Time(second * 1_000 * MS), to, Message::Queued { get });
        asker.handle_timeout(Time(second * 1_000 * MS));
    }
    let cancel = Action::Send { to, message: Message::Cancel { get } };
    assert_eq!(actions(&mut asker), [cancel, Action::ReadInstead(load(1, &pages))]);
    assert_eq!(asker.poll_timeout(), None);
}

#[test]
fn requests_to_a_node_that_is_gone_are_made_anew() {
    let mut asker = node(0, 3, Config::default());
    let pages = owned_by(1, &asker);
    asker.load(Time(0), &load(1, &pages));
    actions(&mut asker);
    asker.set_members(Time(1), [NodeId(2)]);
    let (mut read, mut asked) = (Vec::new(), Vec::new());
    for action in actions(&mut asker) {
        match action {
            Action::ReadInstead(load) => read.extend(load.pages),
            Action::Send { to, message } => {
                assert_eq!(to, NodeId(2));
                asked.extend(get_of(&message).1);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(read.iter().all(|&page| asker.owner_of(FILE, page) == NodeId(0)));
    assert!(asked.iter().all(|&page| asker.owner_of(FILE, page) == NodeId(2)));
    let mut both = [read, asked].concat();
    both.sort_unstable();
    assert_eq!(both, pages);
}

/// Otherwise two nodes that stand in for each other would each wait for what the other waits for.
#[test]
fn a_node_never_asks_one_that_comes_after_itself() {
    let Asked { mut asker, pages, .. } = asked(2);
    asker.handle_timeout(LATE);
    assert!(actions(&mut asker).contains(&Action::ReadInstead(load(1, &pages))));
    // Once this node owns them, its runner-up is not asked, either.
    ask(&mut asker, LATE, &load(2, &pages));
    asker.set_members(LATE, []);
    assert_eq!(actions(&mut asker), [Action::ReadInstead(load(2, &pages))]);
}

#[test]
fn a_load_that_is_given_up_gets_nothing_more() {
    let Asked { mut asker, pages, to, get } = asked(3);
    asker.handle(Time(1), to, Message::Pages { get, file: FILE, pages: pages[..1].to_vec() });
    asker.cancel_load(NOW, LoadId(1));
    assert_eq!(messages(actions(&mut asker)), [(to, Message::Cancel { get })]);
    asker.handle(Time(2), to, Message::Pages { get, file: FILE, pages });
    assert_eq!(actions(&mut asker), []);
}

#[test]
fn a_load_that_is_given_up_at_once_reads_nothing() {
    let mut asker = node(0, 3, Config::default());
    let own = pages(&asker, 0);
    asker.load(Time(0), &load(1, &own));
    asker.load(Time(0), &load(2, &own));
    asker.cancel_load(NOW, LoadId(1));
    assert_eq!(actions(&mut asker), [Action::Read(load(2, &own))]);
}

#[test]
fn requests_of_a_restarted_node_have_other_numbers() {
    let get = |incarnation| {
        let mut asker = Node::new(NodeId(0), incarnation, Config::default());
        asker.set_members(Time(0), [NodeId(1)]);
        let group = coscan_ring::RowGroup { rows: 1, bytes: 1 };
        let file = asker.add_file(
            0,
            coscan_ring::StoreId(0),
            coscan_ring::Extents::cut(&[group; 1]),
            [(0, 1)],
        );
        assert_eq!(file, FILE);
        asker.set_members(Time(0), (1..99).map(NodeId));
        get_of(&ask(&mut asker, Time(0), &load(1, &[PageIndex(0)])).1).0
    };
    assert!(get(0) < get(1));
}
