//! The memory of the queries whose tasks a worker executes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::execution::memory_pool::MemoryPool;
use uuid::Uuid;

use crate::query_description::QueryDescription;

/// Makes the memory pool for the operators of a query on a worker.
pub type MakeMemoryPool = Arc<dyn Fn(&QueryDescription) -> Arc<dyn MemoryPool> + Send + Sync>;

/// The pools of the queries that have tasks on a worker. All tasks of an execution share one.
pub(crate) struct QueryPools {
    make: MakeMemoryPool,
    executions: Mutex<HashMap<Uuid, Weak<dyn MemoryPool>>>,
}

impl QueryPools {
    pub(crate) fn new(make: MakeMemoryPool) -> Self {
        Self { make, executions: Mutex::default() }
    }

    /// The pool of a query. Tasks without the id of an execution have one each.
    pub(crate) fn of(
        &self,
        description: &QueryDescription,
        execution: Option<Uuid>,
    ) -> Arc<dyn MemoryPool> {
        let Some(execution) = execution else { return (self.make)(description) };
        let mut executions = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = executions.get(&execution).and_then(Weak::upgrade) {
            return pool;
        }
        executions.retain(|_, pool| pool.strong_count() > 0);
        let pool = (self.make)(description);
        executions.insert(execution, Arc::downgrade(&pool));
        pool
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn tasks_of_an_execution_share_a_pool_while_they_run() {
        let make: MakeMemoryPool = Arc::new(|_| Arc::new(GreedyMemoryPool::new(100)));
        let pools = QueryPools::new(make);
        let (description, execution) = (QueryDescription::default(), Uuid::new_v4());
        let first = pools.of(&description, Some(execution));
        assert!(Arc::ptr_eq(&first, &pools.of(&description, Some(execution))));
        assert!(!Arc::ptr_eq(&first, &pools.of(&description, Some(Uuid::new_v4()))));
        assert!(!Arc::ptr_eq(&first, &pools.of(&description, None)));
        drop(first);
        drop(pools.of(&description, Some(Uuid::new_v4())));
        let executions = pools.executions.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(executions.len(), 1, "those that have ended are forgotten");
    }
}
