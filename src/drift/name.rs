//! What Kubernetes and Helm allow as names.

/// Of a namespace, in bytes.
pub(crate) const LONGEST_NAMESPACE: usize = 63;

/// Helm's limit (helm/helm `pkg/chart/v2/util/validate_name.go`): the record's name must fit in a label value.
pub(crate) const LONGEST_RELEASE: usize = 53;

/// Lower-case letters, digits and `-`, a letter or digit at both ends.
pub(crate) fn is_dns_label(label: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    label.bytes().all(|byte| inside(byte) || byte == b'-')
        && label.bytes().next().is_some_and(inside)
        && label.bytes().last().is_some_and(inside)
}
