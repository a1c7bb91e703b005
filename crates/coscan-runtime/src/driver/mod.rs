//! Runs core in real time: the owner of its state, and what may happen when.
//!
//! [`Driver`] is shared by everything of a manager (`handle`). `owner` defines who may change the
//! [`State`](state::State) and how: by a call, by an offer, or by a [`Message`] in the `inbox`. `apply` has the effects
//! of messages and of core's actions on the state, `workers` the requests of workers, and `incremental_work` each [`Walk`](walk::Walk) that
//! goes in steps. Decisions made under the lock are carried out after it (`effects`). The `pump` is the task that does what
//! destructors must not do themselves.
//!
//! `peers` handles other servers, if there are any.
//!
//! Commands: on scans (`scans`), on answers to workers (`chunk_requests`, `revoke`), on pages (`pages`), on decoded
//! columns (`slice_retirement`, `decoded_slices`), on tables and files (`registration`). `reports` shows the manager, its scans, tables and
//! pool to observers.
//!
//! Memory: `reserve` finds memory to decode, `memory_granting` and `memory_requests` have the workers that wait for it,
//! `reclaim` takes it from where it is needed least, and `credit` gets it from core for users who take it without the
//! lock.

mod apply;
mod bypass;
mod chunk_requests;
mod credit;
mod decoded_slices;
mod effects;
mod handle;
mod inbox;
mod incremental_work;
mod load_in_flight;
mod loads;
mod memory_granting;
mod memory_requests;
mod message;
mod owner;
mod pages;
mod peers;
mod pump;
mod reclaim;
mod registration;
mod reports;
mod reserve;
mod revoke;
mod running_scan;
mod scans;
mod slice_retirement;
mod state;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod walk;
mod workers;

pub(crate) use handle::Driver;
pub(crate) use message::{Message, RequestId};
pub(crate) use peers::ServedFile;
pub(crate) use running_scan::RunningScan;
