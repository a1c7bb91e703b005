//! Why the worst cases are as they are.

/// For a case, why. Cases change when the generator does, and which are worst when a policy does.
const EXPLAINED: &[(u64, &str)] = &[
    (
        6,
        "A chunk is worked on to its end in the simulator. One core; a chunk takes `slow_b` 0.67 s and `fast_a` a millisecond, which ends in 42 s instead of 4.9 s. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        18,
        "About the same bytes in more time on a device that is always busy: probably seeks (not counted). A chunk is 1 MB, which passes in 3.6 ms; a seek takes 8.1 ms. Lookups pass the queue under `relevance` only, which moves the head there and back; scans in order take turns, each at a place of its own.",
    ),
    (
        24,
        "Device, bytes and total time are the same under all policies. Scans in order take turns here, so that those that go on together read once ([scheduling](scheduling.md)): ranges of 5 and 10 % end in 1.5 and 2.3 s, while `relevance-2007` serves the shortest first (0.8 and 1.7 s) and lets the longest wait for 3.3 s instead of 0.5 s.",
    ),
    (
        36,
        "The same bytes in 182 loads under three policies; under `elevator` processors are busy for 98 % of the time, here device and processors stand still by turns. A scan that waits for a processor has two chunks and wants no more read, as in Figure 8 of `[CS07]` ([decision 9](decisions/0009-ideas-that-did-not-help.md)).",
    ),
    (
        114,
        "A chunk is worked on to its end in the simulator. Four cores; a chunk takes `slow_b` 0.1 s and `fast_a` 0.2 ms. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        252,
        "The same bytes in more time on a device that is always busy: probably seeks (not counted). A read is one column of a chunk, 0.14 MB on an arm or two: that passes in under three milliseconds, a seek takes 5.4 ms. But elevator, too, moves an arm whenever the next read on it is of another column; and *busy* says that one of the six arms is, not all. With two loads at a time, each for the columns of fewer scans than elevator's, arms may stand still here.",
    ),
    (
        256,
        "`relevance` takes a third of the time of those that read two chunks ahead of each scan. Scans in order still do; `elevator` has their chunks on the way of its cursor and ends the slow query in 1.5 s instead of 2.0 s.",
    ),
    (
        274,
        "A chunk is worked on to its end in the simulator. One core; a chunk takes `slow_a` 89 ms and `fast_a` a millisecond. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        300,
        "About the same bytes in more time on a device that is always busy: probably seeks (not counted). A column of a chunk is a read of about 0.2 MB, so a seek takes longer than the read. But elevator, too, moves an arm whenever the next read on it is of another column; and *busy* says that one of the three arms is, not all. With two loads at a time, each for the columns of fewer scans than elevator's, arms may stand still here.",
    ),
    (
        310,
        "Beside `relevance-2007` the bytes say it: 17 % more. Beside elevator about the same bytes take more time on a device that is always busy: probably seeks (not counted). A chunk of 2 MB passes in 2 ms; short dashboards come between the long scans, while elevator's cursor goes on where it stands.",
    ),
];

/// Why a case is as it is, if anybody looked.
pub(crate) fn why(seed: u64) -> Option<&'static str> {
    EXPLAINED.iter().find(|(case, _)| *case == seed).map(|&(_, why)| why)
}
