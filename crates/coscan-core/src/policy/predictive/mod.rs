//! `predictive`: the Predictive Buffer Manager [CS11 §4.3]. Scans run through their rows in order, as under `normal`.
//! Pages that no running scan needs are evicted first, least recently used in front. Next are those with the latest
//! next use, estimated from the rows before them and the rates of the scans.
//!
//! [`Switches`] turn on what the thesis proposes beyond it.

mod sample;

use crate::ids::{ChunkIndex, PageId, ScanId, Time};
use crate::policy::next_use::NextUseIndex;
use crate::policy::sequence::Sequence;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy, VictimList};
use crate::scan::{Order, Scan};
use crate::state::State;

use sample::Sample;

/// Extensions of `predictive`, most of them proposed in the thesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, PartialOrd, Ord)]
pub struct Switches {
    /// Instead of keeping pages in the order of their next use, samples some and evicts the one used last.
    pub sampling: bool,
    /// Reads for the scans with fewest chunks left first, not for those that have waited longest [CS11 §8.2.3].
    pub short_first: bool,
    /// Scans that take any order jump to chunks that are in the pool [CS11 §8.2.5].
    pub opportunistic: bool,
}

/// The policy `predictive`.
#[derive(Clone, Debug, Default)]
pub struct Predictive {
    switches: Switches,
    sequence: Sequence,
    next_use_index: NextUseIndex,
    sample: Sample,
}

/// Pages that are sampled for each one evicted.
const SAMPLE_SIZE: usize = 16;

impl Predictive {
    /// The policy with these switches on.
    #[must_use]
    pub fn new(switches: Switches) -> Self {
        Self { switches, ..Self::default() }
    }

    fn insert(&mut self, state: &State, id: PageId) {
        match self.switches.sampling {
            true => self.sample.insert(id),
            false => self.next_use_index.insert(state, id),
        }
    }

    /// Takes pages by their next use, latest first.
    fn take_last_used(&mut self, state: &State, victims: &mut VictimList<'_>, spared: &[PageId]) {
        let mut walk = self.next_use_index.walk(state);
        while !victims.enough()
            && let Some((_, id)) = self.next_use_index.next_last(state, &mut walk, 0, |id| {
                victims.may_take(state, id) && spared.binary_search(&id).is_err()
            })
        {
            victims.take(state, id);
        }
    }

    /// Takes the pages of samples with the latest next use.
    fn take_sampled(&mut self, state: &State, victims: &mut VictimList<'_>, spared: &[PageId]) {
        let mut tries = self.sample.len();
        while tries > 0 && !victims.enough() {
            tries -= 1;
            let mut last = None;
            for _ in 0..SAMPLE_SIZE {
                let Some(id) = self.sample.draw() else { return };
                let may_evict = victims.may_take(state, id) && spared.binary_search(&id).is_err();
                let ns = self.next_use_index.next_use_ns(state, id).unwrap_or(u64::MAX);
                last = last.max(may_evict.then_some((ns, id)));
            }
            if let Some((_, id)) = last {
                victims.take(state, id);
            }
        }
    }

    /// The rank of a scan in the queue for reads, lowest first.
    fn reading_rank(&self, state: &State, scan: &Scan) -> (bool, Option<Time>, u64, u64) {
        let since = scan.waiting_since();
        let served = self.sequence.served(scan.id());
        if !self.switches.short_first {
            return (since.is_none(), since, served, 0);
        }
        let overdue = since.filter(|&since| state.is_overdue(since));
        let left = scan.needed().len() as u64 * u64::from(overdue.is_none());
        (since.is_none(), overdue.or(Some(Time(u64::MAX))), left, served)
    }

    /// The next available chunk of a scan that takes any order, to which it jumps if its next one is not available.
    fn jump(&mut self, scan: &Scan) -> Option<ChunkIndex> {
        if !self.switches.opportunistic || scan.order() == Order::InOrder {
            return None;
        }
        let position = self.sequence.remaining(scan).next()?;
        let chunk = scan.available().iter_around(position).next()?;
        self.sequence.start_at(scan.id(), chunk);
        Some(chunk)
    }
}

impl Policy for Predictive {
    fn name(&self) -> &'static str {
        self.switches.policy_name()
    }

    fn on_scan_started(&mut self, state: &State, scan: ScanId) {
        let Some(scan) = state.scan(scan) else { return };
        self.next_use_index.start(state, scan);
    }

    fn on_scan_extended(&mut self, state: &State, scan: ScanId, chunks: &[ChunkIndex]) {
        if let Some(scan) = state.scan(scan) {
            self.next_use_index.extend(state, scan, chunks);
        }
    }

    fn on_scan_ended(&mut self, scan: ScanId) {
        self.sequence.forget(scan);
        self.next_use_index.remove(scan);
    }

    fn on_load_started(&mut self, _: &State, plan: &LoadPlan) {
        self.sequence.on_load_started(plan);
    }

    fn on_page_loaded(&mut self, state: &State, id: PageId) {
        self.insert(state, id);
    }

    fn on_page_evicted(&mut self, _: &State, id: PageId) {
        self.next_use_index.remove_page(id);
        self.sample.remove_page(id);
    }

    fn on_delivered(&mut self, state: &State, scan: ScanId, chunk: ChunkIndex) {
        let Some(scan) = state.scan(scan) else { return };
        for id in state.pages_of(scan, chunk) {
            self.insert(state, id);
        }
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let next = state.scans().filter(|scan| attempt.admits(scan)).filter_map(|scan| {
            let opportunistic = self.switches.opportunistic && scan.order() == Order::Any;
            let has_enough = opportunistic && !scan.needs_load();
            let chunk = self.sequence.next_cold(scan).filter(|_| !has_enough)?;
            Some((scan, chunk))
        });
        let (scan, chunk) =
            next.min_by_key(|(scan, _)| (self.reading_rank(state, scan), scan.id()))?;
        Some(LoadPlan::of_missing(state, scan, chunk))
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        let mut spared: Vec<_> = self.sequence.spared(state, request).into_iter().collect();
        spared.sort_unstable();
        let mut victims = VictimList::new(*request);
        victims.take_all(state, state.unneeded_pages());
        if self.switches.sampling {
            self.take_sampled(state, &mut victims, &spared);
        } else {
            self.take_last_used(state, &mut victims, &spared);
        }
        let rest = state.cached_pages().filter(|id| spared.binary_search(id).is_err());
        victims.take_all(state, rest);
        victims.into_pages()
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let next = self.sequence.choose_delivery(state, scan);
        next.or_else(|| self.jump(state.scan(scan)?))
    }
}

impl Switches {
    /// The published policy.
    pub const NONE: Self = Self { sampling: false, short_first: false, opportunistic: false };

    /// Each switch alone, and all but sampling together.
    pub(super) const TESTED: [Self; 4] = [
        Self { sampling: true, ..Self::NONE },
        Self { short_first: true, ..Self::NONE },
        Self { opportunistic: true, ..Self::NONE },
        Self { sampling: false, short_first: true, opportunistic: true },
    ];

    /// The names of all combinations, by the bits of [`Self::bits`].
    const NAMES: [&'static str; 8] = [
        "predictive",
        "predictive+sampling",
        "predictive+short-first",
        "predictive+sampling+short-first",
        "predictive+opportunistic",
        "predictive+sampling+opportunistic",
        "predictive+short-first+opportunistic",
        "predictive+sampling+short-first+opportunistic",
    ];

    fn bits(self) -> usize {
        usize::from(self.sampling)
            | usize::from(self.short_first) << 1
            | usize::from(self.opportunistic) << 2
    }

    /// The name of the policy with these switches on.
    #[must_use]
    pub fn policy_name(self) -> &'static str {
        Self::NAMES[self.bits()]
    }

    /// The switches that a name of the policy turns on, in any order.
    #[must_use]
    pub fn of_policy_name(name: &str) -> Option<Self> {
        let mut parts = name.split('+');
        parts.next().filter(|&policy| policy == "predictive")?;
        let mut switches = Self::default();
        for part in parts {
            match part {
                "sampling" => switches.sampling = true,
                "short-first" => switches.short_first = true,
                "opportunistic" => switches.opportunistic = true,
                _ => return None,
            }
        }
        Some(switches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_switches_has_a_name_that_turns_them_on() {
        for bits in 0..8 {
            let on = |bit: usize| bits >> bit & 1 == 1;
            let switches = Switches { sampling: on(0), short_first: on(1), opportunistic: on(2) };
            assert_eq!(Switches::of_policy_name(switches.policy_name()), Some(switches));
        }
        assert_eq!(Switches::of_policy_name("predictive+fast"), None);
        assert_eq!(Switches::of_policy_name("relevance+sampling"), None);
    }
}
