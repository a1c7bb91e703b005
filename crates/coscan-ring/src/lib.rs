//! Many servers that read the same tables of one store, each page once for all of them: the owners of pages, the
//! requests and the messages. A pure state machine, as `coscan-core` is: no clock, I/O, thread, random number or hash
//! order.
//!
//! **The asker decides, the owner keeps and advises.** Each [extent](Extents) of a file has an [owner](owners_of) among
//! the nodes. A node that needs a page asks its owner, which has it, is reading it, or reads it then. The Active Buffer
//! Manager of a node decides what the node reads next. What stays in memory is decided by that of the node that holds
//! it, which knows the needs of all. Three [messages](Message) carry what the others cannot know: `Need`, `Get` and
//! `Have`.
//!
//! ```text
//! A's scan begins          A → B  Need   rows 0..900,000 of columns 2, 4, in extents that B owns
//! A loads a chunk of B's   A → B  Get    pages 17, 18
//! B reads them             B → C  Have   17, 18: C has said that it needs them, too
//!                          B → A  Pages  17, 18
//! C is short of chunks     C → B  Get    17, 18: it takes what B has before anything else
//! ```
//!
//! A *node* is a server as a member of the cluster; *peers* are the other nodes. Start at [`Node`]. The idea of servers
//! that share what they read by passing it on comes from the Data Cyclotron (`[DC]`: chapter 5 of Gonçalves' thesis).
//! There, data goes round a ring; here, its owner is asked.
//!
//! The Data Cyclotron itself is [`Circulate`].
//!
//! [`Membership`] finds out which servers are nodes.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod circulate;
mod extents;
mod ids;
mod membership;
mod message;
mod node;
mod ownership;

pub use circulate::{
    Circulate, CirculateAction, CirculateConfig, CirculateMessage, CirculateStatus, FragmentHeader,
    Request, RingPosition, WhyGivenUp, joining_position,
};
pub use extents::{Extents, RowGroup};
pub use ids::{FileId, GetId, NodeId, RemoteInterest, Served, StoreId};
pub use membership::{Member, Membership, MembershipAction, MembershipError};
pub use message::Message;
pub use node::{Action, Choosing, Config, Load, Node, Share, Sharing};
pub use ownership::{Owners, owners_of};
