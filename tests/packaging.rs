//! What is released: the archives and their sums, krew's manifest by krew's own rules, the hook that Helm runs. No cluster, no network.

use crate::support::release::{Release, VERSION, pack, pack_in, platform};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of one test's own, empty at its start.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packaging").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// A program that says it is this version, or another, and is nothing more.
fn stand_in(folder: &Path, version: &str) -> PathBuf {
    let program = folder.join("stand-in");
    fs::write(&program, format!("#!/bin/sh\necho drift {version}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

const ADDRESS: &str = "https://git.example.com/me/drift";

/// A release of such a program for this platform, in `dist` of the folder.
fn packed(folder: &Path, version: &str) -> Release {
    pack(&[(&platform(), &stand_in(folder, version))], &folder.join("dist"), ADDRESS)
}

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// The rules of krew: `internal/index/validation/validate.go` and the index's `cmd/validate-krew-manifest`.
fn hold_to_krews_rules(path: &Path) {
    let plugin = yaml(path);
    assert_eq!(text(&plugin, "apiVersion"), "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(text(&plugin, "kind"), "Plugin");
    let name = text(&plugin["metadata"], "name");
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
    assert_eq!(path.file_name().unwrap().to_str().unwrap(), format!("{name}.yaml"));
    let spec = &plugin["spec"];
    assert_eq!(text(spec, "version"), format!("v{VERSION}"));
    assert!(!text(spec, "shortDescription").is_empty() && !text(spec, "shortDescription").contains('\n'));
    for key in ["homepage", "description", "caveats"] {
        assert!(!text(spec, key).is_empty(), "{key}");
    }
    let supported = [
        ("windows", "386"),
        ("windows", "amd64"),
        ("windows", "arm64"),
        ("linux", "386"),
        ("linux", "amd64"),
        ("linux", "arm"),
        ("linux", "arm64"),
        ("linux", "ppc64le"),
        ("darwin", "386"),
        ("darwin", "amd64"),
        ("darwin", "arm64"),
    ];
    let platforms = spec["platforms"].as_array().unwrap();
    assert!(!platforms.is_empty());
    let mut matched = BTreeMap::new();
    for platform in platforms {
        let sum = text(platform, "sha256");
        assert!(sum.len() == 64 && sum.bytes().all(|byte| b"0123456789abcdef".contains(&byte)), "{sum}");
        let selector = platform["selector"].as_object().unwrap();
        assert_eq!(selector.keys().collect::<Vec<_>>(), ["matchLabels"], "what this test knows of selectors");
        let labels = selector["matchLabels"].as_object().unwrap();
        assert!(!labels.is_empty() && labels.keys().all(|key| key == "os" || key == "arch"), "{labels:?}");
        let fits = |(os, arch): &(&str, &str)| {
            labels.get("os").is_none_or(|value| value == os) && labels.get("arch").is_none_or(|value| value == arch)
        };
        let pairs: Vec<_> = supported.iter().copied().filter(fits).collect();
        assert!(!pairs.is_empty(), "no platform of krew's is {labels:?}");
        for pair in pairs {
            assert!(matched.insert(pair, sum).is_none(), "{pair:?} matches twice");
        }
        let files = platform["files"].as_array().unwrap();
        assert!(!files.is_empty());
        for file in files {
            let (from, to) = (text(file, "from"), text(file, "to"));
            assert!(!from.is_empty() && !from.starts_with('/') && !from.contains(".."), "{from}");
            let clean = to == "." || to.split('/').all(|part| !matches!(part, "" | "." | ".."));
            assert!(clean, "{to} is not a clean path");
        }
        let bin = text(platform, "bin");
        assert!(files.iter().any(|file| text(file, "to") == bin), "no file becomes {bin}");
        assert!(files.iter().any(|file| text(file, "from").ends_with("/LICENSE")), "no licence is installed");
        let archive = format!(
            "drift-{VERSION}-{}-{}.tgz",
            text(&platform["selector"]["matchLabels"], "os"),
            text(&platform["selector"]["matchLabels"], "arch")
        );
        assert!(text(platform, "uri").ends_with(&format!("/releases/download/v{VERSION}/{archive}")), "{platform}");
    }
}

#[test]
fn krews_manifest_keeps_krews_rules_on_every_platform() {
    hold_to_krews_rules(&root().join("krew/drift.yaml"));
    // Releases are for these, and install-binary.sh and release.sh know them.
    let manifest = yaml(&root().join("krew/drift.yaml"));
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    let names: Vec<String> = platforms
        .iter()
        .map(|platform| &platform["selector"]["matchLabels"])
        .map(|labels| format!("{}-{}", text(labels, "os"), text(labels, "arch")))
        .collect();
    let script = fs::read_to_string(root().join("release.sh")).unwrap();
    assert!(script.contains(&format!("\nplatforms=\"{}\"\n", names.join(" "))));
    let hook = fs::read_to_string(root().join("install-binary.sh")).unwrap();
    assert!(hook.contains(&format!("{})", names.join(" | "))));
}

/// What `release.sh --pack` reads of this repository.
const PACKED: [&str; 14] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "deny.toml",
    "install-binary.sh",
    "krew/drift.yaml",
    "plugin.complete",
    "plugin.yaml",
    "release.sh",
    "src/main.rs",
    "tests/main.rs",
    "tests/with_cluster.rs",
];

#[test]
fn two_runs_in_two_folders_give_the_same_files_and_their_sums_are_right() {
    let folder = folder("twice");
    let program = stand_in(&folder, VERSION);
    let programs: &[(&str, &Path)] = &[(&platform(), &program)];
    // A copy that somebody else made: later, readable by them alone, in a folder with a blank.
    let copy = folder.join("a copy");
    for file in PACKED {
        let to = copy.join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(&to, fs::read(root().join(file)).unwrap()).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let releases =
        [(root(), "one"), (&copy, "two")].map(|(root, run)| pack_in(root, programs, &folder.join(run), ADDRESS));
    let names = |dist: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(dist).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let [one, two] = &releases;
    let expected = [
        "SHA256SUMS".to_owned(),
        format!("drift-{VERSION}-{}-helm3.tgz", platform()),
        format!("drift-{VERSION}-{}.tgz", platform()),
        format!("drift-{VERSION}.cdx.json"),
        "drift.yaml".to_owned(),
    ];
    assert_eq!(names(&one.dist), expected);
    for name in names(&one.dist) {
        assert!(fs::read(one.dist.join(&name)).unwrap() == fs::read(two.dist.join(&name)).unwrap(), "{name} differs");
    }

    let sums = fs::read_to_string(one.dist.join("SHA256SUMS")).unwrap();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let digest = ring::digest::digest(&ring::digest::SHA256, &fs::read(one.dist.join(name)).unwrap());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, sum, "{name}");
    }
    assert_eq!(sums.lines().count(), expected.len() - 1);

    // Only this platform has an archive, and its sum and address are in krew's manifest.
    hold_to_krews_rules(&one.manifest());
    let manifest = yaml(&one.manifest());
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 1);
    assert!(sums.contains(&format!("{}  drift-{VERSION}-{}.tgz", text(&platforms[0], "sha256"), platform())));
    assert!(text(&platforms[0], "uri").starts_with(&format!("{ADDRESS}/releases/download/v{VERSION}/")));
    assert_eq!(text(&manifest["spec"], "homepage"), ADDRESS);
}

#[test]
fn krews_manifest_names_the_address_of_the_release_or_none() {
    let folder = folder("address");
    let program = stand_in(&folder, VERSION);
    let programs: &[(&str, &Path)] = &[("linux-amd64", &program), ("darwin-arm64", &program)];
    for (repository, address) in [
        ("https://git.example.com/me/drift.git/", "https://git.example.com/me/drift"),
        ("git@git.example.com:me/drift.git", "https://git.example.com/me/drift"),
        ("ssh://git@git.example.com/me/drift", "https://git.example.com/me/drift"),
        ("/srv/git/drift", ""),
    ] {
        let manifest = yaml(&pack(programs, &folder.join("dist"), repository).manifest());
        let home = manifest["spec"]["homepage"].as_str().unwrap_or_default();
        assert_eq!(home, address, "{repository}");
        for platform in manifest["spec"]["platforms"].as_array().unwrap() {
            let labels = &platform["selector"]["matchLabels"];
            let file = format!("drift-{VERSION}-{}-{}.tgz", text(labels, "os"), text(labels, "arch"));
            let expected =
                if address.is_empty() { file } else { format!("{address}/releases/download/v{VERSION}/{file}") };
            assert_eq!(text(platform, "uri"), expected, "{repository}");
        }
    }
}

#[test]
fn the_archives_have_each_hosts_layout_and_nothing_that_it_refuses() {
    let folder = folder("layout");
    let release = packed(&folder, VERSION);
    for (archive, prefix) in [(release.archive(), "drift/"), (release.helm3_archive(), "")] {
        let output = Command::new("tar").arg("-tvzf").arg(&archive).output().unwrap();
        let listing = String::from_utf8(output.stdout).unwrap();
        for file in ["plugin.yaml", "plugin.complete", "install-binary.sh", "LICENSE", "README.md", "bin/drift"] {
            let line = listing.lines().find(|line| line.ends_with(&format!(" {prefix}{file}")));
            let line = line.unwrap_or_else(|| panic!("no {file} in {listing}"));
            let runs = matches!(file, "plugin.complete" | "install-binary.sh" | "bin/drift");
            assert!(line.starts_with(if runs { "-rwxr-xr-x 0/0" } else { "-rw-r--r-- 0/0" }), "{line}");
        }
        // Helm and krew refuse links, and paths that lead elsewhere.
        for line in listing.lines() {
            assert!(line.starts_with('-') || line.starts_with('d'), "{line}");
            assert!(!line.contains("..") && !line.contains(" /") && !line.contains("./"), "{line}");
        }
    }
}

#[test]
fn the_bill_of_materials_names_what_is_compiled_in_and_no_more() {
    let folder = folder("materials");
    let release = packed(&folder, VERSION);
    let bill: Value =
        serde_json::from_slice(&fs::read(release.dist.join(format!("drift-{VERSION}.cdx.json"))).unwrap()).unwrap();
    assert_eq!((text(&bill, "bomFormat"), text(&bill, "specVersion")), ("CycloneDX", "1.5"));
    assert_eq!(text(&bill["metadata"]["component"], "version"), VERSION);
    let components = bill["components"].as_array().unwrap();
    let names: Vec<&str> = components.iter().map(|component| text(component, "name")).collect();
    assert!(names.len() > 100, "{}", names.len());
    for name in ["kube", "clap", "rustls", "ring", "serde_json", "libyaml-safer"] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(!names.contains(&"proptest"), "the tests' own");
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for component in components {
        let (name, version) = (text(component, "name"), text(component, "version"));
        assert_eq!(text(component, "purl"), format!("pkg:cargo/{name}@{version}"));
        assert!(!component["licenses"][0]["expression"].as_str().unwrap_or_default().is_empty(), "{name}");
        let sum = text(&component["hashes"][0], "content");
        assert!(lock.contains(&format!("checksum = \"{sum}\"")), "{name}");
    }
}

#[test]
fn a_release_is_of_the_version_in_cargo_toml() {
    let output = Command::new("bash").arg(root().join("release.sh")).args(["--pack", "99.0.0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("this is version {VERSION}")));
}

/// Helm's plugin folder with the plugin in it as a release from version control leaves it: without the program.
struct Plugins {
    folder: PathBuf,
}

impl Plugins {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        let plugins = Self { folder };
        fs::create_dir_all(plugins.plugin()).unwrap();
        for file in ["plugin.yaml", "plugin.complete", "install-binary.sh"] {
            fs::copy(root().join(file), plugins.plugin().join(file)).unwrap();
        }
        plugins
    }

    fn plugin(&self) -> PathBuf {
        self.folder.join("plugins/drift")
    }

    /// Runs the hook as Helm 4 does, which gives it two variables.
    fn hook(&self, variables: &[(&str, &str)]) -> Output {
        let mut hook = Command::new("sh");
        hook.args(["-c", "sh \"$HELM_PLUGIN_DIR/install-binary.sh\""])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HELM_PLUGIN_NAME", "drift")
            .env("HELM_PLUGIN_DIR", self.plugin())
            .envs(variables.iter().copied());
        hook.output().unwrap()
    }

    /// It fails and says this.
    fn refuses(&self, variables: &[(&str, &str)], why: &str) {
        let output = self.hook(variables);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert!(stderr.lines().all(|line| line.starts_with("drift: ")), "{stderr}");
        assert!(!self.plugin().join("bin/drift").exists());
    }

    fn takes(&self, variables: &[(&str, &str)]) {
        let output = self.hook(variables);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), stderr),
            (Some(0), format!("drift: drift {VERSION} is ready: helm drift --help\n"))
        );
        let program = Command::new(self.plugin().join("bin/drift")).arg("version").output().unwrap();
        assert_eq!(String::from_utf8(program.stdout).unwrap(), format!("drift {VERSION}\n"));
    }
}

#[test]
fn the_hook_takes_an_archive_offline_and_holds_it_to_its_sum() {
    let plugins = Plugins::new("offline");
    let folder = &plugins.folder;
    let release = packed(folder, VERSION);
    for archive in [release.archive(), release.helm3_archive()] {
        let archive = archive.to_str().unwrap();
        plugins.takes(&[("HELM_DRIFT_ARCHIVE", archive)]);
        fs::remove_dir_all(plugins.plugin().join("bin")).unwrap();
    }
    // Beside the plugin, as `release.sh` leaves it.
    symlink(&release.dist, plugins.plugin().join("dist")).unwrap();
    plugins.takes(&[]);
    plugins.takes(&[]); // it is there already
    fs::remove_file(plugins.plugin().join("dist")).unwrap();
    // An older program goes when the plugin is updated.
    fs::copy(stand_in(folder, "0.0.1"), plugins.plugin().join("bin/drift")).unwrap();
    let archive = release.archive().to_str().unwrap().to_owned();
    plugins.takes(&[("HELM_DRIFT_ARCHIVE", &archive)]);
    fs::remove_dir_all(plugins.plugin().join("bin")).unwrap();

    let alone = folder.join("alone.tgz");
    fs::copy(&archive, &alone).unwrap();
    let alone = alone.to_str().unwrap();
    plugins.refuses(&[("HELM_DRIFT_ARCHIVE", alone)], "put the release's SHA256SUMS beside it");
    let wrong = "0".repeat(64);
    plugins.refuses(
        &[("HELM_DRIFT_ARCHIVE", alone), ("HELM_DRIFT_SHA256", &wrong)],
        "is not the file that was released: its sum is ",
    );
    plugins.refuses(&[("HELM_DRIFT_ARCHIVE", "/nowhere.tgz")], "there is no file /nowhere.tgz");
    let sums = fs::read_to_string(release.dist.join("SHA256SUMS")).unwrap();
    let line = sums.lines().find(|line| archive.ends_with(line.split("  ").nth(1).unwrap())).unwrap();
    plugins.takes(&[("HELM_DRIFT_ARCHIVE", alone), ("HELM_DRIFT_SHA256", line.split(' ').next().unwrap())]);
}

#[test]
fn the_hook_refuses_a_program_of_another_version_or_machine() {
    let plugins = Plugins::new("another");
    let release = packed(&plugins.folder, "9.9.9");
    let archive = release.archive();
    plugins.refuses(&[("HELM_DRIFT_ARCHIVE", archive.to_str().unwrap())], "that runs on this machine");
}

#[test]
fn the_hook_says_what_to_do_without_a_program() {
    let plugins = Plugins::new("without");
    plugins.refuses(&[], &format!("HELM_DRIFT_ARCHIVE=/path/to/drift-{VERSION}-{}.tgz", platform()));
    // A machine that releases are not for.
    let bin = plugins.folder.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("uname"), "#!/bin/sh\ncase $1 in -s) echo Linux ;; -m) echo riscv64 ;; esac\n").unwrap();
    fs::set_permissions(bin.join("uname"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(plugins.plugin().join("Cargo.toml"), "").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let variables = [("PATH", path.as_str())];
    plugins.refuses(&variables, "for this machine (linux-riscv64)");
    plugins.refuses(&variables, "cargo build --release");
}

#[test]
fn the_hook_takes_a_build_beside_it() {
    let plugins = Plugins::new("build");
    let target = plugins.plugin().join("target/release");
    fs::create_dir_all(&target).unwrap();
    fs::copy(stand_in(&plugins.folder, VERSION), target.join("drift")).unwrap();
    plugins.takes(&[]);
    assert_eq!(fs::read_link(plugins.plugin().join("bin/drift")).unwrap(), target.join("drift"));
}

#[test]
fn the_hook_knows_another_plugin_of_the_name() {
    for (name, is_link) in [("link", true), ("copy", false)] {
        let plugins = Plugins::new(&format!("claimed-{name}"));
        let other = plugins.folder.join("plugins/helm-drift");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("plugin.yaml"), "name: 'drift' # theirs\nusage: \"another drift\"\n").unwrap();
        if is_link {
            // Helm links a directory, and what it cloned.
            let source = plugins.folder.join("source");
            fs::rename(plugins.plugin(), &source).unwrap();
            symlink(&source, plugins.plugin()).unwrap();
        }
        let output = plugins.hook(&[]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(&format!("{} (\"another drift\")", other.display())), "{stderr}");
        assert!(stderr.contains("helm plugin uninstall drift"), "{stderr}");
        assert!(!plugins.plugin().exists(), "Helm loads no plugin while two have one name");
        assert!(other.join("plugin.yaml").exists());
        assert_eq!(plugins.folder.join("source/plugin.yaml").exists(), is_link, "only the link goes");
    }
    // What somebody may work in is not removed.
    let plugins = Plugins::new("claimed-checkout");
    fs::write(plugins.plugin().join("Cargo.toml"), "").unwrap();
    let other = plugins.folder.join("plugins/helm-drift");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("plugin.yaml"), "name: drift\n").unwrap();
    plugins.refuses(&[], &format!("to keep this one:  rm -r '{}'", other.display()));
    assert!(plugins.plugin().join("Cargo.toml").exists());
}
