//! Reads what `-f` names: files, directories as kubectl reads them, standard input. Knows nothing of what the texts mean.
//!
//! Source: k8s.io/cli-runtime `pkg/resource/visitor.go`, `ExpandPathsToFileVisitors` and `FileVisitor`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::config::Source;
use crate::drift::finding::{Trouble, TroubleReason};
use crate::drift::manifest::ManifestFile;

/// Of a directory only these are read; a file that is named itself may be called anything.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// A file that does not end (a device, a runaway pipe) must not fill the memory.
const LARGEST: u64 = 256 << 20;

/// What one `-f` argument held.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// In the order of their names, folders in place.
    pub(crate) files: Vec<ManifestFile>,
    /// What could not be read.
    pub(crate) troubles: Vec<Trouble>,
}

/// Blocks until all is read.
pub(crate) fn read(source: &Source, recursive: bool) -> Reading {
    match source {
        Source::Stdin => {
            let mut reading = Reading::default();
            match text(io::stdin().lock()) {
                Ok(text) => reading.files.push(ManifestFile { path: None, is_one_of_many: false, text }),
                Err(error) => reading.troubles.push(trouble("standard input", &error)),
            }
            reading
        }
        Source::Path(path) => of_path(path, recursive),
    }
}

fn of_path(path: &Path, recursive: bool) -> Reading {
    let mut reading = Reading::default();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => reading.directory(path, recursive),
        Ok(_) => reading.file(path, false),
        Err(error) => reading.troubles.push(trouble(&path.to_string_lossy(), &error)),
    }
    if reading == Reading::default() {
        let deeper = if recursive { "" } else { "; -R also looks into the folders in it" };
        let message = format!("{}: no *.yaml, *.yml or *.json in it{deeper}", path.display());
        reading.troubles.push(Trouble { reason: TroubleReason::NothingFound, message, namespace: None });
    }
    reading
}

impl Reading {
    fn directory(&mut self, directory: &Path, recursive: bool) {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<fs::DirEntry>>>);
        let mut paths: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(fs::DirEntry::path).collect(),
            Err(error) => return self.troubles.push(trouble(&directory.to_string_lossy(), &error)),
        };
        paths.sort();
        for path in paths {
            let is_directory = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            if is_directory {
                // A mounted ConfigMap keeps its files a second time below `..<time>`.
                let is_machinery = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".."));
                if recursive && !is_machinery {
                    self.directory(&path, recursive);
                }
                continue;
            }
            let wanted = path.extension().and_then(|extension| extension.to_str());
            if wanted.is_some_and(|extension| EXTENSIONS.contains(&extension))
                && fs::metadata(&path).map_or(true, |metadata| metadata.is_file())
            {
                self.file(&path, true);
            }
        }
    }

    fn file(&mut self, path: &Path, is_one_of_many: bool) {
        let name = path.to_string_lossy().into_owned();
        match fs::File::open(path).and_then(text) {
            Ok(text) => self.files.push(ManifestFile { path: Some(name), is_one_of_many, text }),
            Err(error) => self.troubles.push(trouble(&name, &error)),
        }
    }
}

fn trouble(name: &str, error: &io::Error) -> Trouble {
    let (reason, why) = match error.kind() {
        io::ErrorKind::NotFound => (TroubleReason::NotFound, "there is no such file or directory".to_owned()),
        io::ErrorKind::PermissionDenied => (TroubleReason::Forbidden, "reading it is not permitted".to_owned()),
        _ => (TroubleReason::Internal, error.to_string()),
    };
    Trouble { reason, message: format!("{name}: {why}"), namespace: None }
}

fn text(file: impl io::Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("larger than {} MiB", LARGEST >> 20)));
    }
    decoded(bytes)
}

/// UTF-8, or UTF-16 with its mark, as some shells on Windows write what is redirected into a file.
fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    let wide = |of: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units = pairs.iter().skip(1).map(|pair| of(*pair));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| rest.is_empty()).ok_or_else(|| io::Error::other("begins as UTF-16 and is none"))
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf_8(rest.to_vec()),
        _ => utf_8(bytes),
    }
}

fn utf_8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::other(format!("line {line}: not UTF-8 text"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, gone with the guard.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("drift-files-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        /// Names below the folder, and texts.
        fn read(&self, recursive: bool) -> Vec<(String, String)> {
            let reading = of_path(&self.0, recursive);
            assert_eq!(reading.troubles, []);
            let below = |path: &str| path.strip_prefix(&format!("{}/", self.0.display())).unwrap().to_owned();
            reading.files.into_iter().map(|file| (below(&file.path.unwrap()), file.text)).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(read: &[(String, String)]) -> Vec<&str> {
        read.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_directory_is_read_as_kubectl_does() {
        let folder = Folder::new("walk")
            .with("b.yaml", "b")
            .with("a.yml", "a")
            .with("c.json", "c")
            .with("notes.md", "")
            .with("upper.YAML", "")
            .with("deep/er/d.yaml", "d")
            .with("..2026/e.yaml", "e");
        assert_eq!(names(&folder.read(false)), ["a.yml", "b.yaml", "c.json"]);
        assert_eq!(names(&folder.read(true)), ["a.yml", "b.yaml", "c.json", "deep/er/d.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_files_are_followed_and_links_to_folders_only_when_named() {
        let folder = Folder::new("links").with("real/a.yaml", "a");
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(folder.0.join(to), folder.0.join(name)).unwrap();
        link("real/a.yaml", "linked.yaml");
        link("real", "folder.yaml");
        link(".", "loop");
        link("nowhere", "dangling.yaml");
        let reading = of_path(&folder.0, true);
        assert_eq!(reading.files.len(), 2, "{reading:?}");
        assert_eq!(reading.troubles.len(), 1, "{reading:?}");
        assert!(reading.troubles[0].message.ends_with("dangling.yaml: there is no such file or directory"));
        assert_eq!(of_path(&folder.0.join("folder.yaml"), false).files.len(), 1);
    }

    #[test]
    fn nothing_found_is_trouble() {
        let folder = Folder::new("nothing").with("deep/a.yaml", "").with("notes.md", "");
        let reading = of_path(&folder.0, false);
        assert_eq!(reading.troubles[0].reason, TroubleReason::NothingFound);
        assert!(reading.troubles[0].message.ends_with("-R also looks into the folders in it"));
        let missing = of_path(&folder.0.join("missing"), false);
        assert_eq!((missing.troubles[0].reason, missing.files.len()), (TroubleReason::NotFound, 0));
        assert_eq!(of_path(&folder.0.join("notes.md"), false).files.len(), 1, "named itself");
    }

    #[test]
    fn marks_of_the_encoding_are_no_text() {
        let utf_16 = |mark: u16, to: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(mark).chain("a: ä\n".encode_utf16()).flat_map(to).collect()
        };
        for bytes in [
            "a: ä\n".as_bytes().to_vec(),
            "\u{feff}a: ä\n".as_bytes().to_vec(),
            utf_16(0xfeff, u16::to_le_bytes),
            utf_16(0xfeff, u16::to_be_bytes),
        ] {
            assert_eq!(decoded(bytes.clone()).unwrap(), "a: ä\n", "{bytes:?}");
        }
        assert_eq!(decoded(b"a\nb: \xff\n".to_vec()).unwrap_err().to_string(), "line 2: not UTF-8 text");
        assert!(decoded(vec![0xff, 0xfe, 0x41]).is_err());
    }
}
