//! The scan rate: the speed at which a scan goes through its rows.

use crate::ids::Time;

/// The rate of a scan, waits included [CS11 §4.3, `scan.speed`]: measured from chunk to chunk, smoothed so that a new
/// rate counts half after three chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanRate {
    /// When the scan was last handed a chunk, and the rows of that chunk.
    last: Option<(Time, u64)>,
    /// Picoseconds a row, smoothed; 0 until two chunks were handed out.
    row_ps: u64,
}

impl ScanRate {
    /// Notes that the scan is handed a chunk of `rows` rows.
    pub(crate) fn delivered(&mut self, now: Time, rows: u64) {
        if let Some(row_ps) = self.current(now) {
            let row_ps = row_ps.max(1);
            self.row_ps = if self.row_ps == 0 { row_ps } else { (self.row_ps * 3 + row_ps) / 4 };
        }
        self.last = Some((now, rows));
    }

    /// Picoseconds a row; `None` until known. A scan that waits for longer than usual is slower than it was.
    pub(crate) fn row_ps(&self, now: Time) -> Option<u64> {
        Some(self.smoothed()?.max(self.current(now).unwrap_or(0)))
    }

    /// The rate as of the last chunk.
    pub(crate) fn smoothed(&self) -> Option<u64> {
        (self.row_ps > 0).then_some(self.row_ps)
    }

    /// The rate if the last chunk ended now.
    fn current(&self, now: Time) -> Option<u64> {
        let (since, rows) = self.last?;
        Some(now.since(since).saturating_mul(1_000) / rows.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_change_within_a_few_chunks() {
        let mut rate = ScanRate::default();
        let mut now = 0;
        let mut go = |rate: &mut ScanRate, chunks: u64, chunk_ns: u64| {
            for _ in 0..chunks {
                now += chunk_ns;
                rate.delivered(Time(now), 10);
            }
            rate.row_ps(Time(now)).unwrap_or(0)
        };
        assert_eq!(go(&mut rate, 8, 1_000), 100_000);
        let slower = go(&mut rate, 4, 2_000);
        assert!((160_000..200_000).contains(&slower), "{slower}");
        let faster = go(&mut rate, 8, 500);
        assert!((50_000..70_000).contains(&faster), "{faster}");
    }

    #[test]
    fn it_is_unknown_until_two_chunks_were_handed_out() {
        let mut rate = ScanRate::default();
        rate.delivered(Time(5), 10);
        assert_eq!(rate.row_ps(Time(1_000)), None);
    }

    #[test]
    fn a_scan_that_waits_is_slower_than_it_was() {
        let mut rate = ScanRate::default();
        rate.delivered(Time(0), 10);
        rate.delivered(Time(100), 10);
        assert_eq!(rate.row_ps(Time(150)), Some(10_000));
        assert_eq!(rate.row_ps(Time(1_100)), Some(100_000));
    }
}
