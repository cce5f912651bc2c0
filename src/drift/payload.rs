//! Helm's payload of a release record -> [`Release`]. Knows nothing of the Secret or ConfigMap that holds it.
//!
//! At least as lenient as Helm, which reads with Go's `encoding/base64`, `compress/gzip` and `encoding/json`; but a payload that
//! Helm would skip is an error here, never an absent release (helm/helm `pkg/storage/driver/util.go`).

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::finding::ApplyMethod;
use super::release::Release;

/// What a payload may cost. Records are written by tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of JSON at most: a Secret of 1 MiB can unpack to a thousand times that.
    pub(crate) unpacked: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unpacked: 256 << 20 }
    }
}

/// Why a payload is no release. Reads well after the record's name; never quotes the payload, which holds secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("its key `release` is missing or empty")]
    Empty,
    #[error("not base64 text")]
    Base64,
    #[error("does not unpack: {0}")]
    Gzip(String),
    #[error("unpacks to more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("not a release in JSON (line {line}, column {column})")]
    Json { line: usize, column: usize },
    #[error("holds JSON null")]
    Null,
    #[error("has no {0}")]
    Lacks(&'static str),
}

/// Decodes one Helm release record.
///
/// Shape: `payload` is base64 of JSON, gzipped or (older Helm) plain; the API's own base64 is already off.
/// Units: bytes; the unpacked size is bounded by `limits`. Depth needs no bound: only named fields are built, the rest is skipped
/// without recursion.
/// Errors: one [`DecodeError`] variant per step; never an empty release.
/// Source: helm/helm `pkg/storage/driver/util.go`.
pub(crate) fn decode(payload: &[u8], limits: Limits) -> Result<Release, DecodeError> {
    let json = json(payload, limits)?;
    let record: Option<Record> = serde_json::from_str(&json)
        .map_err(|error| DecodeError::Json { line: error.line(), column: error.column() })?;
    record.ok_or(DecodeError::Null)?.into_release()
}

/// The JSON text of a payload, whatever it says: the steps of [`decode`] before the last.
pub(crate) fn json(payload: &[u8], limits: Limits) -> Result<String, DecodeError> {
    let bytes = from_base64(payload)?;
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let json = if bytes.len() > 3 && bytes.starts_with(&[0x1f, 0x8b, 0x08]) { unpack(&bytes, limits)? } else { bytes };
    // Go puts U+FFFD in the place of what is not UTF-8.
    Ok(String::from_utf8(json).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// As Go's `StdEncoding`: line breaks anywhere, trailing bits as they are, but padding is required.
pub(crate) fn from_base64(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
    );
    let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let text = if text.iter().any(breaks) {
        Cow::Owned(text.iter().copied().filter(|byte| !breaks(byte)).collect())
    } else {
        Cow::Borrowed(text)
    };
    LENIENT.decode(text).map_err(|_| DecodeError::Base64)
}

/// All gzip members, as Go reads them; what follows the last one is an error.
fn unpack(bytes: &[u8], limits: Limits) -> Result<Vec<u8>, DecodeError> {
    // The trailer says the size (modulo 2^32); it is the writer's word, so it only sizes the buffer, within what DEFLATE can do.
    let trailer = bytes.last_chunk().map_or(0, |size: &[u8; 4]| u64::from(u32::from_le_bytes(*size)));
    let likely = trailer.min(limits.unpacked).min(bytes.len() as u64 * 1032);
    let mut json = Vec::with_capacity(usize::try_from(likely).unwrap_or(0));
    let mut reader = MultiGzDecoder::new(bytes).take(limits.unpacked.saturating_add(1));
    reader.read_to_end(&mut json).map_err(|error| DecodeError::Gzip(error.to_string()))?;
    if json.len() as u64 > limits.unpacked {
        return Err(DecodeError::TooLarge { limit: limits.unpacked });
    }
    Ok(json)
}

/// A struct read as Go's `encoding/json` reads one: names match in any case, unknown fields and nulls are passed over, and of a
/// field given twice the last counts.
macro_rules! go_struct {
    ($name:ident { $($field:ident: $type:ty = $json:literal),+ $(,)? }) => {
        #[derive(Default)]
        struct $name { $($field: $type),+ }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut value = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            $(if key.eq_ignore_ascii_case($json) {
                                if let Some(given) = map.next_value::<Option<$type>>()? {
                                    value.$field = given;
                                }
                                continue;
                            })+
                            map.next_value::<IgnoredAny>()?;
                        }
                        Ok(value)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}

go_struct!(Record {
    name: String = "name",
    info: Option<Info> = "info",
    chart: Chart = "chart",
    manifest: String = "manifest",
    hooks: Count<Hook> = "hooks",
    version: i64 = "version",
    namespace: String = "namespace",
    apply_method: String = "apply_method",
});

go_struct!(Info {
    last_deployed: String = "last_deployed",
    deleted: String = "deleted",
    description: String = "description",
    status: String = "status",
});

go_struct!(Chart {
    metadata: Metadata = "metadata",
    lock: Lock = "lock",
    files: Count<File> = "files",
});

go_struct!(Metadata {
    name: String = "name",
    version: String = "version",
    app_version: String = "appVersion",
    dependencies: Vec<IgnoredAny> = "dependencies",
});

go_struct!(Lock { dependencies: Vec<IgnoredAny> = "dependencies" });
go_struct!(Hook { path: String = "path" });
go_struct!(File { name: String = "name" });

/// An item that is counted and dropped.
trait Counted {
    /// Whether it is one of the special ones.
    fn is_marked(&self) -> bool;
}

impl Counted for Hook {
    fn is_marked(&self) -> bool {
        self.path.contains("/charts/")
    }
}

impl Counted for File {
    /// helm/helm `Chart.CRDObjects`.
    fn is_marked(&self) -> bool {
        let extension = self.name.rsplit_once('.').map_or("", |(_, extension)| extension);
        self.name.starts_with("crds/")
            && ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    }
}

/// A list of which only the length is kept: chart files fill a record.
struct Count<T> {
    all: usize,
    marked: usize,
    of: PhantomData<T>,
}

impl<T> Default for Count<T> {
    fn default() -> Self {
        Self { all: 0, marked: 0, of: PhantomData }
    }
}

impl<'de, T: Counted + Deserialize<'de>> Deserialize<'de> for Count<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);
        impl<'de, T: Counted + Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Count<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count<T>, A::Error> {
                let mut count = Count::default();
                while let Some(item) = items.next_element::<Option<T>>()? {
                    count.all += 1;
                    count.marked += usize::from(item.is_some_and(|item| item.is_marked()));
                }
                Ok(count)
            }
        }
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

impl Record {
    fn into_release(self) -> Result<Release, DecodeError> {
        let info = self.info.ok_or(DecodeError::Lacks("`info`"))?;
        if info.status.is_empty() {
            return Err(DecodeError::Lacks("`info.status`"));
        }
        if self.name.is_empty() {
            return Err(DecodeError::Lacks("`name`"));
        }
        let revision =
            u64::try_from(self.version).ok().filter(|revision| *revision > 0).ok_or(DecodeError::Lacks("`version`"))?;
        let metadata = self.chart.metadata;
        let has_subcharts = !metadata.dependencies.is_empty()
            || !self.chart.lock.dependencies.is_empty()
            || self.hooks.marked > 0
            || renders_subcharts(&self.manifest);
        Ok(Release {
            name: self.name,
            namespace: self.namespace,
            revision,
            status: info.status,
            description: info.description,
            last_deployed: time(&info.last_deployed),
            deleted: time(&info.deleted),
            chart_name: filled(metadata.name),
            chart_version: filled(metadata.version),
            app_version: filled(metadata.app_version),
            has_subcharts,
            apply_method: if self.apply_method == "ssa" { ApplyMethod::ServerSide } else { ApplyMethod::ClientSide },
            manifest: self.manifest,
            hooks: self.hooks.all,
            crds: self.chart.files.marked,
        })
    }
}

/// A chart may carry subcharts in `charts/` without declaring them.
fn renders_subcharts(manifest: &str) -> bool {
    manifest.lines().any(|line| line.strip_prefix("# Source: ").is_some_and(|path| path.contains("/charts/")))
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Helm 3 writes a time it does not have as `""`, Go as the year 1.
fn time(text: &str) -> Option<Timestamp> {
    const YEAR_2: i64 = -62_104_060_800;
    text.parse::<Timestamp>().ok().filter(|time| time.as_second() >= YEAR_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::BASE64_STANDARD;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;

    fn gzip(json: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(json).unwrap();
        encoder.finish().unwrap()
    }

    fn text(bytes: &[u8]) -> Vec<u8> {
        BASE64_STANDARD.encode(bytes).into_bytes()
    }

    fn decoded(payload: &[u8]) -> Result<Release, DecodeError> {
        decode(payload, Limits::default())
    }

    fn of_json(json: &str) -> Result<Release, DecodeError> {
        decoded(&text(&gzip(json.as_bytes())))
    }

    const SMALL: &str = r#"{"name":"a","version":3,"info":{"status":"deployed"},"manifest":"kind: X\n"}"#;

    /// Records that Helm 3.22.0 and Helm 4.3.1 wrote for one chart.
    #[test]
    fn real_records_are_read() {
        for (payload, namespace, deployed, method, manifest_end) in [
            (
                &include_bytes!("../../tests/data/records/helm-3.22.txt")[..],
                "rec-3",
                "2026-11-30T17:13:44.879627921Z",
                ApplyMethod::ClientSide,
                "日本\"\n",
            ),
            (
                &include_bytes!("../../tests/data/records/helm-4.3.txt")[..],
                "rec-4",
                "2026-11-30T17:13:45.353395668Z",
                ApplyMethod::ServerSide,
                "日本\"\n\n",
            ),
        ] {
            let release = decoded(payload).unwrap();
            assert_eq!(
                (release.name.as_str(), release.namespace.as_str(), release.revision),
                ("nucleus", namespace, 1)
            );
            assert_eq!((release.status.as_str(), release.description.as_str()), ("deployed", "Install complete"));
            assert_eq!(release.last_deployed, Some(deployed.parse().unwrap()));
            assert_eq!(release.deleted, None);
            assert_eq!(
                (release.chart().as_deref(), release.app_version.as_deref()),
                (Some("nucleus-1.4.2"), Some("1.4"))
            );
            assert_eq!(
                (release.hooks, release.crds, release.has_subcharts, release.apply_method),
                (1, 1, false, method)
            );
            assert!(
                release.manifest.starts_with("---\n# Source: nucleus/templates/settings.yaml\n"),
                "{}",
                release.manifest
            );
            assert!(release.manifest.ends_with(manifest_end), "{}", release.manifest);
        }
    }

    #[test]
    fn what_go_reads_is_read() {
        let packed = gzip(SMALL.as_bytes());
        let (first, second) = SMALL.as_bytes().split_at(20);
        let broken: Vec<u8> = text(&packed).chunks(76).flat_map(|line| [line, b"\r\n"].concat()).collect();
        for (what, payload) in [
            ("gzip", text(&packed)),
            ("plain JSON", text(SMALL.as_bytes())),
            ("line breaks", broken),
            ("two gzip members", text(&[gzip(first), gzip(second)].concat())),
            ("surrounding blanks in JSON", text(format!("\n {SMALL} \n").as_bytes())),
            ("trailing bits", {
                let padded = text(format!("{SMALL} ").as_bytes());
                let mut end = if padded.ends_with(b"=") { padded } else { text(SMALL.as_bytes()) };
                let at = end.iter().rposition(|byte| *byte != b'=').unwrap();
                assert!(end.ends_with(b"="), "the last symbol has bits to spare");
                end[at] += 1;
                end
            }),
        ] {
            let release = decoded(&payload).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(
                (release.name.as_str(), release.revision, release.manifest.as_str()),
                ("a", 3, "kind: X\n"),
                "{what}"
            );
        }
    }

    #[test]
    fn json_is_read_as_go_reads_it() {
        let release = of_json(
            r#"{"NAME":"a","Version":3,"INFO":{"Status":"failed","description":null,"last_deployed":"","extra":[[{}]]},
                "chart":{"metadata":null,"lock":null,"templates":null,"values":{"deep":[1e400]},"files":[null,{"name":"crds/a.yaml","data":"eA=="},
                {"name":"crds/sub/b.JSON"},{"name":"crds/README.md"},{"name":"crds"},{"name":"files/crds/c.yaml"}]},
                "config":null,"hooks":null,"manifest":null,"name":"b","namespace":null,"unheard":{"of":1},"apply_method":""}"#,
        )
        .unwrap();
        assert_eq!(
            (release.name.as_str(), release.status.as_str(), release.crds, release.hooks),
            ("b", "failed", 2, 0)
        );
        assert_eq!((release.manifest.as_str(), release.chart(), release.last_deployed), ("", None, None));
        assert_eq!(release.apply_method, ApplyMethod::ClientSide);

        let mut invalid = SMALL.replace("kind: X", "kind: ?").into_bytes();
        *invalid.iter_mut().find(|byte| **byte == b'?').unwrap() = 0xff;
        assert_eq!(decoded(&text(&invalid)).unwrap().manifest, "kind: \u{fffd}\n");
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let release = of_json(&SMALL.replacen('{', &format!(r#"{{"config":{{"x":{deep}}},"#), 1)).unwrap();
        assert_eq!(release.name, "a");
    }

    #[test]
    fn times_come_in_many_forms() {
        for (given, read) in [
            ("", None),
            ("0001-01-01T00:00:00Z", None),
            ("yesterday", None),
            ("2026-11-30T10:00:00Z", Some("2026-11-30T10:00:00Z")),
            ("2026-11-30T12:00:00.123456789+02:00", Some("2026-11-30T10:00:00.123456789Z")),
            ("2026-11-30T04:30:00.5-05:30", Some("2026-11-30T10:00:00.5Z")),
        ] {
            assert_eq!(time(given), read.map(|text| text.parse().unwrap()), "{given}");
        }
    }

    #[test]
    fn subcharts_show_in_many_places() {
        for (json, has) in [
            (SMALL.to_owned(), false),
            (
                SMALL.replacen('{', r#"{"chart":{"metadata":{"dependencies":[]},"lock":{"dependencies":null}},"#, 1),
                false,
            ),
            (SMALL.replacen('{', r#"{"chart":{"metadata":{"dependencies":[{"name":"redis"}]}},"#, 1), true),
            (SMALL.replacen('{', r#"{"chart":{"lock":{"dependencies":[{"name":"redis"}]}},"#, 1), true),
            (SMALL.replacen('{', r#"{"hooks":[{"path":"a/charts/redis/templates/x.yaml"}],"#, 1), true),
            (SMALL.replace("kind: X", r"# Source: a/charts/redis/templates/x.yaml\nkind: X"), true),
            (SMALL.replace("kind: X", r"# Source: a/templates/charts.yaml\nkind: X"), false),
        ] {
            assert_eq!(of_json(&json).unwrap().has_subcharts, has, "{json}");
        }
    }

    #[test]
    fn what_helm_cannot_read_is_an_error_of_its_own() {
        let packed = gzip(SMALL.as_bytes());
        let mut crc = packed.clone();
        let at = crc.len() - 6;
        crc[at] ^= 1;
        let json = |text: &str| of_json(text).unwrap_err();
        let gz = |bytes: &[u8]| decoded(&text(bytes)).unwrap_err();
        assert_eq!(decoded(b""), Err(DecodeError::Empty));
        assert_eq!(decoded(b"\n"), Err(DecodeError::Empty));
        assert_eq!(decoded(b"*** not a release ***"), Err(DecodeError::Base64));
        assert_eq!(decoded(b"eyJ9"), Err(DecodeError::Json { line: 1, column: 3 }));
        assert_eq!(decoded(b"e30"), Err(DecodeError::Base64), "padding is required");
        assert_eq!(decoded(b"e30=e30="), Err(DecodeError::Base64), "nothing follows padding");
        assert!(matches!(gz(&packed[..40]), DecodeError::Gzip(_)), "truncated");
        assert!(matches!(gz(&crc), DecodeError::Gzip(_)), "checksum");
        assert!(matches!(gz(&[&packed[..], b"x"].concat()), DecodeError::Gzip(_)), "trailing garbage");
        assert!(matches!(gz(&[&packed[..], &[0; 8]].concat()), DecodeError::Gzip(_)), "trailing zeros");
        assert!(matches!(gz(&[0x1f, 0x8b, 0x08, 0]), DecodeError::Gzip(_)), "a header only");
        assert!(matches!(gz(&[0x1f, 0x8b, 0x08]), DecodeError::Json { .. }), "Helm takes three bytes for JSON");
        assert_eq!(json("null"), DecodeError::Null);
        assert_eq!(json("{}"), DecodeError::Lacks("`info`"));
        assert_eq!(json(r#"{"name":"a","version":3,"info":null}"#), DecodeError::Lacks("`info`"));
        assert_eq!(json(r#"{"name":"a","version":3,"info":{"status":""}}"#), DecodeError::Lacks("`info.status`"));
        assert_eq!(json(r#"{"version":3,"info":{"status":"failed"}}"#), DecodeError::Lacks("`name`"));
        assert_eq!(json(r#"{"name":"a","info":{"status":"failed"}}"#), DecodeError::Lacks("`version`"));
        assert_eq!(json(r#"{"name":"a","version":-1,"info":{"status":"failed"}}"#), DecodeError::Lacks("`version`"));
        for bad in [
            "",
            "[]",
            "{",
            "{}{}",
            "{} x",
            r#"{"name":7}"#,
            r#"{"version":"3"}"#,
            r#"{"version":1.5}"#,
            r#"{"info":[]}"#,
            r#"{"hooks":{}}"#,
        ] {
            assert!(matches!(json(bad), DecodeError::Json { .. }), "{bad}");
        }
    }

    #[test]
    fn errors_do_not_quote_the_payload() {
        let error = of_json(r#"{"name":"a","version":"hunter2"}"#).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        let release = of_json(&SMALL.replace("kind: X", "password: hunter2")).unwrap();
        assert!(!format!("{release:?}").contains("hunter2"), "{release:?}");
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        let bomb = text(&gzip(&vec![b' '; 3_000_000]));
        assert!(bomb.len() < 10_000);
        assert_eq!(decode(&bomb, Limits { unpacked: 1_000_000 }), Err(DecodeError::TooLarge { limit: 1_000_000 }));
        let mut lying = gzip(SMALL.as_bytes());
        let at = lying.len() - 4;
        lying[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decoded(&text(&lying)), Err(DecodeError::Gzip(_))), "a size that lies reserves nothing");
        assert!(decode(&text(&gzip(SMALL.as_bytes())), Limits { unpacked: SMALL.len() as u64 }).is_ok());
    }

    proptest::proptest! {
        /// Tenants write records: whatever is in one, reading it ends with a release or with a reason.
        #[test]
        fn no_payload_makes_it_panic(at in 0_usize..1500, byte: u8, cut in 0_usize..1600, raw: Vec<u8>) {
            let _ = decoded(&raw);
            let _ = decoded(&text(&raw));
            let _ = decoded(&text(&gzip(&raw)));
            let real = &include_bytes!("../../tests/data/records/helm-3.22.txt")[..];
            let mut bytes = BASE64_STANDARD.decode(real).unwrap();
            bytes.truncate(cut);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = decoded(&text(&bytes));
            let mut json = SMALL.as_bytes().to_vec();
            if let Some(place) = json.get_mut(at % SMALL.len()) {
                *place = byte;
            }
            let _ = decoded(&text(&json));
        }
    }
}
