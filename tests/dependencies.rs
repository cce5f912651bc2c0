//! Licences, bans and sources of everything in Cargo.lock, by the lists of deny.toml: what `cargo deny check bans licenses sources`
//! checks, without a further tool to build. Knows of deny.toml only what that file says about its own form.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What cargo knows of each dependency, on every platform; the program itself is left out.
fn packages() -> Vec<Value> {
    let arguments = ["metadata", "--locked", "--all-features", "--format-version=1"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = metadata["packages"].as_array().unwrap();
    all.iter().filter(|package| !package["source"].is_null()).cloned().collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// The lines of a list in deny.toml, each as the quoted texts in it.
fn entries(list: &str) -> Vec<Vec<String>> {
    let text = include_str!("../deny.toml");
    let start = text.find(&format!("\n{list} = [\n")).unwrap_or_else(|| panic!("deny.toml has no {list}"));
    let lines = text[start..].lines().skip(2).take_while(|line| *line != "]");
    let quoted = |line: &str| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    lines.filter(|line| !line.trim_start().starts_with('#')).map(quoted).collect()
}

/// The licences that deny.toml states for crates whose manifest has none.
fn clarified() -> BTreeMap<String, String> {
    let quoted = |line: Option<&str>| line.and_then(|line| line.split('"').nth(1)).unwrap().to_owned();
    let blocks = include_str!("../deny.toml").split("[[licenses.clarify]]\n").skip(1);
    blocks.map(|block| (quoted(block.lines().next()), quoted(block.lines().nth(1)))).collect()
}

/// Whether an SPDX expression is met by the allowed licences. `/` is the old spelling of OR.
fn allowed(expression: &str, licences: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (value, rest) = either(&words, licences);
    assert!(rest.is_empty(), "not an SPDX expression: {expression}");
    value
}

fn either<'a>(words: &'a [&'a str], licences: &[String]) -> (bool, &'a [&'a str]) {
    let (mut value, mut rest) = both(words, licences);
    while let ["OR", tail @ ..] = rest {
        let (other, after) = both(tail, licences);
        (value, rest) = (value || other, after);
    }
    (value, rest)
}

fn both<'a>(words: &'a [&'a str], licences: &[String]) -> (bool, &'a [&'a str]) {
    let (mut value, mut rest) = single(words, licences);
    while let ["AND", tail @ ..] = rest {
        let (other, after) = single(tail, licences);
        (value, rest) = (value && other, after);
    }
    (value, rest)
}

fn single<'a>(words: &'a [&'a str], licences: &[String]) -> (bool, &'a [&'a str]) {
    match words {
        ["(", tail @ ..] => {
            let (value, rest) = either(tail, licences);
            (value, rest.strip_prefix(&[")"]).unwrap_or(&["unclosed"]))
        }
        [licence, "WITH", exception, rest @ ..] => (licences.contains(&format!("{licence} WITH {exception}")), rest),
        [licence, rest @ ..] => (licences.iter().any(|allowed| allowed == licence), rest),
        [] => (false, &["nothing"]),
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allow: Vec<String> = entries("allow").concat();
    let exceptions = entries("exceptions");
    let clarified = clarified();
    let problems: Vec<String> = packages()
        .iter()
        .filter_map(|package| {
            let name = name(package);
            let licence = package["license"].as_str().or(clarified.get(name).map(String::as_str)).unwrap_or("none");
            let mut licences = allow.clone();
            for exception in exceptions.iter().filter(|exception| exception[0] == name) {
                licences.extend_from_slice(&exception[1..]);
            }
            (!allowed(licence, &licences)).then(|| format!("{name}: {licence}"))
        })
        .collect();
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn every_dependency_comes_from_crates_io() {
    let others: Vec<Value> = packages().into_iter().filter(|package| package["source"] != CRATES_IO).collect();
    assert_eq!(others, Vec::<Value>::new());
}

#[test]
fn no_banned_crate_is_in_the_lock_file() {
    let banned: Vec<String> = entries("deny").concat();
    assert!(!banned.is_empty());
    let found: Vec<String> = packages()
        .iter()
        .map(name)
        .filter(|name| banned.iter().any(|other| other == name))
        .map(str::to_owned)
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_spdx_expression_is_read_with_its_brackets_and_exceptions() {
    let licences = ["MIT".to_owned(), "ISC".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    for expression in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "MIT AND ISC",
        "(GPL-3.0 OR MIT) AND ISC",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(allowed(expression, &licences), "{expression}");
    }
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "Apache-2.0", "none", ""] {
        assert!(!std::panic::catch_unwind(|| allowed(expression, &licences)).unwrap_or(false), "{expression}");
    }
}
