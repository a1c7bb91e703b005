//! The allocator of this program, for the server.

use coscan_server::Allocator;
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemalloc_ctl::{Access, AsName, arenas};

/// Returns `None` where the system does not report the memory of the process.
pub(super) fn allocator() -> Option<Allocator> {
    let told = resident_bytes() > 0;
    told.then_some(Allocator { thread_bytes, resident_bytes, give_back })
}

thread_local! {
    /// The counters of the bytes that this thread allocates and frees.
    static THREAD: Option<[ThreadLocal<u64>; 2]> =
        Some([allocatedp::read().ok()?, deallocatedp::read().ok()?]);
}

fn thread_bytes() -> i64 {
    THREAD.with(|counters| match counters {
        Some([allocated, freed]) => allocated.get().wrapping_sub(freed.get()).cast_signed(),
        None => 0,
    })
}

/// The memory without pages of files, as the system counts it when it ends a process for its memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = kilobytes.and_then(|text| text.trim().strip_suffix(" kB"));
    number.and_then(|text| text.parse::<u64>().ok()).map_or(0, |kilobytes| kilobytes << 10)
}

/// The time for which an arena keeps freed memory, in milliseconds.
const DECAY: &str = "arenas.dirty_decay_ms\0";

/// Returns all freed memory of the arenas. An arena does so when its time for keeping freed memory is set to zero.
fn give_back() {
    let Ok(milliseconds): Result<isize, _> = DECAY.name().read() else { return };
    for arena in 0..arenas::narenas::read().unwrap_or(0) {
        let decay = format!("arena.{arena}.dirty_decay_ms\0");
        // An unused arena refuses this, and keeps nothing.
        let _ = decay.name().write(0_isize);
        let _ = decay.name().write(milliseconds);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const BYTES: usize = 256 << 20;

    #[test]
    fn a_thread_counts_what_it_allocates_and_what_is_free_goes_back_when_asked_for() {
        let (resident, thread) = (resident_bytes(), thread_bytes());
        // The memory is in pieces that the allocator keeps for other allocations.
        let held: Vec<_> = (0..BYTES >> 16).map(|_| vec![1_u8; 1 << 16]).collect();
        let held = std::hint::black_box(held);
        assert!(thread_bytes() - thread >= BYTES.cast_signed() as i64);
        assert!(resident_bytes() >= resident + BYTES as u64 / 2);
        drop(held);
        assert!(thread_bytes() - thread < BYTES.cast_signed() as i64 / 2);
        give_back();
        assert!(resident_bytes() < resident + BYTES as u64 / 2);
    }
}
