//! From `[machine]` to a machine and a pool.

use coscan_core::Time;

use super::document::{DiskForm, MachineForm};
use super::error::{SpecError, wrong};
use super::units::PoolSize;
use crate::machine::{Disk, Machine};

/// Builds the machine of a form.
pub(super) fn build(form: &MachineForm) -> Result<Machine, SpecError> {
    let positive = |key: &str, number: usize| match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(wrong(format!("machine.{key}"), "write at least 1")),
    };
    let disk = match form.disk {
        DiskForm::Perfect { chunk } => Disk::Perfect { ns_per_chunk: chunk.0 },
        DiskForm::SeekTransfer { seek, bandwidth } => {
            Disk::SeekTransfer { seek_ns: seek.0, bytes_per_second: bandwidth.0 as u64 }
        }
        DiskForm::Raid { devices, seek, bandwidth, stripe } => Disk::Raid {
            devices: positive("disk.raid.devices", devices)?,
            seek_ns: seek.0,
            bytes_per_second: bandwidth.0 as u64,
            stripe_bytes: (stripe.0 as u64).max(1),
        },
        DiskForm::ObjectStore { latency, request_bandwidth, bandwidth, requests } => {
            Disk::ObjectStore {
                latency_ns: latency.0,
                bytes_per_second_per_request: request_bandwidth.0 as u64,
                bytes_per_second: bandwidth.0 as u64,
                requests_max: positive("disk.object-store.requests", requests)?,
            }
        }
    };
    let mut machine = Machine::new(disk, positive("cores", form.cores)?);
    if let Some(loads) = form.loads_in_flight {
        machine.config.loads_in_flight_max = positive("loads_in_flight", loads)? as usize;
    }
    if let Some(quantum) = form.quantum {
        machine.quantum_bytes = (quantum.0 as u64).max(1);
    }
    if let Some(workers) = form.active_workers {
        machine.config.active_workers_max = positive("active_workers", workers)? as usize;
    }
    if let Some(space_timeout) = form.space_timeout {
        machine.config.space_timeout_ns = space_timeout.0;
    }
    if let Some(wait) = form.wait_max {
        machine.config.wait_max_ns = wait.0;
    }
    Ok(machine)
}

/// Bytes of the pool at the start, and its later limits with the times from which they hold.
pub(super) fn pool(form: &MachineForm, table_bytes: u64) -> (u64, Vec<(Time, u64)>) {
    let bytes = |size| match size {
        PoolSize::Bytes(bytes) => bytes as u64,
        PoolSize::PartOfTables(part) => (part * table_bytes as f64).round() as u64,
    };
    let changes = form.pool_changes.iter();
    let changes = changes.map(|change| (Time(change.at.0), bytes(change.pool)));
    (bytes(form.pool), changes.collect())
}
