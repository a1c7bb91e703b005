//! Sandwich operators: plans that are executed chunk by chunk [CS11 §2.10.11].
//!
//! A plan that relies on the order of a table would need one scan in order. A sandwich starts it anew for each chunk
//! instead: the rows of a chunk are in order, whatever the order of the chunks. `chunk_plan` is the filling, a `leaf` of
//! it the rows of a chunk, `output` takes what it returns.
//!
//! - `ordered_aggregate` is an aggregation of one table. A key whose rows may continue in the next chunk is not for the
//!   filling: `borders` sets its rows apart from the other `chunk_rows`.
//! - `cooperative_join` joins tables that are clustered on one key (`clustering`), in its execution `joining`. They are
//!   scanned together, in joint chunks that end where keys end; `joint_rows` are those of one, `joint_cost` what they take.
//! - `in_order` returns what it makes of chunks in their order: several tasks (`in_order_execution`) work on a chunk each,
//!   and take `reorder_buffer` to return rows.

mod borders;
pub(crate) mod chunk_plan;
mod chunk_rows;
pub(crate) mod clustering;
pub(crate) mod cooperative_join;
pub(crate) mod in_order;
mod in_order_execution;
mod joining;
pub(crate) mod joint_cost;
mod joint_rows;
pub(crate) mod leaf;
pub(crate) mod needed;
pub(crate) mod ordered_aggregate;
mod ordered_aggregation;
mod output;
mod reorder_buffer;
