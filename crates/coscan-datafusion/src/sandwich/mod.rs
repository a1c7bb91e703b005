//! Sandwich operators: plans that are executed chunk by chunk [CS11 §2.10.11].
//!
//! A plan that relies on the order of a table would need one scan in order. A sandwich starts it anew for each chunk
//! instead: the rows of a chunk are in order, whatever the order of the chunks. `chunk_plan` is the filling;
//! `ordered_aggregate` puts an aggregation into it. A key whose rows may continue in the next chunk is not for the
//! filling: `borders` sets its rows apart.

mod borders;
mod chunk_plan;
mod chunk_rows;
pub(crate) mod ordered_aggregate;
