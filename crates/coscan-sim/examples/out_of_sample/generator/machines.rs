//! Machines: cores, pools and disks.

use coscan_sim::Random;

use super::tables::Table;
use super::{between, count_between};

/// The least number of chunks of the widest table that fit into every pool.
const POOL_CHUNKS_MIN: f64 = 6.0;

/// A machine of the file.
pub(super) struct Machine {
    pub(super) bytes_per_second: f64,
    pub(super) text: String,
    pub(super) title: String,
}

pub(super) fn draw(random: &mut Random, tables: &[Table]) -> Machine {
    let cores = *random.choose(&[1, 2, 2, 4, 4, 8, 16]);
    let bytes: f64 = tables.iter().map(|table| table.bytes).sum();
    let widest = tables.iter().map(|table| table.chunk_bytes).fold(0.0, f64::max);
    let chunks_min = POOL_CHUNKS_MIN.max(f64::from(cores) + 2.0);
    let pool_bytes = (bytes * between(random, 0.04, 0.6)).max(widest * chunks_min).round();
    let percent = (100.0 * pool_bytes / bytes).round();
    let disk = disk(random);
    Machine {
        bytes_per_second: disk.bytes_per_second,
        text: format!("[machine]\ncores = {cores}\npool = \"{pool_bytes} B\"\n\n{}", disk.text),
        title: format!("{cores} cores, {}, pool {percent} %", disk.title),
    }
}

fn disk(random: &mut Random) -> Machine {
    match random.below(4) {
        0 => head(random, "hard disk", (4.0, 15.0), (80.0, 300.0)),
        1 => head(random, "SSD", (0.05, 0.3), (150.0, 3_000.0)),
        2 => array(random),
        _ => object_store(random),
    }
}

/// A machine with one device. The bounds of seeks are in milliseconds, those of the bandwidth in megabytes per second.
fn head(random: &mut Random, what: &str, seek_ms: (f64, f64), mb: (f64, f64)) -> Machine {
    let seek = between(random, seek_ms.0, seek_ms.1);
    let mb = between(random, mb.0, mb.1);
    Machine {
        bytes_per_second: mb * 1e6,
        text: format!(
            "[machine.disk.seek-transfer]\nseek = \"{seek} ms\"\nbandwidth = \"{mb} MB/s\"\n"
        ),
        title: format!("{what} of {mb} MB/s"),
    }
}

fn array(random: &mut Random) -> Machine {
    let devices = random.between(2, 8);
    let seek = between(random, 4.0, 15.0);
    let mb = between(random, 50.0, 150.0);
    let stripe = random.choose(&[64, 256, 1_024]);
    Machine {
        bytes_per_second: mb * 1e6 * devices as f64,
        text: format!(
            "[machine.disk.raid]\ndevices = {devices}\nseek = \"{seek} ms\"\nbandwidth = \"{mb} MB/s\"\n\
             stripe = \"{stripe} KiB\"\n"
        ),
        title: format!("{devices} hard disks of {mb} MB/s"),
    }
}

fn object_store(random: &mut Random) -> Machine {
    let latency = between(random, 15.0, 100.0);
    let request_mb = between(random, 30.0, 100.0);
    let requests = count_between(random, 4.0, 64.0);
    let mb = between(random, 100.0, 2_000.0);
    Machine {
        bytes_per_second: mb.min(request_mb * requests as f64) * 1e6,
        text: format!(
            "[machine.disk.object-store]\nlatency = \"{latency} ms\"\nrequest_bandwidth = \"{request_mb} MB/s\"\n\
             bandwidth = \"{mb} MB/s\"\nrequests = {requests}\n"
        ),
        title: format!("object store of {mb} MB/s, {requests} requests"),
    }
}
