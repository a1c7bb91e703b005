//! Reports about owners and pages, for observers.

use std::collections::BTreeMap;

use coscan_core::{PageIndex, Time};
use coscan_ring::{Action, Config, Message, Node, NodeId, Share, StoreId};

use crate::node::common::{FILE, MIB, PAGES, actions, all_actions, load, messages, node, owned_by};

const NOW: Time = Time(0);

/// The shares, counted page by page: each page is an extent of its own.
fn counted(node: &Node, members: u64) -> BTreeMap<NodeId, Share> {
    let share = |owner| {
        let extents = owned_by(owner, node).len() as u64;
        (NodeId(owner), Share { extents, bytes: extents * MIB })
    };
    (0..members).map(share).filter(|(_, share)| share.extents > 0).collect()
}

fn shares(node: &mut Node) -> BTreeMap<NodeId, Share> {
    actions(node);
    node.shares().filter(|(_, share)| share.extents > 0).collect()
}

#[test]
fn shares_follow_members_and_files() {
    let mut node = node(0, 3, Config::default());
    assert_eq!(shares(&mut node), counted(&node, 3));
    assert_eq!(shares(&mut node).len(), 3);
    node.set_members(NOW, (0..2).map(NodeId));
    assert_eq!(shares(&mut node), counted(&node, 2));
    assert_eq!(shares(&mut node).len(), 2);
    let extents = node.extents(FILE).unwrap().clone();
    let pages = (0..u64::from(PAGES)).map(|page| (extents.rows(page as usize).start, MIB));
    let other = node.add_file(8, StoreId(0), extents.clone(), pages);
    let of_other = (0..extents.count()).map(|extent| node.owners_of_extent(other, extent).owner);
    let mut both = counted(&node, 2);
    for owner in of_other {
        let share = both.get_mut(&owner).unwrap();
        share.extents += 1;
        share.bytes += MIB;
    }
    assert_eq!(shares(&mut node), both);
    node.remove_file(NOW, other);
    assert_eq!(shares(&mut node), counted(&node, 2));
    node.remove_file(NOW, FILE);
    assert!(shares(&mut node).is_empty() && node.extents(FILE).is_none());
}

#[test]
fn what_an_owner_says_that_it_has_is_known_and_what_others_have_does_not_count() {
    let mut node = node(0, 3, Config::default());
    let page = owned_by(1, &node)[0];
    assert_eq!(node.extent_of(FILE, page), page.0 as usize);
    let have = |page: PageIndex| Message::Have { file: FILE, pages: vec![page] };
    node.handle(NOW, NodeId(2), have(page));
    assert!(!node.owner_has(FILE, page));
    node.handle(NOW, NodeId(1), have(page));
    assert!(node.owner_has(FILE, page));
    node.handle(NOW, NodeId(1), Message::Evicted { file: FILE, pages: vec![page] });
    assert!(!node.owner_has(FILE, page));
}

#[test]
fn members_that_change_cost_nothing_at_once_and_who_owns_what_is_right_meanwhile() {
    let mut node = node(0, 2, Config::default());
    node.set_members(NOW, (0..9).map(NodeId));
    assert_eq!(node.poll_action(), Some(Action::Renew));
    assert_eq!(node.poll_action(), None, "all the rest is done in steps");
    let page = owned_by(5, &node)[0];
    node.load(NOW, &load(1, &[page]));
    let asked = messages(actions(&mut node));
    assert!(matches!(asked[..], [(NodeId(5), Message::Get { .. })]), "{asked:?}");
    let (mut steps, mut pages) = (0, 0);
    while node.renew(3) {
        steps += 1;
        let sources = all_actions(&mut node);
        let of_step = sources.iter().map(|action| match action {
            Action::SetSource { pages, .. } => pages.end.0 - pages.start.0,
            other => panic!("{other:?}"),
        });
        let of_step: u32 = of_step.sum();
        assert!(of_step <= 3);
        pages += of_step;
    }
    assert!(steps >= PAGES / 3 - 1 && pages >= PAGES - 3, "{steps} steps, {pages} pages");
}
