//! Memory for statements with long texts. Their tokens, syntax trees and plans take many times as much as the text, and
//! stay as long as the statement runs. A list of 150,000 numbers takes 44 MB. A literal of 900 kB takes as much, since
//! names of columns contain it.

use coscan_datafusion::SharedMemoryPool;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use crate::queries::QueryError;
use crate::sql::SqlService;
use crate::sql::errors::from_datafusion;

/// Texts of at most this length take little.
const SHORT_BYTES: usize = 64 << 10;

/// The bytes that the tokens and the statements take for each byte of a text.
const OF_STATEMENTS: usize = 24;

/// The bytes that the plan takes for each byte of a text, including the work of the optimizer.
const OF_PLAN: usize = 96;

/// Memory of the server that is reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct TextMemory(#[expect(dead_code, reason = "held, not read")] MemoryReservation);

impl SqlService {
    /// Reserves memory for the statements in a text. `None` for short texts.
    ///
    /// # Errors
    /// If the server has less.
    pub(crate) fn reserve_for_statements(
        &self,
        text: &str,
    ) -> Result<Option<TextMemory>, QueryError> {
        self.reserve("statements", text, OF_STATEMENTS)
    }

    /// Reserves memory for planning a statement or running its plan. A plan that is kept for later takes little more
    /// than its text.
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
        memory.try_grow(text.len().saturating_mul(times)).map_err(from_datafusion)?;
        Ok(Some(TextMemory(memory)))
    }
}
