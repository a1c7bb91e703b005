//! The difference between a picture and the state of a watcher.

use super::sample::{CELL_NUMBERS, MapPart, Sample, TableRow};
use super::scheduler_snapshot::{Map, SchedulerSnapshot};

/// The state of a watcher.
#[derive(Debug, Default)]
pub(super) struct WatcherState {
    tables: Option<Vec<TableRow>>,
    maps: Vec<Map>,
    /// The number of loads that were sent to the watcher, or that started before it subscribed.
    loads: Option<u64>,
}

impl WatcherState {
    /// The sample that brings the watcher up to date with a picture.
    pub(super) fn sample(&mut self, picture: &SchedulerSnapshot) -> Sample {
        let mut sample = picture.sample.clone();
        if sample.tables == self.tables {
            sample.tables = None;
        } else {
            self.tables.clone_from(&sample.tables);
        }
        let before = |map: &Map| self.maps.iter().find(|known| known.table == map.table);
        sample.maps = picture.maps.iter().filter_map(|map| part(before(map), map)).collect();
        self.maps.clone_from(&picture.maps);
        let end = picture.loads_before + picture.loads.len() as u64;
        let known = self.loads.replace(end).unwrap_or(picture.loads_before);
        sample.lost = picture.loads_before.saturating_sub(known);
        let skip = usize::try_from(known.saturating_sub(picture.loads_before));
        sample.loads = picture.loads.iter().skip(skip.unwrap_or(usize::MAX)).copied().collect();
        sample
    }
}

/// The changed cells of a map, or all of it if that is shorter. `None` if nothing has changed.
fn part(before: Option<&Map>, now: &Map) -> Option<MapPart> {
    let Map { table, columns, bins, chunks, ref cells } = *now;
    let part = |whole, cells| MapPart { table, columns, bins, chunks, whole, cells };
    let whole = || part(true, cells.iter().copied().map(u32::from).collect());
    let shape = |map: &Map| (map.columns, map.bins, map.chunks);
    let Some(before) = before.filter(|before| shape(before) == shape(now)) else {
        return Some(whole());
    };
    let both = cells.chunks(CELL_NUMBERS).zip(before.cells.chunks(CELL_NUMBERS));
    let mut changed = Vec::new();
    for (index, (now, before)) in both.enumerate() {
        if now != before {
            changed.push(u32::try_from(index).unwrap_or(u32::MAX));
            changed.extend(now.iter().copied().map(u32::from));
        }
    }
    match changed.len() {
        0 => None,
        numbers if numbers < cells.len() => Some(part(false, changed)),
        _ => Some(whole()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::sample::LoadRow;
    use super::*;

    fn picture(cells: &[u8], loads_before: u64, loads: u32) -> SchedulerSnapshot {
        let row = |chunk| LoadRow { chunk, ..LoadRow::default() };
        SchedulerSnapshot {
            sample: Sample { tables: Some(vec![TableRow::default()]), ..Sample::default() },
            maps: vec![Map { table: 1, columns: 1, bins: 4, chunks: 4, cells: cells.to_vec() }],
            loads: (0..loads).map(row).collect(),
            loads_before,
        }
    }

    #[test]
    fn a_watcher_is_told_only_what_is_new() {
        let mut watcher = WatcherState::default();
        let first = watcher.sample(&picture(&[0; 20], 3, 2));
        assert!(first.maps[0].whole && first.tables.is_some());
        assert_eq!((first.maps[0].cells.len(), first.loads.len(), first.lost), (20, 2, 0));
        let mut cells = [0; 20];
        cells[5..10].copy_from_slice(&[1, 2, 3, 4, 5]);
        let second = watcher.sample(&picture(&cells, 3, 3));
        assert_eq!(second.maps[0].cells, [1, 1, 2, 3, 4, 5]);
        assert!(!second.maps[0].whole && second.tables.is_none());
        assert_eq!(second.loads.len(), 1);
        let third = watcher.sample(&picture(&cells, 3, 3));
        assert!(third.maps.is_empty() && third.loads.is_empty());
        let late = watcher.sample(&picture(&[9; 20], 10, 1));
        assert!(late.maps[0].whole, "all cells have changed");
        assert_eq!((late.loads.len(), late.lost), (1, 4));
    }
}
