//! Requests to stores: their size, the number in flight, and their timeouts.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use coscan_storage::stores::{Device, Jitter};
use coscan_storage::table::ReadError;
use futures::FutureExt;

use crate::error::ScanError;
use crate::io::concurrency_limit::ConcurrencyLimits;
use crate::io::retry::RetryPolicy;
use crate::options::Options;

/// Sends requests to all stores.
#[derive(Debug)]
pub(crate) struct StoreRequests {
    limits: ConcurrencyLimits,
    bytes_max: u64,
    timeout: Duration,
    retries: RetryPolicy,
}

impl StoreRequests {
    pub(crate) fn new(options: &Options) -> Self {
        let bytes_max = options.request_bytes_max;
        let limits = ConcurrencyLimits::new(bytes_max, options.queueing_delay_max);
        let retries = RetryPolicy {
            attempts: options.read_attempts,
            slow_down_max: options.read_timeout.saturating_mul(options.read_attempts),
            jitter: Jitter::new(options.jitter_seed),
        };
        Self { limits, bytes_max, timeout: options.read_timeout, retries }
    }

    /// The policy by which failed reads are retried.
    pub(crate) fn retries(&self) -> &RetryPolicy {
        &self.retries
    }

    /// The most bytes of one request.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Sends a request for `bytes` once the concurrency limit of the device admits it, at once when it is or becomes
    /// urgent, and waits for the answer.
    ///
    /// # Errors
    /// The error of the request, or an error if it panics or takes too long.
    pub(crate) async fn send<T>(
        &self,
        device: &Device,
        bytes: u64,
        urgent: impl Future<Output = ()>,
        request: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ScanError> {
        let admission = self.limits.of(device).admit(bytes, urgent).await;
        // The timeout begins here, since the wait for admission is not the store's fault.
        let timeout = self.timeout;
        let answer = AssertUnwindSafe(request).catch_unwind();
        let answer = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => answer.map_err(ScanError::from),
            Ok(Err(_)) => Err(ScanError::ReadPanicked),
            Err(_) => Err(ScanError::ReadTimeout { timeout }),
        };
        match &answer {
            Ok(_) => admission.answered(),
            // Other errors concern the file, not the device.
            Err(error) if error.is_retryable() => admission.failed(),
            Err(_) => drop(admission),
        }
        answer
    }
}
