//! What all sessions of this process share: threads, and how to wait for them.

use std::future::Future;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use coscan_cli::STACK_BYTES;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::errors::{self, Error};

/// The interval at which a waiting call looks for Ctrl-C.
pub(crate) const STEP: Duration = Duration::from_millis(50);

/// The time that queries have to end when the interpreter exits.
const EXIT: Duration = Duration::from_secs(1);

/// The time in which a thread takes the interpreter back that is free.
const COMES_BACK: Duration = Duration::from_millis(10);

/// The threads of all queries. They start with the first session, never with the import.
struct Threads {
    process: u32,
    handle: Handle,
    /// `None` once the interpreter exits.
    runtime: Mutex<Option<Runtime>>,
    /// Becomes true when the interpreter exits.
    is_exiting: watch::Sender<bool>,
    /// A thread calls them.
    callbacks: Sender<Py<PyAny>>,
}

/// Those of this process, or of the one that this one was forked from. They are never freed, since other threads may use them at
/// any time.
static THREADS: AtomicPtr<Threads> = AtomicPtr::new(ptr::null_mut());

/// The threads of this process.
fn threads() -> PyResult<&'static Threads> {
    if let Some(threads) = started() {
        return Ok(threads);
    }
    give_memory_back();
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_name("coscan-query")
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Error::new_err(format!("cannot start threads: {error}")))?;
    let (callbacks, called) = mpsc::channel();
    std::thread::Builder::new()
        .name("coscan-callback".to_owned())
        .spawn(|| call_all(called))
        .map_err(|error| Error::new_err(format!("cannot start threads: {error}")))?;
    let threads = Box::leak(Box::new(Threads {
        process: process::id(),
        handle: runtime.handle().clone(),
        runtime: Mutex::new(Some(runtime)),
        is_exiting: watch::Sender::new(false),
        callbacks,
    }));
    // Two that start at once leave one without use.
    THREADS.store(threads, Ordering::Release);
    Ok(threads)
}

/// Lets the allocator give freed memory back to the system in a thread of its own. An import must not start threads, so the
/// allocator of the wheel does not by itself.
pub(crate) fn give_memory_back() {
    // Without the thread, memory goes back when other memory is freed.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

fn started() -> Option<&'static Threads> {
    let threads = THREADS.load(Ordering::Acquire);
    #[expect(unsafe_code, reason = "it is null or was leaked")]
    let threads: Option<&'static Threads> = unsafe { threads.as_ref() };
    threads.filter(|threads| threads.process == process::id())
}

/// The threads of queries, for code that starts tasks itself.
pub(crate) fn handle() -> PyResult<Handle> {
    threads().map(|threads| threads.handle.clone())
}

/// Calls Python from a thread of its own, since waiting for the interpreter must not hold up queries.
pub(crate) fn call_back(callback: Py<PyAny>) {
    if let Some(threads) = started() {
        let _only_when_it_exits = threads.callbacks.send(callback);
    }
}

fn call_all(callbacks: Receiver<Py<PyAny>>) {
    for callback in callbacks {
        // There is no interpreter once it exits.
        Python::try_attach(|py| {
            if let Err(error) = callback.call0(py) {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// Something of this process, which a process that is forked from it cannot use.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    process: u32,
    value: std::mem::ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: process::id(), value: std::mem::ManuallyDrop::new(value) }
    }

    /// # Errors
    /// In a forked process.
    pub(crate) fn get(&self) -> PyResult<&T> {
        if self.process == process::id() {
            return Ok(&self.value);
        }
        Err(Error::new_err("made before fork: make a Session in the child"))
    }
}

impl<T> Drop for OfProcess<T> {
    /// Drops nothing of the parent, whose threads may hold locks of it.
    fn drop(&mut self) {
        if self.process == process::id() {
            #[expect(unsafe_code, reason = "it is not used afterwards")]
            unsafe {
                std::mem::ManuallyDrop::drop(&mut self.value);
            }
        }
    }
}

/// A task that is cancelled when this is dropped.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    pub(crate) fn cancel(&self) {
        self.0.abort();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Starts a task, which ends when the interpreter exits.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> PyResult<Task> {
    let threads = threads()?;
    let mut is_exiting = threads.is_exiting.subscribe();
    Ok(Task(threads.handle.spawn(async move {
        tokio::select! {
            () = future => {}
            _ = is_exiting.wait_for(|is_exiting| *is_exiting) => {}
        }
    })))
}

/// Completes a future on the threads of queries. Ctrl-C cancels it and raises `KeyboardInterrupt`.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let _task = spawn(async move {
        let _nobody_waits = sender.send(future.await);
    })?;
    let received = receive(py, &Mutex::new(receiver))?;
    received.ok_or_else(|| errors::from_query(&errors::lost_query()))
}

/// Receives a value, or `None` if none will come. Ctrl-C raises `KeyboardInterrupt`.
pub(crate) fn receive<T: Send>(
    py: Python<'_>,
    receiver: &Mutex<Receiver<T>>,
) -> PyResult<Option<T>> {
    loop {
        match detached(py, || lock(receiver).recv_timeout(STEP)) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}

/// Does something without the interpreter.
///
/// Once the interpreter exits, only the main thread comes back. The interpreter would end the others by unwinding them, through
/// frames of this library that cannot be unwound so.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let value = work();
        if !is_main_thread() && started().is_some_and(|threads| *threads.is_exiting.borrow()) {
            loop {
                std::thread::park();
            }
        }
        value
    })
}

/// Locks something that others hold while they wait. Ctrl-C raises `KeyboardInterrupt`.
pub(crate) fn lock_when_free<'a>(
    py: Python<'_>,
    mutex: &'a Mutex<()>,
) -> PyResult<MutexGuard<'a, ()>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(error)) => return Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => {
                detached(py, || std::thread::sleep(Duration::from_millis(1)));
                py.check_signals()?;
            }
        }
    }
}

/// Locks something whose user may have panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is the thread that the interpreter's signals go to.
pub(crate) fn is_main_thread() -> bool {
    #[expect(unsafe_code, reason = "both only return numbers")]
    unsafe {
        libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid())
    }
}

/// Cancels all queries, and ends the threads.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    let Some(threads) = started() else { return };
    threads.is_exiting.send_replace(true);
    let runtime = lock(&threads.runtime).take();
    if let Some(runtime) = runtime {
        py.detach(|| {
            runtime.shutdown_timeout(EXIT);
            // Those that were about to come back do so while they can.
            std::thread::sleep(COMES_BACK);
        });
    }
}
