//! Processors: which workers are at work, and when one yields to another.

pub(crate) mod activity;
pub(crate) mod scheduler;
pub(crate) mod yield_policy;
