//! Helm's release records as a test rewrites them. Knows nothing of `drift`.

use super::namespace::Namespace;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Name of the Secret that holds a revision.
pub(crate) fn name(release: &str, revision: u64) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// A decoded record.
pub(crate) fn read(namespace: &Namespace<'_>, release: &str, revision: u64) -> Value {
    let text =
        namespace.kubectl(&["get", "secret", &name(release, revision), "-o", "jsonpath={.data.release}"], "").unwrap();
    let packed = BASE64.decode(BASE64.decode(text).unwrap()).unwrap();
    let mut json = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// Puts a payload back, under the given field manager.
pub(crate) fn write(namespace: &Namespace<'_>, release: &str, revision: u64, record: &Value, manager: &str) {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(record.to_string().as_bytes()).unwrap();
    let payload = BASE64.encode(BASE64.encode(packer.finish().unwrap()));
    let patch = json!({"data": {"release": payload}}).to_string();
    let manager = format!("--field-manager={manager}");
    let name = name(release, revision);
    // By a file: a payload is longer than an argument may be.
    namespace
        .kubectl(&["patch", "secret", &name, "--type=merge", &manager, "--patch-file=/dev/stdin"], &patch)
        .unwrap();
}

/// Payload and label, as Helm writes them.
pub(crate) fn set_status(namespace: &Namespace<'_>, release: &str, revision: u64, status: &str) {
    let mut record = read(namespace, release, revision);
    record["info"]["status"] = json!(status);
    write(namespace, release, revision, &record, "helm");
    let label = format!("status={status}");
    namespace
        .kubectl(&["label", "--overwrite", "--field-manager=helm", "secret", &name(release, revision), &label], "")
        .unwrap();
}
