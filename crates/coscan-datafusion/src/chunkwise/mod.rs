//! Sandwich operators: plans that are executed chunk by chunk [CS11 §2.10.11].
//!
//! A plan that relies on the order of a table would need one scan in order. A sandwich starts it anew for each chunk
//! instead, since the rows of a chunk are in order, whatever the order of the chunks. `chunk_plan` is the filling, its
//! `leaf` has the rows of a chunk, and `output` receives the results. Rows are lent to it (`loan`).
//!
//! - `ordered_aggregate` (executed by `ordered_aggregate_execution`) is an aggregation of one table. The filling does not aggregate a key whose rows may continue
//!   in the next chunk. `borders` separates the rows of such keys from the other `chunk_rows`.
//! - `cooperative_join` joins tables that are clustered on one key (`joint_chunks`; executed by
//!   `cooperative_join_execution`). The tables are scanned together, in joint chunks that end where keys end. `joint_rows` are the rows of a joint chunk,
//!   and `joint_cost` is the cost of all.
//! - `shared_aggregate` shares the states of chunks with other queries ([`shared_results`](crate::shared_results)). Its rows come in
//!   `segments`.
//! - `in_order` returns the results for chunks in their order. Several tasks (`in_order_execution`) work on a chunk
//!   each, and return rows through `reorder_buffer`.

mod borders;
pub(crate) mod chunk_plan;
mod chunk_rows;
pub(crate) mod cooperative_join;
mod cooperative_join_execution;
pub(crate) mod in_order;
mod in_order_execution;
pub(crate) mod joint_chunks;
pub(crate) mod joint_cost;
mod joint_rows;
pub(crate) mod leaf;
mod loan;
pub(crate) mod needed;
pub(crate) mod ordered_aggregate;
mod ordered_aggregate_execution;
pub(crate) mod output;
mod reorder_buffer;
mod segments;
pub(crate) mod shared_aggregate;
