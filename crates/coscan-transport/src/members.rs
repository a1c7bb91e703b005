//! The servers that share with this one: those that are alive, that it reaches and that reach it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_runtime::Cluster;
use coscan_runtime::core::Time;
use coscan_runtime::ring::{Member, Membership, MembershipAction};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::credentials::MutualTls;
use crate::frame;
use crate::link::LinkStatus;
use crate::links::Links;
use crate::node_id::node_id;

/// The other servers.
#[derive(Debug)]
pub(crate) struct Members {
    /// The address of this one.
    pub(crate) own: String,
    pub(crate) tls: MutualTls,
    pub(crate) links: Arc<Links>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) stopping: CancellationToken,
    membership: Mutex<Membership>,
    started: Instant,
    runtime: Handle,
    /// Notified when the next timer may be due earlier than it was.
    rescheduled: Notify,
    /// Held while the cluster is told which servers share, so that the last message to it is true. The set has the
    /// servers that were reported as sharing something else.
    telling: Mutex<BTreeSet<String>>,
}

impl Members {
    pub(crate) fn new(
        own: Member,
        seed: u64,
        tls: MutualTls,
        links: Arc<Links>,
        cluster: Arc<Cluster>,
    ) -> Self {
        Self {
            own: own.address.clone(),
            tls,
            links,
            cluster,
            stopping: CancellationToken::new(),
            membership: Mutex::new(Membership::new(own, seed)),
            started: Instant::now(),
            runtime: Handle::current(),
            rescheduled: Notify::new(),
            telling: Mutex::default(),
        }
    }

    /// Keeps a connection to the server at this address while it is alive.
    pub(crate) fn meet(self: &Arc<Self>, address: &str) {
        if address == self.own || self.stopping.is_cancelled() {
            return;
        }
        let Some((queue, fragments)) = self.links.open(address) else { return };
        self.runtime.spawn(fragments.run(Arc::clone(self)));
        let (this, address) = (Arc::clone(self), address.to_owned());
        self.runtime.spawn(async move {
            let changed = |status| match status {
                // Either the server may be new here, or this server there.
                LinkStatus::OneWay => {
                    this.act(|membership, now| membership.introduce(now, &address))
                }
                LinkStatus::Up | LinkStatus::Down => this.tell(),
            };
            let is_alive = || this.membership().alive().any(|member| member.address == address);
            queue.run(&this.own, &this.tls, &this.stopping, changed, is_alive).await;
            this.links.close(&address);
        });
    }

    /// Handles a message of another server about the servers that are alive.
    pub(crate) fn handle(self: &Arc<Self>, message: &[u8]) -> io::Result<()> {
        let handled = self.act(|membership, now| membership.handle(now, message));
        handled.map_err(|error| frame::invalid(format!("what it says of servers: {error}")))
    }

    /// Handles timers that are due, until it is stopped.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let due = self.membership().poll_timeout();
            let due = async {
                match due {
                    Some(Time(due)) => {
                        let due = std::time::Duration::from_nanos(due);
                        tokio::time::sleep_until(self.started + due).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.rescheduled.notified() => {}
                () = due => self.act(Membership::handle_timeout),
            }
        }
    }

    /// Announces that this server ends.
    pub(crate) fn leave(self: &Arc<Self>) {
        self.act(Membership::leave);
        self.stopping.cancel();
    }

    /// The servers that are alive, this one included.
    pub(crate) fn alive(&self) -> (Member, Vec<Member>) {
        let membership = self.membership();
        (membership.own().clone(), membership.alive().cloned().collect())
    }

    fn act<R>(self: &Arc<Self>, what: impl FnOnce(&mut Membership, Time) -> R) -> R {
        let mut membership = self.membership();
        let now = Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let result = what(&mut membership, now);
        let actions: Vec<_> = std::iter::from_fn(|| membership.poll_action()).collect();
        drop(membership);
        self.rescheduled.notify_one();
        for action in actions {
            match action {
                MembershipAction::Send { to, message } => {
                    self.meet(&to);
                    self.links.send_membership(&to, message);
                }
                MembershipAction::Changed => {
                    let (_, alive) = self.alive();
                    alive.iter().for_each(|member| self.meet(&member.address));
                    self.tell();
                }
            }
        }
        result
    }

    /// Tells the cluster which servers share.
    fn tell(&self) {
        let mut warned = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, alive) = self.alive();
        for member in &alive {
            let shares_else = member.zone == own.zone && member.stores != own.stores;
            if shares_else && warned.insert(member.address.clone()) {
                log::warn!(
                    "{} shares other ring.stores, or only one of the two servers has ring.mode = \"circulate\"; nothing \
                     is shared with it. Give all servers of a zone the same ring.stores, and circulate on all or on none",
                    member.address
                );
            } else if !shares_else {
                warned.remove(&member.address);
            }
        }
        let nodes = alive.iter().filter(|member| member.shares_with(&own));
        let nodes = nodes.map(|member| node_id(&member.address));
        let nodes = nodes.filter(|&node| self.links.status(node) == LinkStatus::Up);
        self.cluster.set_members(nodes);
    }

    fn membership(&self) -> MutexGuard<'_, Membership> {
        self.membership.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
