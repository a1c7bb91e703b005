//! Requests to stores: their size, the number in flight, and their timeouts.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use coscan_storage::table::ReadError;
use futures::FutureExt;

use crate::concurrency_limit::ConcurrencyLimits;
use crate::error::ScanError;
use crate::options::Options;

/// Sends requests to all stores.
#[derive(Debug)]
pub(crate) struct StoreRequests {
    limits: ConcurrencyLimits,
    bytes_max: u64,
    timeout: Duration,
}

impl StoreRequests {
    pub(crate) fn new(options: &Options) -> Self {
        let bytes_max = options.request_bytes_max;
        let limits = ConcurrencyLimits::new(bytes_max, options.queueing_delay_max);
        Self { limits, bytes_max, timeout: options.read_timeout }
    }

    /// The most bytes of one request.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Sends a request for `bytes` once the concurrency limit of the store admits it, at once when it is or becomes
    /// urgent, and waits for the answer.
    ///
    /// # Errors
    /// As the request fails; or it panics, or takes too long.
    pub(crate) async fn send<T>(
        &self,
        store: &str,
        bytes: u64,
        urgent: impl Future<Output = ()>,
        request: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ScanError> {
        let admission = self.limits.of(store).admit(bytes, urgent).await;
        // The timeout begins here: the wait for admission is not the store's fault.
        let timeout = self.timeout;
        let answer = AssertUnwindSafe(request).catch_unwind();
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(Ok(answer))) => {
                admission.answered();
                Ok(answer)
            }
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(_)) => Err(ScanError::ReadPanicked),
            Err(_) => Err(ScanError::ReadTimeout { timeout }),
        }
    }
}
