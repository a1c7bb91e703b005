//! Memory for statements with long texts. What is made of a text takes many times as much, and stays as long as the
//! statement runs: a list of 150,000 numbers takes 44 MB, a literal of 900 kB as much, since names of columns hold it.

use coscan_datafusion::SharedMemoryPool;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use crate::engine::Engine;
use crate::engine::errors::from_engine;
use crate::queries::QueryError;

/// Texts up to here take little.
const SHORT_BYTES: usize = 64 << 10;

/// How many bytes the tokens and the statements of a text take for each of its bytes.
const OF_STATEMENTS: usize = 24;

/// How many the plan takes, and what the optimizer makes of it.
const OF_PLAN: usize = 96;

/// What is reserved of the server's memory until this is dropped.
#[derive(Debug)]
pub(crate) struct TextMemory(#[expect(dead_code, reason = "held, not read")] MemoryReservation);

impl Engine {
    /// Reserves memory for the statements in a text; `None` for short ones.
    ///
    /// # Errors
    /// If the server has less.
    pub(crate) fn reserve_for_statements(
        &self,
        text: &str,
    ) -> Result<Option<TextMemory>, QueryError> {
        self.reserve("statements", text, OF_STATEMENTS)
    }

    /// Reserves memory for a plan that is made, or runs. One that is kept for later takes little more than its text.
    ///
    /// # Errors
    /// If the server has less.
    pub(super) fn reserve_for_plan(&self, text: &str) -> Result<Option<TextMemory>, QueryError> {
        self.reserve("plans", text, OF_PLAN)
    }

    fn reserve(
        &self,
        consumer: &str,
        text: &str,
        times: usize,
    ) -> Result<Option<TextMemory>, QueryError> {
        if text.len() <= SHORT_BYTES {
            return Ok(None);
        }
        let pool = SharedMemoryPool::of_manager(self.manager());
        let memory = MemoryConsumer::new(consumer).register(&pool);
        memory.try_grow(text.len().saturating_mul(times)).map_err(from_engine)?;
        Ok(Some(TextMemory(memory)))
    }
}
