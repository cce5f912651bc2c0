//! The program as it is now, packed as a release: by `release.sh`, the way every release is; or the release that `$DRIFT_DIST`
//! names, a folder that `release.sh` filled. Knows nothing of who installs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `release.sh --pack` made.
pub(crate) struct Release {
    pub(crate) dist: PathBuf,
}

impl Release {
    /// For Helm 4, kubectl, krew and people.
    pub(crate) fn archive(&self) -> PathBuf {
        self.dist.join(format!("drift-{VERSION}-{}.tgz", platform()))
    }

    /// With plugin.yaml at its root, as Helm 3 wants it from an address.
    pub(crate) fn helm3_archive(&self) -> PathBuf {
        self.dist.join(format!("drift-{VERSION}-{}-helm3.tgz", platform()))
    }

    /// krew's manifest, filled.
    pub(crate) fn manifest(&self) -> PathBuf {
        self.dist.join("drift.yaml")
    }

    /// Unpacks the archive into a folder; gives the plugin's own folder in it.
    pub(crate) fn unpack(&self, folder: &Path) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(self.archive()).arg("-C").arg(folder);
        assert!(tar.status().unwrap().success());
        folder.join("drift")
    }
}

/// This machine's, as releases call it.
pub(crate) fn platform() -> String {
    let os = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}-{arch}")
}

/// `$DRIFT_DIST`; else the program of this build, without what only a debugger needs, packed once a test run.
pub(crate) fn release() -> &'static Release {
    static RELEASE: LazyLock<Release> = LazyLock::new(|| {
        if let Some(dist) = std::env::var_os("DRIFT_DIST") {
            let release = Release { dist: Path::new(env!("CARGO_MANIFEST_DIR")).join(dist) };
            assert!(release.archive().is_file(), "DRIFT_DIST has no {}", release.archive().display());
            return release;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("release");
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("drift");
        let strip = Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_drift")).status();
        if !strip.is_ok_and(|status| status.success()) {
            std::fs::copy(env!("CARGO_BIN_EXE_drift"), &program).unwrap();
        }
        pack(&[(&platform(), &program)], &folder.join("dist"), "https://git.example.com/me/drift")
    });
    &RELEASE
}

/// Packs files as these platforms' programs, with a time of its own. Without a repository no address is known.
pub(crate) fn pack(programs: &[(&str, &Path)], dist: &Path, repository: &str) -> Release {
    pack_in(Path::new(env!("CARGO_MANIFEST_DIR")), programs, dist, repository)
}

/// The same by the `release.sh` of another copy of this repository.
pub(crate) fn pack_in(root: &Path, programs: &[(&str, &Path)], dist: &Path, repository: &str) -> Release {
    let output = Command::new("bash")
        .arg(root.join("release.sh"))
        .args(["--pack", VERSION])
        .args(programs.iter().map(|(platform, program)| format!("{platform}={}", program.display())))
        .env("DIST", dist)
        .env("DRIFT_REPOSITORY", repository)
        .env("SOURCE_DATE_EPOCH", "1764000000")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Release { dist: dist.to_owned() }
}
