//! Every drift case of `tests/data/cases`, with the Helm versions it names.

use crate::support::cases::run_all;
use crate::support::control_plane::Helm;

#[test]
fn cases_with_helm_3() {
    run_all(Helm::Three);
}

#[test]
fn cases_with_helm_4() {
    run_all(Helm::Four);
}
