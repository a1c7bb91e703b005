//! What the allocator of this program counts, for the server.

use std::sync::LazyLock;

use coscan_server::AllocatorCounters;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemalloc_ctl::{epoch_mib, stats};

pub(super) const COUNTERS: AllocatorCounters = AllocatorCounters { process_bytes, thread_bytes };

/// Looked up once: a name is a path through the allocator's settings.
static PROCESS: LazyLock<Option<(epoch_mib, stats::allocated_mib)>> =
    LazyLock::new(|| Some((tikv_jemalloc_ctl::epoch::mib().ok()?, stats::allocated::mib().ok()?)));

fn process_bytes() -> u64 {
    let Some((epoch, allocated)) = PROCESS.as_ref() else { return 0 };
    // Figures are those of the last epoch.
    let read = epoch.advance().and_then(|_| allocated.read());
    read.map_or(0, |bytes| bytes as u64)
}

thread_local! {
    /// Where the allocator counts what this thread allocates and frees.
    static THREAD: Option<[ThreadLocal<u64>; 2]> =
        Some([allocatedp::read().ok()?, deallocatedp::read().ok()?]);
}

fn thread_bytes() -> i64 {
    THREAD.with(|counters| match counters {
        Some([allocated, freed]) => allocated.get().wrapping_sub(freed.get()).cast_signed(),
        None => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_what_it_allocates_and_the_process_what_all_do() {
        const BYTES: usize = 64 << 20;
        let (process, thread) = (process_bytes(), thread_bytes());
        let held = std::hint::black_box(vec![1_u8; BYTES]);
        assert!(thread_bytes() - thread >= BYTES.cast_signed() as i64);
        assert!(process_bytes() >= process + BYTES as u64 / 2, "other tests free meanwhile");
        drop(held);
        assert!(thread_bytes() - thread < BYTES.cast_signed() as i64);
    }
}
