//! Installed as people install it: by Helm 3, Helm 4, kubectl and krew, from what `release.sh` packs, and run on a real cluster.

use crate::support::control_plane::{Helm, control_plane};
use crate::support::namespace::Namespace;
use crate::support::process::{self, Finished};
use crate::support::release::{VERSION, pack, release};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

const TEMPLATE: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
"#;

/// A namespace with the release `nucleus`, and a home of somebody who installs things.
struct Desk {
    namespace: Namespace<'static>,
    home: PathBuf,
    helm: Helm,
}

impl Desk {
    fn new(name: &str, helm: Helm) -> Self {
        let namespace = control_plane().namespace(name);
        let chart = namespace.chart(TEMPLATE);
        namespace.helm(helm, &["install", "nucleus", &chart]).unwrap();
        let home = control_plane().folder(&format!("homes/{}", namespace.name));
        for folder in ["bin", "index/plugins"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        Self { namespace, home, helm }
    }

    /// Runs a command line; its `helm` is of the desk's major, and ~/bin and krew's directory come first on PATH.
    fn run_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Finished {
        let (program, arguments) = words.split_first().unwrap();
        let mut command = self.namespace.command("env", self.helm);
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value).unwrap();
        let path = format!(
            "{}:{}:{}",
            self.home.join("bin").display(),
            self.home.join("krew/bin").display(),
            path.to_str().unwrap()
        );
        command
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("KREW_ROOT", self.home.join("krew"))
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .env("KREW_DEFAULT_INDEX_URI", self.home.join("index"))
            .envs(variables.iter().copied())
            .arg(program)
            .args(arguments);
        process::run(&mut command, "", LIMIT).unwrap()
    }

    fn run(&self, words: &[&str]) -> Finished {
        self.run_with(words, &[])
    }

    /// Runs what must succeed; gives stdout.
    fn done(&self, words: &[&str]) -> String {
        self.run(words).success().unwrap_or_else(|problem| panic!("{}: {problem}", words.join(" ")))
    }

    fn installs_by_helm(&self, source: &str) -> String {
        let verify = if self.helm == Helm::Four { &["--verify=false"][..] } else { &[] };
        self.done(&[&["helm", "plugin", "install"], verify, &[source]].concat())
    }

    /// Changes what Helm wanted.
    fn edit(&self) {
        self.namespace.kubectl(&["patch", "configmap", "settings", "-p", r#"{"data":{"mode":"slow"}}"#], "").unwrap();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The release must be there and in sync.
fn in_sync(run: Finished) -> String {
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("nucleus   True    InSync"), "{}{}", run.stdout, run.stderr);
    run.stdout
}

/// The candidates of cobra's lines, without what they mean.
fn offered(lines: &str) -> Vec<&str> {
    lines.lines().filter(|line| !line.starts_with(':')).map(|line| line.split('\t').next().unwrap()).collect()
}

/// What is in an archive under this name.
fn entry(archive: &Path, name: &str) -> Vec<u8> {
    let output = Command::new("tar").arg("-xzOf").arg(archive).arg(name).output().unwrap();
    assert!(output.status.success(), "{}: no {name}", archive.display());
    output.stdout
}

fn sha256(bytes: &[u8]) -> String {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn helm_3_helm_4_kubectl_and_krew_install_and_run_the_same_archive() {
    let archive = release().archive();
    let bytes = fs::read(&archive).unwrap();
    let sum = sha256(&bytes);
    println!("{}: {} bytes, sha256 {sum}", archive.file_name().unwrap().to_str().unwrap(), bytes.len());
    let program = entry(&archive, "drift/bin/drift");
    assert!(program == entry(&release().helm3_archive(), "bin/drift"), "one program in both layouts");
    println!("drift/bin/drift: {} bytes, sha256 {}", program.len(), sha256(&program));
    let sums = fs::read_to_string(release().dist.join("SHA256SUMS")).unwrap();
    assert!(sums.lines().any(|line| line.starts_with(&sum)), "SHA256SUMS has its sum: {sums}");
    let mut answers = Vec::new();

    // Helm 3 takes directories, and addresses, where it wants a layout of its own; Helm 4 archives too.
    let three = Desk::new("same3", Helm::Three);
    let unpacked = release().unpack(&three.home);
    three.installs_by_helm(text(&unpacked));
    answers.push(in_sync(three.run(&["helm", "drift", "nucleus"])));
    println!(
        "helm {}: installed and run, from the unpacked archive",
        three.done(&["helm", "version", "--short"]).trim()
    );
    three.done(&["helm", "plugin", "uninstall", "drift"]);
    let address = serve(release().dist.clone());
    three.installs_by_helm(&format!("{address}/{}", release().helm3_archive().file_name().unwrap().to_str().unwrap()));
    answers.push(in_sync(three.run(&["helm", "drift", "nucleus"])));
    println!("helm {}: and from an address", three.done(&["helm", "version", "--short"]).trim());

    let four = Desk::new("same4", Helm::Four);
    four.installs_by_helm(text(&archive));
    answers.push(in_sync(four.run(&["helm", "drift", "nucleus"])));
    println!("helm {}: installed and run, from the archive", four.done(&["helm", "version", "--short"]).trim());

    let by_hand = Desk::new("samek", Helm::Four);
    let unpacked = release().unpack(&by_hand.home);
    let bin = by_hand.home.join("bin");
    let links = by_hand.done(&[text(&unpacked.join("bin/drift")), "install-kubectl"]);
    let link = |name: &str| {
        format!("{} -> {}\n", bin.join(name).display(), unpacked.join("bin/drift").canonicalize().unwrap().display())
    };
    assert_eq!(links, link("kubectl-drift") + &link("kubectl_complete-drift"));
    answers.push(in_sync(by_hand.run(&["kubectl", "drift", "nucleus"])));
    let version: Value =
        serde_json::from_str(&by_hand.done(&["kubectl", "version", "--client", "-o", "json"])).unwrap();
    println!("kubectl {}: linked and run", version["clientVersion"]["gitVersion"].as_str().unwrap());

    let krew = Desk::new("samew", Helm::Four);
    let manifest = format!("--manifest={}", release().manifest().display());
    let file = format!("--archive={}", archive.display());
    krew.done(&["kubectl", "krew", "install", &manifest, &file]);
    answers.push(in_sync(krew.run(&["kubectl", "drift", "nucleus"])));
    let store = krew.home.join(format!("krew/store/drift/v{VERSION}"));
    assert!(store.join("LICENSE").is_file(), "{}", store.display());
    assert!(fs::read(store.join("kubectl-drift")).unwrap() == program, "krew's is the same program");
    println!(
        "krew {}: installed and run",
        krew.done(&["kubectl", "krew", "version"])
            .lines()
            .find_map(|line| line.strip_prefix("GitTag"))
            .unwrap_or_default()
            .trim()
    );

    answers.dedup();
    assert_eq!(answers.len(), 1, "all say the same: {answers:?}");
    println!("{}", answers[0].trim_end());
}

/// krew itself unpacks the archive of each platform that its manifest has: of the release, and of one for every platform.
#[test]
fn krew_installs_every_platform_of_its_manifest() {
    let desk = Desk::new("platforms", Helm::Four);
    let program = desk.home.join("stand-in");
    fs::write(&program, format!("#!/bin/sh\necho drift {VERSION}\n")).unwrap();
    let every = ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"].map(|name| (name, program.as_path()));
    let every = pack(&every, &desk.home.join("dist"), "");
    for release in [release(), &every] {
        let manifest: Value = serde_saphyr::from_str(&fs::read_to_string(release.manifest()).unwrap()).unwrap();
        let platforms = manifest["spec"]["platforms"].as_array().unwrap();
        for labels in platforms.iter().map(|platform| &platform["selector"]["matchLabels"]) {
            let [os, arch] = ["os", "arch"].map(|key| labels[key].as_str().unwrap());
            let archive = release.dist.join(format!("drift-{VERSION}-{os}-{arch}.tgz"));
            let root = desk.home.join(format!("krew-{os}-{arch}"));
            let variables = [("KREW_ROOT", text(&root)), ("KREW_OS", os), ("KREW_ARCH", arch)];
            let manifest = format!("--manifest={}", release.manifest().display());
            let file = format!("--archive={}", archive.display());
            desk.run_with(&["kubectl", "krew", "install", &manifest, &file], &variables)
                .success()
                .unwrap_or_else(|problem| panic!("{os}-{arch}: {problem}"));
            let program = root.join(format!("store/drift/v{VERSION}/kubectl-drift"));
            let bytes = fs::read(&program).unwrap();
            let machine = match bytes.get(..20) {
                Some([0x7f, b'E', b'L', b'F', .., 62, 0]) => "linux-amd64",
                Some([0x7f, b'E', b'L', b'F', .., 183, 0]) => "linux-arm64",
                Some([0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1, ..]) => "darwin-amd64",
                Some([0xcf, 0xfa, 0xed, 0xfe, 12, 0, 0, 1, ..]) => "darwin-arm64",
                _ => "a stand-in",
            };
            assert!(machine == format!("{os}-{arch}") || std::ptr::eq(release, &every), "{machine}");
            println!("krew for {os}-{arch}: installed, {} bytes, {machine}", bytes.len());
            fs::remove_dir_all(root).unwrap();
        }
    }
}

#[test]
fn krew_takes_its_own_away_again_and_leaves_completion_to_us() {
    let desk = Desk::new("krew", Helm::Four);
    // krew wants an index before it lists or removes; a repository of git's own here.
    let index = desk.home.join("index");
    fs::write(index.join("plugins/README"), "").unwrap();
    desk.done(&["git", "-C", text(&index), "init", "-q"]);
    desk.done(&["git", "-C", text(&index), "add", "."]);
    let me = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    desk.done(&[&["git", "-C", text(&index)], &me[..], &["commit", "-q", "-m", "index"]].concat());
    desk.done(&["kubectl", "krew", "update"]);

    let manifest = format!("--manifest={}", release().manifest().display());
    let file = format!("--archive={}", release().archive().display());
    desk.done(&["kubectl", "krew", "install", &manifest, &file]);
    assert!(desk.done(&["kubectl", "krew", "list"]).contains("drift"));
    // krew links the program alone.
    assert_eq!(offered(&desk.done(&["kubectl", "__complete", "drift", "nuc"])), [] as [&str; 0]);
    let links = desk.done(&["kubectl", "drift", "install-kubectl"]);
    let bin = desk.home.join("krew/bin");
    let completes =
        format!("{} -> {}\n", bin.join("kubectl_complete-drift").display(), bin.join("kubectl-drift").display());
    assert!(links.ends_with(&completes), "{links}");
    assert_eq!(offered(&desk.done(&["kubectl", "__complete", "drift", "nuc"])), ["nucleus"]);
    desk.done(&["kubectl", "krew", "uninstall", "drift"]);
    let gone = desk.run(&["kubectl", "drift", "nucleus"]);
    assert!(gone.code == Some(1) && gone.stderr.contains("unknown command \"drift\""), "{}", gone.stderr);
}

#[test]
fn helm_runs_the_plugin_with_its_own_flags_and_hands_its_exit_code_on() {
    for helm in [Helm::Three, Helm::Four] {
        let desk = Desk::new("plugin", helm);
        let name = desk.namespace.name.clone();
        let unpacked = release().unpack(&desk.home);
        desk.installs_by_helm(text(&unpacked));
        assert!(desk.done(&["helm", "plugin", "list"]).contains(VERSION));
        let elsewhere = control_plane().kubeconfig(); // whose namespace is `default`
        let elsewhere = [("KUBECONFIG", text(&elsewhere))];

        in_sync(desk.run(&["helm", "drift", "nucleus"]));
        for line in [
            ["helm", "drift", "nucleus", "-n", &name].as_slice(),
            &["helm", "--namespace", &name, "drift", "nucleus"],
            &["helm", "drift", "check", &format!("--namespace={name}"), "nucleus"],
            &["helm", "drift", "nucleus", "-n", &name, "--kube-context", "test"],
            &["helm", "--kube-context", "test", "-n", &name, "drift", "nucleus", "--color", "never"],
        ] {
            in_sync(desk.run_with(line, &elsewhere));
        }
        in_sync(desk.run_with(&["helm", "drift"], &[elsewhere[0], ("HELM_NAMESPACE", &name)]));
        let all = desk.run_with(&["helm", "drift", "-n", &name, "-A"], &elsewhere);
        let row = all.stdout.lines().find(|line| line.split_whitespace().take(2).eq([name.as_str(), "nucleus"]));
        assert!(
            all.stdout.starts_with("NAMESPACE") && row.is_some_and(|row| row.contains("InSync")),
            "{}{}",
            all.stdout,
            all.stderr
        );

        // What helm keeps to itself reaches us by its variables.
        let lost = desk.run(&["helm", "drift", "nucleus", "--kube-context", "nowhere"]);
        assert_eq!((lost.code, lost.stdout.as_str()), (Some(2), ""), "{}", lost.stderr);
        assert!(lost.stderr.contains("no context \"nowhere\""), "{}", lost.stderr);
        let debug = desk.run(&["helm", "drift", "nucleus", "--debug"]);
        assert!(debug.stderr.contains("GET") || debug.stderr.contains("/api"), "{}", debug.stderr);
        let driver = desk.run_with(&["helm", "drift", "nucleus"], &[("HELM_DRIVER", "configmap")]);
        assert!(driver.code == Some(2) && driver.stderr.contains("another driver"), "{}", driver.stderr);
        let token = desk.run(&["helm", "drift", "nucleus", "--kube-token", "hunter2"]);
        assert!(token.code == Some(2) && !token.stderr.contains("hunter2"), "{}", token.stderr);
        let user = desk.run(&["helm", "drift", "nucleus", "--kube-as-user", "nobody"]);
        assert!(user.code == Some(2) && user.stderr.contains("nobody"), "{}", user.stderr);
        assert!(desk.done(&["helm", "drift", "--help"]).contains("Usage: helm drift [RELEASE]..."));

        // Exit codes: drift is 1, trouble is 2; helm adds a line of its own on stderr and leaves stdout alone.
        desk.edit();
        let drifted = desk.run(&["helm", "drift", "nucleus", "-o", "json"]);
        assert_eq!(drifted.code, Some(1), "{}", drifted.stderr);
        let report: Value = serde_json::from_str(&drifted.stdout).unwrap();
        assert_eq!(report["releases"][0]["reason"], "Drifted");
        assert_eq!(drifted.stderr, "Error: plugin \"drift\" exited with error\n");
        let missing = desk.run(&["helm", "drift", "nukleus"]);
        assert_eq!(missing.code, Some(2), "{}", missing.stderr);
        assert!(missing.stderr.contains("nucleus"), "similar names are told: {}", missing.stderr);

        desk.done(&["helm", "plugin", "uninstall", "drift"]);
        let gone = desk.run(&["helm", "drift", "nucleus"]);
        assert!(gone.code == Some(1) && gone.stderr.contains("unknown command"), "{}", gone.stderr);
        println!("Helm {}: runs, environment, exit codes, uninstalled", helm.major());
    }
}

#[test]
fn helm_completes_the_plugin() {
    for helm in [Helm::Three, Helm::Four] {
        let desk = Desk::new("complete", helm);
        let name = desk.namespace.name.clone();
        desk.installs_by_helm(text(&release().unpack(&desk.home)));
        let complete = |words: &[&str]| desk.done(&[&["helm", "__complete", "drift"], words].concat());
        let first = complete(&[""]);
        for word in ["nucleus", "check", "diff", "capture"] {
            assert!(offered(&first).contains(&word), "{first}");
        }
        assert!(first.contains("nucleus\trevision 1, deployed\n") && first.ends_with(":4\n"), "{first}");
        assert_eq!(offered(&complete(&["diff", "nuc"])), ["nucleus"]);
        assert_eq!(offered(&complete(&["nucleus", "nuc"])), [] as [&str; 0], "it stands there already");
        assert_eq!(offered(&complete(&["-n", "default", "diff", "nuc"])), [] as [&str; 0]);
        assert_eq!(offered(&complete(&["nucleus", "--show"])), ["--show-all"]);
        assert_eq!(offered(&complete(&["nucleus", "-o", "j"])), ["json"]);
        assert!(offered(&complete(&[&format!("--namespace={name}")])).contains(&name.as_str()));
        assert_eq!(offered(&complete(&["nucleus", "--revision", ""])), ["1"]);
        assert!(complete(&["capture", "--to", ""]).ends_with(":0\n"), "files are the shell's");
        // Helm 4 takes what is on stderr for candidates: nothing is there, be the cluster gone.
        let lost = desk.run_with(&["helm", "__complete", "drift", "nuc"], &[("KUBECONFIG", "/nowhere")]);
        assert_eq!(offered(&lost.stdout), [] as [&str; 0], "{}", lost.stdout);
    }
}

#[test]
fn helm_updates_the_plugin_that_it_cloned() {
    for helm in [Helm::Three, Helm::Four] {
        let desk = Desk::new("update", helm);
        let repository = desk.home.join("upstream/helm-drift");
        fs::create_dir_all(&repository).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in ["plugin.yaml", "plugin.complete", "install-binary.sh", "LICENSE"] {
            fs::copy(root.join(file), repository.join(file)).unwrap();
        }
        let git = |words: &[&str]| {
            let me = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
            desk.done(&[&["git", "-C", text(&repository)], &me[..], words].concat())
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "first"]);
        let source = format!("file://{}", repository.display());
        let verify = if helm == Helm::Four { &["--verify=false"][..] } else { &[] };
        let install = [&["helm", "plugin", "install"], verify, &[source.as_str()]].concat();
        // Without a network and an archive there is no program, and that is said with the remedy.
        let lacking = desk.run(&install);
        assert!(lacking.code == Some(1) && lacking.stderr.contains("HELM_DRIFT_ARCHIVE="), "{}", lacking.stderr);
        let archive = release().archive();
        let offline = [("HELM_DRIFT_ARCHIVE", text(&archive))];
        let updated = desk.run_with(&["helm", "plugin", "update", "drift"], &offline);
        assert!(updated.code == Some(0) && updated.stderr.contains("is ready"), "{}{}", updated.stdout, updated.stderr);
        in_sync(desk.run(&["helm", "drift", "nucleus"]));

        // A new commit arrives by the next update.
        fs::write(repository.join("NEWS"), "").unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "second"]);
        let updated = desk.run_with(&["helm", "plugin", "update", "drift"], &offline);
        assert!(updated.code == Some(0), "{}{}", updated.stdout, updated.stderr);
        let plugins = desk.home.join(".local/share/helm/plugins");
        let there: Vec<_> = fs::read_dir(&plugins).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(there.iter().any(|plugin| plugin.join("NEWS").exists()), "{there:?}");
        in_sync(desk.run(&["helm", "drift", "nucleus"]));
        desk.done(&["helm", "plugin", "uninstall", "drift"]);

        let again = desk.run_with(&install, &offline);
        assert!(again.code == Some(0), "{}{}", again.stdout, again.stderr);
    }
}

#[test]
fn another_plugin_of_the_name_is_left_alone_and_explained() {
    for helm in [Helm::Three, Helm::Four] {
        let desk = Desk::new("claimed", helm);
        let other = desk.home.join(".local/share/helm/plugins/helm-drift");
        fs::create_dir_all(&other).unwrap();
        let plugin = "name: \"drift\"\nversion: \"1.0.0\"\nusage: \"another drift\"\ndescription: \"\"\ncommand: \"echo theirs\"\n";
        fs::write(other.join("plugin.yaml"), plugin).unwrap();
        let unpacked = release().unpack(&desk.home);
        let verify = if helm == Helm::Four { &["--verify=false"][..] } else { &[] };
        let install = [&["helm", "plugin", "install"], verify, &[text(&unpacked)]].concat();
        let refused = desk.run(&install);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("another drift") && refused.stderr.contains("helm plugin uninstall drift"),
            "{}",
            refused.stderr
        );
        assert_eq!(desk.done(&["helm", "drift"]), "theirs\n", "what was there works on");
        desk.done(&["helm", "plugin", "uninstall", "drift"]);
        desk.done(&install);
        in_sync(desk.run(&["helm", "drift", "nucleus"]));
    }
}

/// Serves a folder on the loopback until the test process ends, as a release page that knows its files' type.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut byte = [0; 1];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                request.push(byte[0]);
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let mut words = request.split(' ');
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let answer = match fs::read(folder.join(path.rsplit('/').next().unwrap_or_default())) {
                Ok(body) => {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    [head.into_bytes(), if method == "HEAD" { Vec::new() } else { body }].concat()
                }
                Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            };
            drop(stream.write_all(&answer));
        }
    });
    address
}

#[test]
fn helm_installs_from_an_address_each_its_own_archive() {
    let address = serve(release().dist.clone());
    for (helm, archive) in [(Helm::Three, release().helm3_archive()), (Helm::Four, release().archive())] {
        let desk = Desk::new("address", helm);
        desk.installs_by_helm(&format!("{address}/{}", archive.file_name().unwrap().to_str().unwrap()));
        let plugin = desk.home.join(".local/share/helm/plugins/drift/plugin.yaml");
        assert!(plugin.is_file(), "the folder is called after the plugin");
        in_sync(desk.run(&["helm", "drift", "nucleus"]));
        desk.done(&["helm", "plugin", "uninstall", "drift"]);
    }
    // A plugin without its program, and a release page to take it from.
    let desk = Desk::new("page", Helm::Four);
    let unpacked = release().unpack(&desk.home);
    fs::remove_dir_all(unpacked.join("bin")).unwrap();
    let page = [("HELM_DRIFT_URL", address.as_str()), ("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")];
    let installed = desk.run_with(&["helm", "plugin", "install", text(&unpacked)], &page);
    assert_eq!(installed.code, Some(0), "{}{}", installed.stdout, installed.stderr);
    in_sync(desk.run(&["helm", "drift", "nucleus"]));
}

#[test]
fn kubectl_runs_the_plugin_with_flags_after_its_name_and_completes_it() {
    let desk = Desk::new("kubectl", Helm::Four);
    let name = desk.namespace.name.clone();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_drift"));
    desk.done(&[text(&program), "install-kubectl", "--to", text(&desk.home.join("bin"))]);
    let elsewhere = control_plane().kubeconfig();
    let elsewhere = [("KUBECONFIG", text(&elsewhere))];

    in_sync(desk.run(&["kubectl", "drift", "nucleus"]));
    in_sync(desk.run_with(&["kubectl", "drift", "nucleus", "-n", &name, "--context", "test"], &elsewhere));
    in_sync(desk.run_with(&["kubectl", "drift", "--namespace", &name, "--kube-context=test"], &elsewhere));
    // kubectl is no helm: helm's variables do not count.
    in_sync(
        desk.run_with(
            &["kubectl", "drift", "nucleus"],
            &[("HELM_NAMESPACE", "default"), ("HELM_KUBECONTEXT", "nowhere")],
        ),
    );
    let all = desk.run_with(&["kubectl", "drift", "--all-namespaces"], &elsewhere);
    let row = all.stdout.lines().find(|line| line.split_whitespace().take(2).eq([name.as_str(), "nucleus"]));
    assert!(row.is_some_and(|row| row.contains("InSync")), "{}{}", all.stdout, all.stderr);
    let before = desk.run(&["kubectl", "-n", &name, "drift"]);
    assert!(
        before.stderr.contains("flags cannot be placed before plugin name"),
        "kubectl's own word: {}",
        before.stderr
    );
    assert!(desk.done(&["kubectl", "drift", "--help"]).contains("Usage: kubectl drift [RELEASE]..."));
    assert!(desk.done(&["kubectl", "plugin", "list"]).contains("kubectl-drift"));

    let complete = |words: &[&str]| desk.done(&[&["kubectl", "__complete", "drift"], words].concat());
    let first = complete(&[""]);
    assert!(offered(&first).contains(&"nucleus") && offered(&first).contains(&"diff"), "{first}");
    assert_eq!(offered(&complete(&["diff", "nuc"])), ["nucleus"]);
    assert_eq!(offered(&complete(&["-A", "diff", "nuc"])).len(), 1, "one name, be it in many namespaces");
    assert!(offered(&complete(&["-n", &name])).contains(&name.as_str()));
    assert_eq!(offered(&complete(&["nucleus", "--context", ""])), ["test"]);
    assert_eq!(offered(&complete(&["nucleus", "--show"])), ["--show-all"]);
    assert_eq!(offered(&complete(&["-o", ""])).first(), Some(&"table"));
    assert_eq!(offered(&complete(&["-n", "default", "nuc"])), [] as [&str; 0]);

    desk.edit();
    assert_eq!(desk.run(&["kubectl", "drift", "nucleus"]).code, Some(1));
    let missing = desk.run(&["kubectl", "drift", "nukleus"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    assert!(!missing.stderr.contains("exit status"), "kubectl adds nothing: {}", missing.stderr);

    // What is not ours is never overwritten.
    let theirs = desk.home.join("theirs");
    fs::create_dir(&theirs).unwrap();
    symlink("/bin/true", theirs.join("kubectl-drift")).unwrap();
    let refused = desk.run(&[text(&program), "install-kubectl", "--to", text(&theirs)]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("is not a link to drift"), "{}", refused.stderr);
    assert!(!theirs.join("kubectl_complete-drift").exists());
}
