//! Processor time and memory of this process, as the operating system counts them.

use std::fs;
use std::time::Duration;

/// The processor time that all threads of this process have used so far, in user and system mode. Zero where the
/// operating system does not report it.
pub fn cpu_time() -> Duration {
    usage::cpu_time().unwrap_or_default()
}

/// The number of threads that can run at the same time.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Starts a new measurement of peak memory. Returns false if the operating system does not support it.
/// [`memory_peak_bytes`] then counts from the start of the process.
pub fn reset_memory_peak() -> bool {
    // See proc(5): writing 5 resets the "high water mark" of resident memory.
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The peak resident memory since [`reset_memory_peak`], in bytes. `None` where the operating system does not report it
/// (Linux does).
pub fn memory_peak_bytes() -> Option<u64> {
    parse_memory_peak(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_memory_peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The only `unsafe` code of this crate, which is one system call that fills a struct.
#[cfg(unix)]
#[allow(unsafe_code)]
mod usage {
    use std::mem::MaybeUninit;
    use std::time::Duration;

    pub(super) fn cpu_time() -> Option<Duration> {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: getrusage writes a whole `rusage` to the pointer, which is valid for that, and
        // keeps no reference to it.
        let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        if result != 0 {
            return None;
        }
        // SAFETY: the call succeeded, so the struct is filled.
        let usage = unsafe { usage.assume_init() };
        Some(duration(usage.ru_utime) + duration(usage.ru_stime))
    }

    fn duration(time: libc::timeval) -> Duration {
        // The kernel never reports negative times.
        Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
    }
}

#[cfg(not(unix))]
mod usage {
    pub(super) fn cpu_time() -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn working_uses_processor_time_and_sleeping_does_not() {
        let before = cpu_time();
        let start = Instant::now();
        while cpu_time() - before < Duration::from_millis(50) {
            black_box((0..1000).sum::<u64>());
            assert!(start.elapsed() < Duration::from_secs(60), "no processor time is counted");
        }
        // Sleeping threads take time but no processor time. Other tests run in this process, too,
        // so the bound is loose.
        assert!(
            cpu_time() - before
                <= start.elapsed() * u32::try_from(cores() + 1).expect("a few cores")
        );
    }

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(parse_memory_peak("VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n"), Some(2_097_152));
        assert_eq!(parse_memory_peak("Name: x\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_counts_what_was_held_until_it_is_reset() {
        let held_bytes = 256 << 20;
        drop(black_box(vec![1_u8; held_bytes]));
        let peak = memory_peak_bytes().expect("linux says");
        assert!(peak > held_bytes as u64, "{peak}");
        if reset_memory_peak() {
            let peak = memory_peak_bytes().expect("linux says");
            assert!(peak < held_bytes as u64, "{peak} after the reset");
        }
    }
}
