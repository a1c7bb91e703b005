//! Tables with replicas: the same rows in another order or layout.

mod agreement;
mod choice;
mod fixture;
mod order;
mod rows;
mod sharing;
mod snapshots;
