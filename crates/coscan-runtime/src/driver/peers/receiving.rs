//! Messages of other servers.

use std::ops::Range;

use bytes::Bytes;
use coscan_core::{PageIndex, Time};
use coscan_ring::{GetId, Message, NodeId};

use super::ServedFile;
use super::opening::Added;
use crate::driver::state::State;
use crate::peers::{FileName, PeerMessage};

impl State {
    /// Applies a message, once the file that it is about is open.
    pub(super) fn receive(
        &mut self,
        from: NodeId,
        message: PeerMessage,
        pages: Vec<Bytes>,
        now: Time,
    ) {
        let Some(peers) = &mut self.peers else { return };
        match &message {
            Message::Get { file, .. }
            | Message::Need { file, .. }
            | Message::Unneed { file, .. } => {
                let id = peers.files.by_name(file);
                let shared = id.and_then(|id| peers.files.get_mut(id));
                match shared.filter(|shared| shared.served.is_some()) {
                    Some(shared) => shared.is_asked_for = true,
                    None => return self.wait_until_opened(from, message),
                }
            }
            // What a message takes back need not be done when the file is open.
            Message::Cancel { get } => peers.opening.forget(|sender, waiting| {
                let asked = matches!(waiting, Message::Get { get: asked, .. } if asked == get);
                sender == from && asked
            }),
            Message::End { scan } => peers.opening.forget(|sender, waiting| {
                let told = match waiting {
                    Message::Need { scan, .. } | Message::Unneed { scan, .. } => Some(scan),
                    _ => None,
                };
                sender == from && told == Some(scan)
            }),
            _ => {}
        }
        self.handle_message(from, message, pages, now);
    }

    fn wait_until_opened(&mut self, from: NodeId, message: PeerMessage) {
        let Some(peers) = &mut self.peers else { return };
        match peers.opening.add(from, message) {
            Added::Opens(file) => self.effects.opening.push((peers.opener.clone(), file)),
            Added::Waits => {}
            Added::Refused(message) => self.refuse(from, &message),
        }
    }

    /// Refuses the request of another server, which then reads the pages itself.
    pub(super) fn refuse(&mut self, to: NodeId, message: &PeerMessage) {
        if let &Message::Get { get, .. } = message {
            self.send_to_peer(to, Message::Failed { get });
        }
    }

    /// Handles a file that was opened for other servers, or could not be.
    pub(super) fn opened_for_peers(
        &mut self,
        name: &FileName,
        served: Option<ServedFile>,
        now: Time,
    ) {
        let Some(peers) = &mut self.peers else { return };
        let waiting = peers.opening.take(name);
        let is_open = served.is_some();
        let id = peers.files.by_name(name);
        match id.and_then(|id| peers.files.get_mut(id)) {
            Some(shared) if is_open => (shared.served, shared.is_asked_for) = (served, true),
            _ => {
                waiting.iter().for_each(|(from, message)| self.refuse(*from, message));
                return;
            }
        }
        for (from, message) in waiting {
            self.handle_message(from, message, Vec::new(), now);
        }
    }

    /// Passes a message to the node, with the node's numbers for its file and pages.
    fn handle_message(&mut self, from: NodeId, message: PeerMessage, bytes: Vec<Bytes>, now: Time) {
        let Some(peers) = &mut self.peers else { return };
        let file = message.file().and_then(|name| peers.files.by_name(name));
        let shared = file.and_then(|file| peers.files.get(file));
        let page = |range: Range<u64>| shared.and_then(|shared| shared.page_of(&range));
        let get = match &message {
            Message::Get { get, .. } => Some(*get),
            _ => None,
        };
        let Some(message) = message.translate(|_| file, page) else {
            // The file is laid out differently here.
            if let Some(get) = get {
                self.send_to_peer(from, Message::Failed { get });
            }
            return;
        };
        if let Message::Pages { get, file, pages } = &message {
            let has_bytes = |page: &PageIndex, bytes: &Bytes| {
                shared.is_some_and(|shared| {
                    let range = shared.range(*page);
                    range.end - range.start == bytes.len() as u64
                })
            };
            let are_whole = pages.len() == bytes.len()
                && pages.iter().zip(&bytes).all(|(page, bytes)| has_bytes(page, bytes))
                && peers.node.expects(from, *get, *file, pages);
            if !are_whole {
                return;
            }
            peers.arriving = pages.iter().copied().zip(bytes).collect();
        }
        peers.node.handle(now, from, message);
        self.settle_peers(now);
        if let Some(peers) = &mut self.peers {
            peers.arriving.clear();
        }
    }

    /// Whether these pages were requested from that server and have not come.
    pub(super) fn expects(
        &self,
        from: NodeId,
        get: GetId,
        file: &FileName,
        pages: &[Range<u64>],
    ) -> bool {
        let Some(peers) = &self.peers else { return false };
        let Some(id) = peers.files.by_name(file) else { return false };
        let Some(shared) = peers.files.get(id) else { return false };
        let pages: Option<Vec<_>> = pages.iter().map(|range| shared.page_of(range)).collect();
        pages.is_some_and(|pages| peers.node.expects(from, get, id, &pages))
    }
}
