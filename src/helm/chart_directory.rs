//! A chart on disk for as long as helm needs it, readable by its owner alone. Knows nothing of what is in it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::drift::chart::Files;

/// Gone again when it is dropped.
pub(crate) struct ChartDirectory(PathBuf);

impl ChartDirectory {
    /// Writes the files into a new directory below `temporary`.
    pub(crate) fn write(temporary: &Path, files: &Files) -> io::Result<Self> {
        let directory = Self::new(temporary)?;
        for (name, content) in files {
            let path = directory.0.join(name);
            private(fs::DirBuilder::new().recursive(true)).create(path.parent().unwrap_or(&directory.0))?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)?.write_all(content)?;
        }
        Ok(directory)
    }

    /// A name that nobody could have taken before.
    fn new(temporary: &Path) -> io::Result<Self> {
        let mut problem = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..8 {
            let mut random = [0_u8; 8];
            ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
                .map_err(|_| io::Error::other("no random numbers"))?;
            let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = temporary.join(format!("helm-drift-chart-{name}"));
            match private(&mut fs::DirBuilder::new()).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ChartDirectory {
    fn drop(&mut self) {
        // A file that stays behind is no reason to fail; it is the user's own.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn private(builder: &mut fs::DirBuilder) -> &mut fs::DirBuilder {
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_there_while_it_is_needed() {
        let files =
            Files::from([("Chart.yaml".to_owned(), b"{}".to_vec()), ("templates/a/b.yaml".to_owned(), b"x".to_vec())]);
        let directory = ChartDirectory::write(&std::env::temp_dir(), &files).unwrap();
        let path = directory.path().to_owned();
        assert_eq!(fs::read(path.join("templates/a/b.yaml")).unwrap(), b"x");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(fs::metadata(path.join("Chart.yaml")).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(directory);
        assert!(!path.exists());
    }
}
