//! Every drift case of `tests/data/cases`, with the Helm versions it names.

use crate::support::cases::{Case, run_all};
use crate::support::control_plane::Helm;

/// Cases that need what is not there yet, and what that is. Nothing else may be left out.
const LATER: &[(&str, &str)] = &[
    ("ignore-annotation-in-manifest", "ignore rules"),
    ("ignore-expired", "configuration: ignore rules"),
    ("ignore-one-field", "configuration: ignore rules"),
    ("ignore-wildcard-item", "configuration: ignore rules"),
    ("release-deleted-but-expected", "configuration: expected releases"),
    ("release-revision-expected", "configuration: expected releases"),
    ("suspend-label-by-a-stranger", "suspension"),
    ("suspend-label-by-helm", "suspension"),
];

/// Keys of a finding that are not reported yet.
const LATER_KEYS: &[&str] = &[];

#[test]
fn cases_with_helm_3() {
    run_all(Helm::Three, LATER, LATER_KEYS);
}

#[test]
fn cases_with_helm_4() {
    run_all(Helm::Four, LATER, LATER_KEYS);
}

/// A case may wait for later only by a key that nothing reads yet.
#[test]
fn cases_left_for_later_need_what_is_not_there_yet() {
    let cases = Case::all();
    for (id, _) in LATER {
        let case = cases.iter().find(|case| case.id == *id).unwrap_or_else(|| panic!("no such case: {id}"));
        let arguments = case.body["args"].as_array().into_iter().flatten().any(|word| word == "-f");
        let ignored = case.body["expect"]["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|finding| finding["verdict"] == "ignored");
        let suspended = !case.body["expect"]["suspended"].is_null();
        assert!(!case.body["config"].is_null() || arguments || ignored || suspended, "{id} can be run");
    }
}
