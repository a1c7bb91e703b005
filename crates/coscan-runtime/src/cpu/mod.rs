//! Processors: which workers are at work, and when one makes room for another.

pub(crate) mod activity;
pub(crate) mod scheduler;
pub(crate) mod yield_policy;
