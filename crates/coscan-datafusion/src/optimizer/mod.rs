//! Rules of the physical optimizer.

pub(crate) mod one_task;
pub(crate) mod sorts;
pub(crate) mod stored_order;
pub(crate) mod top_k;
pub(crate) mod unchanged_files;
