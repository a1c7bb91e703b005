//! What is registered: tables, their files and snapshots, the metadata of files.

pub(crate) mod extensions;
pub(crate) mod footer_reader;
pub(crate) mod joint_layout;
pub(crate) mod metadata_cache;
pub(crate) mod open_files;
pub(crate) mod registry;
pub(crate) mod snapshot;
pub(crate) mod table;
