//! Reads footers and Bloom filters as loads read pages: within the limits of their devices, and with the same retries.

use std::any::Any;
use std::future::ready;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_storage::stores::Device;
use coscan_storage::table::{MetadataReader, ReadError, TableFile};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::driver::Driver;
use crate::error::ScanError;
use crate::io::requests::StoreRequests;
use crate::io::retry::Attempt;
use crate::memory::MemoryBudget;
use crate::tables::metadata_reservation::MetadataReservation;

/// A reader of metadata for a driver. Open files hold it, so it does not hold the driver.
#[derive(Debug)]
pub(crate) struct FooterReader {
    driver: Weak<Driver>,
    requests: Arc<StoreRequests>,
    memory: Arc<MemoryBudget>,
    runtime: Handle,
}

impl FooterReader {
    pub(crate) fn new(driver: &Arc<Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver: Arc::downgrade(driver),
            requests: Arc::clone(driver.requests()),
            memory: Arc::clone(driver.memory()),
            runtime: driver.runtime().clone(),
        })
    }

    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Takes memory for metadata. Memory that is not needed is reclaimed for it.
    pub(crate) fn reserve_metadata(&self, bytes: u64) -> Result<MetadataReservation, ScanError> {
        self.driver.upgrade().ok_or(ScanError::ShutDown)?.reserve_metadata(bytes)
    }

    async fn read(
        requests: Arc<StoreRequests>,
        file: TableFile,
        device: Device,
        range: Range<u64>,
    ) -> Result<Bytes, ScanError> {
        let mut attempt = Attempt::FIRST;
        loop {
            let bytes = range.end - range.start;
            let read = file.read(range.clone());
            // The request is urgent, since a query waits for it before it can begin.
            let error = match requests.send(&device, bytes, ready(()), read).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            let Some(retry) = requests.retries().after(attempt, &error) else { return Err(error) };
            tokio::time::sleep(retry.pause).await;
            attempt = retry.attempt;
        }
    }
}

impl MetadataReader for FooterReader {
    fn read<'a>(
        &'a self,
        file: &'a TableFile,
        device: &'a Device,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Bytes, ReadError>> {
        let requests = Arc::clone(&self.requests);
        async move {
            // The task runs on threads where no poll takes milliseconds. It ends when this is
            // dropped.
            let mut task = JoinSet::new();
            let reading = Self::read(requests, file.clone(), device.clone(), range);
            task.spawn_on(reading, &self.runtime);
            let read = task.join_next().await.expect("there is a task");
            read.unwrap_or(Err(ScanError::ShutDown)).map_err(|error| refused(file, error))
        }
        .boxed()
    }

    fn reserve(&self, file: &TableFile, bytes: u64) -> Result<Box<dyn Any + Send>, ReadError> {
        let memory = self.reserve_metadata(bytes).map_err(|error| refused(file, error))?;
        Ok(Box::new(memory))
    }
}

fn refused(file: &TableFile, error: ScanError) -> ReadError {
    match error {
        ScanError::Read(error) => error,
        error => ReadError::Refused { file: file.name().into(), source: Arc::new(error) },
    }
}
