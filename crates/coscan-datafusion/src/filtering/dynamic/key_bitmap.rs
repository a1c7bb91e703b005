//! The keys that pass a filter, as a bit for each.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, Int64Array, RecordBatch,
};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::cast::as_int64_array;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::filtering::projected_predicate::ProjectedPredicate;

/// The most keys of a bitmap: 1 MiB.
const KEYS_MAX: u64 = 1 << 23;

/// The number of keys for which the filter is evaluated in one go: so few that other queries need not wait.
const PIECE_KEYS: u64 = 1 << 15;

/// The integers from `first` on, `count` of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    first: i64,
    count: u64,
}

impl KeyRange {
    /// The range between two values; `None` if they are no integers, or too far apart.
    pub(super) fn new(first: &ScalarValue, last: &ScalarValue) -> Option<Self> {
        let is_integer = |value: &ScalarValue| {
            let data_type = value.data_type();
            data_type.is_integer() && data_type != DataType::UInt64 || data_type == DataType::Date32
        };
        let number = |value: &ScalarValue| match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) if is_integer(value) => number,
            _ => None,
        };
        let (first, last) = (number(first)?, number(last)?);
        let count = u64::try_from(last.checked_sub(first)?).ok()?.checked_add(1)?;
        (count <= KEYS_MAX).then_some(Self { first, count })
    }

    pub(super) fn count(self) -> u64 {
        self.count
    }

    pub(super) fn bitmap_bytes(self) -> usize {
        self.count.div_ceil(8) as usize
    }
}

/// A bit for each key of a range: whether the key passes a filter that is final. All partitions of an operator compute it together,
/// piece by piece.
#[derive(Debug)]
pub(super) struct KeyBitmap {
    keys: KeyRange,
    complete: OnceLock<BooleanBuffer>,
    progress: Mutex<Progress>,
}

/// The bits so far, and their memory.
#[derive(Debug, Default)]
enum Progress {
    #[default]
    NotStarted,
    Started(BooleanBufferBuilder, MemoryReservation),
    Complete(
        #[expect(dead_code, reason = "frees the memory when it is dropped")] MemoryReservation,
    ),
    /// The filter cannot be evaluated for a key, or there is no memory.
    Abandoned,
}

impl KeyBitmap {
    pub(super) fn new(keys: KeyRange) -> Self {
        Self { keys, complete: OnceLock::new(), progress: Mutex::default() }
    }

    pub(super) fn keys(&self) -> KeyRange {
        self.keys
    }

    /// The bits of all keys, once they are known.
    pub(super) fn complete(&self) -> Option<&BooleanBuffer> {
        self.complete.get()
    }

    /// Starts, unless a partition has, or is about to. The filter has to be final.
    pub(super) fn start(&self, pool: &Arc<dyn MemoryPool>) {
        let Ok(mut progress) = self.progress.try_lock() else { return };
        if matches!(*progress, Progress::NotStarted) {
            let memory = MemoryConsumer::new("bitmap of DynamicFilterExec").register(pool);
            *progress = match memory.try_grow(self.keys.bitmap_bytes()) {
                Ok(()) => {
                    Progress::Started(BooleanBufferBuilder::new(self.keys.count as usize), memory)
                }
                Err(_) => Progress::Abandoned,
            };
        }
    }

    /// If it has started, evaluates the filter, whose only column is that of the schema, for the next keys. Does nothing while another
    /// partition does that.
    ///
    /// # Errors
    /// If the filter cannot be evaluated for them. The bitmap is given up.
    pub(super) fn extend(&self, filter: &ProjectedPredicate, schema: &SchemaRef) -> Result<()> {
        let Ok(mut progress) = self.progress.try_lock() else { return Ok(()) };
        // What ends early gives up.
        match std::mem::replace(&mut *progress, Progress::Abandoned) {
            Progress::Started(mut bits, memory) => {
                let from = bits.len() as u64;
                let to = self.keys.count.min(from + PIECE_KEYS);
                bits.append_buffer(&self.passing(from..to, filter, schema)?);
                *progress = if to < self.keys.count {
                    Progress::Started(bits, memory)
                } else {
                    self.complete.get_or_init(|| bits.finish());
                    Progress::Complete(memory)
                };
            }
            other => *progress = other,
        }
        Ok(())
    }

    /// Whether each of these keys of the range passes.
    fn passing(
        &self,
        keys: Range<u64>,
        filter: &ProjectedPredicate,
        schema: &SchemaRef,
    ) -> Result<BooleanBuffer> {
        let keys: Vec<_> = keys.map(|key| self.keys.first + key as i64).collect();
        let keys = cast(&Int64Array::from(keys), schema.field(0).data_type())?;
        let keys = RecordBatch::try_new(Arc::clone(schema), vec![keys])?;
        Ok(not_false(&filter.evaluate(&keys)?))
    }

    /// The rows that pass by the bits of their keys. Rows without a key, or with one outside of the range, do.
    ///
    /// # Errors
    /// If the keys cannot be cast to integers.
    pub(super) fn passes(&self, bits: &BooleanBuffer, keys: &ArrayRef) -> Result<BooleanBuffer> {
        let keys = cast(keys, &DataType::Int64)?;
        let keys = as_int64_array(&keys)?;
        let (numbers, first) = (keys.values(), self.keys.first);
        let passes = BooleanBuffer::collect_bool(numbers.len(), |row| {
            let key = numbers[row].wrapping_sub(first) as u64;
            key >= self.keys.count || bits.value(key as usize)
        });
        Ok(not_false(&BooleanArray::new(passes, keys.nulls().cloned())))
    }
}

/// Whether each result is true or NULL.
pub(super) fn not_false(met: &BooleanArray) -> BooleanBuffer {
    match met.nulls() {
        Some(nulls) => met.values() | &!nulls.inner(),
        None => met.values().clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use datafusion::arrow::array::{Date32Array, Int16Array, Int32Array, UInt8Array};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{binary, col, in_list, lit};

    use super::*;

    #[test]
    fn only_integers_that_are_near_each_other_have_a_range() {
        let range = |first: ScalarValue, last: ScalarValue| {
            KeyRange::new(&first, &last).map(|range| (range.first, range.count))
        };
        assert_eq!(range(3_i32.into(), 3_i32.into()), Some((3, 1)));
        assert_eq!(range((-2_i64).into(), 5_i64.into()), Some((-2, 8)));
        assert_eq!(
            range(ScalarValue::Date32(Some(9)), ScalarValue::Date32(Some(10))),
            Some((9, 2))
        );
        assert_eq!(range(5_i64.into(), 3_i64.into()), None, "the wrong way round");
        assert_eq!(range(i64::MIN.into(), i64::MAX.into()), None);
        assert_eq!(range(0_i64.into(), i64::try_from(KEYS_MAX).unwrap().into()), None);
        assert_eq!(range(1_u64.into(), 2_u64.into()), None, "some do not fit");
        assert_eq!(range(1.0_f64.into(), 2.0_f64.into()), None);
        assert_eq!(range("1".into(), "2".into()), None);
        assert_eq!(range(ScalarValue::Int64(None), 2_i64.into()), None);
    }

    fn schema_of(data_type: &DataType) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("k", data_type.clone(), true)]))
    }

    /// A bitmap of some keys for a filter on them.
    fn complete(
        (first, last): (i64, i64),
        filter: &Arc<dyn PhysicalExpr>,
        data_type: &DataType,
    ) -> KeyBitmap {
        let bitmap = KeyBitmap::new(KeyRange::new(&first.into(), &last.into()).unwrap());
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        bitmap.start(&pool);
        let filter = ProjectedPredicate::new(filter).unwrap();
        let pieces = bitmap.keys.count.div_ceil(PIECE_KEYS);
        for piece in 0..pieces {
            assert!(bitmap.complete().is_none(), "before piece {piece}");
            bitmap.extend(&filter, &schema_of(data_type)).unwrap();
        }
        assert!(bitmap.complete().is_some());
        assert_eq!(pool.reserved(), bitmap.keys.bitmap_bytes());
        bitmap
    }

    fn passing(bitmap: &KeyBitmap, keys: ArrayRef) -> Vec<bool> {
        bitmap.passes(bitmap.complete().unwrap(), &keys).unwrap().iter().collect()
    }

    fn literal(number: i64, data_type: &DataType) -> Arc<dyn PhysicalExpr> {
        lit(ScalarValue::Int64(Some(number)).cast_to(data_type).unwrap())
    }

    #[test]
    fn keys_that_pass_the_filter_or_are_unknown_pass() {
        let expected = [true, false, true, true, false, true, true];
        let numbers = [Some(-6), Some(-5), Some(-3), Some(4), Some(8), Some(9), None];
        let days = numbers.map(|key| key.map(i32::from)).to_vec();
        let columns: [ArrayRef; 3] = [
            Arc::new(Int16Array::from(numbers.to_vec())),
            Arc::new(Int32Array::from(days.clone())),
            Arc::new(Date32Array::from(days)),
        ];
        for keys in columns {
            let data_type = keys.data_type().clone();
            let schema = schema_of(&data_type);
            let key = col("k", &schema).unwrap();
            let list = vec![literal(-3, &data_type), literal(4, &data_type)];
            let listed = in_list(Arc::clone(&key), list, &false, &schema).unwrap();
            let small = binary(key, Operator::LtEq, literal(4, &data_type), &schema).unwrap();
            let filter = binary(listed, Operator::And, small, &schema).unwrap();
            let bitmap = complete((-5, 8), &filter, &data_type);
            assert_eq!(passing(&bitmap, keys), expected, "{data_type}");
        }
    }

    #[test]
    fn it_is_made_piece_by_piece() {
        let schema = schema_of(&DataType::Int64);
        let key = col("k", &schema).unwrap();
        let filter = binary(key, Operator::Gt, lit(70_000_i64), &schema).unwrap();
        let bitmap = complete((1, 80_000), &filter, &DataType::Int64);
        let keys = Arc::new(Int64Array::from(vec![1, 70_000, 70_001, 80_000]));
        assert_eq!(passing(&bitmap, keys), [false, false, true, true]);
    }

    #[test]
    fn unsigned_keys_are_looked_up() {
        let schema = schema_of(&DataType::UInt8);
        let filter = binary(col("k", &schema).unwrap(), Operator::Gt, lit(1_u8), &schema);
        let bitmap = complete((1, 2), &filter.unwrap(), &DataType::UInt8);
        let keys = Arc::new(UInt8Array::from(vec![0, 1, 2, 255]));
        assert_eq!(passing(&bitmap, keys), [true, false, true, true]);
    }

    #[test]
    fn without_memory_or_if_a_key_fails_it_is_given_up() {
        let schema = schema_of(&DataType::Int64);
        let quotient = binary(lit(1_i64), Operator::Divide, col("k", &schema).unwrap(), &schema);
        let fails = binary(quotient.unwrap(), Operator::Gt, lit(0_i64), &schema).unwrap();
        let filter = ProjectedPredicate::new(&fails).unwrap();
        let range = KeyRange::new(&(-5_i64).into(), &5_i64.into()).unwrap();
        for (memory_bytes, fails) in [(1, false), (2, true)] {
            let bitmap = KeyBitmap::new(range);
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory_bytes));
            bitmap.start(&pool);
            assert_eq!(bitmap.extend(&filter, &schema).is_err(), fails, "{memory_bytes} bytes");
            assert_eq!(pool.reserved(), 0);
            bitmap.start(&pool);
            bitmap.extend(&filter, &schema).unwrap();
            assert!(bitmap.complete().is_none());
        }
    }
}
