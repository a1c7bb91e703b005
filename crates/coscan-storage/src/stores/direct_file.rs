//! One open local file, read by position and, where possible, past the operating system's cache.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;

use super::ranges::to_usize;

/// Direct reads start, end and land in memory at multiples of this, the block size of common disks. A disk with
/// larger blocks refuses the read, which then goes through the cache.
const ALIGNMENT_BYTES: usize = 4096;

/// The most bytes of one read, so that a large one on a slow disk is not mistaken for one that hangs.
const READ_BYTES_MAX: usize = 8 << 20;

/// Opens files for direct reads, and notes refusals.
#[derive(Debug)]
pub(super) struct DirectAccess {
    open: fn(&Path) -> io::Result<File>,
    refused: AtomicBool,
}

impl DirectAccess {
    pub(super) fn new() -> Self {
        Self::with_open(open_direct)
    }

    /// Creates an access with this `open`. Tests pass one that refuses.
    pub(super) fn with_open(open: fn(&Path) -> io::Result<File>) -> Self {
        Self { open, refused: AtomicBool::new(false) }
    }

    /// Logs the first refusal of a store.
    fn note_refusal(&self, path: &Path, error: &io::Error) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            log::warn!(
                "cannot read {} past the cache ({error}); such files are read through it",
                path.display()
            );
        }
    }
}

/// A file that was opened and checked. All reads are of that file, even if its name goes to another file meanwhile.
#[derive(Debug)]
pub(super) struct DirectFile {
    /// The descriptor that was checked, for reads through the cache.
    ordinary: File,
    /// A second descriptor of the same file, opened by the first read, on a blocking thread.
    direct: OnceLock<Option<File>>,
    path: PathBuf,
}

impl DirectFile {
    pub(super) fn new(ordinary: File, path: PathBuf) -> Self {
        Self { ordinary, direct: OnceLock::new(), path }
    }

    /// Reads exactly `range`. Blocks. `answers` is called each time the disk has answered.
    ///
    /// # Errors
    /// The error of the operating system, or `UnexpectedEof` if the file ends before the range does.
    pub(super) fn read(
        &self,
        range: Range<u64>,
        access: &DirectAccess,
        answers: &dyn Fn(),
    ) -> io::Result<Bytes> {
        if let Some(direct) = self.direct.get_or_init(|| self.open_direct(access)) {
            match read_aligned(direct, &range, answers) {
                // Try through the cache, which also fails if the disk is at fault.
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    access.note_refusal(&self.path, &error);
                }
                result => return result,
            }
        }
        read_aligned(&self.ordinary, &range, answers)
    }

    /// Whether the file has this size and time of modification, as it had when it was checked. Blocks.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(super) fn is_unchanged(&self, bytes: u64, modified: SystemTime) -> io::Result<bool> {
        let metadata = self.ordinary.metadata()?;
        Ok(metadata.len() == bytes && metadata.modified()? == modified)
    }

    fn open_direct(&self, access: &DirectAccess) -> Option<File> {
        match (access.open)(&self.path) {
            // The name may belong to another file by now.
            Ok(direct) => is_same_file(&self.ordinary, &direct).then_some(direct),
            // The name is gone but not the file, which the other descriptor reads.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                access.note_refusal(&self.path, &error);
                None
            }
        }
    }
}

/// Reads the aligned window around `range` and returns the part asked for, without copying it.
fn read_aligned(file: &File, range: &Range<u64>, answers: &dyn Fn()) -> io::Result<Bytes> {
    let alignment = ALIGNMENT_BYTES as u64;
    let window_start = range.start - range.start % alignment;
    let needed_bytes = to_usize(range.end - window_start);
    let window_bytes = needed_bytes
        .checked_next_multiple_of(ALIGNMENT_BYTES)
        .and_then(|bytes| bytes.checked_add(ALIGNMENT_BYTES).map(|_| bytes))
        .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;

    // Zeroed, as safe code cannot read into uninitialized memory. This is free for fresh memory of the operating
    // system.
    let mut memory = vec![0_u8; window_bytes + ALIGNMENT_BYTES];
    let address = memory.as_ptr().addr();
    let aligned = address.next_multiple_of(ALIGNMENT_BYTES) - address;
    let window = &mut memory[aligned..aligned + window_bytes];
    read_window(file, window, window_start, needed_bytes, answers)?;

    let skipped = to_usize(range.start - window_start);
    Ok(Bytes::from(memory).slice(aligned + skipped..aligned + needed_bytes))
}

/// Fills at least the first `needed_bytes` of `window` from position `window_start` of the file.
fn read_window(
    file: &File,
    window: &mut [u8],
    window_start: u64,
    needed_bytes: usize,
    answers: &dyn Fn(),
) -> io::Result<()> {
    let mut filled = 0;
    while filled < needed_bytes {
        // A read can end anywhere, but the next one must start at a block.
        let start = filled - filled % ALIGNMENT_BYTES;
        let end = window.len().min(start + READ_BYTES_MAX);
        let count = match read_at(file, &mut window[start..end], window_start + start as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        answers();
        if start + count <= filled {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the file ends at byte {}, but bytes up to {} were asked for",
                    window_start + filled as u64,
                    window_start + needed_bytes as u64
                ),
            ));
        }
        filled = start + count;
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only done on Linux"))
}

#[cfg(unix)]
fn is_same_file(left: &File, right: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (left.metadata(), right.metadata()) {
        (Ok(left), Ok(right)) => left.dev() == right.dev() && left.ino() == right.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same_file(_left: &File, _right: &File) -> bool {
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn file_with(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        (directory, path)
    }

    #[test]
    fn a_refused_open_is_read_through_the_cache_and_noted() {
        let (_directory, path) = file_with(b"0123456789");
        let access = DirectAccess::with_open(|_| Err(io::ErrorKind::InvalidInput.into()));
        let file = DirectFile::new(File::open(&path).unwrap(), path);
        assert!(!access.refused.load(Ordering::Relaxed));
        assert_eq!(file.read(3..7, &access, &|| {}).unwrap(), "3456");
        assert!(access.refused.load(Ordering::Relaxed));
    }

    #[test]
    fn a_refused_read_goes_through_the_cache_and_is_noted() {
        let (_directory, path) = file_with(b"0123456789");
        // A descriptor for writing refuses every read.
        let access =
            DirectAccess::with_open(|path| std::fs::OpenOptions::new().write(true).open(path));
        let file = DirectFile::new(File::open(&path).unwrap(), path);
        assert_eq!(file.read(0..10, &access, &|| {}).unwrap(), "0123456789");
        assert!(access.refused.load(Ordering::Relaxed));
    }

    /// Keeps all messages of this test binary.
    struct Messages(std::sync::Mutex<Vec<String>>);

    impl log::Log for Messages {
        fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            self.0.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
        }
        fn flush(&self) {}
    }

    #[test]
    fn refusals_are_logged_once_per_store() {
        static MESSAGES: Messages = Messages(std::sync::Mutex::new(Vec::new()));
        log::set_logger(&MESSAGES).unwrap();
        log::set_max_level(log::LevelFilter::Warn);

        let (_directory, path) = file_with(b"0123456789");
        let access = DirectAccess::with_open(|_| Err(io::ErrorKind::InvalidInput.into()));
        for _ in 0..3 {
            let file = DirectFile::new(File::open(&path).unwrap(), path.clone());
            file.read(0..1, &access, &|| {}).unwrap();
            file.read(1..2, &access, &|| {}).unwrap();
        }
        // Tests run side by side: only this test's file counts.
        let name = path.display().to_string();
        let messages = MESSAGES.0.lock().unwrap();
        let mine: Vec<_> = messages.iter().filter(|message| message.contains(&name)).collect();
        assert_eq!(mine.len(), 1, "{mine:?}");
        assert!(mine[0].starts_with("WARN cannot read "), "{mine:?}");
    }

    #[test]
    fn a_replaced_name_still_reads_the_file_that_was_opened() {
        let (directory, path) = file_with(b"old");
        let file = DirectFile::new(File::open(&path).unwrap(), path.clone());
        let other = directory.path().join("other");
        std::fs::write(&other, b"new").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(file.read(0..3, &DirectAccess::new(), &|| {}).unwrap(), "old");
    }

    #[test]
    fn a_file_that_shrank_is_an_error() {
        let (_directory, path) = file_with(&[7; 5000]);
        let file = DirectFile::new(File::open(&path).unwrap(), path);
        let error = file.read(4000..6000, &DirectAccess::new(), &|| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("ends at byte 5000"), "{error}");
    }
}
