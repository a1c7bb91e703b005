//! The part of the budget that operators of queries draw on.

use std::sync::Arc;

use crate::driver::Driver;
use crate::memory::MemoryUser;

/// The part of the memory budget that operators of queries draw on. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct OperatorMemory {
    pub(crate) driver: Arc<Driver>,
}

impl OperatorMemory {
    /// Takes memory if the budget has it, or can get it from idle decoded columns, the pool, unused metadata or decoded columns
    /// that no worker is about to take. If all of them are too few, returns false.
    #[must_use]
    pub fn try_take(&self, bytes: u64) -> bool {
        self.driver.displace_idle(bytes);
        loop {
            let Err(missing) = self.driver.memory().try_take(MemoryUser::Operators, bytes) else {
                return true;
            };
            if !self.driver.reclaim(missing) {
                return false;
            }
        }
    }

    /// Takes memory that is in use already, even beyond the budget.
    pub fn take(&self, bytes: u64) {
        self.driver.displace_idle(bytes);
        self.driver.memory().take(MemoryUser::Operators, bytes);
    }

    /// Returns memory.
    ///
    /// # Panics
    /// If more is returned than was taken.
    pub fn give(&self, bytes: u64) {
        self.driver.memory().give(MemoryUser::Operators, bytes);
    }

    /// Bytes that operators hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.driver.memory().usage().operator_bytes
    }

    /// The whole budget in bytes.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.driver.memory().budget_bytes()
    }
}
