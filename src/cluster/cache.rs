//! Files of one cluster in the user's cache directory. Knows nothing of what is kept; a cache that cannot be used is never an error.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tracing::debug;

/// Clusters kept at most, and files of one name (differing in their key) in one cluster: old ones make room.
const CLUSTERS: usize = 32;
const FILES_OF_ONE_NAME: usize = 3;

/// The files of one cluster. Each holds its full key in its first line, so that a name alone is never trusted.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
    directory: PathBuf,
    identity: String,
}

impl Cache {
    /// `identity`: the server's URL and what it is trusted by, so that no other cluster's files are read.
    pub(super) fn new(root: &Path, identity: &str) -> Self {
        let directory = root.join(format!("{:016x}", hash(identity)));
        Self { root: root.to_owned(), directory, identity: identity.to_owned() }
    }

    /// What was kept under exactly this key. Blocks.
    pub(super) fn read(&self, name: &str, key: &str) -> Option<Vec<u8>> {
        let mut file = fs::read(self.file(name, key)).ok()?;
        let head = self.head(key);
        if !file.starts_with(head.as_bytes()) {
            return None;
        }
        Some(file.split_off(head.len()))
    }

    /// Keeps `body`: whole or not at all, whoever else writes. Blocks.
    pub(super) fn write(&self, name: &str, key: &str, body: &[u8]) {
        if let Err(error) = self.try_write(name, key, body) {
            debug!("cache of {name} in {}: {error}", self.directory.display());
        }
    }

    fn try_write(&self, name: &str, key: &str, body: &[u8]) -> io::Result<()> {
        if !self.directory.is_dir() {
            make_private(&self.directory)?;
            prune(&self.root, CLUSTERS, is_cluster, |path| fs::remove_dir_all(path));
        }
        let path = self.file(name, key);
        // A name of its own, so that two processes never write into one file.
        let unique = hash(&(std::process::id(), std::thread::current().id(), SystemTime::now(), key));
        let temporary = self.directory.join(format!("{TEMPORARY}{unique:016x}"));
        let written =
            write_private(&temporary, &[self.head(key).as_bytes(), body]).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written?;
        let (prefix, ours) = (format!("{}.", stem(name)), path.file_name());
        let of_name = |file: &Path| {
            file.file_name() != ours && file.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&prefix))
        };
        prune(&self.directory, FILES_OF_ONE_NAME.saturating_sub(1), of_name, |path| fs::remove_file(path));
        // Left by a process that was killed; a few may be at work right now.
        let left = |file: &Path| file.file_name().is_some_and(|file| file.to_string_lossy().starts_with(TEMPORARY));
        prune(&self.directory, 64, left, |path| fs::remove_file(path));
        Ok(())
    }

    fn file(&self, name: &str, key: &str) -> PathBuf {
        self.directory.join(format!("{}.{:016x}", stem(name), hash(key)))
    }

    fn head(&self, key: &str) -> String {
        format!("{}\n", serde_json::json!([self.identity, key]))
    }
}

/// Whether a directory is one of ours: nothing else is ever removed.
fn is_cluster(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.is_dir()
}

const TEMPORARY: &str = ".writing-";

/// As a file name, the same on every system.
fn stem(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' }).collect()
}

/// Names files only; the key inside decides.
fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Removes all but the `keep` newest of those entries of a directory that `counts` picks.
fn prune(directory: &Path, keep: usize, counts: impl Fn(&Path) -> bool, remove: impl Fn(&Path) -> io::Result<()>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut found: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| counts(path))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    found.reverse();
    for (_, path) in found.iter().skip(keep) {
        // Somebody else may have been faster.
        let _ = remove(path);
    }
}

#[cfg(unix)]
fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn make_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

fn write_private(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_its_full_key_only() {
        let root = std::env::temp_dir().join(format!("helm-drift-cache-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let cache = Cache::new(&root, "https://a");
        assert_eq!(cache.read("apps/v1", "key"), None);
        cache.write("apps/v1", "key", b"body\nof two lines");
        assert_eq!(cache.read("apps/v1", "key").as_deref(), Some(&b"body\nof two lines"[..]));
        assert_eq!(cache.read("apps/v1", "other"), None);
        assert_eq!(Cache::new(&root, "https://b").read("apps/v1", "key"), None);
        // A name that happens to be equal proves nothing.
        let (file, other) = (cache.file("apps/v1", "key"), cache.file("apps/v1", "other"));
        fs::rename(file, other).unwrap();
        assert_eq!(cache.read("apps/v1", "other"), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn old_clusters_make_room_and_nothing_else_is_touched() {
        let root = std::env::temp_dir().join(format!("helm-drift-cache-many-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("mine")).unwrap();
        for cluster in 0..CLUSTERS + 5 {
            Cache::new(&root, &cluster.to_string()).write("x", "key", b"");
        }
        assert_eq!(fs::read_dir(&root).unwrap().count(), CLUSTERS + 1);
        assert!(root.join("mine").is_dir());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn writers_at_the_same_time_leave_a_whole_file() {
        let root = std::env::temp_dir().join(format!("helm-drift-cache-race-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        std::thread::scope(|scope| {
            for writer in 0..8u8 {
                let cache = Cache::new(&root, "https://a");
                scope.spawn(move || {
                    for _ in 0..20 {
                        cache.write("x", "key", &vec![writer; 50_000]);
                        let body = cache.read("x", "key").unwrap();
                        assert!(body.len() == 50_000 && body.iter().all(|byte| *byte == body[0]));
                    }
                });
            }
        });
        let left = fs::read_dir(Cache::new(&root, "https://a").directory).unwrap().count();
        assert_eq!(left, 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
