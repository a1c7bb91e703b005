//! Local devices: a bounded number of threads waits for each of them, and one that hangs is noticed.
//!
//! A read from a network mount that hangs blocks its thread in the kernel for as long as the mount hangs, and cannot be
//! cancelled. So operations queue for the permits of their device, and a permit returns when its operation does,
//! whether or not anything still waits for it. Other devices are not affected.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::mounts;

/// The most operations of a device at a time, each on its own thread: enough for a fast disk. Tokio has 512 threads.
pub(super) const THREADS_PER_DEVICE: usize = 32;
/// The most directories that are looked up at a time on one device, in addition to those.
const LOOKUPS_PER_DEVICE: usize = 2;
/// The time without any answer after which a device counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(24);
/// The interval at which a device that hangs is asked again, as long as threads are left.
const PROBE_INTERVAL: Duration = Duration::from_secs(6);
/// The most directories whose devices are remembered.
const DIRECTORIES_MAX: usize = 10_000;

/// A device does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the disk or network mount of {path} has not answered for {} s; see that it is there. It is asked again every {} s",
    .silence.as_secs(), PROBE_INTERVAL.as_secs()
)]
pub(super) struct DeviceHangs {
    path: String,
    silence: Duration,
}

/// The devices of this machine, as far as they are in use.
#[derive(Debug, Default)]
pub(super) struct LocalDevices {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    devices: BTreeMap<u64, Weak<LocalDevice>>,
    /// The directories, each with the device of its mount by name.
    directories: HashMap<PathBuf, (Arc<LocalDevice>, u64)>,
}

/// The devices of this process: their threads are shared by all stores.
pub(super) fn devices() -> &'static LocalDevices {
    static DEVICES: LazyLock<LocalDevices> = LazyLock::new(LocalDevices::default);
    &DEVICES
}

impl LocalDevices {
    /// The device that the directory of a file is on, links followed (`st_dev`).
    ///
    /// # Errors
    /// If the device on which the directory is looked up hangs.
    pub(super) async fn of(&self, file: &Path) -> Result<Arc<LocalDevice>, DeviceHangs> {
        let directory = file.parent().unwrap_or(file).to_owned();
        if let Some(device) = self.find(&directory) {
            return Ok(device);
        }
        // The mount by its name: asking the file system itself may hang.
        let mount_id = mounts::device_of(&directory);
        let mount = self.device(mount_id);
        let path = directory.clone();
        let lookup = async move { blocking(move || mounts::device_of_existing(&path)).await.ok()? };
        let id = mount.run_with(&mount.lookups, false, file, lookup).await?;
        let Some(id) = id else { return Ok(mount) };
        let device = self.device(id);
        let mut known = self.lock();
        if known.directories.len() >= DIRECTORIES_MAX {
            known.directories.clear();
        }
        known.directories.insert(directory, (Arc::clone(&device), mount_id));
        Ok(device)
    }

    /// The device of a known directory, unless it hangs and another device is mounted in its place by now.
    fn find(&self, directory: &Path) -> Option<Arc<LocalDevice>> {
        let mut known = self.lock();
        let (device, mount_id) = known.directories.get(directory)?;
        let hangs = device.silence().is_some_and(|silence| silence >= SILENCE_MAX);
        if hangs && mounts::device_of(directory) != *mount_id {
            known.directories.remove(directory);
            return None;
        }
        Some(Arc::clone(device))
    }

    fn device(&self, id: u64) -> Arc<LocalDevice> {
        let mut known = self.lock();
        if let Some(device) = known.devices.get(&id).and_then(Weak::upgrade) {
            return device;
        }
        known.devices.retain(|_, device| device.strong_count() > 0);
        let device = Arc::new(LocalDevice::new(id));
        known.devices.insert(id, Arc::downgrade(&device));
        device
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One device, and the operations that wait for it.
#[derive(Debug)]
pub(super) struct LocalDevice {
    id: u64,
    permits: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
    activity: Mutex<Activity>,
}

#[derive(Debug)]
struct Activity {
    /// Beginnings of the operations that have not returned, by number.
    pending: BTreeMap<u64, Instant>,
    next: u64,
    answered: Instant,
    probed: Instant,
}

impl LocalDevice {
    fn new(id: u64) -> Self {
        let now = Instant::now();
        let activity = Activity { pending: BTreeMap::new(), next: 0, answered: now, probed: now };
        Self {
            id,
            permits: Arc::new(Semaphore::new(THREADS_PER_DEVICE)),
            lookups: Arc::new(Semaphore::new(LOOKUPS_PER_DEVICE)),
            activity: Mutex::new(activity),
        }
    }

    /// Its number (`st_dev`).
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Notes that it answers, although an operation continues.
    pub(super) fn answers(&self) {
        self.activity().answered = Instant::now();
    }

    /// Runs an operation on a file of this device as soon as one of its threads is free. If the future is dropped, the
    /// operation continues and keeps its thread.
    ///
    /// # Errors
    /// If the device hangs.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        file: &Path,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, DeviceHangs> {
        self.run_with(&self.permits, true, file, operation).await
    }

    async fn run_with<T: Send + 'static>(
        self: &Arc<Self>,
        permits: &Arc<Semaphore>,
        is_answer: bool,
        file: &Path,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, DeviceHangs> {
        // Without tokio there is no other thread to wait on, and no clock.
        let Ok(runtime) = Handle::try_current() else { return Ok(operation.await) };
        self.check(permits, file)?;
        let (device, permits) = (Arc::clone(self), Arc::clone(permits));
        let work = async move {
            let permit = permits.acquire_owned().await;
            let pending = Pending::new(device, is_answer);
            let task = runtime.spawn(async move {
                let _until_it_returns = (permit, pending);
                operation.await
            });
            match task.await {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime shuts down, and this with it.
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = work => Ok(result),
            silence = self.hangs() => Err(self.error(file, silence)),
        }
    }

    /// # Errors
    /// If it hangs, and this is not the time to ask again.
    fn check(&self, permits: &Semaphore, file: &Path) -> Result<(), DeviceHangs> {
        let Some(silence) = self.silence().filter(|silence| *silence >= SILENCE_MAX) else {
            return Ok(());
        };
        let mut activity = self.activity();
        let now = Instant::now();
        if permits.available_permits() > 0 && now - activity.probed >= PROBE_INTERVAL {
            activity.probed = now;
            return Ok(());
        }
        Err(self.error(file, silence))
    }

    /// Waits until the device has not answered for too long.
    async fn hangs(&self) -> Duration {
        let started = Instant::now();
        loop {
            let silence = self.silence().unwrap_or_default();
            // A probe, which begins in a long silence, waits for a while, too.
            let left = SILENCE_MAX.saturating_sub(silence);
            let left = left.max(PROBE_INTERVAL.saturating_sub(started.elapsed()));
            if left.is_zero() {
                return silence;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// The time for which it has not answered although it was asked.
    fn silence(&self) -> Option<Duration> {
        let activity = self.activity();
        let (_, &oldest) = activity.pending.first_key_value()?;
        Some(Instant::now().saturating_duration_since(oldest.max(activity.answered)))
    }

    fn error(&self, file: &Path, silence: Duration) -> DeviceHangs {
        DeviceHangs { path: file.display().to_string(), silence }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        // A panic of another holder spoils no count.
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation that has not returned.
struct Pending {
    device: Arc<LocalDevice>,
    number: u64,
    /// Whether its end is an answer. Directories may be cached by the operating system: finding them says nothing about
    /// the device.
    is_answer: bool,
}

impl Pending {
    fn new(device: Arc<LocalDevice>, is_answer: bool) -> Self {
        let mut activity = device.activity();
        let number = activity.next;
        activity.next += 1;
        activity.pending.insert(number, Instant::now());
        drop(activity);
        Self { device, number, is_answer }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut activity = self.device.activity();
        activity.pending.remove(&self.number);
        if self.is_answer {
            activity.answered = Instant::now();
        }
    }
}

/// Runs work on a path that blocks, on a thread of its device.
///
/// # Errors
/// If the device hangs.
pub(super) async fn on_device<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> T + Send + 'static,
) -> Result<T, DeviceHangs> {
    let device = devices().of(path).await?;
    let owned = path.to_owned();
    let work = async move { blocking(move || work(&owned)).await };
    match device.run(path, work).await? {
        Ok(result) => Ok(result),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Runs work that blocks, on another thread if there is tokio.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await,
        Err(_) => Ok(work()),
    }
}
