//! Requests of this node to others: pages of its loads.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{LoadId, PageIndex, Time};

use super::Node;
use super::action::{Action, Load};
use crate::ids::{FileId, GetId, NodeId};
use crate::message::Message;

/// Requests that are not answered in full.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    next: u64,
    requests: BTreeMap<GetId, Request>,
    /// The requests by the time at which the node that was asked was last heard from.
    silent_since: BTreeSet<(Time, GetId)>,
}

#[derive(Clone, Debug)]
struct Request {
    to: NodeId,
    /// The pages of the load that have not come, in order.
    missing: Load,
    /// Whether the node that was asked stands in for another that did not answer.
    is_fallback: bool,
    asked: Time,
    /// When it was last heard from, or when patience ends.
    heard: Time,
}

impl Asked {
    /// No requests yet. They are numbered from `first` on.
    pub(super) fn from(first: GetId) -> Self {
        Self { next: first.0, ..Self::default() }
    }

    fn add(&mut self, request: Request) -> GetId {
        let get = GetId(self.next);
        self.next += 1;
        self.silent_since.insert((request.heard, get));
        self.requests.insert(get, request);
        get
    }

    fn remove(&mut self, get: GetId) -> Option<Request> {
        let request = self.requests.remove(&get)?;
        self.silent_since.remove(&(request.heard, get));
        Some(request)
    }

    /// The nodes that were asked.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.requests.values().map(|request| request.to)
    }

    /// Notes that the node that was asked has answered, which counts until patience ends.
    fn heard(&mut self, now: Time, from: NodeId, get: GetId, patience_ns: u64) {
        if let Some(request) = self.requests.get_mut(&get).filter(|request| request.to == from) {
            self.silent_since.remove(&(request.heard, get));
            request.heard = now.min(Time(request.asked.0.saturating_add(patience_ns)));
            self.silent_since.insert((request.heard, get));
        }
    }

    pub(super) fn due(&self, silence_ns: u64) -> Option<Time> {
        let &(since, _) = self.silent_since.first()?;
        Some(Time(since.0.saturating_add(silence_ns)))
    }

    fn matching(&self, matches: impl Fn(&Request) -> bool) -> Vec<GetId> {
        let found = self.requests.iter().filter(|(_, request)| matches(request));
        found.map(|(&get, _)| get).collect()
    }
}

impl Node {
    /// Begins a load of the buffer manager. Each of its pages comes from its owner, or from the store.
    pub fn load(&mut self, now: Time, load: &Load) {
        self.choose(now, load.file);
        let mut by_owner: BTreeMap<NodeId, Vec<PageIndex>> = BTreeMap::new();
        for &page in &load.pages {
            let owner = match self.reads_elsewhere(load.file, page) {
                true => self.owner_of(load.file, page),
                false => self.id,
            };
            by_owner.entry(owner).or_default().push(page);
        }
        for (owner, pages) in by_owner {
            let part = Load { pages, ..load.clone() };
            if owner == self.id {
                self.actions.push_back(Action::Read(part));
            } else {
                self.ask(now, owner, part, false);
            }
        }
    }

    /// Cancels a load.
    pub fn cancel_load(&mut self, now: Time, load: LoadId) {
        for get in self.asked.matching(|request| request.missing.load == load) {
            let request = self.give_up(now, get).expect("found above");
            self.send(request.to, Message::Cancel { get });
        }
        self.actions.retain(|action| match action {
            Action::Arrived { load: of, .. }
            | Action::Read(Load { load: of, .. })
            | Action::ReadInstead(Load { load: of, .. }) => *of != load,
            _ => true,
        });
    }

    fn ask(&mut self, now: Time, to: NodeId, mut missing: Load, is_fallback: bool) {
        missing.pages.sort_unstable();
        let Load { file, pages, query, .. } = missing.clone();
        let bytes = pages.iter().map(|&page| self.bytes_of(file, page)).sum();
        self.others_are_asked(now, file, bytes);
        let request = Request { to, missing, is_fallback, asked: now, heard: now };
        let get = self.asked.add(request);
        self.send(to, Message::Get { get, file, pages, query });
    }

    /// Notes that the node that was asked is working on the request.
    pub(super) fn queued(&mut self, now: Time, from: NodeId, get: GetId) {
        self.asked.heard(now, from, get, self.config.patience_ns);
    }

    /// Handles pages that have come. Pages of a request that was given up are dropped, since they may have been read
    /// meanwhile.
    pub(super) fn pages_came(
        &mut self,
        now: Time,
        (from, get): (NodeId, GetId),
        file: FileId,
        pages: &[PageIndex],
    ) {
        self.queued(now, from, get);
        let is_answered =
            |request: &&mut Request| request.to == from && request.missing.file == file;
        let request = self.asked.requests.get_mut(&get).filter(is_answered);
        let Some(request) = request else { return };
        let came: BTreeSet<_> = pages.iter().copied().collect();
        let load = request.missing.load;
        let arrived: Vec<_> =
            request.missing.pages.extract_if(.., |page| came.contains(page)).collect();
        if request.missing.pages.is_empty() {
            self.asked.remove(get);
        }
        self.others_have_sent(now, file, &arrived, true);
        let arrived = arrived.into_iter().map(|page| Action::Arrived { load, file, page });
        self.actions.extend(arrived);
    }

    /// Handles a request of which the node that was asked will not send the rest.
    pub(super) fn read_instead(&mut self, now: Time, from: NodeId, get: GetId) {
        if self.asked.requests.get(&get).is_some_and(|request| request.to == from) {
            let request = self.give_up(now, get).expect("found above");
            self.actions.push_back(Action::ReadInstead(request.missing));
        }
    }

    /// Whether these are pages of a request to this node that have not come yet, each once and in order.
    #[must_use]
    pub fn expects(&self, from: NodeId, get: GetId, file: FileId, pages: &[PageIndex]) -> bool {
        self.asked.requests.get(&get).is_some_and(|Request { to, missing, .. }| {
            let is_missing = |page| missing.pages.binary_search(page).is_ok();
            (*to, missing.file) == (from, file)
                && pages.len() <= missing.pages.len()
                && pages.is_sorted_by(|before, after| before < after)
                && pages.iter().all(is_missing)
        })
    }

    /// Loads that wait for pages of other nodes, with these pages. A load of several owners appears several times.
    pub fn loads_from_others(&self) -> impl Iterator<Item = &Load> {
        self.asked.requests.values().map(|request| &request.missing)
    }

    /// Reads from the store what others were asked for of a file that is forgotten.
    pub(super) fn ask_no_more(&mut self, now: Time, file: FileId) {
        for get in self.asked.matching(|request| request.missing.file == file) {
            let request = self.give_up(now, get).expect("found above");
            self.send(request.to, Message::Cancel { get });
            self.actions.push_back(Action::ReadInstead(request.missing));
        }
    }

    /// Counts nodes as gone for a request if they have not been heard from for too long.
    pub(super) fn give_up_silent(&mut self, now: Time) {
        while self.asked.due(self.config.silence_ns).is_some_and(|due| due <= now) {
            let (_, get) = self.asked.silent_since.first().copied().expect("one is due");
            let request = self.give_up(now, get).expect("it is listed");
            self.send(request.to, Message::Cancel { get });
            self.ask_again(now, request);
        }
    }

    /// Asks others for what a node that is gone was asked for.
    pub(super) fn ask_others(&mut self, now: Time, gone: NodeId) {
        for get in self.asked.matching(|request| request.to == gone) {
            let request = self.give_up(now, get).expect("found above");
            self.ask_again(now, request);
        }
    }

    /// Ends a request whose missing pages will not come.
    fn give_up(&mut self, now: Time, get: GetId) -> Option<Request> {
        let request = self.asked.remove(get)?;
        self.others_have_sent(now, request.missing.file, &request.missing.pages, false);
        Some(request)
    }

    /// Asks the node that stands in for the one that was asked, once; then the store.
    fn ask_again(&mut self, now: Time, request: Request) {
        let Request { to, missing, is_fallback, .. } = request;
        let mut by_node: BTreeMap<Option<NodeId>, Vec<PageIndex>> = BTreeMap::new();
        for &page in &missing.pages {
            let owners = self.owners_of_page(missing.file, page);
            let nodes = [Some(owners.owner), owners.runner_up].into_iter().flatten();
            // Nodes after this one are not asked: two that ask each other for what both wait for
            // would wait for ever.
            let before = nodes.take_while(|&node| node != self.id);
            let other = before.filter(|_| !is_fallback).find(|&node| node != to);
            by_node.entry(other).or_default().push(page);
        }
        for (node, pages) in by_node {
            let part = Load { pages, ..missing.clone() };
            match node {
                Some(node) => self.ask(now, node, part, true),
                None => self.actions.push_back(Action::ReadInstead(part)),
            }
        }
    }
}
