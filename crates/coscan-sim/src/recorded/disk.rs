//! The disk of a recorded run, estimated from its loads.

use super::history::PastLoad;
use crate::machine::Disk;

/// The bandwidth that is assumed if the log has no load.
const BYTES_PER_SECOND: u64 = 1_000_000_000;

/// Estimates a store on which loads take as long as the recorded ones.
///
/// A load takes a latency and a time for each byte. Either concurrent loads share the bandwidth, as on a device, or
/// each request has a bandwidth of its own, as from an object store with a fast network. The model that explains the
/// recorded times better is taken. Latency and bandwidth are the least-squares fit of a line to the points (bytes,
/// time).
pub(super) fn estimate<'a>(loads: impl Iterator<Item = &'a PastLoad>) -> Disk {
    let mut shared = Vec::new();
    let mut separate = Vec::new();
    let mut at_once_max: f64 = 1.0;
    for load in loads {
        let Some(ended) = load.ended else { continue };
        let ns = ended.since(load.started).max(1) as f64;
        let at_once = (load.shared_ns as f64 / ns).max(1.0);
        at_once_max = at_once_max.max(at_once);
        shared.push((load.bytes as f64 * at_once, ns));
        separate.push((load.run_bytes as f64, ns));
    }
    let (shared, separate) = (Line::closest(&shared), Line::closest(&separate));
    if shared.distance <= separate.distance {
        let bytes_per_second = shared.bytes_per_second();
        store(shared.latency_ns, bytes_per_second, bytes_per_second)
    } else {
        let bytes_per_second = separate.bytes_per_second();
        let all = (bytes_per_second as f64 * at_once_max) as u64;
        store(separate.latency_ns, bytes_per_second, all)
    }
}

fn store(latency_ns: f64, bytes_per_second_per_request: u64, bytes_per_second: u64) -> Disk {
    Disk::ObjectStore {
        latency_ns: latency_ns as u64,
        bytes_per_second_per_request,
        bytes_per_second,
        requests_max: u32::MAX, // Loads in flight are limited already.
    }
}

/// Time as a linear function of bytes.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The time of zero bytes, which is not negative.
    latency_ns: f64,
    ns_per_byte: f64,
    /// Sum of the squared distances of the points.
    distance: f64,
}

impl Line {
    /// The least-squares fit to these points (bytes, nanoseconds).
    fn closest(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let sum = |of: fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y)).sum::<f64>();
        let (x, y, xx, xy) = (sum(|x, _| x), sum(|_, y| y), sum(|x, _| x * x), sum(|x, y| x * y));
        let slope = (count * xy - x * y) / (count * xx - x * x);
        let latency_ns = (y - slope * x) / count;
        let is_possible = slope > 0.0 && latency_ns >= 0.0;
        // Otherwise only the bandwidth can be estimated: the line through the origin.
        let (latency_ns, ns_per_byte) =
            if is_possible { (latency_ns, slope) } else { (0.0, xy / xx) };
        let distance =
            points.iter().map(|&(x, y)| (y - latency_ns - ns_per_byte * x).powi(2)).sum();
        Self { latency_ns, ns_per_byte, distance }
    }

    fn bytes_per_second(self) -> u64 {
        let rate = 1e9 / self.ns_per_byte;
        if rate.is_finite() && rate >= 1.0 { rate as u64 } else { BYTES_PER_SECOND }
    }
}
