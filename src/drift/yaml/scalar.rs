//! One scalar: its text, tag and style -> what Helm's reader takes it for, as a value and as a key.
//!
//! Knows nothing of documents, collections or anchors. Source: go.yaml.in/yaml/v2 `resolve.go`, `decode.go`
//! (`scalar`), sigs.k8s.io/yaml `yaml.go` (keys) and k8s.io/apimachinery `pkg/util/json` (int64, else float64).

use std::borrow::Cow;

use base64::alphabet::STANDARD;
use base64::engine::{Engine, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Number, Value};

use super::Fault;

const CORE: &str = "tag:yaml.org,2002:";
const MERGE: &str = "tag:yaml.org,2002:merge";

/// A scalar after resolution. Kept apart from `Value`, as a key is written otherwise than a value.
#[derive(Clone)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Uint(u64),
    Float(f64),
    Text(String),
}

/// Is this key `<<`? Quoted it is an ordinary key.
pub(super) fn is_merge(tag: Option<&str>, plain: bool, text: &str) -> bool {
    text == "<<" && (plain || tag == Some(MERGE))
}

/// Shape: `tag` in its long form; `plain` as the parser says: unquoted and untagged, or tagged `!`.
pub(super) fn resolve(tag: Option<&str>, plain: bool, text: String) -> Result<Scalar, Fault> {
    let Some(tag) = tag.filter(|tag| !tag.is_empty()) else {
        return Ok(if plain { guess(text) } else { Scalar::Text(text) });
    };
    match tag.strip_prefix(CORE) {
        Some("binary") => decode_base64(&text).map(|bytes| Scalar::Text(go_text(&bytes))),
        Some("timestamp") if is_timestamp(&text) => Ok(Scalar::Text(text)),
        Some("timestamp") => Err(Fault::Tag("!!timestamp")),
        Some("null") => match guess(text) {
            Scalar::Null => Ok(Scalar::Null),
            _ => Err(Fault::Tag("!!null")),
        },
        Some("bool") => match guess(text) {
            scalar @ Scalar::Bool(_) => Ok(scalar),
            _ => Err(Fault::Tag("!!bool")),
        },
        Some("int") => match guess(text) {
            scalar @ (Scalar::Int(_) | Scalar::Uint(_)) => Ok(scalar),
            _ => Err(Fault::Tag("!!int")),
        },
        Some("float") => match guess(text) {
            scalar @ Scalar::Float(_) => Ok(scalar),
            Scalar::Int(int) => Ok(Scalar::Float(int as f64)),
            _ => Err(Fault::Tag("!!float")),
        },
        // `!!str`, and tags nobody resolves: the text stays.
        _ => Ok(Scalar::Text(text)),
    }
}

impl Scalar {
    /// Errors: infinities and NaN, which JSON cannot hold.
    pub(super) fn into_value(self) -> Result<Value, Fault> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(bool) => Value::Bool(bool),
            Scalar::Int(int) => Value::from(int),
            Scalar::Uint(uint) => float_value(uint as f64)?,
            Scalar::Float(float) => float_value(float)?,
            Scalar::Text(text) => Value::String(text),
        })
    }

    /// Errors: null and integers above `i64::MAX`, which Helm refuses as keys.
    pub(super) fn into_key(self) -> Result<String, Fault> {
        match self {
            Scalar::Text(text) => Ok(text),
            Scalar::Bool(bool) => Ok(bool.to_string()),
            Scalar::Int(int) => Ok(int.to_string()),
            Scalar::Float(float) => Ok(float_key(float)),
            Scalar::Null | Scalar::Uint(_) => Err(Fault::Key),
        }
    }

    /// Bytes of text held, to bound what aliases may copy.
    pub(super) fn len(&self) -> usize {
        match self {
            Scalar::Text(text) => text.len(),
            _ => 0,
        }
    }
}

/// A float on its way through JSON text: `1e3` and `1.0` arrive as integers, `1e21` does not.
pub(super) fn float_value(float: f64) -> Result<Value, Fault> {
    let integral = float.fract() == 0.0 && float.abs() < 1e21;
    // Go writes the shortest digits that give the float back and pads with zeros, as Rust does; above 2^53 these
    // digits are not the float's exact value, so a cast would give another integer.
    if integral && let Ok(int) = float.to_string().parse::<i64>() {
        return Ok(Value::from(int));
    }
    Number::from_f64(float).map(Value::Number).ok_or(Fault::NotFinite)
}

/// Go's `FormatFloat(f, 'g', -1, 32)`: rounded to 32 bits, with an exponent below 1e-4 and from 1e6 on.
fn float_key(float: f64) -> String {
    let single = float as f32;
    if single.is_nan() {
        return ".nan".to_owned();
    }
    if single.is_infinite() {
        return if single > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // The shortest that reads back the same. `{:e}` alone breaks ties otherwise than Go.
    let precise = (0..9).map(|digits| format!("{single:.digits$e}")).find(|text| text.parse() == Ok(single));
    let scientific = precise.unwrap_or_default();
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(-4..6) => scientific.parse::<f64>().unwrap_or(float).to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        Err(_) => scientific,
    }
}

/// An untagged plain scalar. The first byte decides which rules are tried at all.
fn guess(text: String) -> Scalar {
    let found = match text.as_bytes().first() {
        None => Some(Scalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(&text),
        Some(b'.') => infinity(&text).or_else(|| point(&text)),
        Some(b'0'..=b'9' | b'+' | b'-') => infinity(&text).or_else(|| number(&text)),
        Some(_) => None,
    };
    found.unwrap_or(Scalar::Text(text))
}

fn word(text: &str) -> Option<Scalar> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(Scalar::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(Scalar::Bool(false))
        }
        "~" | "null" | "Null" | "NULL" => Some(Scalar::Null),
        _ => None,
    }
}

fn infinity(text: &str) -> Option<Scalar> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(Scalar::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(Scalar::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => Some(Scalar::Float(f64::NEG_INFINITY)),
        _ => None,
    }
}

/// After a leading point Go's own `ParseFloat` rules hold: underscores only between digits.
fn point(text: &str) -> Option<Scalar> {
    let mut last = b'^';
    for byte in text.bytes() {
        if (byte == b'_' && !last.is_ascii_digit()) || (last == b'_' && !byte.is_ascii_digit()) {
            return None;
        }
        last = byte;
    }
    if last == b'_' { None } else { float(&without_underscores(text)) }
}

/// Timestamps look like numbers at first, but with `-` or `:` inside they end as text by themselves.
fn number(text: &str) -> Option<Scalar> {
    let plain = without_underscores(text);
    integer(&plain).or_else(|| float(&plain)).or_else(|| {
        // Go's second try at binary, which takes a sign after the prefix.
        let digits = plain.strip_prefix("0b")?;
        i64::from_str_radix(digits, 2).ok().map(Scalar::Int)
    })
}

fn without_underscores(text: &str) -> Cow<'_, str> {
    if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) }
}

/// Go's `ParseInt` and `ParseUint` with base 0.
fn integer(text: &str) -> Option<Scalar> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (Some('-'), text.get(1..)?),
        b'+' => (Some('+'), text.get(1..)?),
        _ => (None, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0'] => (10, digits),
        [b'0', b'x' | b'X', _, ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', _, ..] => (2, digits.get(2..)?),
        [b'0', ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // `from_str_radix` would take a second sign.
    if !digits.as_bytes().first()?.is_ascii_hexdigit() {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    match sign {
        Some('-') => 0_i64.checked_sub_unsigned(size).map(Scalar::Int),
        _ => match (i64::try_from(size), sign) {
            (Ok(int), _) => Some(Scalar::Int(int)),
            (Err(_), None) => Some(Scalar::Uint(size)),
            (Err(_), Some(_)) => None,
        },
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, and not beyond what a float holds.
fn float(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || !digits(exponent) || exponent.is_empty() {
        return None;
    }
    if whole.is_empty() && (fraction.is_empty() || mantissa.is_empty()) {
        return None;
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Scalar::Float)
}

/// Does `!!timestamp` fit? Roughly: a date, a time behind it, and no look at the calendar. What Go refuses beyond that,
/// no release can hold.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "0"));
    let lengths: Vec<usize> = date.split('-').map(str::len).collect();
    matches!(lengths.as_slice(), [4, 1..=2, 1..=2])
        && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        && time.starts_with(|first: char| first.is_ascii_digit())
        && time.bytes().all(|byte| byte.is_ascii_digit() || b":.,+-Z".contains(&byte))
}

/// Go's `base64.StdEncoding`: padded, line breaks skipped, spare bits not looked at.
fn decode_base64(text: &str) -> Result<Vec<u8>, Fault> {
    let engine = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    engine.decode(text.replace(['\r', '\n'], "")).map_err(|_| Fault::Binary)
}

/// Bytes as Go's JSON writer turns them into text: one U+FFFD for each byte that is not UTF-8.
fn go_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
