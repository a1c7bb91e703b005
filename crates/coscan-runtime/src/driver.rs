//! Core under the machine's clock: commands go in under one lock, and the actions that come out are carried out.
//!
//! `handle` is the [`Driver`], `inner` what its lock guards (`locked` holds it). Commands: on scans (`scans`), on leases of
//! chunks (`leases`), on pages of the pool (`pages`), on decoded columns (`slices`), on all else (`commands`). `actions`
//! carries out what core decides; what is slow is `deferred` until the lock is released. `reports` shows all this to those
//! who watch. `reserve` finds memory to decode,
//! `reclaim` takes it from what is needed least.
//!
//! Locks are taken in this order: the budget's, the driver's, the decode cache's. No array, chunk or load is dropped
//! under any of them: that returns memory and pages, which takes them again.

mod actions;
mod commands;
mod deferred;
mod handle;
mod idle;
mod inner;
mod leases;
mod locked;
mod pages;
mod reclaim;
mod reports;
mod reserve;
mod running_scan;
mod scans;
mod slices;
#[cfg(test)]
mod tests;

pub(crate) use handle::Driver;
pub(crate) use reserve::RETRY_INTERVAL;
pub(crate) use running_scan::RunningScan;
