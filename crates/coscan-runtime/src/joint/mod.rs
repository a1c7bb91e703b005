//! Several tables that are read together, in chunks of the same keys.

pub(crate) mod scan;
pub(crate) mod table;
