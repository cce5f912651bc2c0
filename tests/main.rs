//! The one test binary. What needs the real control plane is below `real`, which `check.sh --fast` leaves out by name.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at what it did not expect"
)]

mod cli;
mod dependencies;
mod faults;
mod packaging;
mod real;
mod repo;
mod report;
mod support;

#[test]
fn every_file_beside_this_one_is_part_of_a_test_binary() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs") {
            let target = format!("path = \"tests/{name}\"");
            let known = include_str!("../Cargo.toml").contains(&target)
                || include_str!("main.rs").contains(&format!("\nmod {module};\n"));
            assert!(known, "tests/{name} is in no test binary: name it in tests/main.rs");
        }
    }
}
