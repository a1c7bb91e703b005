//! Files that are being opened for other servers, and the messages about them meanwhile.

use std::collections::BTreeMap;

use coscan_ring::{Message, NodeId};

use crate::peers::{FileName, PeerMessage};

/// The most files that may be opened at a time.
const FILES_MAX: usize = 256;

/// The most that may wait for all of them: messages, and ranges of rows or pages in these, of 16 bytes each.
const MESSAGES_MAX: usize = 10_000;
const RANGES_MAX: usize = 1_000_000;

/// Messages that wait until a file is open.
#[derive(Debug, Default)]
pub(super) struct Opening {
    waiting: BTreeMap<FileName, Vec<(NodeId, PeerMessage)>>,
    messages: usize,
    ranges: usize,
}

/// The result of adding a message.
pub(super) enum Added {
    /// Its file is to be opened.
    Opens(FileName),
    /// Its file is being opened.
    Waits,
    /// There is no place for it.
    Refused(PeerMessage),
}

impl Opening {
    /// Keeps a message about a file that is not open.
    pub(super) fn add(&mut self, from: NodeId, message: PeerMessage) -> Added {
        let ranges = ranges_of(&message);
        let has_place = self.messages < MESSAGES_MAX && self.ranges + ranges <= RANGES_MAX;
        let Some(file) = message.file().filter(|_| has_place).cloned() else {
            return Added::Refused(message);
        };
        let is_opening = self.waiting.contains_key(&file);
        // What a message takes back was never announced here.
        let opens = self.waiting.len() < FILES_MAX && !matches!(message, Message::Unneed { .. });
        if !is_opening && !opens {
            return Added::Refused(message);
        }
        self.messages += 1;
        self.ranges += ranges;
        self.waiting.entry(file.clone()).or_default().push((from, message));
        if is_opening { Added::Waits } else { Added::Opens(file) }
    }

    /// Takes the messages about a file that is open, or cannot be opened.
    pub(super) fn take(&mut self, file: &FileName) -> Vec<(NodeId, PeerMessage)> {
        let waiting = self.waiting.remove(file).unwrap_or_default();
        self.messages -= waiting.len();
        self.ranges -= waiting.iter().map(|(_, message)| ranges_of(message)).sum::<usize>();
        waiting
    }

    /// Forgets messages.
    pub(super) fn forget(&mut self, matches: impl Fn(NodeId, &PeerMessage) -> bool) {
        let Self { waiting, messages, ranges } = self;
        let forgotten = waiting
            .values_mut()
            .flat_map(|waiting| waiting.extract_if(.., |(from, message)| matches(*from, message)));
        for (_, message) in forgotten {
            *messages -= 1;
            *ranges -= ranges_of(&message);
        }
    }
}

fn ranges_of(message: &PeerMessage) -> usize {
    match message {
        Message::Need { columns, rows, .. } => columns.len() + rows.len(),
        Message::Unneed { rows, .. } => rows.len(),
        Message::Get { pages, .. } => pages.len(),
        _ => 0,
    }
}
