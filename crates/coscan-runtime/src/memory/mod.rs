//! One budget for all memory: stored pages, decoded columns, metadata of files and tables, operators of queries.
//!
//! Stored pages are in the pool, which is elastic: it has what the other users leave. When decoding or an operator
//! needs memory, the pool shrinks at once. When they return it, the pool grows again. Its size is bounded four times,
//! in bytes:
//!
//! | name | bounds | set by |
//! |---|---|---|
//! | budget | all users together, the pool among them | `Options::memory_bytes` |
//! | ceiling | the pool, however much memory is free | `Options::pool_bytes`, `BufferManager::set_pool_bytes` |
//! | floor | how far the pool shrinks for others | `Options::pool_bytes_min`, at most the ceiling |
//! | limit | the pool at this moment, moved towards its target: what the others leave, between floor and ceiling | the budget; pages in use or being read keep it higher |
//!
//! Decoded columns are counted until the last reference to their buffers is gone, also after a query has passed them
//! on.
//!
//! Core decides how far the pool shrinks for others and which request gets memory. The owner of the state hands out
//! [`Credit`] in quanta; users take and return it without a lock. [`Reservation`] is memory taken to decode. A worker
//! that waits for memory has an [`AnswerSlot`].

mod answer;
mod budget;
mod credit;
mod reservation;
mod usage;
mod waiting;

pub(crate) use answer::{Answer, AnswerSlot};
pub(crate) use budget::{CreditOwner, MemoryBudget};
pub(crate) use credit::Credit;
pub use reservation::thread_decoded_bytes;
pub(crate) use reservation::{Charges, Reservation};
pub(crate) use usage::MemoryUser;
pub(crate) use waiting::WaitingRequests;
