//! Incidents of the machines of a cluster: they crash, start and are cut off.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{PageIndex, Time};
use coscan_ring::{NodeId, Served};

use super::network::Event;
use super::{Cluster, Failure, Run};

/// An incident of machines, which are numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incident {
    /// A machine stops, and all that it holds is gone.
    Crash(usize),
    /// A machine stops after it has announced it: the others notice at once.
    Leave(usize),
    /// A machine starts, with nothing in memory, and runs its queries from the first one on. It crashes before if it runs.
    Start(usize),
    /// These machines and the others do not reach each other any more. A cut before this one ends.
    Cut(Vec<usize>),
    /// Messages of these machines do not reach the others any more. A cut before this one ends.
    CutOneWay(Vec<usize>),
    /// All reach each other again.
    Heal,
    /// The link of a machine carries only one byte in this many from now on.
    Slow(usize, u32),
}

/// An event of the cluster.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    Incident(Incident),
    /// A machine notices which others it hears.
    Notice(usize),
}

impl Happening {
    /// The machine that starts.
    pub(super) fn starts(&self) -> Option<usize> {
        match self {
            Happening::Incident(Incident::Start(machine)) => Some(*machine),
            _ => None,
        }
    }
}

pub(super) fn planned(incidents: &[(Time, Incident)]) -> BTreeMap<(Time, usize), Happening> {
    let happenings = incidents.iter().enumerate();
    happenings
        .map(|(index, (at, incident))| ((*at, index), Happening::Incident(incident.clone())))
        .collect()
}

/// The machines that exist from the beginning.
pub(super) fn first_there(cluster: &Cluster) -> Vec<usize> {
    let starts_later = |machine: &usize| {
        let mut of_machine: Vec<_> = cluster.incidents.iter().filter(|(_, incident)| {
            matches!(incident, Incident::Start(it) | Incident::Crash(it) | Incident::Leave(it) if it == machine)
        }).collect();
        of_machine.sort_by_key(|(at, _)| *at);
        matches!(of_machine.first(), Some((_, Incident::Start(_))))
    };
    (0..cluster.nodes).filter(|machine| !starts_later(machine)).collect()
}

impl Run<'_> {
    pub(super) fn happen(&mut self, at: Time, happening: Happening) -> Result<(), Failure> {
        let incident = match happening {
            Happening::Notice(machine) => return self.notice(at, machine),
            Happening::Incident(incident) => incident,
        };
        match incident {
            Incident::Crash(machine) => self.crash(at, machine)?,
            Incident::Leave(machine) => {
                self.crash(at, machine)?;
                self.notice_all(at)?;
            }
            Incident::Start(machine) => {
                self.crash(at, machine)?;
                // Others see that its connections are new, so they have noticed that the old ones
                // are gone.
                self.notice_all(at)?;
                self.start(at, machine)?;
            }
            Incident::Cut(machines) => self.cut(at, machines, false)?,
            Incident::CutOneWay(machines) => self.cut(at, machines, true)?,
            Incident::Heal => self.cut(at, Vec::new(), false)?,
            Incident::Slow(machine, part) => self.links.slow(NodeId(machine as u64), part),
        }
        // Each has a time of its own, in no order.
        let machines = self.machines.len();
        for machine in 0..machines {
            let turn = (machine * 7 + at.0 as usize) % machines + 1;
            let after_ns = self.cluster.notice_ns / machines as u64 * turn as u64;
            self.noticed += 1;
            let order = self.cluster.incidents.len() + self.noticed;
            let notice_at = Time(at.0.saturating_add(after_ns));
            self.happenings.insert((notice_at, order), Happening::Notice(machine));
        }
        Ok(())
    }

    fn cut(&mut self, at: Time, machines: Vec<usize>, one_way: bool) -> Result<(), Failure> {
        // Connections end with the cut: a machine that hears others again has noticed that.
        self.notice_all(at)?;
        self.cut_off = machines.into_iter().collect();
        self.is_cut_one_way = one_way;
        self.lose(at)
    }

    fn crash(&mut self, at: Time, machine: usize) -> Result<(), Failure> {
        self.crashed.extend(self.machines[machine].take());
        self.due_of[machine].take().map(|due| self.due.remove(&(due, machine)));
        self.members[machine].clear();
        self.lose(at)
    }

    /// Whether messages come from one machine to another.
    pub(super) fn reaches(&self, from: usize, to: usize) -> bool {
        let runs = |machine: usize| self.machines[machine].is_some();
        let (from_off, to_off) = (self.cut_off.contains(&from), self.cut_off.contains(&to));
        runs(from) && runs(to) && (from_off == to_off || self.is_cut_one_way && to_off)
    }

    /// Loses everything in flight between machines that do not reach each other.
    fn lose(&mut self, at: Time) -> Result<(), Failure> {
        let under_way = std::mem::take(&mut self.links.under_way);
        let (kept, lost): (BTreeMap<_, _>, BTreeMap<_, _>) =
            under_way.into_iter().partition(|(_, event)| {
                let (from, to) = event.ends();
                self.reaches(from.0 as usize, to.0 as usize)
            });
        self.links.under_way = kept;
        for (from, served, page) in lost.into_values().filter_map(Event::untaken) {
            self.lost(at, from.0 as usize, served, page)?;
        }
        Ok(())
    }

    /// Notes that a page that a machine has sent will not come, because its connection has dropped it.
    pub(super) fn lost(
        &mut self,
        at: Time,
        machine: usize,
        served: Served,
        page: PageIndex,
    ) -> Result<(), Failure> {
        self.on(at, machine, |machine| machine.taken(at, served, page))
    }

    /// Makes a machine notice which others it hears.
    fn notice(&mut self, at: Time, machine: usize) -> Result<(), Failure> {
        let heard = (0..self.machines.len()).filter(|&other| self.reaches(other, machine));
        let members: BTreeSet<_> = heard.collect();
        if self.members[machine] != members {
            let ids: Vec<_> = members.iter().map(|&member| NodeId(member as u64)).collect();
            self.members[machine] = members;
            return self.on(at, machine, |machine| machine.set_members(at, &ids));
        }
        // The announcements of others that took this one for alive are lost with their connections.
        for other in 0..self.machines.len() {
            if !self.members[machine].contains(&other) {
                let other = NodeId(other as u64);
                self.on(at, machine, |machine| machine.disconnected(at, other))?;
            }
        }
        Ok(())
    }

    /// Makes all machines notice at the same time.
    pub(super) fn notice_all(&mut self, at: Time) -> Result<(), Failure> {
        (0..self.machines.len()).try_for_each(|machine| self.notice(at, machine))
    }
}
