//! What this process may use of the machine.

use std::iter::successors;
use std::path::{Path, PathBuf};

/// The number of processors that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The memory that this process may use, in bytes: the physical memory, or the smallest limit of the control groups that the
/// process is in, as containers have one. `None` if the system reports neither.
#[must_use]
pub fn usable_memory_bytes() -> Option<u64> {
    usable_bytes(&|path| std::fs::read_to_string(path).ok())
}

fn usable_bytes(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(limit_files).flatten();
    let limits = limits.filter_map(|path: PathBuf| read(&path)?.trim().parse::<u64>().ok());
    physical_bytes(read).into_iter().chain(limits).min()
}

fn physical_bytes(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let memory = read(Path::new("/proc/meminfo"))?;
    let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The files with the limits of a group and of those that contain it, given its line in `/proc/self/cgroup`: number, controllers and
/// path. Version 2 has no controllers there. In a container the path may be that of the host, where only the root is seen.
fn limit_files(line: &str) -> Option<impl Iterator<Item = PathBuf> + use<>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|controller| controller == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let root = Path::new(root).to_owned();
    let group = root.join(group.trim_start_matches('/'));
    let groups = successors(Some(group), move |group| {
        if *group == root { None } else { group.parent().map(Path::to_owned) }
    });
    Some(groups.map(move |group| group.join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The memory on a machine with 64 GiB and these other files.
    fn usable(files: &[(&str, &str)]) -> Option<u64> {
        usable_bytes(&|path| {
            let meminfo = [("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\n")];
            let mut files = meminfo.iter().chain(files);
            let file = files.find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_smallest_limit_counts() {
        assert_eq!(usable(&[]), Some(64 * GIB));
        let v2 = ("/proc/self/cgroup", "0::/a.slice/b.scope\n");
        let unlimited = ("/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
        assert_eq!(usable(&[v2, unlimited]), Some(64 * GIB));
        for group in ["a.slice/b.scope/", "a.slice/", ""] {
            let path = format!("/sys/fs/cgroup/{group}memory.max");
            assert_eq!(usable(&[v2, (&path, "4294967296\n")]), Some(4 * GIB), "{path}");
        }
        let v1 = ("/proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n");
        let no_limit =
            ("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(usable(&[v1, no_limit]), Some(64 * GIB));
        let root = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        assert_eq!(usable(&[v1, no_limit, root]), Some(GIB));
    }
}
