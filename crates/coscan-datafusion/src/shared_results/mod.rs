//! One computation for several queries. Of each chunk, the first stage of an aggregation makes a small state. Whichever query has
//! computed it publishes it; the others with the same fragment take it, and their scans no longer need the chunk.
//!
//! A [`fragment`] is the first stage of an aggregation with the filters below it, as [`expression`]s of [`built_in`] functions:
//! equal fragments over equal rows have equal states. What a query computes of each chunk are its [`computations`]: conditions
//! that a chunk is [`proven`] to meet are no part of its fragment. Aggregations of many [`groups`] are left to the engine.
//!
//! The [`store`] has the published [`state`]s. A running query has a [`subscription`] to them, and an [`inbox`] for new ones.
//! `SharedAggregateExec` (in [`chunkwise`](crate::chunkwise)) computes and publishes them. A [`report`] says what is shared.

#![allow(clippy::mutable_key_type, reason = "nobody changes the values of keys")]

mod built_in;
mod computations;
mod expression;
mod fragment;
mod groups;
mod inbox;
mod proven;
mod report;
mod state;
mod store;
mod subscription;

pub(crate) use computations::Computations;
pub(crate) use fragment::QueryFragment;
pub use report::SharedResults;
pub(crate) use state::{ChunkState, Collected, GROUPS_MAX, NotPublished};
pub(crate) use subscription::{ResultSharing, Subscription};
