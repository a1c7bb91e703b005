//! From a decided load to bytes: threads, requests in flight, retries. Nothing here decides what to read.

pub(crate) mod concurrency_limit;
pub(crate) mod load;
pub(crate) mod load_threads;
pub(crate) mod requests;
pub(crate) mod retry;
