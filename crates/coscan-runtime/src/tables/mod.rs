//! Tables and files: what is open (`open_files`, `footer_reader`, `metadata_cache`), what
//! of it is counted as memory (`metadata_reservation`), what core knows of it (`registry`,
//! `snapshot`, `joint_layout`), and what a program holds (`table`).

pub(crate) mod footer_reader;
pub(crate) mod joint_layout;
pub(crate) mod metadata_cache;
pub(crate) mod metadata_reservation;
pub(crate) mod open_files;
pub(crate) mod registry;
pub(crate) mod snapshot;
pub(crate) mod table;
