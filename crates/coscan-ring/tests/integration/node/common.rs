//! A file of 64 pages of 1 MiB, each in an extent of its own, and the nodes that read it.

use coscan_core::{LoadId, PageIndex, RemoteQuery, Time};
use coscan_ring::{
    Action, Config, Extents, FileId, Load, Message, Node, NodeId, RowGroup, StoreId,
};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const PAGES: u32 = 64;
pub(crate) const ROWS_PER_PAGE: u64 = 10;
pub(crate) const FILE: FileId = FileId(0);
pub(crate) const NOW: Time = Time(0);

/// A node among `members`, which knows the file.
pub(crate) fn node(id: u64, members: u64, config: Config) -> Node {
    let mut node = Node::new(NodeId(id), 0, config);
    node.set_members(NOW, (0..members).map(NodeId));
    let group = RowGroup { rows: ROWS_PER_PAGE, bytes: 9 * MIB };
    let extents = Extents::cut(&[group; PAGES as usize]);
    let pages = (0..u64::from(PAGES)).map(|page| (page * ROWS_PER_PAGE, MIB));
    assert_eq!(node.add_file(7, StoreId(0), extents, pages), FILE);
    actions(&mut node); // Where pages are read from.
    node
}

/// All current actions of a node.
pub(crate) fn all_actions(node: &mut Node) -> Vec<Action> {
    let mut actions = Vec::new();
    while let Some(action) = node.poll_action() {
        match action {
            Action::Renew => while node.renew(3) {},
            action => actions.push(action),
        }
    }
    actions
}

/// All current actions of a node, without those that set sources.
pub(crate) fn actions(node: &mut Node) -> Vec<Action> {
    let mut actions = all_actions(node);
    actions.retain(|action| !matches!(action, Action::SetSource { .. }));
    actions
}

/// The messages among these, with their receivers.
pub(crate) fn messages(actions: Vec<Action>) -> Vec<(NodeId, Message)> {
    let message = |action| match action {
        Action::Send { to, message } => Some((to, message)),
        _ => None,
    };
    actions.into_iter().filter_map(message).collect()
}

/// The pages that a node owns in the eyes of another.
pub(crate) fn owned_by(owner: u64, seen_by: &Node) -> Vec<PageIndex> {
    let pages = (0..PAGES).map(PageIndex);
    pages.filter(|&page| seen_by.owner_of(FILE, page) == NodeId(owner)).collect()
}

pub(crate) fn load(number: u64, pages: &[PageIndex]) -> Load {
    Load {
        load: LoadId(number),
        file: FILE,
        pages: pages.to_vec(),
        urgent: false,
        query: RemoteQuery::default(),
    }
}

/// The only message to another node that a load causes.
pub(crate) fn ask(node: &mut Node, now: Time, load: &Load) -> (NodeId, Message) {
    node.load(now, load);
    let mut sent = messages(actions(node));
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.pop().unwrap()
}
