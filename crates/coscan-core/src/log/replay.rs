//! Replay of a recorded run: the same commands must give the same decisions.

use super::{Command, Entry, Log, Reply};
use crate::manager::ActiveBufferManager;
use crate::policy::{PolicyKind, UnknownPolicy};

/// The extent of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Commands and events.
    pub commands: usize,
    /// Decisions equal to the recorded ones: actions, settlements, and replies to commands.
    pub decisions: usize,
}

/// Why a log does not replay.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// This coscan has no such policy.
    #[error("the log was recorded under a policy that this coscan does not have: {0}")]
    UnknownPolicy(#[from] UnknownPolicy),
    /// The configuration allows no load.
    #[error("the log's config allows no load in flight")]
    NoLoads,
    /// A command contradicts the entries before it: the log was changed, or its middle is missing.
    #[error("line {line} of the log reports what cannot be after those before it: {command}")]
    Unexpected {
        /// The line, counted from 1, the header being the first.
        line: usize,
        /// The command as recorded.
        command: Box<Entry>,
    },
    /// A decision differs from the recorded one.
    #[error(
        "decisions differ from line {line} of the log on, after {equal} equal ones\n  \
         recorded {recorded}\n  replayed {}",
        .replayed.as_ref().map_or("nothing".to_owned(), |entry| entry.to_string())
    )]
    Divergence {
        /// The line, counted from 1, the header being the first.
        line: usize,
        /// The number of equal decisions before it.
        equal: usize,
        /// The recorded decision.
        recorded: Box<Entry>,
        /// The decision of the replay.
        replayed: Option<Box<Entry>>,
    },
}

impl Log {
    /// Passes the recorded commands to a new manager and compares everything that comes out.
    ///
    /// # Errors
    /// At the first difference, or if the log cannot be replayed at all.
    pub fn replay(&self) -> Result<Replayed, ReplayError> {
        self.replay_watched(|_, _| ())
    }

    /// Replays as [`Self::replay`] does, and shows the manager after each entry to `watch`.
    ///
    /// # Errors
    /// As [`Self::replay`].
    pub fn replay_watched(
        &self,
        mut watch: impl FnMut(&ActiveBufferManager, &Entry),
    ) -> Result<Replayed, ReplayError> {
        let policy: PolicyKind = self.header.policy.parse()?;
        if self.header.config.loads_in_flight_max == 0 {
            return Err(ReplayError::NoLoads);
        }
        let mut manager = ActiveBufferManager::new(self.header.config, policy.build());
        let mut replayed = Replayed::default();
        let mut reply: Option<Reply> = None;
        for (index, recorded) in self.entries.iter().enumerate() {
            let line = index + 2;
            let decided = match recorded {
                Entry::Command(command) if reply.is_none() => {
                    if !command.fits(&manager) {
                        let command = Box::new(recorded.clone());
                        return Err(ReplayError::Unexpected { line, command });
                    }
                    reply = command.clone().apply(&mut manager);
                    replayed.commands += 1;
                    watch(&manager, recorded);
                    continue;
                }
                Entry::Action(_) | Entry::Settled { .. } if reply.is_none() => {
                    let action = manager.poll_action();
                    let until = manager.poll_timeout();
                    Some(action.map_or(Entry::Settled { until }, Entry::Action))
                }
                _ => reply.take().map(Entry::Reply),
            };
            if decided.as_ref() != Some(recorded) {
                return Err(ReplayError::Divergence {
                    line,
                    equal: replayed.decisions,
                    recorded: Box::new(recorded.clone()),
                    replayed: decided.map(Box::new),
                });
            }
            replayed.decisions += 1;
            watch(&manager, recorded);
        }
        Ok(replayed)
    }
}

impl Command {
    /// Whether the command satisfies the contract of the manager, which panics otherwise.
    fn fits(&self, manager: &ActiveBufferManager) -> bool {
        match self {
            Self::PageLoaded { load, page, .. } | Self::PageFailed { load, page, .. } => manager
                .state()
                .loads
                .get(load)
                .is_some_and(|record| record.unreported.contains(page)),
            Self::ReturnMemory { bytes, .. } => *bytes <= manager.handed_out_bytes(),
            _ => true,
        }
    }
}
