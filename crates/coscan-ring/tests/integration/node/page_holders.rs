//! The messages of nodes about what they need and what they have.

use std::ops::Range;

use coscan_core::{PageIndex, Source, Time};
use coscan_ring::{Action, Config, FileId, Message, Node, NodeId, RemoteInterest, Sharing};

use crate::node::common::{
    FILE, PAGES, ROWS_PER_PAGE, actions, all_actions, messages, node, owned_by,
};

const PEER: NodeId = NodeId(1);
const INTEREST: RemoteInterest = RemoteInterest { node: PEER, scan: 5 };
/// When news that was collected at time 0 is sent.
const TOLD: Time = Time(5_000_000);

fn need(rows: Range<u64>) -> Message {
    Message::Need { scan: INTEREST.scan, file: FILE, columns: vec![0, 2], rows: vec![rows] }
}

fn forget() -> Action {
    Action::Forget { interest: INTEREST }
}

/// The messages of a node once its news is due.
fn news(node: &mut Node) -> Vec<(NodeId, Message)> {
    node.handle_timeout(TOLD);
    messages(actions(node))
}

#[test]
fn each_owner_is_told_what_is_needed_of_its_own_extents() {
    let mut asker = node(0, 3, Config::default());
    let all = 0..u64::from(PAGES) * ROWS_PER_PAGE;
    asker.need(5, FILE, &[0, 2], &[5..95, 200..all.end + 9]);
    let mut told = vec![false; all.end as usize];
    for (to, message) in messages(actions(&mut asker)) {
        let Message::Need { scan: 5, file: FILE, columns, rows } = message else {
            panic!("{message:?}");
        };
        assert_eq!(columns, [0, 2]);
        for row in rows.into_iter().flatten() {
            let page = PageIndex((row / ROWS_PER_PAGE) as u32);
            assert_eq!(asker.owner_of(FILE, page), to);
            assert!(!std::mem::replace(&mut told[row as usize], true), "row {row} twice");
        }
    }
    for row in all {
        let needed = (5..95).contains(&row) || row >= 200;
        let page = PageIndex((row / ROWS_PER_PAGE) as u32);
        let expected = needed && asker.owner_of(FILE, page) != NodeId(0);
        assert_eq!(told[row as usize], expected, "row {row}");
    }

    let of_peer = owned_by(1, &asker)[0];
    let rows = u64::from(of_peer.0) * ROWS_PER_PAGE;
    let rows = rows..rows + ROWS_PER_PAGE;
    asker.remove_need(5, FILE, std::slice::from_ref(&rows));
    let remove_need = Message::Unneed { scan: 5, file: FILE, rows: vec![rows] };
    assert_eq!(messages(actions(&mut asker)), [(PEER, remove_need)]);
    asker.end_need(5);
    let ends = messages(actions(&mut asker));
    assert_eq!(ends, [1, 2].map(|node| (NodeId(node), Message::End { scan: 5 })));
}

#[test]
fn what_a_peer_needs_is_wanted_until_it_says_otherwise_or_is_gone() {
    let mut owner = node(0, 3, Config::default());
    owner.handle(Time(0), PEER, need(0..50));
    let want = Action::Want {
        interest: INTEREST,
        file: FILE,
        columns: vec![0, 2],
        rows: vec![Range { start: 0, end: 50 }],
    };
    assert_eq!(actions(&mut owner), [want]);
    owner.handle(Time(1), PEER, Message::End { scan: INTEREST.scan });
    owner.handle(Time(2), PEER, Message::End { scan: INTEREST.scan });
    assert_eq!(actions(&mut owner), [forget()]);

    owner.handle(Time(3), PEER, need(0..50));
    actions(&mut owner);
    owner.set_members(Time(4), [NodeId(2)]);
    assert_eq!(actions(&mut owner), [forget()]);
}

/// A node may learn of another later than that one learns of it.
#[test]
fn what_a_node_says_before_it_is_a_member_counts_until_members_are_set_without_it() {
    let mut owner = node(0, 1, Config::default());
    owner.handle(Time(0), PEER, need(0..50));
    owner.handle(
        Time(0),
        PEER,
        Message::Have { file: FILE, pages: (0..PAGES).map(PageIndex).collect() },
    );
    assert_eq!(actions(&mut owner).len(), 1);
    owner.set_members(Time(1), [PEER]);
    let its = owned_by(1, &owner)[0];
    let source = |owner: &mut Node| {
        let sources = all_actions(owner).into_iter().rev();
        sources
            .filter_map(|action| match action {
                Action::SetSource { pages, source, .. } => pages.contains(&its).then_some(source),
                _ => None,
            })
            .next()
    };
    assert_eq!(source(&mut owner), Some(Source::PeerPool));
    owner.set_members(Time(2), [NodeId(2)]);
    assert!(all_actions(&mut owner).contains(&forget()));
    owner.set_members(Time(3), [PEER]);
    assert_ne!(source(&mut owner), Some(Source::PeerPool), "it was forgotten");
}

#[test]
fn needs_that_make_no_sense_are_not_passed_on() {
    let mut owner = node(0, 2, Config::default());
    let rows = u64::from(PAGES) * ROWS_PER_PAGE;
    let unknown_file =
        Message::Need { scan: 5, file: FileId(9), columns: vec![0], rows: vec![0..9] };
    let reversed = Range { start: 9, end: 3 };
    for message in [need(reversed), need(rows..rows + 9), unknown_file] {
        owner.handle(Time(0), PEER, message);
        assert_eq!(actions(&mut owner), []);
    }
    owner.handle(Time(0), PEER, Message::Unneed { scan: 5, file: FILE, rows: vec![0..9] });
    assert_eq!(actions(&mut owner), [], "nobody wants anything");
    owner.handle(Time(0), PEER, need(0..u64::MAX));
    let [Action::Want { rows: wanted, .. }] = &actions(&mut owner)[..] else { panic!("no want") };
    assert_eq!(wanted[..], [0..rows]);
}

#[test]
fn those_that_want_a_page_are_told_once_that_it_is_here() {
    let mut owner = node(0, 3, Config::default());
    let pages = [PageIndex(1), PageIndex(2)];
    for page in pages {
        owner.page_kept(Time(0), FILE, page, [PEER, NodeId(2)]);
        owner.page_kept(Time(1), FILE, page, [PEER]);
    }
    assert_eq!(actions(&mut owner), [], "news is collected");
    assert_eq!(owner.poll_timeout(), Some(TOLD));
    let have = Message::Have { file: FILE, pages: pages.to_vec() };
    assert_eq!(news(&mut owner), [(PEER, have.clone()), (NodeId(2), have)]);
    owner.page_kept(TOLD, FILE, pages[0], [PEER]);
    assert_eq!(owner.poll_timeout(), None, "it knows");

    owner.page_evicted(Time(0), FILE, pages[0]);
    let evicted = Message::Evicted { file: FILE, pages: pages[..1].to_vec() };
    assert_eq!(news(&mut owner), [(PEER, evicted.clone()), (NodeId(2), evicted)]);
}

#[test]
fn news_that_is_old_before_it_is_told_is_not_told() {
    let mut owner = node(0, 3, Config::default());
    owner.page_kept(Time(0), FILE, PageIndex(1), [PEER]);
    owner.page_evicted(Time(1), FILE, PageIndex(1));
    assert_eq!(news(&mut owner), []);
    owner.page_kept(Time(0), FILE, PageIndex(1), [PEER]);
    assert_eq!(news(&mut owner).len(), 1, "and it can be told later");
}

#[test]
fn less_sharing_says_less() {
    let mut owner = node(0, 3, Config { sharing: Sharing::Needs, ..Config::default() });
    owner.page_kept(Time(0), FILE, PageIndex(1), [PEER]);
    assert_eq!(owner.poll_timeout(), None);
    let mut asker = node(0, 3, Config { sharing: Sharing::Reads, ..Config::default() });
    asker.need(5, FILE, &[0], &[0..640]);
    assert_eq!(actions(&mut asker), []);
}

/// It does not help that others have it, since they are not asked.
#[test]
fn a_page_is_nearby_while_its_owner_has_it() {
    let mut asker = node(0, 3, Config::default());
    let (page, own) = (owned_by(1, &asker)[0], owned_by(0, &asker)[0]);
    let have = |pages: &[PageIndex]| Message::Have { file: FILE, pages: pages.to_vec() };
    let evicted = || Message::Evicted { file: FILE, pages: vec![page] };
    let read_from = |source| {
        let pages = page..PageIndex(page.0 + 1);
        Action::SetSource { file: FILE, pages, source }
    };
    asker.handle(Time(0), NodeId(2), have(&[page]));
    assert_eq!(all_actions(&mut asker), []);
    asker.handle(Time(0), PEER, have(&[page, own, PageIndex(PAGES)]));
    assert_eq!(
        all_actions(&mut asker),
        [read_from(Source::PeerPool)],
        "not its own, and none that does not exist"
    );
    asker.handle(Time(0), NodeId(2), evicted());
    assert_eq!(all_actions(&mut asker), []);
    asker.handle(Time(0), PEER, evicted());
    assert_eq!(all_actions(&mut asker), [read_from(Source::Peer)]);
}

/// Whatever happens to the members, the buffer manager reads each page from where it is.
#[test]
fn sources_follow_the_members() {
    const HOLDER: NodeId = NodeId(2);
    let mut asker = node(0, 1, Config::default());
    let mut sources = vec![Source::Device; PAGES as usize];
    for members in [3, 9, 2, 1, 4] {
        asker.set_members(Time(0), (1..members).map(NodeId));
        let mut actions = all_actions(&mut asker);
        let pages = (0..PAGES).map(PageIndex).collect::<Vec<_>>();
        asker.handle(Time(0), HOLDER, Message::Have { file: FILE, pages });
        actions.extend(all_actions(&mut asker));
        for action in actions {
            if let Action::SetSource { pages, source, .. } = action {
                sources[pages.start.0 as usize..pages.end.0 as usize].fill(source);
            }
        }
        for (page, &source) in (0..PAGES).map(PageIndex).zip(&sources) {
            let expected = match asker.owner_of(FILE, page) {
                NodeId(0) => Source::Device,
                HOLDER => Source::PeerPool,
                _ => Source::Peer,
            };
            assert_eq!(source, expected, "{page:?} among {members}");
        }
    }
}

/// A node that forgot what it was told announces its needs again.
#[test]
fn who_says_again_what_it_needs_is_told_again() {
    let mut owner = node(0, 2, Config::default());
    owner.page_kept(Time(0), FILE, PageIndex(1), [PEER]);
    let have = [(PEER, Message::Have { file: FILE, pages: vec![PageIndex(1)] })];
    assert_eq!(news(&mut owner), have);
    owner.page_kept(Time(0), FILE, PageIndex(1), [PEER]);
    assert_eq!(news(&mut owner), []);
    owner.page_wanted(Time(0), FILE, PageIndex(1), PEER);
    assert_eq!(news(&mut owner), have);
}

/// The other one may be there, after all.
#[test]
fn a_node_that_is_taken_for_gone_need_not_keep_anything() {
    let mut asker = node(0, 2, Config::default());
    asker.need(5, FILE, &[0], &[0..640]);
    actions(&mut asker);
    asker.set_members(Time(1), []);
    assert_eq!(messages(actions(&mut asker)), [(PEER, Message::End { scan: 5 })]);
    asker.end_need(5);
    assert_eq!(actions(&mut asker), []);
}

#[test]
fn rows_that_are_named_often_are_passed_on_once() {
    let mut owner = node(0, 2, Config::default());
    let rows = vec![5..20, 0..10, 15..18, 30..40, 5..20];
    let need = Message::Need { scan: 1, file: FILE, columns: vec![0], rows };
    owner.handle(Time(0), NodeId(1), need);
    let wanted = actions(&mut owner).into_iter().find_map(|action| match action {
        Action::Want { rows, .. } => Some(rows),
        _ => None,
    });
    assert_eq!(wanted, Some(vec![0..20, 30..40]));
}
