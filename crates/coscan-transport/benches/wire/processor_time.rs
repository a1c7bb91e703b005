//! Processor time of processes.

use std::time::Duration;

/// The ticks of Linux, the same on all machines.
const TICKS_PER_SECOND: u32 = 100;

/// The time that a process has used so far, in all its threads.
pub(crate) fn of_process(id: u32) -> Duration {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // The second field is the name in parentheses, which may have spaces.
    let (_, fields) = status.rsplit_once(") ").unwrap();
    let fields: Vec<_> = fields.split(' ').collect();
    let [user, system] = [11, 12].map(|field| fields[field].parse::<u32>().unwrap());
    Duration::from_secs(1) * (user + system) / TICKS_PER_SECOND
}
