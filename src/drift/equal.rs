//! Equality by meaning of single values (design.md §5.3). Knows nothing of paths, owners or defaults.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::schema::Shape;

/// Whether two scalars, or values of differing JSON types, mean the same to the server.
pub(crate) fn same(shape: &Shape, desired: &Value, live: &Value) -> bool {
    if desired == live {
        return true;
    }
    match shape {
        Shape::Quantity => same_quantity(desired, live),
        Shape::IntOrString => scalar_text(desired).is_some_and(|text| Some(text) == scalar_text(live)),
        Shape::Number => matches!((desired.as_f64(), live.as_f64()), (Some(a), Some(b)) if a == b),
        Shape::Bytes => {
            both_text(desired, live).is_some_and(|(a, b)| decoded(a).is_some_and(|bytes| Some(bytes) == decoded(b)))
        }
        Shape::Time => {
            both_text(desired, live).is_some_and(|(a, b)| instant(a).is_some_and(|time| Some(time) == instant(b)))
        }
        Shape::Duration => both_text(desired, live)
            .is_some_and(|(a, b)| nanoseconds(a).is_some_and(|length| Some(length) == nanoseconds(b))),
        Shape::Integer | Shape::Text | Shape::Bool | Shape::Any | Shape::Map(_) | Shape::List { .. } => {
            same_json(desired, live)
        }
    }
}

/// The same value across integer and float, exact for 64-bit integers; containers item by item.
pub(crate) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            if let (Some(x), Some(y)) = (exact(x), exact(y)) {
                return x == y;
            }
            matches!((x.as_f64(), y.as_f64()), (Some(x), Some(y)) if x == y)
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_json(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same_json(x, y)))
        }
        _ => a == b,
    }
}

/// A number that is an integer, without loss.
fn exact(number: &serde_json::Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(value.into());
    }
    if let Some(value) = number.as_u64() {
        return Some(value.into());
    }
    let value = number.as_f64()?;
    // Floats of this size are integers already; beyond, compare as floats.
    (value.fract() == 0.0 && value.abs() < 9.0e18).then_some(value as i128)
}

/// `false`, `0`, `""`, `[]`, `{}`: what the server may leave out.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn both_text<'v>(a: &'v Value, b: &'v Value) -> Option<(&'v str, &'v str)> {
    Some((a.as_str()?, b.as_str()?))
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(match exact(number) {
            Some(integer) => integer.to_string(),
            None => number.to_string(),
        }),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Go's decoder ignores line ends and does not insist on zero trailing bits.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
    );
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    LENIENT.decode(compact).ok()
}

fn instant(text: &str) -> Option<jiff::Timestamp> {
    text.parse().ok()
}

/// Length of a Go duration (`1h30m`, `-1.5s`, `100ms`, `0`), in nanoseconds.
///
/// Source: Go `time.ParseDuration`.
fn nanoseconds(text: &str) -> Option<i128> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, remainder) = after.split_at(unit_end);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let mut part = whole.checked_mul(scale)?;
        if !fraction.is_empty() {
            let fraction = fraction.get(..fraction.len().min(18))?;
            let unit = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            part = part.checked_add(fraction.parse::<i128>().ok()?.checked_mul(scale)?.checked_div(unit)?)?;
        }
        total = total.checked_add(part)?;
        rest = remainder;
    }
    Some(if negative { -total } else { total })
}

/// Same amount; what does not parse is compared as text.
pub(crate) fn same_quantity(a: &Value, b: &Value) -> bool {
    match (scalar_text(a), scalar_text(b)) {
        (Some(a), Some(b)) => {
            a == b || matches!((Quantity::parse(&a), Quantity::parse(&b)), (Some(a), Some(b)) if a.same(&b))
        }
        _ => false,
    }
}

/// Whether one quantity is less than another; `None`: one of them is no quantity, or they are too far apart to tell.
pub(crate) fn is_less(a: &Value, b: &Value) -> Option<bool> {
    let (a, b) = (Quantity::parse(&scalar_text(a)?)?, Quantity::parse(&scalar_text(b)?)?);
    let (left, right) = (a.scaled(&b)?, b.scaled(&a)?);
    Some(if a.negative { -left } else { left } < if b.negative { -right } else { right })
}

/// The smallest units that the server keeps of an amount, as powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Of every quantity (kubernetes/apimachinery `pkg/api/resource/quantity.go` `ParseQuantity`).
    Nano = -9,
    /// Of resources: requests, limits, capacities (kubernetes/kubernetes `pkg/apis/core/v1/defaults.go` `SetDefaults_ResourceList`).
    Milli = -3,
}

/// Whether `live` is what the server makes of `desired`: it rounds up what is finer than its unit.
pub(crate) fn is_rounded(desired: &Value, live: &Value, unit: Unit) -> bool {
    let amount = |value: &Value| Quantity::parse(&scalar_text(value)?);
    match (amount(desired).and_then(|amount| amount.rounded_up(unit)), amount(live)) {
        (Some(desired), Some(live)) => desired.same(&live),
        _ => false,
    }
}

/// An amount, exact: `digits` · 10^`ten` · 2^`two`.
///
/// Source: kubernetes/apimachinery `pkg/api/resource/quantity.go`.
#[derive(Debug)]
struct Quantity {
    negative: bool,
    /// Without leading or trailing zeros; empty is zero.
    digits: String,
    ten: i64,
    two: u32,
}

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (mut ten, two): (i64, u32) = match suffix {
            "" => (0, 0),
            "n" => (-9, 0),
            "u" => (-6, 0),
            "m" => (-3, 0),
            "k" => (3, 0),
            "M" => (6, 0),
            "G" => (9, 0),
            "T" => (12, 0),
            "P" => (15, 0),
            "E" => (18, 0),
            "Ki" => (0, 10),
            "Mi" => (0, 20),
            "Gi" => (0, 30),
            "Ti" => (0, 40),
            "Pi" => (0, 50),
            "Ei" => (0, 60),
            _ => (suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?.into(), 0),
        };
        ten -= i64::try_from(fraction.len()).ok()?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        ten += i64::try_from(digits.len() - significant.len()).ok()?;
        if significant.is_empty() {
            return Some(Self { negative: false, digits: String::new(), ten: 0, two: 0 });
        }
        Some(Self { negative, digits: significant.to_owned(), ten, two })
    }

    /// Away from zero; `None` when it does not fit.
    fn rounded_up(&self, unit: Unit) -> Option<Self> {
        let digits: i128 = if self.digits.is_empty() { 0 } else { self.digits.parse().ok()? };
        let digits = digits.checked_mul(1_i128.checked_shl(self.two)?)?;
        let finer = u32::try_from((unit as i64).checked_sub(self.ten)?.max(0)).ok()?;
        let step = 10_i128.checked_pow(finer)?;
        let digits = digits.checked_add(step - 1)?.checked_div(step)?.to_string();
        let ten = self.ten + i64::from(finer);
        let significant = digits.trim_end_matches('0');
        let ten = ten + i64::try_from(digits.len() - significant.len()).ok()?;
        if significant.is_empty() {
            return Some(Self { negative: false, digits: String::new(), ten: 0, two: 0 });
        }
        Some(Self { negative: self.negative, digits: significant.to_owned(), ten, two: 0 })
    }

    fn same(&self, other: &Self) -> bool {
        if self.negative != other.negative {
            return false;
        }
        if self.two == other.two {
            return self.digits == other.digits && self.ten == other.ten;
        }
        matches!((self.scaled(other), other.scaled(self)), (Some(a), Some(b)) if a == b)
    }

    /// As an integer in a unit common to both; `None` when it does not fit.
    fn scaled(&self, other: &Self) -> Option<i128> {
        let ten = u32::try_from(self.ten - self.ten.min(other.ten)).ok()?;
        let two = self.two - self.two.min(other.two);
        let digits: i128 = if self.digits.is_empty() { 0 } else { self.digits.parse().ok()? };
        digits.checked_mul(10_i128.checked_pow(ten)?)?.checked_mul(1_i128.checked_shl(two)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_the_same_amount_however_spelled() {
        let equal = [
            (json!("1000m"), json!("1")),
            (json!("1024Mi"), json!("1Gi")),
            (json!(0.5), json!("500m")),
            (json!("1000M"), json!("1G")),
            (json!("2000000k"), json!("2G")),
            (json!("1073741824"), json!("1Gi")),
            (json!("0.5Gi"), json!("512Mi")),
            (json!(1e9), json!("1G")),
            (json!("1e3"), json!("1k")),
            (json!(0), json!("0")),
            (json!("0Gi"), json!("0")),
            (json!(2.5), json!("2500m")),
            (json!("10240Mi"), json!("10Gi")),
            (json!("+1"), json!(1)),
            (json!("-1"), json!("-1000m")),
            (json!(".5"), json!("0.5")),
        ];
        for (a, b) in equal {
            assert!(same(&Shape::Quantity, &a, &b), "{a} {b}");
        }
        // Each suffix is a thousand, or 1024, of the one before.
        for row in
            [["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].as_slice(), &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]]
        {
            let step = if row.contains(&"Ki") { 1024 } else { 1000 };
            for pair in row.windows(2) {
                let [small, large] = pair else { continue };
                assert!(
                    same(&Shape::Quantity, &json!(format!("{step}{small}")), &json!(format!("1{large}"))),
                    "{pair:?}"
                );
            }
        }
        for (a, b) in
            [("500m", "600m"), ("1G", "1Gi"), ("1", "-1"), ("1m", "1M"), ("x", "y"), ("1.0.0", "1"), ("1e", "1")]
        {
            assert!(!same(&Shape::Quantity, &json!(a), &json!(b)), "{a} {b}");
        }
    }

    #[test]
    fn less_is_told_by_amount() {
        for (a, b, less) in [
            ("1Gi", "2Gi", true),
            ("1024Mi", "1Gi", false),
            ("1G", "1Gi", true),
            ("2Gi", "500M", false),
            ("-1", "1m", true),
        ] {
            assert_eq!(is_less(&json!(a), &json!(b)), Some(less), "{a} {b}");
        }
        assert_eq!(is_less(&json!("x"), &json!("1")), None);
    }

    #[test]
    fn what_is_finer_than_the_server_keeps_is_rounded_up() {
        let milli = [
            (json!("500u"), json!("1m")),
            (json!("0.3333Gi"), json!("357878149940m")),
            (json!(0.0015), json!("2m")),
            (json!("-1500u"), json!("-2m")),
            (json!("1500m"), json!("1.5")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("0.0000"), json!("0")),
            (json!("1.9999"), json!("2")),
        ];
        for (desired, live) in milli {
            assert!(is_rounded(&desired, &live, Unit::Milli), "{desired} {live}");
        }
        for (desired, live) in [("1m", "500u"), ("1500u", "1m"), ("1.5", "2"), ("x", "x"), ("1e-99999", "1")] {
            assert!(!is_rounded(&json!(desired), &json!(live), Unit::Milli), "{desired} {live}");
        }
        assert!(is_rounded(&json!("0.1n"), &json!("1n"), Unit::Nano));
        assert!(!is_rounded(&json!("500u"), &json!("1m"), Unit::Nano));
    }

    #[test]
    fn integers_are_exact_and_bounds_are_floats() {
        assert!(!same(&Shape::Integer, &json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)));
        assert!(same(&Shape::Integer, &json!(1.0), &json!(1)));
        assert!(same(&Shape::Number, &json!(9_223_372_036_854_775_807_i64), &json!(9.223_372_036_854_776e18)));
        assert!(same(&Shape::IntOrString, &json!(80), &json!("80")));
        assert!(!same(&Shape::Text, &json!(80), &json!("80")));
    }

    #[test]
    fn maps_of_no_type_are_the_same_with_the_same_keys() {
        let same = |a: Value, b: Value| same(&Shape::Any, &a, &b);
        assert!(same(json!({"a": 1, "b": [1.0]}), json!({"b": [1], "a": 1.0})));
        assert!(!same(json!({"a": 1}), json!({"a": 1, "b": 2})));
        assert!(!same(json!({"a": 1, "b": 2}), json!({"a": 1})));
        assert!(!same(json!([1]), json!([1, 2])));
    }

    #[test]
    fn durations_and_times_have_many_spellings() {
        assert!(same(&Shape::Duration, &json!("8760h"), &json!("8760h0m0s")));
        assert!(same(&Shape::Duration, &json!("90m"), &json!("1h30m0s")));
        assert!(same(&Shape::Duration, &json!("1.5s"), &json!("1500ms")));
        assert!(!same(&Shape::Duration, &json!("30s"), &json!("31s")));
        assert!(!same(&Shape::Duration, &json!("30"), &json!("30s")));
        assert!(same(&Shape::Time, &json!("2026-01-01T01:00:00+01:00"), &json!("2026-01-01T00:00:00Z")));
        assert!(same(&Shape::Bytes, &json!("aGVsbG8=\n"), &json!("aGVsbG8=")));
        assert!(!same(&Shape::Bytes, &json!("aGVsbG8="), &json!("aGVsbGE=")));
    }
}
