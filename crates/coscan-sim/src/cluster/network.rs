//! The network. A page passes the sender's link, those of the switches between them, and the receiver's; each link carries
//! one page at a time. Other messages are small and only take the latency.

use std::collections::BTreeMap;

use coscan_core::{PageIndex, Time};
use coscan_ring::{FileId, Message, NodeId, Served};

use crate::disk::transfer_ns;

/// A network in which each machine has one link, to the switch of its rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Bytes per second of a link, each way.
    pub bytes_per_second: u64,
    /// Nanoseconds from machine to machine.
    pub latency_ns: u64,
    /// The racks; `None` if all machines are at one switch.
    pub racks: Option<Racks>,
}

/// Racks of machines that follow each other. Messages from one to another pass the links of both switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Racks {
    /// The machines of a rack.
    pub machines: usize,
    /// Bytes per second of the link of a switch, each way.
    pub bytes_per_second: u64,
}

/// An event of the network.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The link of a machine has taken a page.
    Taken { from: NodeId, served: Served, file: FileId, page: PageIndex, bytes: u64 },
    /// A message has come.
    Delivered { from: NodeId, to: NodeId, message: Message },
}

impl Event {
    /// The sender and the receiver.
    pub(super) fn ends(&self) -> (NodeId, NodeId) {
        match self {
            Event::Taken { from, served, .. } => (*from, served.node),
            Event::Delivered { from, to, .. } => (*from, *to),
        }
    }

    /// The page that the link has not taken yet, and its sender.
    pub(super) fn untaken(self) -> Option<(NodeId, Served, PageIndex)> {
        match self {
            Event::Taken { from, served, page, .. } => Some((from, served, page)),
            Event::Delivered { .. } => None,
        }
    }
}

/// The links of all machines, and the messages in flight.
#[derive(Clone, Debug)]
pub(super) struct Links {
    network: Network,
    /// The times when the link of each machine is free, to send and to receive.
    free: Vec<[Time; 2]>,
    /// The times when the link of the switch of each rack is free.
    free_of_racks: Vec<[Time; 2]>,
    /// The factor by which a byte takes longer on the link of each machine.
    slow: Vec<u32>,
    /// The events by time and order.
    pub(super) under_way: BTreeMap<(Time, u64), Event>,
    sequence: u64,
}

impl Links {
    pub(super) fn new(network: Network, nodes: usize) -> Self {
        let racks = network.racks.map_or(0, |racks| nodes.div_ceil(racks.machines.max(1)));
        Self {
            network,
            free: vec![[Time::default(); 2]; nodes],
            free_of_racks: vec![[Time::default(); 2]; racks],
            slow: vec![1; nodes],
            under_way: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// Slows the link of a machine down to one byte in `part`.
    pub(super) fn slow(&mut self, node: NodeId, part: u32) {
        self.slow[node.0 as usize] = part.max(1);
    }

    fn transfer_ns(&self, node: NodeId, bytes: u64) -> u64 {
        let part = u64::from(self.slow[node.0 as usize]);
        transfer_ns(bytes, self.network.bytes_per_second).saturating_mul(part)
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Sends a message without pages.
    pub(super) fn send(&mut self, now: Time, from: NodeId, to: NodeId, message: Message) {
        self.add(after(now, self.network.latency_ns), Event::Delivered { from, to, message });
    }

    pub(super) fn send_page(
        &mut self,
        now: Time,
        (from, served): (NodeId, Served),
        (file, page): (FileId, PageIndex),
        bytes: u64,
    ) {
        let busy_ns = self.transfer_ns(from, bytes);
        let [sending, _] = &mut self.free[from.0 as usize];
        let taken = after((*sending).max(now), busy_ns);
        *sending = taken;
        self.add(taken, Event::Taken { from, served, file, page, bytes });
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Event)> {
        let ((now, _), event) = self.under_way.pop_first()?;
        if let Event::Taken { from, served: Served { node: to, get }, file, page, bytes } = event {
            // The page arrives while it is sent, unless another link on its way is busy.
            let mut come = after(now, self.network.latency_ns);
            if let Some(racks) = self.network.racks {
                let rack_of = |node: NodeId| node.0 as usize / racks.machines.max(1);
                let busy_ns = transfer_ns(bytes, racks.bytes_per_second);
                for (rack, way) in [(rack_of(from), 0), (rack_of(to), 1)] {
                    if rack_of(from) != rack_of(to) {
                        pass(&mut come, &mut self.free_of_racks[rack][way], busy_ns);
                    }
                }
            }
            let busy_ns = self.transfer_ns(to, bytes);
            pass(&mut come, &mut self.free[to.0 as usize][1], busy_ns);
            let message = Message::Pages { get, file, pages: vec![page] };
            self.add(come, Event::Delivered { from, to, message });
        }
        Some((now, event))
    }

    fn add(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.under_way.insert((at, self.sequence), event);
    }
}

/// Passes a page over a link, which it has done when the link has been free for long enough.
fn pass(come: &mut Time, free: &mut Time, busy_ns: u64) {
    *come = (*come).max(after(*free, busy_ns));
    *free = *come;
}

fn after(time: Time, ns: u64) -> Time {
    Time(time.0.saturating_add(ns))
}
