//! Explanations of the worst cases.

/// Cases and their explanations. Cases change when the generator does, and the worst ones when a policy does.
const EXPLAINED: &[(u64, &str)] = &[
    (
        6,
        "In the simulator work on a chunk is not preempted. One core; a chunk takes `slow_b` 0.67 s and `fast_a` a millisecond; `fast_a` ends after 42 s instead of 4.9 s. Whenever the two chunks that a fast scan keeps ahead are used up, a slow scan gets the core for a whole chunk; under `relevance-2007` all scans share it at all times. By bytes the fast scan is not short (the limit is a sixteenth of the largest), so it does not bypass the queue. In the tuning half reading 8 chunks ahead removes most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). In the runtime workers yield every millisecond, so the effect is smaller.",
    ),
    (
        18,
        "About the same bytes in more time on a device that is always busy: probably seeks (not counted). A chunk is 1 MB, which passes in 3.6 ms; a seek takes 8.1 ms. Lookups pass the queue under `relevance` only, which moves the head there and back; scans in order take turns, each at a place of its own.",
    ),
    (
        24,
        "Device, bytes and total time are the same under all policies. Scans in order take turns here, so that those that advance together share reads ([scheduling](scheduling.md#scans-in-order)): ranges of 5 and 10 % end in 1.5 and 2.3 s, while `relevance-2007` serves the shortest first (0.8 and 1.7 s) and lets the longest wait for 3.3 s instead of 0.5 s.",
    ),
    (
        36,
        "The same bytes in 182 loads under three policies; under `elevator` processors are busy for 98 % of the time, here device and processors are idle by turns. A scan that waits for a processor has two chunks and reads no further ahead, as in Figure 8 of `[CS07]` ([decision 9](decisions/0009-ideas-that-did-not-help.md)).",
    ),
    (
        114,
        "In the simulator work on a chunk is not preempted. Four cores; a chunk takes `slow_b` 0.1 s and `fast_a` 0.2 ms. Whenever the two chunks that a fast scan keeps ahead are used up, a slow scan gets the core for a whole chunk; under `relevance-2007` all scans share it at all times. By bytes the fast scan is not short (the limit is a sixteenth of the largest), so it does not bypass the queue. In the tuning half reading 8 chunks ahead removes most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). In the runtime workers yield every millisecond, so the effect is smaller.",
    ),
    (
        252,
        "The same bytes in more time on a device that is always busy: probably seeks (not counted). A read is one column of a chunk, 0.14 MB on an arm or two: that passes in under three milliseconds, a seek takes 5.4 ms. But elevator, too, moves an arm whenever the next read on it is of another column; and *busy* says that one of the six arms is, not all. With two loads at a time, each for the columns of fewer scans than elevator's, arms may stand still here.",
    ),
    (
        256,
        "`relevance` takes a third of the time of policies that read two chunks ahead of each scan. Scans in order still do; the cursor of `elevator` passes their chunks anyway, and the slow query ends in 1.5 s instead of 2.0 s.",
    ),
    (
        274,
        "In the simulator work on a chunk is not preempted. One core; a chunk takes `slow_a` 89 ms and `fast_a` a millisecond. Whenever the two chunks that a fast scan keeps ahead are used up, a slow scan gets the core for a whole chunk; under `relevance-2007` all scans share it at all times. By bytes the fast scan is not short (the limit is a sixteenth of the largest), so it does not bypass the queue. In the tuning half reading 8 chunks ahead removes most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). In the runtime workers yield every millisecond, so the effect is smaller.",
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

/// The explanation of a case, if there is one.
pub(crate) fn why(seed: u64) -> Option<&'static str> {
    EXPLAINED.iter().find(|(case, _)| *case == seed).map(|&(_, why)| why)
}
