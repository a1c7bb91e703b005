//! Memory beside the pool, used as the runtime uses it. Workers take or request some to open a chunk, request some for
//! each chunk's batch, and return all when they are done with it. Operators take and return memory all the time.
//!
//! A shadow model counts bytes. It checks that the budget is never exceeded, that no request is refused what could be
//! had, and that none waits for longer than the runtime lets a query wait.

mod shadow;

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, MemoryLimits, MemoryStage, ScanId, TicketId, Time, WorkerIndex};

use super::{Event, Simulation};
use crate::outcome::MemoryOutcome;
use crate::random::Random;
use crate::violation::{Broken, Rule, ensure};

/// Memory beside the pool, and its users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryWorkload {
    /// The limits. The floor must hold a chunk of each table. A request that waits for more than twice `overtaking_ns`
    /// breaks I5.
    pub limits: MemoryLimits,
    /// The most bytes that a worker has for a chunk, including those of a batch. It has at least half as many.
    pub opening_bytes_max: u64,
    /// The most bytes that a batch takes. It takes at least half as many.
    pub batch_bytes_max: u64,
    /// The number of operators of queries.
    pub operators: u32,
    /// The most bytes that an operator takes at once.
    pub operator_bytes_max: u64,
    /// The most nanoseconds between two steps of an operator.
    pub operator_ns_max: u64,
    /// The seed of all sizes and times.
    pub seed: u64,
}

/// A user of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum User {
    Worker { query: usize, worker: WorkerIndex },
    Operator(u32),
}

/// The purpose for which a worker waits.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Opening,
    Batch { chunk: ChunkIndex },
}

/// A waiting request.
#[derive(Clone, Copy, Debug)]
struct Requested {
    query: usize,
    worker: WorkerIndex,
    purpose: Purpose,
    since: Time,
}

/// The users, and the shadow model.
#[derive(Clone, Debug)]
pub(super) struct MemoryRun {
    usage: MemoryWorkload,
    random: Random,
    held: BTreeMap<User, u64>,
    held_bytes: u64,
    /// The overdraft in bytes.
    overdraft_bytes: u64,
    requests: BTreeMap<TicketId, Requested>,
    pub(super) outcome: MemoryOutcome,
}

impl MemoryRun {
    pub(super) fn new(usage: MemoryWorkload) -> Self {
        Self {
            usage,
            random: Random::new(usage.seed),
            held: BTreeMap::new(),
            held_bytes: 0,
            overdraft_bytes: 0,
            requests: BTreeMap::new(),
            outcome: MemoryOutcome::default(),
        }
    }

    fn held_by(&self, user: User) -> u64 {
        self.held.get(&user).copied().unwrap_or(0)
    }

    fn handed_out_bytes(&self) -> u64 {
        self.held_bytes - self.overdraft_bytes
    }

    fn add(&mut self, user: User, bytes: u64) {
        *self.held.entry(user).or_default() += bytes;
        self.held_bytes += bytes;
    }

    /// A size of up to `bytes_max` bytes, at least half of them.
    fn size(&mut self, bytes_max: u64) -> u64 {
        self.random.between(bytes_max / 2, bytes_max)
    }
}

impl Simulation<'_> {
    pub(super) fn set_up_memory(&mut self, usage: MemoryWorkload) {
        let limits = self.manager.set_memory_limits(self.now, usage.limits);
        limits.expect("nothing is in use at the beginning");
        self.memory = Some(MemoryRun::new(usage));
        (0..usage.operators).for_each(|operator| self.plan(self.now, Event::Operator { operator }));
    }

    /// Opens a chunk that was delivered, if there is memory. Otherwise it returns to its scan until there is.
    pub(super) fn open(
        &mut self,
        scan: ScanId,
        worker: WorkerIndex,
        chunk: ChunkIndex,
    ) -> Result<(), Broken> {
        let query = self.scans[&scan];
        let user = User::Worker { query, worker };
        let Some(memory) = &mut self.memory else {
            self.start_work(scan, worker, chunk);
            return Ok(());
        };
        if memory.held_by(user) == 0 {
            let bytes = memory.size(memory.usage.opening_bytes_max);
            if self.is_closed_to(MemoryStage::Opening) || !self.take(user, bytes, 0)? {
                self.manager.withdraw_worker(self.now, scan, worker);
                self.ledger.withdrawn(scan, worker);
                return self.request(query, worker, Purpose::Opening, bytes);
            }
        }
        self.manager.release_chunk(self.now, scan, worker);
        self.ledger.pages_released(scan, worker);
        // This is as between two batches: the memory of one is passed round, so that some worker
        // always proceeds.
        let memory = self.memory.as_mut().expect("as before");
        let bytes = memory.size(memory.usage.batch_bytes_max).min(memory.held_by(user));
        self.give(user, bytes);
        self.request(query, worker, Purpose::Batch { chunk }, bytes)
    }

    fn request(
        &mut self,
        query: usize,
        worker: WorkerIndex,
        purpose: Purpose,
        bytes: u64,
    ) -> Result<(), Broken> {
        let stage = match purpose {
            Purpose::Opening => MemoryStage::Opening,
            Purpose::Batch { .. } => MemoryStage::Working,
        };
        let scan = self.queries[query].scan();
        let ticket = self.manager.request_memory(self.now, stage, scan, bytes);
        let what = |missing| format!("a request that can be met is refused: {missing}");
        let broken = |missing| Broken { rule: Rule::Memory, what: what(missing) };
        let ticket = ticket.map_err(broken)?;
        let since = self.now;
        if let Some(memory) = &mut self.memory {
            memory.requests.insert(ticket, Requested { query, worker, purpose, since });
        }
        Ok(())
    }

    /// Handles a request that is met.
    pub(super) fn granted(&mut self, ticket: TicketId, bytes: u64) -> Result<(), Broken> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let request = memory.requests.remove(&ticket);
        let no_request = || format!("{ticket:?} is met, which nobody has");
        let Requested { query, worker, purpose, since } =
            request.ok_or_else(|| Broken { rule: Rule::Memory, what: no_request() })?;
        let outcome = &mut memory.outcome;
        outcome.requests += 1;
        outcome.longest_wait_ns = outcome.longest_wait_ns.max(self.now.since(since));
        memory.add(User::Worker { query, worker }, bytes);
        match (purpose, self.queries[query].scan()) {
            (Purpose::Opening, _) => self.ask(query, worker),
            (Purpose::Batch { chunk }, Some(scan)) => {
                self.start_work(scan, worker, chunk);
                Ok(())
            }
            (Purpose::Batch { .. }, None) => Ok(()),
        }
    }

    /// Makes a step of an operator. While a request has waited for too long, none takes more than its share. An
    /// operator that is refused spills.
    pub(super) fn operator_step(&mut self, operator: u32) -> Result<(), Broken> {
        let user = User::Operator(operator);
        let is_short = self.is_closed_to(MemoryStage::Opening);
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let held_bytes = memory.held_by(user);
        let bytes = memory.random.between(1, memory.usage.operator_bytes_max);
        let share_bytes =
            memory.usage.limits.handed_out_bytes_max() / 2 / u64::from(memory.usage.operators);
        let step_ns = memory.random.between(1, memory.usage.operator_ns_max);
        match memory.random.below(10) {
            0..3 => self.give(user, bytes.min(held_bytes)),
            // This request cannot be refused.
            3 if !is_short => {
                if !self.take(user, bytes, 0)? {
                    self.overdraw(user, bytes);
                }
            }
            _ => {
                let is_over_share = is_short && held_bytes + bytes > share_bytes;
                if is_over_share || !self.take(user, bytes, bytes / 8)? {
                    self.give(user, held_bytes);
                }
            }
        }
        self.check_waits()?;
        self.plan_after(step_ns, Event::Operator { operator });
        Ok(())
    }

    /// Takes memory if there is some. No user is refused what could be had.
    fn take(&mut self, user: User, bytes: u64, spare_bytes_max: u64) -> Result<bool, Broken> {
        let available_bytes = self.shadow_available_bytes();
        let taken = self.manager.take_memory(self.now, bytes, spare_bytes_max);
        self.ledger.pool_moved(&self.manager);
        let Some(memory) = &mut self.memory else { return Ok(false) };
        ensure(taken.is_ok() == (bytes <= available_bytes), Rule::Memory, || {
            format!("{user:?} takes {bytes} of {available_bytes} bytes: {taken:?}")
        })?;
        memory.outcome.takes += 1;
        memory.outcome.refused += u64::from(taken.is_err());
        memory.add(user, taken.unwrap_or(0));
        Ok(taken.is_ok())
    }

    fn overdraw(&mut self, user: User, bytes: u64) {
        let Some(memory) = &mut self.memory else { return };
        memory.add(user, bytes);
        memory.overdraft_bytes += bytes;
        self.cover_overdraft();
    }

    /// Covers the overdraft as far as there is memory now, before others get what was returned.
    pub(super) fn cover_overdraft(&mut self) {
        let Some(memory) = self.memory.as_mut().filter(|memory| memory.overdraft_bytes > 0) else {
            return;
        };
        memory.overdraft_bytes -= self.manager.cover_overdraft(self.now, memory.overdraft_bytes);
        let outcome = &mut memory.outcome;
        outcome.overdraft_bytes_max = outcome.overdraft_bytes_max.max(memory.overdraft_bytes);
        self.ledger.pool_moved(&self.manager);
    }

    /// Returns memory, which covers an overdraft first.
    fn give(&mut self, user: User, bytes: u64) {
        let Some(memory) = &mut self.memory else { return };
        let Some(held) = memory.held.get_mut(&user) else { return };
        *held -= bytes;
        memory.held_bytes -= bytes;
        let made_good_bytes = bytes.min(memory.overdraft_bytes);
        memory.overdraft_bytes -= made_good_bytes;
        self.manager.return_memory(self.now, bytes - made_good_bytes);
        self.ledger.pool_moved(&self.manager);
    }

    /// Returns all memory of a worker that is done with its chunk, or ends.
    pub(super) fn give_all(&mut self, query: usize, worker: WorkerIndex) {
        let user = User::Worker { query, worker };
        let Some(memory) = &mut self.memory else { return };
        let is_its = |requested: &Requested| (requested.query, requested.worker) == (query, worker);
        let requests = memory.requests.iter().filter(|(_, requested)| is_its(requested));
        let tickets: Vec<_> = requests.map(|(&ticket, _)| ticket).collect();
        for ticket in tickets {
            memory.requests.remove(&ticket);
            self.manager.withdraw_memory_request(self.now, ticket);
            self.ledger.pool_moved(&self.manager);
        }
        let held_bytes = memory.held_by(user);
        self.give(user, held_bytes);
    }
}
