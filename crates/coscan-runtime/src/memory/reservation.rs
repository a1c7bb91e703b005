//! Memory taken for arrays before they are decoded, and charged to their buffers afterwards.
//!
//! A [`Reservation`] becomes a [`Charge`] for each buffer. Buffers that several arrays refer to, such as the strings of
//! a page, have one charge: it lasts until the last reference is gone, wherever that is by then.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arrow::array::ArrayData;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, MemoryPool, MemoryReservation};
use coscan_core::MissingMemory;

use super::budget::MemoryBudget;
use super::credit::Credit;
use super::usage::MemoryUser;
use crate::sync::destructor::InDestructor;

thread_local! {
    /// Bytes of buffers that this thread has charged, less those whose last reference it dropped.
    static CHARGED_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The bytes of decoded columns that the calling thread has made, less those whose last reference it dropped. The
/// budget counts them, whichever query they were made for. Code that measures the allocations of a query subtracts
/// them.
#[must_use]
pub fn thread_decoded_bytes() -> i64 {
    CHARGED_BYTES.get()
}

fn count_charged(bytes: i64) {
    // While a thread ends the variable may no longer exist.
    let _ = CHARGED_BYTES.try_with(|charged| charged.set(charged.get().wrapping_add(bytes)));
}

/// Memory taken for decoding. What is not charged to buffers is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    credit: Arc<Credit>,
    left_bytes: u64,
}

/// The charges so far, by the address of the buffer. Addresses of freed buffers may be reused.
#[derive(Debug, Default)]
pub(crate) struct Charges(BTreeMap<usize, Weak<Charge>>);

impl Reservation {
    /// Takes memory for decoding, if there is enough.
    ///
    /// # Errors
    /// The missing bytes.
    pub(crate) fn try_new(memory: &Arc<MemoryBudget>, bytes: u64) -> Result<Self, MissingMemory> {
        memory.try_take(MemoryUser::Decoded, bytes)?;
        Ok(Self { credit: Arc::clone(memory.credit()), left_bytes: bytes })
    }

    /// A reservation of memory that core has handed out for it.
    pub(crate) fn granted(credit: &Arc<Credit>, bytes: u64) -> Self {
        credit.hold(MemoryUser::Decoded, bytes);
        Self { credit: Arc::clone(credit), left_bytes: bytes }
    }

    /// Returns the memory to core instead of to others. Returns the number of bytes.
    pub(crate) fn into_bytes(mut self) -> u64 {
        let bytes = std::mem::take(&mut self.left_bytes);
        self.credit.hold_no_longer(MemoryUser::Decoded, bytes);
        bytes
    }

    /// Bytes not charged yet.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Adds another reservation to this one.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.left_bytes += std::mem::take(&mut other.left_bytes);
    }

    /// Splits off a part, at most the bytes that are left.
    pub(crate) fn split_off(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.left_bytes);
        self.left_bytes -= bytes;
        Self { credit: Arc::clone(&self.credit), left_bytes: bytes }
    }

    /// Charges the buffers of an array to the budget until the last reference to them is gone. If they turn out larger
    /// than what is left here, they are nevertheless charged.
    pub(crate) fn charge(&mut self, array: &ArrayRef, charges: &mut Charges) {
        self.charge_data(&array.to_data(), charges);
    }

    fn charge_data(&mut self, data: &ArrayData, charges: &mut Charges) {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            buffer.claim(&Shared(self.charge_of(buffer, charges)));
        }
        data.child_data().iter().for_each(|child| self.charge_data(child, charges));
    }

    fn charge_of(&mut self, buffer: &Buffer, charges: &mut Charges) -> Arc<Charge> {
        let address = buffer.data_ptr().as_ptr() as usize;
        if let Some(charge) = charges.0.get(&address).and_then(Weak::upgrade) {
            return charge;
        }
        let bytes = buffer.capacity() as u64;
        let covered = bytes.min(self.left_bytes);
        self.left_bytes -= covered;
        self.credit.take(MemoryUser::Decoded, bytes - covered);
        count_charged(bytes.cast_signed());
        let charge = Charge { credit: Arc::clone(&self.credit), bytes: AtomicU64::new(bytes) };
        let charge = Arc::new(charge);
        charges.0.insert(address, Arc::downgrade(&charge));
        charge
    }
}

impl Charges {
    /// Bytes of the buffers that are still referenced.
    pub(crate) fn bytes(&self) -> u64 {
        let charges = self.0.values().filter_map(Weak::upgrade);
        charges.map(|charge| charge.bytes.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        self.credit.give(MemoryUser::Decoded, self.left_bytes);
    }
}

/// Bytes of one buffer.
#[derive(Debug)]
struct Charge {
    credit: Arc<Credit>,
    bytes: AtomicU64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let bytes = *self.bytes.get_mut();
        count_charged(-bytes.cast_signed());
        self.credit.give(MemoryUser::Decoded, bytes);
    }
}

/// A charge as Arrow's buffers hold it.
#[derive(Debug)]
struct Shared(Arc<Charge>);

impl MemoryPool for Shared {
    /// The existing charge, whatever size is asked for.
    fn reserve(&self, _size: usize) -> Box<dyn MemoryReservation> {
        Box::new(Self(Arc::clone(&self.0)))
    }

    fn available(&self) -> isize {
        0
    }

    fn used(&self) -> usize {
        self.size()
    }

    fn capacity(&self) -> usize {
        self.size()
    }
}

impl MemoryReservation for Shared {
    fn size(&self) -> usize {
        usize::try_from(self.0.bytes.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    fn resize(&mut self, new_size: usize) {
        let new_bytes = new_size as u64;
        let old_bytes = self.0.bytes.swap(new_bytes, Ordering::Relaxed);
        count_charged(new_bytes.cast_signed() - old_bytes.cast_signed());
        self.0.credit.take(MemoryUser::Decoded, new_bytes.saturating_sub(old_bytes));
        self.0.credit.give(MemoryUser::Decoded, old_bytes.saturating_sub(new_bytes));
    }
}
