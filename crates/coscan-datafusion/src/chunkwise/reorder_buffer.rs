//! Rows of chunks that several tasks work on, returned chunk by chunk, in order.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use tokio::sync::Notify;

/// The maximum number of untaken batches of the chunk that has its turn.
const BATCHES_MAX: usize = 2;

/// The chunks that tasks work on. A chunk is identified by its position in the scan. The chunk whose rows are returned
/// now has its *turn*, and the chunks after it are *ahead*.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    state: Mutex<State>,
    changed: Notify,
    /// The maximum bytes of rows ahead.
    ahead_bytes_max: usize,
    /// The memory of rows that were not taken yet. It is changed without the lock, since a request for memory may make
    /// other operators release theirs.
    memory: MemoryReservation,
}

#[derive(Debug)]
struct State {
    /// The chunk that has its turn. It advances when all rows of that chunk were taken.
    turn: usize,
    chunks: usize,
    /// The output of each chunk that a task works on or whose rows were not taken yet.
    outputs: BTreeMap<usize, Output>,
    /// The number of tasks that wait for a chunk.
    asking: usize,
    /// Whether memory was refused and none was returned here since.
    is_refused: bool,
}

#[derive(Debug, Default)]
struct Output {
    /// Each batch with the bytes that are reserved for it.
    batches: VecDeque<(RecordBatch, usize)>,
    is_complete: bool,
}

impl ReorderBuffer {
    /// Creates the buffer for `chunks` chunks.
    pub(super) fn new(chunks: usize, memory: MemoryReservation, ahead_bytes_max: usize) -> Self {
        let outputs = BTreeMap::new();
        let state = State { turn: 0, chunks, outputs, asking: 0, is_refused: false };
        Self { state: Mutex::new(state), changed: Notify::new(), ahead_bytes_max, memory }
    }

    /// Announces that a task will request the next chunk of the scan. While memory is short it waits, unless no task
    /// works on the chunk that has its turn.
    pub(super) async fn ask(&self, is_memory_short: impl Fn() -> bool) {
        self.when(|state| {
            let is_needed = state.asking == 0 && !state.outputs.contains_key(&state.turn);
            let may_ask = is_needed || !is_memory_short();
            state.asking += usize::from(may_ask);
            may_ask.then_some(())
        })
        .await;
    }

    /// Records the chunk that a task was handed, or that none is left.
    pub(super) fn handed(&self, chunk: Option<usize>) {
        let mut state = self.lock();
        state.asking -= 1;
        if let Some(chunk) = chunk {
            state.outputs.insert(chunk, Output::default());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Adds rows to a chunk as soon as there is room for them. A chunk ahead also needs memory.
    pub(super) async fn put(&self, chunk: usize, mut batch: RecordBatch) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.try_put(chunk, batch) {
                Ok(()) => return,
                Err(returned) => batch = returned,
            }
            changed.await;
        }
    }

    /// Adds rows to a chunk, or returns them if there is no room.
    fn try_put(&self, chunk: usize, batch: RecordBatch) -> Result<(), RecordBatch> {
        let bytes = get_record_batch_memory_size(&batch);
        let is_refused = self.lock().is_refused;
        let has_memory = !is_refused && self.reserve(bytes);
        let mut state = self.lock();
        state.is_refused |= !has_memory;
        let has_turn = state.turn == chunk;
        let Some(output) = state.outputs.get_mut(&chunk) else { return Err(batch) };
        let has_room = output.batches.len() < BATCHES_MAX;
        if !(has_memory && bytes > 0 || has_room && (has_memory || has_turn)) {
            return Err(batch);
        }
        output.batches.push_back((batch, if has_memory { bytes } else { 0 }));
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Marks a chunk as complete, and waits until its rows were taken.
    pub(super) async fn complete(&self, chunk: usize) {
        let mut is_noted = false;
        self.when(|state| {
            if !std::mem::replace(&mut is_noted, true)
                && let Some(output) = state.outputs.get_mut(&chunk)
            {
                output.is_complete = true;
                state.move_on();
                self.changed.notify_waiters();
            }
            (state.turn > chunk).then_some(())
        })
        .await;
    }

    /// Drops the rows of a chunk, which will be read again. Returns false if the chunk is not ahead, since rows of it
    /// may have been taken.
    pub(super) fn give_back(&self, chunk: usize) -> bool {
        let mut state = self.lock();
        if state.turn >= chunk {
            return false;
        }
        let output = state.outputs.remove(&chunk).unwrap_or_default();
        drop(state); // Before it frees memory.
        self.returned(output.batches.iter().map(|(_, bytes)| bytes).sum());
        true
    }

    /// The next rows, or `None` after the last chunk.
    pub(super) async fn next(&self) -> Option<RecordBatch> {
        let taken = self.when(|state| {
            if state.turn == state.chunks {
                return Some(None);
            }
            let taken = state.outputs.get_mut(&state.turn)?.batches.pop_front()?;
            state.move_on();
            Some(Some(taken))
        });
        let (batch, bytes) = taken.await?;
        self.returned(bytes);
        Some(batch)
    }

    /// Reserves memory for rows that were not taken yet.
    fn reserve(&self, bytes: usize) -> bool {
        self.memory.size() + bytes <= self.ahead_bytes_max && self.memory.try_grow(bytes).is_ok()
    }

    /// Releases the memory of rows that were taken or dropped.
    fn returned(&self, bytes: usize) {
        self.memory.shrink(bytes);
        self.lock().is_refused = false;
        self.changed.notify_waiters();
    }

    /// Waits until `find` returns a result. It may change the state.
    async fn when<R>(&self, mut find: impl FnMut(&mut State) -> Option<R>) -> R {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let found = find(&mut self.lock());
            if let Some(found) = found {
                self.changed.notify_waiters();
                return found;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Advances the turn past chunks whose rows were all taken.
    fn move_on(&mut self) {
        let is_taken = |output: &Output| output.is_complete && output.batches.is_empty();
        while self.outputs.get(&self.turn).is_some_and(is_taken) {
            self.outputs.remove(&self.turn);
            self.turn += 1;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use futures::FutureExt;

    use super::*;

    fn turns(chunks: usize, memory_bytes: usize) -> (ReorderBuffer, Arc<dyn MemoryPool>) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory_bytes));
        let memory = MemoryConsumer::new("test").register(&pool);
        (ReorderBuffer::new(chunks, memory, 4000), pool)
    }

    /// A batch of about 1 kB.
    fn batch(number: i64) -> RecordBatch {
        let column = Arc::new(Int64Array::from(vec![number; 125])) as _;
        RecordBatch::try_from_iter([("number", column)]).unwrap()
    }

    fn next(turns: &ReorderBuffer) -> Option<Option<i64>> {
        let number = |batch: RecordBatch| batch.column(0).as_primitive::<Int64Type>().value(0);
        turns.next().now_or_never().map(|batch| batch.map(number))
    }

    fn begin(turns: &ReorderBuffer, chunks: impl IntoIterator<Item = usize>) {
        for chunk in chunks {
            turns.ask(|| false).now_or_never().unwrap();
            turns.handed(Some(chunk));
        }
    }

    #[test]
    fn rows_come_chunk_by_chunk_in_order() {
        let (turns, pool) = turns(3, 1 << 20);
        begin(&turns, 0..3);
        for (chunk, number) in [(2, 20), (1, 10), (1, 11)] {
            turns.put(chunk, batch(number)).now_or_never().unwrap();
        }
        assert!(turns.complete(2).now_or_never().is_none(), "its rows were not taken");
        assert_eq!(next(&turns), None, "the first chunk has its turn");
        turns.put(0, batch(0)).now_or_never().unwrap();
        assert_eq!(next(&turns), Some(Some(0)));
        assert_eq!(next(&turns), None, "it may have more rows");
        turns.complete(0).now_or_never().unwrap();
        assert_eq!([next(&turns), next(&turns)], [Some(Some(10)), Some(Some(11))]);
        turns.complete(1).now_or_never().unwrap();
        assert_eq!([next(&turns), next(&turns)], [Some(Some(20)), Some(None)]);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn rows_ahead_have_only_the_memory_that_there_is() {
        let (turns, pool) = turns(3, 2500);
        begin(&turns, 0..3);
        let put = |chunk, number| turns.put(chunk, batch(number)).now_or_never().is_some();
        assert!(put(1, 10) && put(2, 20));
        assert!(!put(1, 11), "there is no memory");
        assert!(put(0, 0) && put(0, 1), "the chunk that has its turn needs none");
        assert!(!put(0, 2), "its rows are to be taken first");
        assert_eq!(next(&turns), Some(Some(0)));
        assert!(put(0, 2));
        assert!(turns.give_back(1) && put(2, 21), "that of rows given back is free");
        assert!(!turns.give_back(0), "rows of it were taken");
        drop(turns);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn while_memory_is_short_only_the_chunk_that_has_its_turn_is_asked_for() {
        let (turns, _) = turns(3, 1 << 20);
        let ask = || turns.ask(|| true).now_or_never().is_some();
        assert!(ask(), "nobody works on the first chunk");
        assert!(!ask(), "a task asks for it");
        turns.handed(Some(0));
        assert!(!ask(), "a task works on it");
        begin(&turns, [1]);
        assert!(turns.complete(0).now_or_never().is_some());
        assert!(!ask(), "a task works on the second chunk");
        begin(&turns, [2]);
        assert!(!turns.give_back(1) && turns.give_back(2), "only the third is ahead");
        assert!(turns.complete(1).now_or_never().is_some());
        assert!(ask(), "it was given back, and has its turn");
    }
}
