//! The evaluation of a dynamic filter in a partition, while that pays.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::and;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    CaseExpr, DynamicFilterPhysicalExpr, DynamicFilterTracking,
};
use log::debug;

use super::filter::DynamicFilter;
use super::key_bitmap::{KeyBitmap, not_false};
use super::sampling::Sampling;
use crate::filtering::conjunction::SPARSE_DIVISOR;
use crate::filtering::projected_predicate::ProjectedPredicate;
use crate::filtering::stream::RowTest;

/// A CASE with more branches, one for each partition of a join, is evaluated only for a bitmap: each branch looks at the rows that
/// the ones before have left.
const BRANCHES_MAX: usize = 8;

/// The evaluation of a filter in a partition.
pub(super) struct FilterEvaluation {
    predicate: ProjectedPredicate,
    bitmap: Option<Arc<KeyBitmap>>,
    pool: Arc<dyn MemoryPool>,
    /// Whether the filter is evaluated for the bitmap only, since that costs too much for all rows.
    waits_for_bitmap: bool,
    sampling: Sampling,
}

impl FilterEvaluation {
    /// The evaluation in a partition. The bitmap is common to all of them, and takes its memory from the pool.
    pub(super) fn new(filter: &DynamicFilter, pool: Arc<dyn MemoryPool>) -> Self {
        Self {
            predicate: filter.predicate().clone(),
            bitmap: filter.bitmap().cloned(),
            pool,
            waits_for_bitmap: false,
            sampling: Sampling::new(),
        }
    }

    /// The rows of a batch that pass: those for which the filter is not false; `None` if all do. If it cannot be evaluated, all
    /// pass: the operator that made the filter, a join or a top-k, drops the others itself.
    fn passes(&mut self, batch: &RecordBatch) -> Option<BooleanArray> {
        let rows = batch.num_rows();
        if self.sampling.rests_for(rows) {
            return None;
        }
        let evaluated = self.evaluate(batch).unwrap_or_else(|error| {
            debug!("a dynamic filter is left out: {error}");
            Some(BooleanBuffer::new_set(rows))
        });
        let passes = BooleanArray::new(evaluated?, None);
        let passed = passes.true_count();
        if self.sampling.add(rows, passed) {
            self.continue_by_bitmap();
        }
        (passed < rows).then_some(passes)
    }

    /// The rows of a batch that pass; `None` if the filter does not say yet.
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let columns = self.predicate.project(batch)?;
        if let Some(bitmap) = &self.bitmap {
            if let Some(bits) = bitmap.complete() {
                return bitmap.passes(bits, columns.column(0)).map(Some);
            }
            let extended = bitmap.extend(&self.predicate, columns.schema_ref());
            extended.unwrap_or_else(|error| debug!("a dynamic filter has no bitmap: {error}"));
        }
        if self.waits_for_bitmap {
            return Ok(None);
        }
        let met = self.predicate.evaluate_unless_true(&columns)?;
        Ok(met.as_ref().map(not_false))
    }

    /// Starts the bitmap, if the filter is final.
    fn continue_by_bitmap(&mut self) {
        if self.bitmap.as_ref().is_some_and(|bitmap| bitmap.complete().is_some()) {
            return;
        }
        let bitmap = self.bitmap.as_ref().filter(|_| self.is_final());
        bitmap.inspect(|bitmap| bitmap.start(&self.pool));
        if has_many_branches(self.predicate.expr()) {
            match bitmap {
                Some(_) => self.waits_for_bitmap = true,
                None => self.sampling.rest_for_good(),
            }
        }
    }

    /// Whether the filter will not change any more.
    fn is_final(&self) -> bool {
        let tracking = DynamicFilterTracking::classify(self.predicate.expr());
        matches!(tracking, DynamicFilterTracking::AllComplete)
    }
}

/// Whether a filter is a CASE with many branches now.
fn has_many_branches(filter: &Arc<dyn PhysicalExpr>) -> bool {
    let has_many = filter.exists(|part| {
        let Some(dynamic) = part.downcast_ref::<DynamicFilterPhysicalExpr>() else {
            return Ok(false);
        };
        dynamic.current()?.exists(|part| {
            let case = part.downcast_ref::<CaseExpr>();
            Ok(case.is_some_and(|case| case.when_then_expr().len() > BRANCHES_MAX))
        })
    });
    has_many.unwrap_or(false)
}

impl RowTest for Vec<FilterEvaluation> {
    fn passes(&mut self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        let mut passed: Option<BooleanArray> = None;
        for evaluation in self {
            if passed.as_ref().is_some_and(|it| it.true_count() * SPARSE_DIVISOR <= it.len()) {
                break;
            }
            let Some(passes) = evaluation.passes(batch) else { continue };
            passed = Some(match passed {
                Some(passed) => and(&passed, &passes)?,
                None => passes,
            });
        }
        Ok(passed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::super::key_bitmap::KeyRange;
    use super::super::sampling::SAMPLE_ROWS;
    use super::*;

    const BATCH_ROWS: usize = SAMPLE_ROWS / 2;
    const KEYS: i64 = 1_000;
    const BITMAP_BYTES: usize = KEYS as usize / 8;

    /// A dynamic filter that leaves all rows so far, and its evaluation with this much memory.
    fn evaluation(memory_bytes: usize) -> (Arc<DynamicFilterPhysicalExpr>, FilterEvaluation) {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let key = col("k", &schema).unwrap();
        let dynamic = Arc::new(DynamicFilterPhysicalExpr::new(vec![key], lit(true)));
        let predicate = ProjectedPredicate::new(&(Arc::clone(&dynamic) as _)).unwrap();
        let keys = KeyRange::new(&0_i64.into(), &(KEYS - 1).into()).unwrap();
        let filter = DynamicFilter::with_keys(predicate, Some(keys));
        let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
        (dynamic, FilterEvaluation::new(&filter, pool))
    }

    fn has_bitmap(evaluation: &FilterEvaluation) -> bool {
        evaluation.bitmap.as_ref().is_some_and(|bitmap| bitmap.complete().is_some())
    }

    fn update(filter: &DynamicFilterPhysicalExpr, operator: Operator, number: i64) {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let condition = binary(col("k", &schema).unwrap(), operator, lit(number), &schema);
        filter.update(condition.unwrap()).unwrap();
    }

    /// A batch with all keys. Every seventh row has none.
    fn batch() -> RecordBatch {
        let key = |row: usize| (!row.is_multiple_of(7)).then_some(row as i64 % KEYS);
        let keys: ArrayRef = Arc::new((0..BATCH_ROWS).map(key).collect::<Int64Array>());
        RecordBatch::try_from_iter([("k", keys)]).unwrap()
    }

    /// The number of rows of a batch that pass.
    fn passing(evaluation: &mut FilterEvaluation) -> usize {
        let passes = evaluation.passes(&batch());
        passes.map_or(BATCH_ROWS, |passes| passes.true_count())
    }

    /// The number of rows of a batch without a key, or with one that meets a condition.
    fn expected(test: impl Fn(i64) -> bool) -> usize {
        let batch = batch();
        let keys = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        keys.iter().filter(|key| key.is_none_or(&test)).count()
    }

    #[test]
    fn a_filter_that_says_nothing_yet_does_not_rest() {
        let (filter, mut evaluation) = evaluation(usize::MAX);
        for _ in 0..5 {
            assert_eq!(passing(&mut evaluation), BATCH_ROWS);
        }
        update(&filter, Operator::Lt, 100);
        assert_eq!(passing(&mut evaluation), expected(|key| key < 100));
    }

    #[test]
    fn a_filter_that_drops_many_rows_goes_on_and_changes_until_it_is_final() {
        let (filter, mut evaluation) = evaluation(usize::MAX);
        for number in [100, 50, 20] {
            update(&filter, Operator::Lt, number);
            for _ in 0..5 {
                assert_eq!(passing(&mut evaluation), expected(|key| key < number));
            }
            assert!(!has_bitmap(&evaluation), "it may still change");
        }
        filter.mark_complete();
        for _ in 0..5 {
            assert_eq!(passing(&mut evaluation), expected(|key| key < 20));
        }
        assert!(has_bitmap(&evaluation));
        assert_eq!(evaluation.pool.reserved(), BITMAP_BYTES);
    }

    #[test]
    fn without_memory_for_a_bitmap_rows_are_evaluated() {
        let (filter, mut evaluation) = evaluation(BITMAP_BYTES - 1);
        update(&filter, Operator::Lt, 100);
        filter.mark_complete();
        for _ in 0..8 {
            assert_eq!(passing(&mut evaluation), expected(|key| key < 100));
        }
        assert!(!has_bitmap(&evaluation));
    }

    #[test]
    fn a_case_of_many_branches_is_evaluated_for_a_sample_and_for_the_bitmap() {
        let is_below = |number: i64, schema: &Schema| {
            binary(col("k", schema).unwrap(), Operator::Lt, lit(number), schema).unwrap()
        };
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let remainder = binary(col("k", &schema).unwrap(), Operator::Modulo, lit(9_i64), &schema);
        let branches = (0..9_i64).map(|branch| (lit(branch), is_below(100, &schema))).collect();
        let case = CaseExpr::try_new(Some(remainder.unwrap()), branches, Some(lit(true)));
        let case: Arc<dyn PhysicalExpr> = Arc::new(case.unwrap());
        for (has_keys, later) in [(true, expected(|key| key < 100)), (false, BATCH_ROWS)] {
            let (filter, mut evaluation) = evaluation(usize::MAX);
            evaluation.bitmap = evaluation.bitmap.filter(|_| has_keys);
            filter.update(Arc::clone(&case)).unwrap();
            filter.mark_complete();
            for _ in 0..2 {
                assert_eq!(passing(&mut evaluation), expected(|key| key < 100), "in the sample");
            }
            assert_eq!(passing(&mut evaluation), BATCH_ROWS, "while there are no bits");
            for _ in 0..5 {
                assert_eq!(passing(&mut evaluation), later, "{has_keys}");
            }
        }
    }

    #[test]
    fn a_filter_that_fails_drops_no_rows() {
        let (filter, mut evaluation) = evaluation(usize::MAX);
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let quotient = binary(lit(1_i64), Operator::Divide, col("k", &schema).unwrap(), &schema);
        let fails = binary(quotient.unwrap(), Operator::Gt, lit(1_i64), &schema).unwrap();
        filter.update(fails).unwrap();
        assert_eq!(passing(&mut evaluation), BATCH_ROWS, "some key is 0");
    }

    #[test]
    fn of_several_filters_the_later_ones_are_not_evaluated_where_few_rows_have_passed() {
        let (first, first_evaluation) = evaluation(usize::MAX);
        let (second, second_evaluation) = evaluation(usize::MAX);
        let mut both = vec![first_evaluation, second_evaluation];
        let mut passing = || both.passes(&batch()).unwrap().unwrap().true_count();
        update(&first, Operator::Lt, 500);
        update(&second, Operator::Lt, 10);
        assert_eq!(passing(), expected(|key| key < 10));
        update(&first, Operator::Lt, 20);
        assert_eq!(passing(), expected(|key| key < 20));
    }
}
