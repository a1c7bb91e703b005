//! The answers of a node to requests of others.

use coscan_core::{PageIndex, RemoteQuery, Time};
use coscan_ring::{Action, Config, FileId, GetId, Message, Node, NodeId, Served};

use crate::node::common::{FILE, MIB, actions, messages, node};

const MS: u64 = 1_000_000;
const ASKER: NodeId = NodeId(1);
const PAGES: [PageIndex; 2] = [PageIndex(3), PageIndex(4)];

fn served(get: u64) -> Served {
    Served { node: ASKER, get: GetId(get) }
}

fn get(get: u64, pages: &[PageIndex]) -> Message {
    let (get, pages) = (GetId(get), pages.to_vec());
    Message::Get { get, file: FILE, pages, query: RemoteQuery::default() }
}

/// A node that was asked for two pages, and no more.
fn asked(config: Config) -> Node {
    let mut owner = node(0, 3, config);
    owner.handle(Time(0), ASKER, get(1, &PAGES));
    let query = RemoteQuery::default();
    let serve = Action::Serve { served: served(1), file: FILE, pages: PAGES.to_vec(), query };
    assert_eq!(actions(&mut owner), [serve]);
    owner
}

fn pages(pages: &[PageIndex]) -> Action {
    let message = Message::Pages { get: GetId(1), file: FILE, pages: pages.to_vec() };
    Action::Send { to: ASKER, message }
}

#[test]
fn pages_stay_until_the_network_has_taken_the_last() {
    let mut owner = asked(Config::default());
    owner.ready(served(1));
    // Each is as long as a message may be.
    assert_eq!(actions(&mut owner), [pages(&PAGES[..1]), pages(&PAGES[1..])]);
    owner.sent(served(1), PAGES[0]);
    assert_eq!(actions(&mut owner), []);
    owner.sent(served(1), PAGES[1]);
    assert_eq!(actions(&mut owner), [Action::StopServing { served: served(1) }]);
    assert_eq!(owner.poll_timeout(), None, "no sign of life is owed any more");
}

/// R3: a page is served by the node that is asked, whichever node owns it.
#[test]
fn every_page_is_served_and_none_forwarded() {
    let mut owner = node(0, 3, Config::default());
    for page in 0..crate::node::common::PAGES {
        owner.handle(Time(0), ASKER, get(u64::from(page), &[PageIndex(page)]));
    }
    let actions = actions(&mut owner);
    assert_eq!(actions.len(), crate::node::common::PAGES as usize);
    assert!(actions.iter().all(|action| matches!(action, Action::Serve { .. })));
}

#[test]
fn a_request_that_comes_twice_is_served_once() {
    let mut owner = asked(Config::default());
    owner.handle(Time(0), ASKER, get(1, &PAGES));
    assert_eq!(actions(&mut owner), []);
    owner.handle(Time(0), ASKER, get(2, &[PAGES[0], PAGES[0]]));
    let [Action::Serve { pages, .. }] = &actions(&mut owner)[..] else { panic!("not served") };
    assert_eq!(pages, &PAGES[..1]);
}

#[test]
fn what_does_not_exist_is_refused() {
    let mut owner = node(0, 3, Config::default());
    let unknown_file = Message::Get {
        get: GetId(1),
        file: FileId(9),
        pages: PAGES.to_vec(),
        query: RemoteQuery::default(),
    };
    for message in [get(1, &[PageIndex(64)]), get(1, &[]), unknown_file] {
        owner.handle(Time(0), ASKER, message);
        let failed = Message::Failed { get: GetId(1) };
        assert_eq!(messages(actions(&mut owner)), [(ASKER, failed)]);
    }
}

#[test]
fn who_waits_hears_that_the_owner_is_alive() {
    let mut owner = asked(Config::default());
    let queued = [(ASKER, Message::Queued { get: GetId(1) })];
    for ms in [200, 1_200, 2_200] {
        assert_eq!(owner.poll_timeout(), Some(Time(ms * MS)));
        owner.handle_timeout(Time(ms * MS));
        assert_eq!(messages(actions(&mut owner)), queued);
    }
}

/// R2.
#[test]
fn without_space_pages_bypass_the_pool_up_to_a_limit() {
    let mut owner = asked(Config { transit_bytes_max: 3 * MIB, ..Config::default() });
    owner.no_space(served(1));
    let (file, pages_of) = (FILE, PAGES.to_vec());
    let bypass = Action::Bypass { served: served(1), file, pages: pages_of };
    assert_eq!(actions(&mut owner), [bypass]);
    assert_eq!(owner.transit_bytes(), 2 * MIB);

    owner.handle(Time(0), ASKER, get(2, &PAGES));
    actions(&mut owner);
    owner.no_space(served(2));
    let no_room = Action::Send { to: ASKER, message: Message::NoRoom { get: GetId(2) } };
    let stop = Action::StopServing { served: served(2) };
    assert_eq!(actions(&mut owner), [no_room, stop]);
    assert_eq!(owner.transit_bytes(), 2 * MIB);

    owner.bypassed(served(1), FILE, PAGES[1]);
    owner.bypassed(served(1), FILE, PAGES[1]);
    assert_eq!(actions(&mut owner), [pages(&PAGES[1..])]);
    assert_eq!(owner.transit_bytes(), 2 * MIB, "the network has not taken it");
    owner.sent(served(1), PAGES[1]);
    owner.sent(served(1), PAGES[1]);
    assert_eq!((owner.transit_bytes(), actions(&mut owner)), (MIB, vec![]));
    owner.bypassed(served(1), FILE, PAGES[0]);
    owner.sent(served(1), PAGES[0]);
    assert_eq!(owner.transit_bytes(), 0);
}

#[test]
fn a_page_that_cannot_be_read_ends_its_request() {
    let mut owner = asked(Config::default());
    owner.failed(served(1));
    owner.failed(served(1));
    let failed = Action::Send { to: ASKER, message: Message::Failed { get: GetId(1) } };
    assert_eq!(actions(&mut owner), [failed, Action::StopServing { served: served(1) }]);
}

#[test]
fn what_is_not_wanted_any_more_is_let_go() {
    let give_up: [fn(&mut Node); 2] = [
        |owner| owner.handle(Time(1), ASKER, Message::Cancel { get: GetId(1) }),
        |owner| owner.set_members(Time(1), [NodeId(2)]),
    ];
    for give_up in give_up {
        let mut owner = asked(Config::default());
        owner.no_space(served(1));
        owner.bypassed(served(1), FILE, PAGES[0]);
        actions(&mut owner);
        give_up(&mut owner);
        assert_eq!(actions(&mut owner), []);
        assert_eq!(owner.transit_bytes(), MIB, "one page is still with the network");
        owner.bypassed(served(1), FILE, PAGES[1]);
        owner.ready(served(1));
        owner.sent(served(1), PAGES[0]);
        let stopped = Action::StopServing { served: served(1) };
        assert_eq!((owner.transit_bytes(), actions(&mut owner)), (0, vec![stopped]));
    }
}

/// A page of the pool, too, is in use until the network has taken it, though no request waits for it any more.
#[test]
fn what_was_sent_stays_though_it_is_not_wanted_any_more() {
    let mut owner = asked(Config::default());
    owner.ready(served(1));
    actions(&mut owner);
    owner.handle(Time(1), ASKER, Message::Cancel { get: GetId(1) });
    owner.sent(served(1), PAGES[0]);
    assert_eq!(actions(&mut owner), []);
    owner.sent(served(1), PAGES[1]);
    assert_eq!(actions(&mut owner), [Action::StopServing { served: served(1) }]);
}

/// A read for a request that has ended is not taken for one of another that has its number.
#[test]
fn a_page_of_another_file_is_never_sent() {
    let mut owner = asked(Config::default());
    owner.no_space(served(1));
    actions(&mut owner);
    owner.bypassed(served(1), FileId(1), PAGES[0]);
    assert_eq!(actions(&mut owner), []);
}
