//! Scans whose chunks are divided among the tasks of a distributed query. What executes the tasks elsewhere is in
//! `coscan-distributed`; this module has what it needs of a scan.
//!
//! `planning` plans a statement so that all of it can be sent to workers. A scan is divided into the parts of tasks
//! (`task`), each with chunks of its own, by its `division` (in `execution`). `opening` makes a scan of a task again,
//! where it is executed.

pub(crate) mod opening;
pub(crate) mod planning;
pub(crate) mod task;
