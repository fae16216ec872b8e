//! How much memory there is for this process: that of the machine, or less where a control group says so.
//!
//! A container's limit is written in files of its control group, of either version, and in those of the groups above it.
//! Whoever takes half of the machine's memory within a group that has less is killed by the kernel.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Bytes that this process may use, on a machine that has so many.
pub fn usable_memory(physical: usize) -> usize {
    let memberships = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let least = least_limit(Path::new("/sys/fs/cgroup"), &memberships);
    least
        .and_then(|bytes| usize::try_from(bytes).ok())
        .map_or(physical, |least| least.min(physical))
}

/// The least limit of the groups that a process is in, if any has one. `memberships` is its `/proc/…/cgroup`, `root`
/// where the groups are mounted.
fn least_limit(root: &Path, memberships: &str) -> Option<u64> {
    memberships
        .lines()
        .filter_map(|line| group_of(root, line))
        .filter_map(Cgroup::least_limit)
        .min()
}

/// A control group that may limit memory.
struct Cgroup {
    /// Where the hierarchy is mounted.
    mount: PathBuf,
    /// The group's path in it.
    path: PathBuf,
    /// The name of the files that have the limits.
    file: &'static str,
}

/// The group that a line of `/proc/…/cgroup` names: `number:controllers:path`, where the one hierarchy of version 2
/// has no controllers and the number 0.
fn group_of(root: &Path, line: &str) -> Option<Cgroup> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = PathBuf::from(path.trim_start_matches('/'));
    if number == "0" && controllers.is_empty() {
        // Beside hierarchies of version 1 it has a place of its own.
        let beside = root.join("unified");
        let mount = if beside.is_dir() { beside } else { root.to_owned() };
        return Some(Cgroup { mount, path, file: "memory.max" });
    }
    let limits_memory = controllers.split(',').any(|controller| controller == "memory");
    limits_memory.then(|| Cgroup {
        mount: root.join("memory"),
        path,
        file: "memory.limit_in_bytes",
    })
}

impl Cgroup {
    /// The least limit of the group and of those above it. Within a container the path may be that of another mount:
    /// then only the topmost file is there, and it is the container's.
    fn least_limit(self) -> Option<u64> {
        let groups = self.path.ancestors().map(|path| self.mount.join(path).join(self.file));
        groups.filter_map(|file| limit_in(&file)).min()
    }
}

/// The limit that a file tells. Version 2 writes `max` for none, version 1 a number beyond all memory.
fn limit_in(file: &Path) -> Option<u64> {
    read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    /// A folder in place of the mounted groups.
    struct Mounted(PathBuf);

    impl Mounted {
        fn new(name: &str, files: &[(&str, &str)]) -> Mounted {
            let root = std::env::temp_dir().join(format!("eddy-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                create_dir_all(path.parent().unwrap()).unwrap();
                write(path, text).unwrap();
            }
            Mounted(root)
        }

        fn limit(&self, memberships: &str) -> Option<u64> {
            least_limit(&self.0, memberships)
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_above_counts() {
        let files = [
            ("memory.max", "max\n"),
            ("a/memory.max", "4096\n"),
            ("a/b/memory.max", "max\n"),
            ("c/memory.max", "1024\n"),
        ];
        let mounted = Mounted::new("cgroup-2", &files);
        assert_eq!(mounted.limit("0::/a/b\n"), Some(4096));
        assert_eq!(mounted.limit("0::/c\n"), Some(1024));
        assert_eq!(mounted.limit("0::/\n"), None);
        // A file system that shows the container's group as its root.
        assert_eq!(mounted.limit("0::/a/gone/too\n"), Some(4096));
    }

    #[test]
    fn limits_of_version_1_are_found_by_the_controller() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/docker/x/memory.limit_in_bytes", "2048\n"),
            ("cpu/docker/x/memory.limit_in_bytes", "1\n"),
            ("unified/docker/x/memory.max", "512\n"),
        ];
        let mounted = Mounted::new("cgroup-1", &files);
        let memberships =
            "12:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n1:name=systemd:/docker/x\n";
        assert_eq!(mounted.limit(memberships), Some(2048));
        assert_eq!(mounted.limit(&format!("{memberships}0::/docker/x\n")), Some(512));
        assert_eq!(mounted.limit("5:hugetlb,memory:/elsewhere\n"), Some(9_223_372_036_854_771_712));
        assert_eq!(mounted.limit("12:cpu:/docker/x\n"), None);
    }

    #[test]
    fn what_is_not_to_be_read_limits_nothing() {
        let mounted = Mounted::new("cgroup-0", &[("memory.max", "a lot")]);
        assert_eq!(mounted.limit("0::/\nnonsense\n0:\n"), None);
        assert!(usable_memory(12345) <= 12345);
    }
}
