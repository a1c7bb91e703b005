//! Disks against values computed by hand.

use coscan_core::GroupIndex;

use super::*;

/// A table of one group with pages of these bytes, two to a chunk.
fn layout(pages: &[u64]) -> Arc<Layout> {
    let mut builder = Layout::builder(1);
    let pages: Vec<_> = pages.iter().map(|&bytes| builder.add_page(GroupIndex(0), bytes)).collect();
    for pair in pages.chunks(2) {
        builder.add_chunk(1, vec![pair.to_vec()]);
    }
    Arc::new(builder.build())
}

/// Submits these loads (time, pages). Returns when each page arrives: load, page, time.
fn arrivals(reader: &mut Reader, loads: &[(u64, &[u32])]) -> Vec<(u64, u32, u64)> {
    let loads: Vec<_> = loads.iter().map(|&(at, pages)| (at, false, pages)).collect();
    arrivals_urgent(reader, &loads)
}

/// Submits loads of which some are urgent. Returns when each page arrives: load, page, time.
fn arrivals_urgent(reader: &mut Reader, loads: &[(u64, bool, &[u32])]) -> Vec<(u64, u32, u64)> {
    let mut arrivals = Vec::new();
    let mut drain = |reader: &mut Reader, until: u64| {
        while let Some(at) = reader.next_at().filter(|at| at.0 < until) {
            if let Some(Arrival { load, page }) = reader.pop(at) {
                arrivals.push((load.0, page.0, at.0));
            }
        }
    };
    for (load, &(at, urgent, pages)) in loads.iter().enumerate() {
        drain(reader, at);
        let pages: Vec<_> = pages.iter().copied().map(PageIndex).collect();
        reader.submit(Time(at), LoadId::from_usize(load), urgent, TableId(0), &pages);
    }
    drain(reader, u64::MAX);
    arrivals
}

#[test]
fn a_perfect_disk_takes_as_long_for_every_load_one_at_a_time() {
    let disk = Disk::Perfect { ns_per_chunk: 100 };
    let mut reader = Reader::new(disk, 8, vec![layout(&[30, 10, 7, 7])]);
    // The second load waits for the first; the third comes when the disk has stood idle.
    let arrived = arrivals(&mut reader, &[(0, &[0, 1]), (10, &[2]), (500, &[3])]);
    assert_eq!(arrived, [(0, 0, 75), (0, 1, 100), (1, 2, 200), (2, 3, 600)]);
    assert_eq!(reader.busy_ns, 300);
}

#[test]
fn a_head_moves_only_if_the_next_request_lies_elsewhere() {
    // A byte a nanosecond, 50 ns a seek.
    let disk = Disk::SeekTransfer { seek_ns: 50, bytes_per_second: 1_000_000_000 };
    let mut reader = Reader::new(disk, 8, vec![layout(&[10, 20, 30, 40])]);
    // Pages 0 and 1 are one request after one seek; 2 continues from there; 0 is elsewhere; 3 is elsewhere again.
    let arrived = arrivals(&mut reader, &[(0, &[0, 1]), (0, &[2]), (0, &[0, 3])]);
    assert_eq!(arrived, [(0, 0, 60), (0, 1, 80), (1, 2, 110), (2, 0, 170), (2, 3, 260)]);
    assert_eq!((reader.requests, reader.busy_ns), (4, 260));
}

#[test]
fn an_array_reads_the_stripes_of_a_request_at_once() {
    let (devices, stripe_bytes) = (2, 10);
    let disk = Disk::Raid { devices, seek_ns: 5, bytes_per_second: 1_000_000_000, stripe_bytes };
    // Page 0 is bytes 0 to 15: 10 on device 0, 5 on device 1. Page 1 is bytes 15 to 40: 5 of stripe 1 and stripe 3 on
    // device 1, stripe 2 on device 0.
    let mut reader = Reader::new(disk, 8, vec![layout(&[15, 25, 10, 10])]);
    let arrived = arrivals(&mut reader, &[(0, &[0, 1])]);
    assert_eq!(arrived, [(0, 0, 15), (0, 1, 25)]);
    // Pages 2 and 3 are stripes 4 and 5: one on each device, where the heads stand. Read in two loads, each device has
    // one to do.
    let arrived = arrivals(&mut reader, &[(100, &[2]), (100, &[3])]);
    assert_eq!(arrived, [(0, 2, 110), (1, 3, 110)]);
}

#[test]
fn requests_to_an_object_store_share_the_network_and_queue_when_there_are_many() {
    let disk = Disk::ObjectStore {
        latency_ns: 100,
        bytes_per_second_per_request: 1_000_000_000,
        bytes_per_second: 1_000_000_000,
        requests_max: 2,
    };
    let mut reader = Reader::new(disk, 8, vec![layout(&[20, 20, 20, 20, 20, 20])]);
    // Requests [0], [2] pass together from 100, half as fast each, until 140. [4] begins when [0] ends and passes alone
    // from 240.
    let arrived = arrivals(&mut reader, &[(0, &[0, 2, 4])]);
    assert_eq!(arrived, [(0, 0, 140), (0, 2, 140), (0, 4, 260)]);
    // Neighbours are one request: one latency, one after the other.
    let arrived = arrivals(&mut reader, &[(1_000, &[0, 1])]);
    assert_eq!(arrived, [(0, 0, 1_120), (0, 1, 1_140)]);
    assert_eq!((reader.requests, reader.busy_ns), (4, 400));
}

#[test]
fn one_request_to_an_object_store_does_not_use_the_whole_network() {
    let disk = Disk::ObjectStore {
        latency_ns: 0,
        bytes_per_second_per_request: 500_000_000,
        bytes_per_second: 1_000_000_000,
        requests_max: 8,
    };
    let mut reader = Reader::new(disk, 8, vec![layout(&[30, 30, 30, 30, 30, 30])]);
    // Three at once get a third of a byte a nanosecond each, one gets half.
    let arrived = arrivals(&mut reader, &[(0, &[0, 2, 4]), (1_000, &[0])]);
    assert_eq!(arrived, [(0, 0, 90), (0, 2, 90), (0, 4, 90), (1, 0, 1_060)]);
}

#[test]
fn what_is_urgent_comes_between_pieces_and_the_head_goes_back() {
    // A byte a nanosecond, 5 ns a seek, quanta of 8 bytes.
    let disk = Disk::SeekTransfer { seek_ns: 5, bytes_per_second: 1_000_000_000 };
    let pages = [20, 20, 20, 4];
    let mut reader = Reader::new(disk, 8, vec![layout(&pages)]);
    // Page 0 would pass from 5 to 25, in quanta that end at 13, 21 and 25; then page 1 to 45, then page 2 behind it. Page 3
    // is asked for at 10: after the quantum at 13 a seek and 4 bytes, until 22; after a seek back the 12 bytes left of page 0
    // pass until 39.
    let loads: [(u64, bool, &[u32]); 3] = [(0, false, &[0, 1]), (0, false, &[2]), (10, true, &[3])];
    let arrived = arrivals_urgent(&mut reader, &loads);
    assert_eq!(arrived, [(2, 3, 22), (0, 0, 39), (0, 1, 59), (1, 2, 79)]);
    // At the end of a quantum nothing is waited for; a second urgent one comes after the first.
    let loads: [(u64, bool, &[u32]); 3] =
        [(100, false, &[0]), (113, true, &[3]), (114, true, &[2])];
    let arrived = arrivals_urgent(&mut reader, &loads);
    assert_eq!(arrived, [(1, 3, 122), (2, 2, 147), (0, 0, 164)]);
}

#[test]
fn what_is_urgent_comes_before_what_waits_at_a_perfect_disk_but_does_not_break_a_load() {
    let mut reader = Reader::new(Disk::Perfect { ns_per_chunk: 100 }, 8, vec![layout(&[10; 6])]);
    let loads: [(u64, bool, &[u32]); 3] =
        [(0, false, &[0, 1]), (0, false, &[2, 3]), (10, true, &[4])];
    let arrived = arrivals_urgent(&mut reader, &loads);
    assert_eq!(arrived, [(0, 0, 50), (0, 1, 100), (2, 4, 200), (1, 2, 250), (1, 3, 300)]);
}

#[test]
fn each_device_of_an_array_turns_to_what_is_urgent_by_itself() {
    let (devices, stripe_bytes) = (2, 10);
    let disk = Disk::Raid { devices, seek_ns: 5, bytes_per_second: 1_000_000_000, stripe_bytes };
    let mut reader = Reader::new(disk, 100, vec![layout(&[40, 10, 10, 10])]);
    // Page 0 is two stripes on each device, 5 to 25. Page 3, asked for at 10, is on the first one, 10 bytes behind that:
    // 5 and 10 ns; then the head goes back to page 1. The second device continues with page 2, right behind page 0.
    let loads: [(u64, bool, &[u32]); 3] = [(0, false, &[0, 1]), (0, false, &[2]), (10, true, &[3])];
    let arrived = arrivals_urgent(&mut reader, &loads);
    assert_eq!(arrived, [(0, 0, 25), (1, 2, 35), (2, 3, 40), (0, 1, 55)]);
}

#[test]
fn what_is_urgent_takes_the_next_free_request_of_an_object_store() {
    let disk = Disk::ObjectStore {
        latency_ns: 100,
        bytes_per_second_per_request: 1_000_000_000,
        bytes_per_second: 1_000_000_000,
        requests_max: 1,
    };
    let mut reader = Reader::new(disk, 8, vec![layout(&[20; 6])]);
    let loads: [(u64, bool, &[u32]); 2] = [(0, false, &[0, 2]), (50, true, &[4])];
    let arrived = arrivals_urgent(&mut reader, &loads);
    assert_eq!(arrived, [(0, 0, 120), (1, 4, 240), (0, 2, 360)]);
}

#[test]
fn a_load_that_is_hastened_passes_what_came_before_it() {
    // A byte a nanosecond, no seeks.
    let disk = Disk::SeekTransfer { seek_ns: 0, bytes_per_second: 1_000_000_000 };
    let mut reader = Reader::new(disk, 10, vec![layout(&[20, 20, 20, 20])]);
    for load in 0..3 {
        let page = [PageIndex(load)];
        reader.submit(Time(0), LoadId(u64::from(load)), false, TableId(0), &page);
    }
    reader.pass(Time(5));
    reader.escalate(LoadId(2));
    let arrived = arrivals(&mut reader, &[]);
    assert_eq!(arrived, [(2, 2, 30), (0, 0, 40), (1, 1, 60)], "after a quantum of the first load");
}
