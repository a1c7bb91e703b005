//! What other nodes have asked this one for.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{PageIndex, RemoteQuery, Time};

use super::Node;
use super::action::Action;
use crate::ids::{FileId, NodeId, Served};
use crate::message::Message;

/// Requests that are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Serving {
    requests: BTreeMap<Served, Request>,
    /// By when the asker gets the next sign of life.
    signs: BTreeSet<(Time, Served)>,
    /// Bytes held outside of the pool, or reserved for that.
    transit_bytes: u64,
}

#[derive(Clone, Debug)]
struct Request {
    file: FileId,
    /// Pages that were not given to the network.
    unsent: Vec<PageIndex>,
    /// Pages that the network has not taken yet.
    untaken: Vec<PageIndex>,
    /// Whether its pages are held outside of the pool.
    bypasses: bool,
    /// When the asker gets the next sign of life; `None` once the request has ended, until the network has taken the rest.
    sign: Option<Time>,
}

impl Serving {
    pub(super) fn due(&self) -> Option<Time> {
        self.signs.first().map(|&(at, _)| at)
    }

    /// The nodes that asked.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.requests.keys().map(|served| served.node)
    }

    fn set_sign(&mut self, served: Served, sign: Option<Time>) {
        let Some(request) = self.requests.get_mut(&served) else { return };
        let before = std::mem::replace(&mut request.sign, sign);
        before.map(|at| self.signs.remove(&(at, served)));
        self.signs.extend(sign.map(|at| (at, served)));
    }
}

impl Node {
    pub(super) fn serve(
        &mut self,
        now: Time,
        served: Served,
        file: FileId,
        mut pages: Vec<PageIndex>,
        query: RemoteQuery,
    ) {
        if self.serving.requests.contains_key(&served) {
            return; // It has come twice.
        }
        pages.sort_unstable();
        pages.dedup();
        let is_known = self
            .files
            .get(&file)
            .is_some_and(|file| pages.iter().all(|page| (page.0 as usize) < file.pages.len()));
        if !is_known || pages.is_empty() {
            self.send(served.node, Message::Failed { get: served.get });
            return;
        }
        let (unsent, untaken) = (pages.clone(), Vec::new());
        let request = Request { file, unsent, untaken, bypasses: false, sign: None };
        self.serving.requests.insert(served, request);
        let sign = Time(now.0.saturating_add(self.config.queued_ns));
        self.serving.set_sign(served, Some(sign));
        self.actions.push_back(Action::Serve { served, file, pages, query });
    }

    /// All pages of a request are in the pool, and stay until [`Action::StopServing`].
    pub fn ready(&mut self, served: Served) {
        let Some(request) = self.open(served) else { return };
        let pages = std::mem::take(&mut request.unsent);
        request.untaken = pages.clone();
        let file = request.file;
        self.send(served.node, Message::Pages { get: served.get, file, pages });
    }

    /// There is no space for them in the pool: they bypass it, if there is room for that.
    pub fn no_space(&mut self, served: Served) {
        let Some(request) = self.open(served) else { return };
        let (file, pages) = (request.file, request.unsent.clone());
        let transit_bytes = self.serving.transit_bytes + self.bytes(file, &pages);
        if transit_bytes > self.config.transit_bytes_max {
            self.send(served.node, Message::NoRoom { get: served.get });
            self.stop(served);
            return;
        }
        self.serving.transit_bytes = transit_bytes;
        if let Some(request) = self.open(served) {
            request.bypasses = true;
        }
        self.actions.push_back(Action::Bypass { served, file, pages });
    }

    /// A page that bypasses the pool has been read.
    pub fn bypassed(&mut self, served: Served, page: PageIndex) {
        let Some(request) = self.open(served) else { return };
        let Some(position) = request.unsent.iter().position(|&unsent| unsent == page) else {
            return;
        };
        request.unsent.swap_remove(position);
        request.untaken.push(page);
        let file = request.file;
        self.send(served.node, Message::Pages { get: served.get, file, pages: vec![page] });
    }

    /// A page could not be read.
    pub fn failed(&mut self, served: Served) {
        if self.open(served).is_some() {
            self.send(served.node, Message::Failed { get: served.get });
            self.stop(served);
        }
    }

    /// The network has taken a page of a request, or lost it with its connection.
    pub fn sent(&mut self, served: Served, page: PageIndex) {
        let Some(request) = self.serving.requests.get_mut(&served) else { return };
        let Some(position) = request.untaken.iter().position(|&untaken| untaken == page) else {
            return;
        };
        request.untaken.swap_remove(position);
        let (file, bypasses) = (request.file, request.bypasses);
        let is_answered = request.untaken.is_empty() && request.unsent.is_empty();
        if bypasses {
            self.serving.transit_bytes -= self.bytes(file, &[page]);
        }
        if is_answered {
            self.stop(served);
        }
    }

    /// Bytes held for others outside of the pool, or reserved for that (R2).
    #[must_use]
    pub fn transit_bytes(&self) -> u64 {
        self.serving.transit_bytes
    }

    /// Ends a request. Pages that the network has not taken yet still count.
    pub(super) fn stop(&mut self, served: Served) {
        if let Some(request) = self.open(served) {
            let unsent = std::mem::take(&mut request.unsent);
            let (file, bypasses) = (request.file, request.bypasses);
            self.serving.set_sign(served, None);
            if bypasses {
                self.serving.transit_bytes -= self.bytes(file, &unsent);
            }
            self.actions.push_back(Action::StopServing { served });
        }
        let is_over = |request: &Request| request.untaken.is_empty() || !request.bypasses;
        if self.serving.requests.get(&served).is_some_and(is_over) {
            self.serving.requests.remove(&served);
        }
    }

    /// A file is forgotten: what others have asked for of it they read themselves.
    pub(super) fn serve_no_more(&mut self, file: FileId) {
        let requests = self.serving.requests.iter().filter(|(_, request)| request.file == file);
        for served in requests.map(|(&served, _)| served).collect::<Vec<_>>() {
            self.failed(served);
            // Whatever the network still has of it counts no longer.
            while let Some(Request { untaken, .. }) = self.serving.requests.get(&served) {
                match untaken.last() {
                    Some(&page) => self.sent(served, page),
                    None => self.stop(served),
                }
            }
        }
    }

    /// Whether a request still wants pages that bypass the pool.
    #[must_use]
    pub fn bypasses(&self, served: Served) -> bool {
        self.serving.requests.get(&served).is_some_and(|request| {
            request.sign.is_some() && request.bypasses && !request.unsent.is_empty()
        })
    }

    pub(super) fn stop_serving(&mut self, gone: NodeId) {
        let requests = self.serving.requests.keys().filter(|served| served.node == gone);
        for served in requests.copied().collect::<Vec<_>>() {
            self.stop(served);
        }
    }

    pub(super) fn send_signs_of_life(&mut self, now: Time) {
        while let Some(&(_, served)) = self.serving.signs.first().filter(|(at, _)| *at <= now) {
            let sign = Time(now.0.saturating_add(self.config.later_ns()));
            self.serving.set_sign(served, Some(sign));
            self.send(served.node, Message::Queued { get: served.get });
        }
    }

    /// A request that has not ended.
    fn open(&mut self, served: Served) -> Option<&mut Request> {
        self.serving.requests.get_mut(&served).filter(|request| request.sign.is_some())
    }

    fn bytes(&self, file: FileId, pages: &[PageIndex]) -> u64 {
        pages.iter().map(|&page| self.bytes_of(file, page)).sum()
    }
}
