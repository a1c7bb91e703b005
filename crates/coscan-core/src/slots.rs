//! Load slots: what may be read now, device by device. One that does not answer holds up none but its own scans.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{DeviceId, ScanId};
use crate::scan::Scan;
use crate::state::State;

/// The devices that no more may be read from now, or for some scans only.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    closed: BTreeSet<DeviceId>,
    urgent_only: BTreeSet<DeviceId>,
    urgent: BTreeSet<ScanId>,
}

/// Loads of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loading {
    pub(crate) usual: usize,
    pub(crate) urgent: usize,
    is_overdue: bool,
}

impl Slots {
    /// What the loads under way leave. Each device takes `max` loads, and as many that are urgent on top. Those do not
    /// pass a load that has been under way for too long (I5). `urgent` says which scans those are for; it is asked only
    /// if it matters.
    pub(crate) fn new(
        state: &State,
        max: usize,
        urgent: impl FnOnce() -> BTreeSet<ScanId>,
    ) -> Self {
        let mut slots = Self::default();
        for (device, loading) in loading(state) {
            if (loading.usual + loading.urgent) / 2 >= max {
                slots.closed.insert(device);
            } else if loading.usual < max {
                // Open to all.
            } else if loading.urgent < max && !loading.is_overdue {
                slots.urgent_only.insert(device);
            } else {
                slots.closed.insert(device);
            }
        }
        if !slots.urgent_only.is_empty() {
            slots.urgent = urgent();
            if slots.urgent.is_empty() {
                slots.closed.append(&mut slots.urgent_only);
            }
        }
        slots
    }

    /// Nothing more is read from a device.
    pub(crate) fn close(&mut self, device: DeviceId) {
        self.closed.insert(device);
    }

    /// Nothing is read from any of the devices that loads are under way from.
    pub(crate) fn close_busy(&mut self, state: &State) {
        self.closed.extend(state.loads.values().map(|load| load.device));
    }

    /// Whether nothing may be read from any of these devices.
    pub(crate) fn are_closed(&self, devices: impl IntoIterator<Item = DeviceId>) -> bool {
        devices.into_iter().all(|device| self.closed.contains(&device))
    }

    /// Whether nothing may be read from a device.
    #[must_use]
    pub fn is_closed(&self, device: DeviceId) -> bool {
        self.closed.contains(&device)
    }

    /// Whether something may be read for a scan.
    #[must_use]
    pub fn admit(&self, scan: &Scan) -> bool {
        let device = scan.device();
        !self.closed.contains(&device)
            && (!self.urgent_only.contains(&device) || self.urgent.contains(&scan.id()))
    }
}

/// The loads under way, by their device.
pub(crate) fn loading(state: &State) -> BTreeMap<DeviceId, Loading> {
    let mut devices: BTreeMap<_, Loading> = BTreeMap::new();
    for load in state.loads.values() {
        let loading = devices.entry(load.device).or_default();
        match load.urgent {
            true => loading.urgent += 1,
            false => loading.usual += 1,
        }
        loading.is_overdue |= state.is_overdue(load.started);
    }
    devices
}
