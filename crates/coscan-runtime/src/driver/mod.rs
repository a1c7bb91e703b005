//! Runs core in real time: who owns its state, and what may happen when.
//!
//! [`Driver`] is what all of a manager share (`handle`). `owner` says who may change the [`State`](state::State) and how: by a
//! call, by an offer, or by a [`Message`] in the `inbox`. `apply` has what messages and core's actions do to the state,
//! `workers` what workers have asked for, `walks` what goes in steps. What is decided under the lock is carried out after
//! it (`effects`). The `pump` is the task that does what destructors must not do themselves.
//!
//! `peers` has other servers, if there are any.
//!
//! Commands: on scans (`scans`), on answers to workers (`chunk_requests`, `revoke`), on pages (`pages`), on decoded columns
//! (`slices`); registering, the manager's report and its record (`commands`). `reports` shows scans, tables and the pool to
//! those who watch.
//!
//! Memory: `reserve` finds some to decode, `request_memory` and
//! `memory_requests` have the workers that wait for it, `reclaim` takes it from
//! where it is needed least, `credit` gets it from core for users who take it without the lock.

mod apply;
mod bypass;
mod chunk_requests;
mod commands;
mod credit;
mod decoded_slices;
mod effects;
mod handle;
mod inbox;
mod load_in_flight;
mod loads;
mod memory_requests;
mod message;
mod owner;
mod pages;
mod peers;
mod pump;
mod reclaim;
mod reports;
mod request_memory;
mod reserve;
mod revoke;
mod running_scan;
mod scans;
mod slices;
mod state;
#[cfg(test)]
mod tests;
mod walk;
mod walks;
mod workers;

pub(crate) use handle::Driver;
pub(crate) use message::{Message, RequestId};
pub(crate) use peers::ServedFile;
pub(crate) use running_scan::RunningScan;
