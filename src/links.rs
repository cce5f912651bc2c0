//! Links by which kubectl finds this program: `kubectl-drift` and `kubectl_complete-drift`. Knows nothing of clusters; changes
//! nothing but these two files, and never one that is not ours.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What kubectl runs for `kubectl drift`, and what it asks for completions (kubectl 1.26).
const NAMES: [&str; 2] = ["kubectl-drift", "kubectl_complete-drift"];

/// What `install-kubectl` has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// This program's own file.
    pub(crate) program: PathBuf,
    /// `--to`
    pub(crate) to: Option<PathBuf>,
    /// The directories of PATH.
    pub(crate) path: Vec<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

/// Why there are no links.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{} is there and is not a link to drift: remove it, or name another directory by --to", .0.display())]
    NotOurs(PathBuf),
    #[error("{} cannot be made", .path.display())]
    Failed { path: PathBuf, source: io::Error },
    #[error("none of these is on PATH and can be written: {}; name a directory by --to", listed(.0))]
    Nowhere(Vec<PathBuf>),
    #[error("this program's own file is not known: make a link to it called kubectl-drift by hand")]
    NoProgram,
}

fn listed(directories: &[PathBuf]) -> String {
    directories.iter().map(|directory| directory.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// What was done, and what the user should know of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Each link and what it leads to.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    pub(crate) warnings: Vec<String>,
}

/// Makes both links, or leaves them where they are right already.
pub(crate) fn install(place: &Place) -> Result<Installed, LinkError> {
    if place.program.as_os_str().is_empty() {
        return Err(LinkError::NoProgram);
    }
    // krew has made the first link, and moves what it leads to with each upgrade: the second one goes by way of it.
    let by_krew = place.path.iter().map(|directory| directory.join(name(0))).find(|file| same(file, &place.program));
    let target = by_krew.clone().unwrap_or_else(|| place.program.clone());
    if let Some(directory) = &place.to {
        let made = fs::create_dir_all(directory);
        made.map_err(|source| LinkError::Failed { path: directory.clone(), source })?;
        return link_both(directory, &target, place);
    }
    let wanted = directories(place, by_krew.as_deref());
    for directory in wanted.iter().filter(|directory| place.path.contains(directory) && directory.is_dir()) {
        match link_both(directory, &target, place) {
            Err(LinkError::Failed { source, .. })
                if matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {}
            done => return done,
        }
    }
    Err(LinkError::Nowhere(wanted))
}

/// Where links may go unasked, best first.
fn directories(place: &Place, by_krew: Option<&Path>) -> Vec<PathBuf> {
    let mut wanted: Vec<PathBuf> = Vec::new();
    wanted.extend(by_krew.and_then(Path::parent).map(Path::to_owned));
    wanted.extend(place.program.parent().map(Path::to_owned).filter(|directory| place.path.contains(directory)));
    if let Some(home) = &place.home {
        wanted.extend([home.join(".local").join("bin"), home.join("bin")]);
    }
    if cfg!(unix) {
        wanted.push("/usr/local/bin".into());
    }
    wanted.dedup();
    wanted
}

fn name(index: usize) -> String {
    format!("{}{}", NAMES.get(index).copied().unwrap_or_default(), std::env::consts::EXE_SUFFIX)
}

fn link_both(directory: &Path, target: &Path, place: &Place) -> Result<Installed, LinkError> {
    let links: Vec<PathBuf> = (0..NAMES.len()).map(|index| directory.join(name(index))).collect();
    // Before anything is made.
    if let Some(foreign) = links.iter().find(|link| link.symlink_metadata().is_ok() && !is_ours(link, &place.program)) {
        return Err(LinkError::NotOurs(foreign.clone()));
    }
    let mut installed = Installed::default();
    for link in links {
        if link != target && !same(&link, &place.program) {
            make(target, &link).map_err(|source| LinkError::Failed { path: link.clone(), source })?;
        }
        let leads_to = fs::read_link(&link).unwrap_or_else(|_| target.to_owned());
        installed.links.push((link, leads_to));
    }
    if !place.path.iter().any(|one| one == directory || same(one, directory)) {
        let text = format!("{} is not on PATH, where kubectl looks for plugins", directory.display());
        installed.warnings.push(text);
    } else if let Some(other) = place.path.iter().map(|one| one.join(name(0))).find(|file| file.exists())
        && !same(&other, &place.program)
    {
        installed.warnings.push(format!("{} comes first on PATH and is another program", other.display()));
    }
    Ok(installed)
}

/// A link to this file, or to one that is called as we are, be it gone: an older version's.
fn is_ours(link: &Path, program: &Path) -> bool {
    if same(link, program) {
        return true;
    }
    let Ok(target) = fs::read_link(link) else { return false };
    let stem = target.file_stem().unwrap_or_default();
    stem == "drift" || NAMES.iter().any(|name| stem == *name)
}

/// Whether two paths lead to one file.
fn same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// In one step, over an older link.
#[cfg(unix)]
fn make(target: &Path, link: &Path) -> io::Result<()> {
    let beside = link.with_extension(format!("{}.new", std::process::id()));
    std::os::unix::fs::symlink(target, &beside)?;
    fs::rename(&beside, link).inspect_err(|_| {
        // What is left behind is harmless; the first error is the one to tell.
        let _ = fs::remove_file(&beside);
    })
}

/// Links take rights that few users have here.
#[cfg(not(unix))]
fn make(target: &Path, link: &Path) -> io::Result<()> {
    fs::copy(target, link).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("drift-links-{}-{name}", std::process::id()));
            fs::create_dir_all(folder.join("app")).unwrap();
            fs::create_dir_all(folder.join("bin")).unwrap();
            fs::write(folder.join("app/drift"), "").unwrap();
            Self(folder.canonicalize().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join(path)
        }

        fn place(&self) -> Place {
            Place { program: self.at("app/drift"), to: Some(self.at("bin")), path: vec![self.at("bin")], home: None }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn both_links_lead_to_the_program_however_often() {
        let folder = Folder::new("twice");
        for _ in 0..2 {
            let installed = install(&folder.place()).unwrap();
            assert_eq!(installed.warnings, [] as [String; 0]);
            let links = ["bin/kubectl-drift", "bin/kubectl_complete-drift"];
            assert_eq!(installed.links, links.map(|link| (folder.at(link), folder.at("app/drift"))));
            for link in links {
                assert_eq!(fs::read_link(folder.at(link)).unwrap(), folder.at("app/drift"));
            }
        }
    }

    #[test]
    fn links_of_an_older_version_are_moved_and_what_is_not_ours_stays() {
        let folder = Folder::new("foreign");
        symlink("/gone/store/drift/v0.0.9/kubectl-drift", folder.at("bin/kubectl-drift")).unwrap();
        fs::write(folder.at("bin/kubectl_complete-drift"), "theirs").unwrap();
        let refused = install(&folder.place());
        assert!(matches!(refused, Err(LinkError::NotOurs(file)) if file == folder.at("bin/kubectl_complete-drift")));
        assert!(!folder.at("bin/kubectl-drift").exists(), "nothing was made");
        fs::remove_file(folder.at("bin/kubectl_complete-drift")).unwrap();
        install(&folder.place()).unwrap();
        assert_eq!(fs::read_link(folder.at("bin/kubectl-drift")).unwrap(), folder.at("app/drift"));
        // A link to another program is not ours either.
        fs::remove_file(folder.at("bin/kubectl-drift")).unwrap();
        symlink("/usr/bin/env", folder.at("bin/kubectl-drift")).unwrap();
        assert!(matches!(install(&folder.place()), Err(LinkError::NotOurs(_))));
    }

    #[test]
    fn krews_link_is_left_and_followed() {
        let folder = Folder::new("krew");
        fs::create_dir(folder.at("store")).unwrap();
        fs::rename(folder.at("app/drift"), folder.at("store/kubectl-drift")).unwrap();
        symlink(folder.at("store/kubectl-drift"), folder.at("bin/kubectl-drift")).unwrap();
        let place = Place { program: folder.at("store/kubectl-drift"), to: None, ..folder.place() };
        install(&place).unwrap();
        assert_eq!(fs::read_link(folder.at("bin/kubectl-drift")).unwrap(), folder.at("store/kubectl-drift"));
        assert_eq!(fs::read_link(folder.at("bin/kubectl_complete-drift")).unwrap(), folder.at("bin/kubectl-drift"));
    }

    #[test]
    fn unasked_the_links_go_where_path_looks() {
        let folder = Folder::new("path");
        fs::create_dir_all(folder.at("home/.local/bin")).unwrap();
        fs::create_dir_all(folder.at("home/bin")).unwrap();
        let place = Place {
            to: None,
            home: Some(folder.at("home")),
            path: vec![folder.at("bin"), folder.at("home/bin")],
            ..folder.place()
        };
        let installed = install(&place).unwrap();
        assert_eq!(installed.links.first().map(|(link, _)| link.clone()), Some(folder.at("home/bin/kubectl-drift")));
        let nowhere = Place { path: vec![folder.at("bin")], ..place };
        assert!(matches!(install(&nowhere), Err(LinkError::Nowhere(_))));
    }

    #[test]
    fn what_keeps_kubectl_from_finding_it_is_said() {
        let folder = Folder::new("shadow");
        fs::create_dir(folder.at("first")).unwrap();
        fs::write(folder.at("first/kubectl-drift"), "another").unwrap();
        let place = Place { path: vec![folder.at("first"), folder.at("bin")], ..folder.place() };
        let warnings = install(&place).unwrap().warnings;
        assert!(warnings.iter().any(|text| text.contains("comes first on PATH")), "{warnings:?}");
        let place = Place { path: vec![], ..folder.place() };
        let warnings = install(&place).unwrap().warnings;
        assert!(warnings.iter().any(|text| text.contains("is not on PATH")), "{warnings:?}");
    }
}
