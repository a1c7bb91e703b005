//! The decision log of a manager while it is being written.

use std::io;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::driver::Driver;

/// A decision log that is being written. It continues until [`Self::finish`], or the manager and all its scans and
/// tables are gone.
#[derive(Debug)]
pub struct Recording {
    pub(crate) driver: Arc<Driver>,
    pub(crate) writer: JoinHandle<io::Result<u64>>,
}

impl Recording {
    /// Ends the log and waits until all of it is written. Returns the number of its entries.
    ///
    /// # Errors
    /// If any of it could not be written.
    pub async fn finish(self) -> io::Result<u64> {
        self.driver.stop_recording();
        self.writer.await.map_err(io::Error::other)?
    }
}
