//! Runs all cases of an experiment, on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use coscan_core::PolicyKind;
use coscan_sim::experiment::{Prepared, Run};
use coscan_sim::report::pictures::need_timeline;
use coscan_sim::{Case, Options, Spec, Violation};
use indicatif::{ProgressBar, ProgressStyle};

use crate::Failure;

/// The runs of an experiment, with every case, every seed and every policy.
pub(super) struct Runs<'a> {
    pub(super) spec: &'a Spec,
    pub(super) policies: &'a [PolicyKind],
    /// The seeds are 1 to this number.
    pub(super) seeds: u64,
    /// Whether to record timelines for pictures.
    pub(super) pictures: bool,
}

/// The runs of one case with one seed, or the rule that one of them broke.
type Done = Result<Vec<Run>, Box<Violation>>;

impl Runs<'_> {
    /// Runs all cases. The results are ordered by case, then seed, then policy, independently of threads.
    pub(super) fn run(&self) -> Result<Vec<Run>, Failure> {
        let seeds = 1..=self.seeds;
        let jobs: Vec<(&Case, u64)> = self
            .spec
            .cases
            .iter()
            .flat_map(|case| seeds.clone().map(move |seed| (case, seed)))
            .collect();
        let bar = progress(jobs.len() * self.policies.len());
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Done)>> = Mutex::new(Vec::with_capacity(jobs.len()));
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(jobs.len());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&(case, seed)) = jobs.get(index) else { break };
                        let runs = self.run_case(case, seed, &bar);
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.push((index, runs));
                    }
                });
            }
        });
        bar.finish_and_clear();
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        let mut runs = Vec::with_capacity(jobs.len() * self.policies.len());
        for (_, done) in done {
            runs.extend(done?);
        }
        Ok(runs)
    }

    fn run_case(&self, case: &Case, seed: u64, bar: &ProgressBar) -> Done {
        let name = if case.name.is_empty() { &self.spec.name } else { &case.name };
        bar.set_message(format!("{name}, seed {seed}"));
        let prepared = Arc::new(Prepared::new(case, seed)?);
        let timeline = self.pictures && seed == 1 && need_timeline(self.spec, &prepared);
        let runs = self.policies.iter().map(|policy| {
            let run = prepared.run(policy.build(), Options { timeline, ..Options::default() });
            bar.inc(1);
            run
        });
        runs.collect()
    }
}

fn progress(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {pos} of {len} runs ({eta} left)  {msg}")
    {
        bar.set_style(style);
    }
    bar
}
