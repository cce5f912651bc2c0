//! The drifted objects by name, one a line, for xargs and kubectl.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::drift::finding::{Report, Verdict};
use crate::drift::object::ObjectRef;

use super::group::in_order;

/// `deployment.apps/api`, `configmap/settings`: each drifted object once, in report order.
pub(crate) fn report(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut seen = BTreeSet::new();
    for release in in_order(report) {
        for finding in release.findings.iter().filter(|finding| finding.verdict == Verdict::Drift) {
            if seen.insert(finding.object.key()) {
                writeln!(out, "{}", name(&finding.object))?;
            }
        }
    }
    Ok(())
}

fn name(object: &ObjectRef) -> String {
    let kind = object.gvk.kind.to_lowercase();
    let group = &object.gvk.group;
    let text =
        if group.is_empty() { format!("{kind}/{}", object.name) } else { format!("{kind}.{group}/{}", object.name) };
    one_argument(&text)
}

/// A kind or name that no API server would serve can come from a record that somebody wrote by hand. It must not turn into
/// several arguments of the command that reads these lines, nor into one of its flags.
fn one_argument(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, c) in text.char_indices() {
        match c {
            '-' if index > 0 => out.push(c),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | ':' | '_' | '/' | '@' | '+' | '=' => out.push(c),
            _ => out.extend(c.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::object::Gvk;
    use crate::output::sample;

    #[test]
    fn each_drifted_object_is_named_once() {
        let mut out = Vec::new();
        report(&mut out, &sample::report()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "deployment.apps/api\nconfigmap/settings\nsecret/api-keys\ncertificate.cert-manager.io/web\nservice/old\n\
             clusterrole.rbac.authorization.k8s.io/prod-viewer\ndeployment.apps/worker\n"
        );
    }

    #[test]
    fn a_hostile_name_stays_one_harmless_argument() {
        let object =
            |kind: &str, name: &str| ObjectRef { gvk: Gvk::new("v1", kind), namespace: None, name: name.into() };
        assert_eq!(name(&object("--all", "x")), r"\u{2d}-all/x");
        assert_eq!(name(&object("Pod", "x --all\n'y'")), r"pod/x\u{20}--all\u{a}\u{27}y\u{27}");
        assert_eq!(name(&object("ClusterRole", "system:node")), "clusterrole/system:node");
    }
}
