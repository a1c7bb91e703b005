//! Credit: memory that the owner of the budget has handed out, free or held. Taking and returning it locks nothing.
//!
//! Credit is taken for a batch and returned buffer by buffer, by one atomic addition each. It is independent of the
//! budget and the pool: what is free beyond need returns to the owner the next time it has the lock, and a user that
//! finds too little asks the owner for more.

#[cfg(all(test, feature = "shuttle"))]
mod model;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

use std::sync::Arc;

use super::usage::{MemoryUse, MemoryUser};
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::bell::Bell;

/// Bytes handed out of the budget, beside the pool.
///
/// Free bytes and the mark of waiting requests are one word: a thread that returns memory sees the mark, or a thread
/// that sets the mark sees the memory. With two words both could look before the other has written.
#[derive(Debug)]
pub(crate) struct Credit {
    /// Twice the free bytes, plus one if memory is waited for. Below zero, more is held than was handed out: the
    /// overdraft, which returned memory covers first.
    word: AtomicI64,
    /// Bytes that each user holds, for reports and errors only: read one by one, they need not add up.
    held: [AtomicU64; MemoryUser::ALL.len()],
    /// The free bytes above which the rest returns to the owner.
    free_bytes_max: i64,
    bell: Arc<Bell>,
}

/// The mark of waiting requests.
const WANTED: i64 = 1;

impl Credit {
    /// Credit of zero bytes. The bell rings when there is an overdraft, or some is free while memory is waited for.
    /// More free bytes than `free_bytes_max` are a surplus.
    pub(crate) fn new(free_bytes_max: u64, bell: Arc<Bell>) -> Self {
        let (word, held) = (AtomicI64::new(0), Default::default());
        Self { word, held, free_bytes_max: signed(free_bytes_max), bell }
    }

    /// Takes free memory. Returns false if there is too little.
    pub(crate) fn try_take(&self, user: MemoryUser, bytes: u64) -> bool {
        let wanted = 2 * signed(bytes);
        let take = |word: i64| (word & !WANTED >= wanted).then(|| word - wanted);
        let is_taken = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok();
        if is_taken {
            self.held(user).fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    /// Takes memory that is in use already, even if less is free. Returns true if it was too little.
    pub(crate) fn take(&self, user: MemoryUser, bytes: u64) -> bool {
        if bytes == 0 {
            return false;
        }
        self.held(user).fetch_add(bytes, Ordering::Relaxed);
        let before = self.word.fetch_sub(2 * signed(bytes), Ordering::AcqRel);
        let is_overdrawn = free(before) < signed(bytes);
        if is_overdrawn {
            self.bell.ring();
        }
        is_overdrawn
    }

    /// Returns memory.
    ///
    /// # Panics
    /// If the user held less.
    pub(crate) fn give(&self, user: MemoryUser, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.hold_no_longer(user, bytes);
        let before = self.word.fetch_add(2 * signed(bytes), Ordering::AcqRel);
        if before & WANTED != 0 {
            self.bell.ring();
        }
    }

    /// Notes that a user holds memory that was handed out for it, and that was never free.
    pub(crate) fn hold(&self, user: MemoryUser, bytes: u64) {
        self.held(user).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns a user's memory to the owner, without being free in between.
    ///
    /// # Panics
    /// If the user held less.
    pub(super) fn hold_no_longer(&self, user: MemoryUser, bytes: u64) {
        let held = self.held(user).fetch_sub(bytes, Ordering::Relaxed);
        assert!(held >= bytes, "memory returned was taken: {bytes} of {held} bytes ({user:?})");
    }

    /// Adds memory that the owner hands out.
    pub(crate) fn add(&self, bytes: u64) {
        self.word.fetch_add(2 * signed(bytes), Ordering::AcqRel);
    }

    /// Takes the free bytes above `keep_bytes` back for the owner. Returns how many there were.
    pub(crate) fn collect(&self, keep_bytes: u64) -> u64 {
        let keep = signed(keep_bytes);
        let collect = |word: i64| (free(word) > keep).then(|| 2 * keep + (word & WANTED));
        let before = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, collect);
        before.map_or(0, |word| (free(word) - keep).unsigned_abs())
    }

    /// Bytes held beyond what was handed out.
    pub(crate) fn overdraft_bytes(&self) -> u64 {
        0u64.saturating_add_signed(-self.free_bytes())
    }

    /// Free bytes; below zero, the overdraft.
    pub(super) fn free_bytes(&self) -> i64 {
        free(self.word.load(Ordering::Acquire))
    }

    /// Takes a surplus of free bytes back for the owner, down to half of the bound. Returns how many there were. A
    /// surplus rings no bell, which would wake the pump for each batch. The owner looks whenever it has the lock.
    pub(crate) fn collect_surplus(&self) -> u64 {
        match self.free_bytes() > self.free_bytes_max {
            true => self.collect(self.free_bytes_max.unsigned_abs() / 2),
            false => 0,
        }
    }

    /// The most free bytes that are no surplus.
    pub(crate) fn free_bytes_max(&self) -> u64 {
        self.free_bytes_max.unsigned_abs()
    }

    /// Makes returned memory ring the bell, until [`Self::clear_wanted`].
    pub(crate) fn mark_wanted(&self) {
        self.word.fetch_or(WANTED, Ordering::AcqRel);
    }

    /// Whether memory is marked as wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.word.load(Ordering::Acquire) & WANTED != 0
    }

    /// Ends [`Self::mark_wanted`]. Returns false if nothing was marked. The caller looks for memory after this, not
    /// before.
    pub(crate) fn clear_wanted(&self) -> bool {
        self.word.fetch_and(!WANTED, Ordering::AcqRel) & WANTED != 0
    }

    /// Bytes held, by user.
    pub(crate) fn usage(&self) -> MemoryUse {
        let held = |user| self.held(user).load(Ordering::Relaxed);
        MemoryUse {
            decoded_bytes: held(MemoryUser::Decoded),
            operator_bytes: held(MemoryUser::Operators),
            metadata_bytes: held(MemoryUser::Metadata),
        }
    }

    fn held(&self, user: MemoryUser) -> &AtomicU64 {
        &self.held[user as usize]
    }
}

fn free(word: i64) -> i64 {
    word >> 1
}

/// The bytes as a signed number. Sizes beyond a quarter of the address space count as infinite: they never exist.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX).min(i64::MAX / 4)
}
