//! The owner's side of the budget: how much credit is handed out, and how far the pool gives way to it.
//!
//! Pure: it is called by whoever owns core, which alone changes the pool.

use super::credit::Credit;
use super::pool_limits::PoolLimits;
use crate::options::Options;

/// Memory was refused: the number of missing bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) bytes: u64,
}

/// The pool, whose limit moves as others need memory.
pub(crate) trait ElasticPool {
    fn limit_bytes(&self) -> u64;
    /// Changes its limit. Returns the new one, which is higher than asked for if it cannot shrink that far.
    fn set_limit_bytes(&mut self, bytes: u64) -> u64;
    /// Changes whenever it may have become able to shrink further.
    fn generation(&self) -> u64;
}

/// Credit handed out, and the limits of the pool, which has the rest of the budget.
#[derive(Debug)]
pub(crate) struct Grants {
    limits: PoolLimits,
    /// Credit handed out: what is free and what is held, less the overdraft.
    granted_bytes: u64,
    refusal: Option<Refusal>,
}

/// The pool could not shrink as far as it was asked to.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// The limit that it could not go below.
    limit_bytes: u64,
    /// The pool's generation at that time.
    generation: u64,
}

impl Grants {
    pub(crate) fn new(options: &Options) -> Self {
        Self { limits: PoolLimits::new(options), granted_bytes: 0, refusal: None }
    }

    /// Hands out so much credit that `bytes` are free, and a little more if the pool has to shrink for it.
    ///
    /// # Errors
    /// The missing bytes.
    pub(crate) fn grant(
        &mut self,
        credit: &Credit,
        pool: &mut impl ElasticPool,
        bytes: u64,
    ) -> Result<(), Missing> {
        // More than the word of credit can hold is never there.
        let short_bytes = i128::from(bytes) - i128::from(credit.free_bytes());
        let Ok(short_bytes) = u64::try_from(short_bytes.max(0)) else {
            return Err(Missing { bytes });
        };
        let wanted_bytes = self.granted_bytes.saturating_add(short_bytes);
        let left_bytes = self.limits.left_bytes(wanted_bytes);
        let over_bytes = wanted_bytes.saturating_sub(self.limits.budget_bytes());
        let mut limit_bytes = pool.limit_bytes();
        if left_bytes < limit_bytes {
            limit_bytes = self.shrink(pool, left_bytes);
        }
        match over_bytes + limit_bytes.saturating_sub(left_bytes) {
            0 => {
                let slack_bytes = (left_bytes - limit_bytes).min(credit.free_bytes_max());
                self.add(credit, short_bytes + slack_bytes);
                Ok(())
            }
            bytes => Err(Missing { bytes }),
        }
    }

    /// Shrinks the pool to `bytes` or a little less. Returns its limit, or the lowest possible one if that is too high.
    fn shrink(&mut self, pool: &mut impl ElasticPool, bytes: u64) -> u64 {
        let floor_bytes = self.limits.floor_bytes();
        if bytes < floor_bytes {
            return floor_bytes;
        }
        if let Some(limit_bytes) = self.refused(pool, bytes) {
            return limit_bytes;
        }
        let limit_bytes = pool.set_limit_bytes(self.limits.with_slack(bytes));
        if limit_bytes > bytes {
            self.refusal = Some(Refusal { limit_bytes, generation: pool.generation() });
            self.fit(pool);
        }
        limit_bytes
    }

    /// The limit that the pool could not go below when it was last asked to, if nothing has changed since.
    fn refused(&self, pool: &impl ElasticPool, bytes: u64) -> Option<u64> {
        let refusal = self.refusal.filter(|refusal| refusal.generation == pool.generation())?;
        (bytes < refusal.limit_bytes).then_some(refusal.limit_bytes)
    }

    /// Covers the overdraft as far as the pool can give way.
    pub(crate) fn cover(&mut self, credit: &Credit, pool: &mut impl ElasticPool) {
        let short_bytes = (-credit.free_bytes()).max(0).unsigned_abs();
        if short_bytes == 0 {
            return;
        }
        let left_bytes = self.limits.left_bytes(self.granted_bytes.saturating_add(short_bytes));
        let mut limit_bytes = pool.limit_bytes();
        let least_bytes = left_bytes.max(self.limits.floor_bytes());
        if least_bytes < limit_bytes && self.refused(pool, least_bytes).is_none() {
            limit_bytes = pool.set_limit_bytes(least_bytes);
            if limit_bytes > least_bytes {
                self.refusal = Some(Refusal { limit_bytes, generation: pool.generation() });
            }
        }
        let spare_bytes = self.limits.left_bytes(self.granted_bytes.saturating_add(limit_bytes));
        self.add(credit, short_bytes.min(spare_bytes));
    }

    /// Takes back all free credit, and lets the pool grow by it.
    pub(crate) fn collect(&mut self, credit: &Credit, pool: &mut impl ElasticPool) {
        self.take_back(credit.collect(0), pool);
    }

    /// Takes back much of the free credit if there is plenty.
    pub(crate) fn collect_surplus(&mut self, credit: &Credit, pool: &mut impl ElasticPool) {
        self.take_back(credit.collect_surplus(), pool);
    }

    fn take_back(&mut self, bytes: u64, pool: &mut impl ElasticPool) {
        let left = self.granted_bytes.checked_sub(bytes);
        self.granted_bytes = left.expect("credit taken back was handed out");
        self.fit(pool);
    }

    /// Grows the pool as far as it may now.
    ///
    /// # Errors
    /// The bytes missing to the requested size.
    pub(crate) fn grow_pool(
        &mut self,
        credit: &Credit,
        pool: &mut impl ElasticPool,
        bytes: u64,
    ) -> Result<(), Missing> {
        self.collect(credit, pool);
        let left_bytes = self.limits.left_bytes(self.granted_bytes);
        let left_bytes = left_bytes.min(self.limits.ceiling_bytes());
        let mut limit_bytes = pool.limit_bytes();
        if left_bytes > limit_bytes {
            limit_bytes = pool.set_limit_bytes(left_bytes);
        }
        match bytes.saturating_sub(limit_bytes) {
            0 => Ok(()),
            bytes => Err(Missing { bytes }),
        }
    }

    /// Changes the pool's ceiling, and resizes the pool to what it may have under it.
    pub(crate) fn set_ceiling_bytes(
        &mut self,
        credit: &Credit,
        pool: &mut impl ElasticPool,
        bytes: u64,
    ) {
        self.limits.set_ceiling_bytes(bytes);
        self.collect(credit, pool);
        let target_bytes = self.limits.target_bytes(self.granted_bytes, pool.limit_bytes());
        pool.set_limit_bytes(target_bytes);
    }

    /// Moves the pool's limit to its target if that is worth it.
    fn fit(&self, pool: &mut impl ElasticPool) {
        let target_bytes = self.limits.target_bytes(self.granted_bytes, pool.limit_bytes());
        if self.limits.is_worth_moving(pool.limit_bytes(), target_bytes) {
            pool.set_limit_bytes(target_bytes);
        }
    }

    fn add(&mut self, credit: &Credit, bytes: u64) {
        self.granted_bytes += bytes;
        credit.add(bytes);
    }

    /// Bytes handed out. They and the limit of the pool never exceed the budget.
    pub(crate) fn granted_bytes(&self) -> u64 {
        self.granted_bytes
    }
}
