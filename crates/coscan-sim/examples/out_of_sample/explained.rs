//! Why the worst cases are as they are.

/// For a case, why. Cases change when the generator does, and which are worst when a policy does.
const EXPLAINED: &[(u64, &str)] = &[
    (
        6,
        "A chunk is worked on to its end in the simulator. One core; a chunk takes `slow_b` 0.67 s and `fast_a` a millisecond. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        18,
        "The same bytes, or fewer, in more time on a device that is always busy: seeks. A chunk is 1 MB, which passes in 3.6 ms; a seek takes 8.1 ms, and lookups pass the queue. `relevance` reads for one scan here and for another there; elevator's cursor goes on where it stands.",
    ),
    (
        24,
        "All scans in order, and the same bytes as under `relevance-2007`, later. Likely seeks: scans in order take turns here ([scheduling](scheduling.md)), so the heads go from one to the other, while the paper's policy ends the shortest first.",
    ),
    (
        36,
        "Not fully explained. All policies read about the same bytes, but here the device is idle for a quarter of the time and processors for a third: likely the scans that wait for processors, which have two chunks each and want no more read, as in Figure 8 of `[CS07]` ([decision 9](decisions/0009-ideas-that-did-not-help.md)).",
    ),
    (
        114,
        "A chunk is worked on to its end in the simulator. Four cores; a chunk takes `slow_b` 0.1 s and `fast_a` 0.2 ms. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        252,
        "The same bytes, or fewer, in more time on a device that is always busy: seeks. A read is one column of a chunk, 0.14 MB: the disks move that in under a millisecond and seek for 5.4 ms. `relevance` reads for one scan here and for another there; elevator's cursor goes on where it stands.",
    ),
    (
        256,
        "Two streams, a quarter of the queries in order. `relevance` takes a third of the time of the other policies that serve each scan by itself, since scans in any order read further ahead here; those in order do not, likely what is left to elevator.",
    ),
    (
        274,
        "A chunk is worked on to its end in the simulator. One core; a chunk takes `slow_a` 89 ms and `fast_a` a millisecond. Whenever the two chunks that a quick scan keeps before it are used up, a slow one gets the core for a whole chunk; under `relevance-2007` all share it at every moment. It is not short by bytes (a sixteenth of the longest), so it does not pass. In the tuning half 8 chunks ahead mend most of this, for 3 % more bytes everywhere ([decision 9](decisions/0009-ideas-that-did-not-help.md)). The engine changes workers every millisecond, so there it is milder.",
    ),
    (
        300,
        "The same bytes, or fewer, in more time on a device that is always busy: seeks. A column of a chunk is a read of about 0.2 MB, so a seek takes longer than the read. `relevance` reads for one scan here and for another there; elevator's cursor goes on where it stands.",
    ),
    (
        310,
        "The same bytes, or fewer, in more time on a device that is always busy: seeks. A chunk of 2 MB passes in 2 ms; short dashboards come between the long scans. `relevance` reads for one scan here and for another there; elevator's cursor goes on where it stands.",
    ),
];

/// Why a case is as it is, if anybody looked.
pub(crate) fn why(seed: u64) -> Option<&'static str> {
    EXPLAINED.iter().find(|(case, _)| *case == seed).map(|&(_, why)| why)
}
