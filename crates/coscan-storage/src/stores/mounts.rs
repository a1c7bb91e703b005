//! The devices of directories.

use std::path::Path;

/// The device of the mount that a path is on by its name. This asks no file system, which may hang, and follows no
/// links.
#[cfg(target_os = "linux")]
pub(super) fn device_of(path: &Path) -> u64 {
    std::fs::read_to_string("/proc/self/mountinfo")
        .ok()
        .and_then(|mounts| device_in(&mounts, path))
        .unwrap_or(0)
}

/// The device of a path. Mounts are not known here, so all paths are on one device until they have been looked up.
#[cfg(not(target_os = "linux"))]
pub(super) fn device_of(_path: &Path) -> u64 {
    0
}

/// The device of the mount with the longest path, the last of several there (proc_pid_mountinfo(5)).
#[cfg(target_os = "linux")]
fn device_in(mounts: &str, path: &Path) -> Option<u64> {
    let device = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let mount = unescaped(fields.nth(1)?);
        let is_above = path.starts_with(&mount);
        let device = libc::makedev(major.parse().ok()?, minor.parse().ok()?);
        is_above.then_some((Path::new(&mount).components().count(), device))
    };
    let found = mounts.lines().filter_map(device).max_by_key(|(depth, _)| *depth);
    found.map(|(_, device)| device)
}

/// The field without escapes: blanks and backslashes are written in octal digits.
#[cfg(target_os = "linux")]
fn unescaped(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(field.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

/// The device of a directory, links followed; `None` if it does not exist. Blocks.
#[cfg(unix)]
pub(super) fn device_of_existing(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|metadata| metadata.dev())
}

/// The device of a directory. Devices have no numbers here, so all directories are on one.
#[cfg(not(unix))]
pub(super) fn device_of_existing(_directory: &Path) -> Option<u64> {
    Some(0)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_above_a_path_counts() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      40 22 0:52 / /mnt/a\\040b rw shared:1 - nfs4 server:/x rw\n\
                      41 22 0:53 / /mnt rw - tmpfs tmpfs rw\n\
                      42 22 0:54 / /mnt rw - tmpfs tmpfs rw\n";
        let device = |path: &str| device_in(mounts, Path::new(path)).unwrap();
        assert_eq!(device("/data"), libc::makedev(8, 1));
        assert_eq!(device("/mntx"), libc::makedev(8, 1));
        assert_eq!(device("/mnt/a b/c"), libc::makedev(0, 52));
        assert_eq!(device("/mnt/a"), libc::makedev(0, 54), "mounted last, it hides the other");
    }

    #[test]
    fn a_directory_is_on_the_device_of_its_mount() {
        assert_eq!(
            device_of_existing(Path::new("/proc")),
            Some(device_of(Path::new("/proc/self")))
        );
    }
}
