//! Tables and files: those that are open (`open_files`, `footer_reader`, `metadata_cache`), the memory counted for them
//! (`metadata_reservation`), their registration with core (`registry`, `snapshot`, `joint_layout`), and the handle of a
//! program (`table`).

pub(crate) mod footer_reader;
pub(crate) mod joint_layout;
pub(crate) mod metadata_cache;
pub(crate) mod metadata_reservation;
pub(crate) mod open_files;
pub(crate) mod registry;
pub(crate) mod snapshot;
pub(crate) mod table;
