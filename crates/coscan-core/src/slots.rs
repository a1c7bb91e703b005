//! Load slots: how much more may be read now, for each device. A device that does not answer delays only its own scans.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::DeviceId;
use crate::scan::{PriorityBounds, PriorityClass, Scan};
use crate::state::State;

/// Reading ahead stops when one byte in this many of the pool waits for other servers. In simulation, one in two read
/// up to 50 % more from devices, and one in eight took up to 30 % longer.
const PEER_BYTES_DIVISOR: u64 = 4;

/// The devices without free slots, or with slots for urgent scans only.
#[derive(Clone, Debug, Default)]
pub struct LoadSlots {
    closed: BTreeSet<DeviceId>,
    urgent_only: BTreeSet<DeviceId>,
    /// The bounds of the priority classes: tiny scans are urgent.
    bounds: PriorityBounds,
    /// The devices with at least half of their slots taken, or for which enough is to come from other servers.
    no_read_ahead: BTreeSet<DeviceId>,
}

/// The loads in flight from a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceLoads {
    pub(crate) usual: usize,
    pub(crate) urgent: usize,
    /// The loads that are not urgent and have taken too long.
    overdue: usize,
    /// Bytes that are to come from other servers.
    peer_bytes: u64,
}

impl DeviceLoads {
    /// Whether another urgent load may start, of at most `max`. One that is overdue takes the slot of an urgent one: it
    /// may be waiting for a device that answers urgent requests first, and when all are overdue, none passes them any
    /// more (I5). Or it is stuck, and others need not wait for it.
    pub(crate) fn admit_urgent(self, max: usize) -> bool {
        self.urgent + self.overdue < max
    }
}

impl LoadSlots {
    /// The slots that the loads in flight leave. Each device takes `max` loads and as many urgent ones, less those that are
    /// overdue. Urgent loads are for scans that are tiny by `bounds`.
    pub(crate) fn new(state: &State, max: usize, bounds: PriorityBounds) -> Self {
        let mut slots = Self { bounds, ..Self::default() };
        for (device, loads) in loads_by_device(state) {
            if loads.usual.saturating_mul(2) >= max
                || loads.peer_bytes > state.pool_bytes() / PEER_BYTES_DIVISOR
            {
                slots.no_read_ahead.insert(device);
            }
            if (loads.usual + loads.urgent) / 2 >= max {
                slots.closed.insert(device);
            } else if loads.usual < max {
                // There are load slots for all.
            } else if loads.admit_urgent(max) {
                slots.urgent_only.insert(device);
            } else {
                slots.closed.insert(device);
            }
        }
        if !slots.urgent_only.is_empty() && state.tiny_scans(bounds).next().is_none() {
            slots.closed.append(&mut slots.urgent_only);
        }
        slots
    }

    /// Takes all slots of a device.
    pub(crate) fn close(&mut self, device: DeviceId) {
        self.closed.insert(device);
    }

    /// Takes all slots of devices with loads in flight.
    pub(crate) fn close_busy(&mut self, state: &State) {
        let in_slots = state.loads.values().filter(|load| load.takes_slot());
        self.closed.extend(in_slots.map(|load| load.device));
    }

    /// Whether none of these devices has a free slot.
    pub(crate) fn are_closed(&self, devices: impl IntoIterator<Item = DeviceId>) -> bool {
        devices.into_iter().all(|device| self.closed.contains(&device))
    }

    /// Whether a device has no free slot.
    #[must_use]
    pub fn is_closed(&self, device: DeviceId) -> bool {
        self.closed.contains(&device)
    }

    /// Whether a load for a scan may start.
    #[must_use]
    pub fn admit(&self, scan: &Scan) -> bool {
        let device = scan.device();
        !self.closed.contains(&device)
            && (!self.urgent_only.contains(&device) || self.is_urgent(scan))
    }

    fn is_urgent(&self, scan: &Scan) -> bool {
        self.bounds.priority_of(scan.size(), scan.chunks_in_all()) == PriorityClass::Tiny
    }

    /// Whether a load may start that reads further ahead for a scan: it leaves half of the slots of a device to scans
    /// that lack something later, lookups among them.
    #[must_use]
    pub fn admit_ahead(&self, scan: &Scan) -> bool {
        self.admit(scan) && !self.no_read_ahead.contains(&scan.device())
    }
}

/// The loads in flight, by device.
pub(crate) fn loads_by_device(state: &State) -> BTreeMap<DeviceId, DeviceLoads> {
    let mut devices: BTreeMap<_, DeviceLoads> = BTreeMap::new();
    for load in state.loads.values() {
        let loads = devices.entry(load.device).or_default();
        loads.peer_bytes += load.from_peers.iter().map(|&page| state.bytes_of(page)).sum::<u64>();
        if !load.takes_slot() {
        } else if load.urgent {
            loads.urgent += 1;
        } else {
            loads.usual += 1;
            loads.overdue += usize::from(state.is_overdue(load.started));
        }
    }
    devices
}
