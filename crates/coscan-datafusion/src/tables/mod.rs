//! Tables: how they are made, which files they have, and what plans read of them.

pub(crate) mod cached_source;
pub(crate) mod factory;
pub(crate) mod format;
pub(crate) mod hive;
pub(crate) mod listing;
pub(crate) mod location;
pub(crate) mod opener;
pub(crate) mod order;
pub(crate) mod provider;
pub(crate) mod snapshots;
pub(crate) mod source;
pub(crate) mod statistics;
