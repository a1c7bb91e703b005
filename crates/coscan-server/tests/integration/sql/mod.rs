//! SQL for users who may read some tables, in process.

mod access;
mod catalog;
mod depth;
mod ends;
mod fixture;
mod functions;
mod postgres;
mod replicas;
mod statements;
