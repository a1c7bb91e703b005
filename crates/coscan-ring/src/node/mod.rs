//! A node of the ring, as a state machine. Messages and the events of its buffer manager go in, messages and reads come
//! out.
//!
//! Asking, needing, serving, advising, choosing and renewing have a file each.

mod action;
mod asking;
mod config;
mod needing;
mod owner_updates;
mod page_holders;
mod reports;
mod serving;
mod source_choice;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coscan_core::{PageIndex, Time};

use crate::extents::Extents;
use crate::ids::{FileId, GetId, NodeId, RemoteInterest, Served, StoreId};
use crate::message::Message;
use crate::ownership::Owners;
pub use action::{Action, Load};
use asking::Asked;
pub use config::{Choosing, Config, Sharing};
use owner_updates::CachedOwners;
use page_holders::Advice;
pub use reports::Share;
use reports::Shares;
use serving::Serving;
use source_choice::Choices;

/// The number of bits of a request's number that count the requests since the node has started.
const INCARNATION_SHIFT: u32 = 20;

/// A version of a file that is shared.
#[derive(Clone, Debug)]
struct File {
    /// The identity of the version, the same on all nodes.
    identity: u64,
    store: StoreId,
    /// The bytes that are being read of it from the store.
    reading_bytes: u64,
    extents: Extents,
    /// The extent and the bytes of each page.
    pages: Vec<(u32, u64)>,
    /// The bytes of the pages of each extent.
    extent_bytes: Vec<u64>,
    /// The owners of each extent, as far as they were computed.
    owners: Vec<CachedOwners>,
}

/// A node.
///
/// It holds no bytes. The caller passes on events, with the time, then carries out each
/// [`poll_action`](Self::poll_action) until it returns `None`, and arms a timer for
/// [`poll_timeout`](Self::poll_timeout).
///
/// # Rules
/// - R1 a page of a load is read from the store, or arrives, exactly once, as long as the load is not cancelled;
/// - R2 the bytes held for others outside of the pool never exceed their limit;
/// - R3 a request is never forwarded: the node that is asked serves it, whichever node owns it;
/// - R4 every request ends: with its pages, or the asker reads the store.
#[derive(Debug)]
pub struct Node {
    id: NodeId,
    config: Config,
    /// All nodes, this one among them, in order.
    members: Vec<NodeId>,
    /// The number of times that the members have changed, from 1.
    view: u64,
    /// Files for which the buffer manager has not been told yet where pages are read from, with the first such page.
    unrenewed: BTreeMap<FileId, PageIndex>,
    files: BTreeMap<FileId, File>,
    shares: Shares,
    next_file: u32,
    asked: Asked,
    serving: Serving,
    advice: Advice,
    /// For each scan of this node whose needs were announced, the nodes that were told.
    told: BTreeMap<u64, BTreeSet<NodeId>>,
    choices: Choices,
    actions: VecDeque<Action>,
}

impl Node {
    /// A node that knows of no other. `incarnation` is higher for each start of a node with this id, so that answers to
    /// its earlier requests are not taken for answers to new ones. At most 2⁴⁴.
    ///
    /// # Panics
    /// If signs of life would come too late or without a pause, see [`Config::queued_ns`].
    #[must_use]
    pub fn new(id: NodeId, incarnation: u64, config: Config) -> Self {
        config.check();
        Self {
            id,
            config,
            members: vec![id],
            view: 1,
            unrenewed: BTreeMap::new(),
            files: BTreeMap::new(),
            shares: Shares::default(),
            next_file: 0,
            asked: Asked::from(GetId(incarnation << INCARNATION_SHIFT)),
            serving: Serving::default(),
            advice: Advice::default(),
            told: BTreeMap::new(),
            choices: Choices::new(),
            actions: VecDeque::new(),
        }
    }

    /// Adds a version of a file, and returns this node's number for it. `pages` lists, in page order, the first row and
    /// the bytes of each page. `identity` is the same on all nodes and differs between versions. `store` is the store
    /// that it is read from.
    pub fn add_file(
        &mut self,
        identity: u64,
        store: StoreId,
        extents: Extents,
        pages: impl IntoIterator<Item = (u64, u64)>,
    ) -> FileId {
        let pages = pages.into_iter();
        let pages = pages.map(|(row, bytes)| (extents.of_row(row) as u32, bytes));
        let pages: Vec<_> = pages.collect();
        let mut extent_bytes = vec![0; extents.count()];
        pages.iter().for_each(|&(extent, bytes)| extent_bytes[extent as usize] += bytes);
        let owners = vec![CachedOwners::default(); extents.count()];
        let file = FileId(self.next_file);
        self.next_file += 1;
        let new = File { identity, store, reading_bytes: 0, extents, pages, extent_bytes, owners };
        self.files.insert(file, new);
        self.renew_files([file]);
        file
    }

    /// Forgets a file. What others were asked for of it is read from the store; what they have asked for they read
    /// themselves. The caller has ended the needs of scans for it, here and for others.
    pub fn remove_file(&mut self, now: Time, file: FileId) {
        self.serve_no_more(file);
        self.ask_no_more(now, file);
        self.read_no_more(now, file);
        self.forget_pages(file);
        self.unrenewed.remove(&file);
        if let Some(removed) = self.files.remove(&file) {
            self.shares.remove(&removed);
        }
    }

    /// Sets the nodes that are alive, always including this one. Requests to nodes that are gone are made again, and
    /// their needs and pages are forgotten. Extents may have other owners now, which know of no scan: the caller
    /// [ends](Self::end_need) the needs of its scans and announces them [again](Self::need).
    pub fn set_members(&mut self, now: Time, members: impl IntoIterator<Item = NodeId>) {
        if self.change_members(members) {
            self.forget_others();
        }
        for node in self.strangers() {
            self.end_needs_of(node);
            self.stop_serving(node);
            self.forget_advice(node);
            self.ask_others(now, node);
        }
    }

    /// Notes that another node has lost its connection to this one, or was started again. Its requests, needs and pages
    /// are forgotten; it announces again what still holds.
    pub fn reconnected(&mut self, node: NodeId) {
        self.stop_serving(node);
        self.forget_advice(node);
    }

    /// Handles a message. It may be from a node that is no member: the needs and pages of that node count until members
    /// are [set](Self::set_members) without it. The caller leaves out the columns of a `Need` that do not exist.
    pub fn handle(&mut self, now: Time, from: NodeId, message: Message) {
        match message {
            Message::Need { scan, file, columns, rows } => {
                let interest = RemoteInterest { node: from, scan };
                self.want(interest, file, columns, &rows);
            }
            Message::Unneed { scan, file, rows } => {
                let interest = RemoteInterest { node: from, scan };
                self.unwant(interest, file, &rows);
            }
            Message::End { scan } => self.forget_interest(RemoteInterest { node: from, scan }),
            Message::Get { get, file, pages, query } => {
                self.serve(now, Served { node: from, get }, file, pages, query);
            }
            Message::Cancel { get } => self.stop(Served { node: from, get }),
            Message::Pages { get, file, pages } => {
                self.pages_came(now, (from, get), file, &pages);
            }
            Message::Queued { get } => self.queued(now, from, get),
            Message::NoRoom { get } | Message::Failed { get } => {
                self.read_instead(now, from, get);
            }
            Message::Have { file, pages } => self.nearby(from, file, &pages, true),
            Message::Evicted { file, pages } => self.nearby(from, file, &pages, false),
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) is reached.
    pub fn handle_timeout(&mut self, now: Time) {
        self.send_signs_of_life(now);
        self.give_up_silent(now);
        self.send_advice(now);
    }

    /// The next action; `None` if there is none until the next event.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), unless an event comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = [self.serving.due(), self.asked.due(self.config.silence_ns), self.advice.due()];
        due.into_iter().flatten().min()
    }

    /// Whether another node reads a page for this one.
    #[must_use]
    pub fn reads_elsewhere(&self, file: FileId, page: PageIndex) -> bool {
        self.config.sharing > Sharing::Off
            && self.owner_of(file, page) != self.id
            && !self.reads_alone(self.file(file).store)
    }

    /// The owner of a page.
    #[must_use]
    pub fn owner_of(&self, file: FileId, page: PageIndex) -> NodeId {
        self.owners_of_page(file, page).owner
    }

    /// Nodes that are no members, but asked for something, were asked, need something or have something.
    fn strangers(&self) -> BTreeSet<NodeId> {
        let told = self.told.values().flatten().copied();
        let known = told.chain(self.asked.nodes()).chain(self.serving.nodes());
        let is_stranger = |node: &NodeId| self.members.binary_search(node).is_err();
        known.chain(self.advice.nodes()).filter(is_stranger).collect()
    }

    fn file(&self, file: FileId) -> &File {
        &self.files[&file]
    }

    fn owners_of_page(&self, file: FileId, page: PageIndex) -> Owners {
        let (extent, _) = self.file(file).pages[page.0 as usize];
        self.owners_in(file, extent as usize)
    }

    fn bytes_of(&self, file: FileId, page: PageIndex) -> u64 {
        self.file(file).pages[page.0 as usize].1
    }

    fn send(&mut self, to: NodeId, message: Message) {
        self.actions.push_back(Action::Send { to, message });
    }
}
