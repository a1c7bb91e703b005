//! A node of the ring, alone and among others.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod asking;
mod common;
mod forgetting;
mod page_holders;
mod reports;
mod rules;
mod serving;
mod source_choice;
