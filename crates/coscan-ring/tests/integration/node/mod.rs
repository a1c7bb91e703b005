//! A node of the ring, alone and among others.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod advising;
mod asking;
mod choosing;
mod common;
mod forgetting;
mod reports;
mod rules;
mod serving;
