//! The programs of PostgreSQL itself: psql, and a server that has the tables of coscan as foreign ones, and whose
//! values are compared with those of coscan. They run only on request, and need PostgreSQL
//! (`apt-get install postgresql`): `cargo test --workspace --test integration -- --ignored installed_postgresql`. The
//! other tests, in `postgres`, need nothing.

mod foreign_tables;
mod installed;
mod psql;
mod values;
