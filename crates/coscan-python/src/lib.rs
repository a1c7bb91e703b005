//! The native part of the Python package `coscan`: sessions, results as Arrow streams, and the command line.
//!
//! `session`, `result`, `batches`, `collecting`, `tables` and `server` are the classes that the Python files in `python/coscan`
//! build on. `process` has the threads of all sessions, and waits for them so that Ctrl-C works. A `statement` runs for a result; `incoming` brings what comes from
//! its task. `arrow_table` is registered data. `stream` hands rows over by Arrow's C interface (`capsules`), `values` as Python's own objects, and `texts` as what is shown. `parameters`
//! and `plans`, those of the package `datafusion`, go the other way. `errors` sorts errors by what one can do next.

mod arrow_table;
mod batches;
mod capsules;
mod collecting;
mod errors;
mod incoming;
mod kept;
mod parameters;
mod plans;
mod process;
mod result;
mod server;
mod session;
mod statement;
mod stream;
mod tables;
mod texts;
mod values;

use pyo3::prelude::*;

/// With `disable_initial_exec_tls`: the usual model of thread-local memory cannot be loaded into an interpreter that runs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[pymodule(gil_used = false)]
mod _native {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batches::{Batch, Batches};
    #[pymodule_export]
    use crate::collecting::Collecting;
    #[pymodule_export]
    use crate::process::shut_down;
    #[pymodule_export]
    use crate::result::Result;
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::tables::Table;

    /// Runs the command line, and returns the exit code. `program` is the command that starts it in another process.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
        crate::process::give_memory_back();
        py.detach(|| coscan_cli::run(arguments, program).code())
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::errors::add_to(module)
    }
}
