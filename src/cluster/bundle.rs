//! Evidence: a recorder keeps every answer of a client, and a bundle gives them back in place of a cluster. Knows nothing of what the
//! answers mean, beyond what it takes to find an object in a listing.
//!
//! A bundle is a gzip'd file of JSON lines: a [`Header`], then one [`Line`] per answer.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, Read, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::{Answer, DISCOVERY, Get, ReadError};
use super::mask::{Masker, NoRandomness};
use super::question::{Place, Question};
use crate::drift::finding::ClusterInfo;
use crate::drift::rules::Sensitive;
use crate::drift::schema::{DIGEST_VERSION, Schema};
use crate::drift::selector::Selector;

const API_VERSION: &str = "helm-drift/v1";
const KIND: &str = "DriftCapture";
/// Of a bundle, unpacked: whoever sends one decides what is in it.
const LARGEST: u64 = 1 << 30;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    api_version: String,
    kind: String,
    /// Version of the program that made the capture.
    program: String,
    /// "Now" of the check that was captured.
    time: Timestamp,
    cluster: Cluster,
    /// Whether values of Secrets are tokens.
    masked: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cluster {
    context: Option<String>,
    server: Option<String>,
    version: Option<String>,
    /// Where the check looked unless told otherwise.
    #[serde(default)]
    namespace: Option<String>,
}

/// Every other line: an answer, under the path that was asked for.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    path: String,
    #[serde(default)]
    accept: Form,
    status: u16,
    /// Version of the digest in `body`, which then stands for an OpenAPI document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// In place of `body` where that is not JSON, e.g. `404 page not found`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// In which form an answer was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    #[default]
    Json,
    /// Metadata of objects alone.
    Metadata,
    /// Aggregated discovery.
    Discovery,
}

impl Form {
    fn of(accept: &str) -> Self {
        if accept == DISCOVERY {
            Self::Discovery
        } else if accept.contains("as=PartialObjectMetadata") {
            Self::Metadata
        } else {
            Self::Json
        }
    }
}

/// What a capture says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct About {
    /// Version of this program.
    pub(crate) program: String,
    pub(crate) time: Timestamp,
    pub(crate) cluster: ClusterInfo,
    /// The client's default namespace.
    pub(crate) namespace: String,
}

/// Why no capture was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error("the capture {file} cannot be written: {reason}")]
    Write { file: String, reason: String },
    #[error("the capture would not be complete: {0} answers could not be recorded")]
    Incomplete(usize),
}

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replaced,
    /// That is an error.
    Kept,
}

/// Keeps every answer of the clients it was given to ([`super::client::Client::record`]), masked and packed at once: memory holds a
/// few megabytes for a large cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: Arc<Recording>,
}

struct Recording {
    /// `None`: Secrets are kept as they are.
    masker: Option<Masker>,
    /// Seeded, so that no tenant can make two answers look the same.
    hasher: RandomState,
    lines: Mutex<Lines>,
}

struct Lines {
    /// Finished gzip members; several read as one file.
    done: Vec<u8>,
    packer: GzEncoder<Vec<u8>>,
    /// Hashes of the lines there are: what was asked twice with the same answer is kept once.
    seen: HashSet<u64>,
    lost: usize,
}

impl Recorder {
    /// `include_secrets`: values of Secrets are kept, else they are masked (see `mask.rs`).
    pub(crate) fn new(include_secrets: bool, sensitive: &[Sensitive]) -> Result<Self, CaptureError> {
        let masker = if include_secrets { None } else { Some(Masker::new(sensitive.to_vec())?) };
        let lines = Lines { done: Vec::new(), packer: packer(), seen: HashSet::new(), lost: 0 };
        Ok(Self { inner: Arc::new(Recording { masker, hasher: RandomState::new(), lines: Mutex::new(lines) }) })
    }

    /// Keeps one answer. Masking and packing block no other task.
    pub(super) async fn note(&self, get: &Get, answer: &Answer) {
        let (inner, get, answer) = (Arc::clone(&self.inner), get.clone(), answer.clone());
        let kept = tokio::task::spawn_blocking(move || inner.keep(&get, &answer)).await;
        if kept.is_err() {
            self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner).lost += 1;
        }
    }

    /// Writes what was kept so far: readable by its owner alone, and whole or not at all.
    pub(crate) fn save(&self, to: &Path, about: &About, existing: Existing) -> Result<(), CaptureError> {
        let failed = |error: &io::Error| CaptureError::Write { file: to.display().to_string(), reason: plain(error) };
        let mut lines = self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.lost > 0 {
            return Err(CaptureError::Incomplete(lines.lost));
        }
        let header = Header {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            program: about.program.clone(),
            time: about.time,
            cluster: Cluster {
                context: about.cluster.context.clone(),
                server: about.cluster.server.clone(),
                version: about.cluster.version.clone(),
                namespace: Some(about.namespace.clone()),
            },
            masked: self.inner.masker.is_some(),
        };
        // The header is known last and stands first.
        let mut bytes = packer();
        write_line(&mut bytes, &header).map_err(|error| failed(&error))?;
        let mut bytes = bytes.finish().map_err(|error| failed(&error))?;
        let finished = std::mem::replace(&mut lines.packer, packer()).finish().map_err(|error| failed(&error))?;
        lines.done.extend_from_slice(&finished);
        bytes.extend_from_slice(&lines.done);
        drop(lines);
        write_whole(to, &bytes, existing).map_err(|error| failed(&error))
    }
}

impl Recording {
    fn keep(&self, get: &Get, answer: &Answer) {
        let line = self.line(get, answer);
        let body = line.body.as_ref().map(|body| body.get());
        let hash = self.hasher.hash_one((&line.path, line.accept, line.status, body, &line.text));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.seen.insert(hash) && write_line(&mut lines.packer, &line).is_err() {
            lines.lost += 1;
        }
    }

    fn line(&self, get: &Get, answer: &Answer) -> Line {
        let mut line = Line {
            path: get.path.clone(),
            accept: Form::of(get.accept),
            status: answer.status,
            digest: None,
            body: None,
            text: None,
        };
        let question = Question::parse(&get.path);
        if answer.status == 200
            && is_openapi_document(&get.path)
            && let Ok(digest) = Schema::from_openapi(&answer.body)
            && let Ok(body) = serde_json::value::to_raw_value(&digest)
        {
            line.digest = Some(DIGEST_VERSION);
            line.body = Some(body);
            return line;
        }
        if let (Some(masker), Some(place)) = (&self.masker, &question.place)
            && masker.concerns(place)
        {
            // What does not parse is not kept: it cannot be masked either.
            line.body = serde_json::from_slice::<Value>(&answer.body).ok().and_then(|mut body| {
                masker.answer(place, &mut body);
                serde_json::value::to_raw_value(&body).ok()
            });
            return line;
        }
        let text = String::from_utf8_lossy(&answer.body).replace(['\n', '\r'], " "); // in JSON, only between tokens
        match RawValue::from_string(text) {
            Ok(body) => line.body = Some(body),
            Err(_) => line.text = Some(String::from_utf8_lossy(&answer.body).into_owned()),
        }
        line
    }
}

fn is_openapi_document(path: &str) -> bool {
    path.starts_with("/openapi/v3/")
}

fn packer() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::new(6))
}

fn write_line(packer: &mut GzEncoder<Vec<u8>>, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    packer.write_all(&text)
}

/// Whole or not at all: written beside its place, on disk before it gets its name.
fn write_whole(to: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let name = to.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    if to.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    match fs::metadata(to) {
        Ok(_) if existing == Existing::Kept => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        // A pipe or a device is written to, not replaced.
        Ok(other) if !other.is_file() => return fs::OpenOptions::new().write(true).open(to)?.write_all(bytes),
        Ok(_) | Err(_) => {}
    }
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    let partial = Partial(directory.join(hidden));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = fs::remove_file(&partial.0); // of a run that was killed; its rights are not ours to keep
    let mut file = options.open(&partial.0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    match existing {
        Existing::Replaced => fs::rename(&partial.0, to)?,
        // A link never replaces; where there are none, the look above has to do.
        Existing::Kept => match fs::hard_link(&partial.0, to) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&partial.0, to)?,
            linked => linked?,
        },
    }
    // The name is in the directory, which has a sync of its own; where that cannot be had, the file is still whole.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// A file that goes away again unless it was renamed.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "no space is left".to_owned()
        }
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotFound => "its directory does not exist".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::AlreadyExists => "it exists already".to_owned(),
        _ => error.to_string(),
    }
}

/// Why a file is no bundle that can be replayed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BundleError {
    #[error("the capture {file} cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file} is not a capture: {reason}")]
    NotACapture { file: String, reason: String },
    #[error(
        "the capture {file} has the form {found:?}, this program reads {API_VERSION:?}: use the helm-drift that made it, or a newer one"
    )]
    OtherVersion { file: String, found: String },
    #[error("the capture {file} is cut off or damaged after line {line}: make it anew, or copy it again")]
    Damaged { file: String, line: usize },
    #[error("line {line} of the capture {file} is not an answer: {reason}")]
    BadLine { file: String, line: usize, reason: String },
    #[error("the capture {file} unpacks to more than {LARGEST} bytes")]
    TooLarge { file: String },
}

/// A capture that stands in for a cluster.
#[derive(Debug)]
pub(crate) struct Bundle {
    header: Header,
    /// By question and form: all but listings that succeeded.
    answers: HashMap<(String, Form), Stored>,
    /// By base path and plural.
    listings: HashMap<(String, String), Vec<Listing>>,
}

#[derive(Debug)]
struct Stored {
    status: u16,
    body: Vec<u8>,
}

/// One listing, its pages put together.
#[derive(Debug)]
struct Listing {
    question: Question,
    form: Form,
    api_version: String,
    kind: String,
    resource_version: String,
    /// All pages are there.
    complete: bool,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    head: Head,
    raw: Box<RawValue>,
}

/// What selectors look at.
#[derive(Debug, Default, Deserialize)]
struct Head {
    #[serde(default)]
    metadata: HeadMetadata,
    #[serde(default, rename = "type")]
    of_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct HeadMetadata {
    #[serde(default)]
    name: String,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
    #[serde(default)]
    resource_version: String,
}

/// Pages of one listing by the token they were asked for with.
struct Pages {
    question: Question,
    form: Form,
    by_token: HashMap<Option<String>, Page>,
}

impl Bundle {
    /// Reads a whole capture. `Err` names the file and, where it is one, the line.
    pub(crate) fn open(file: &Path) -> Result<Self, BundleError> {
        let shown = file.display().to_string();
        let bytes = fs::read(file).map_err(|error| BundleError::Unreadable {
            file: shown.clone(),
            reason: if error.kind() == io::ErrorKind::NotFound { "no such file".to_owned() } else { plain(&error) },
        })?;
        Self::parse(&shown, &bytes)
    }

    /// "Now" of the check that was captured.
    pub(crate) fn time(&self) -> Timestamp {
        self.header.time
    }

    pub(super) fn context(&self) -> Option<&str> {
        self.header.cluster.context.as_deref()
    }

    pub(super) fn server(&self) -> &str {
        self.header.cluster.server.as_deref().unwrap_or("the captured cluster")
    }

    pub(super) fn namespace(&self) -> &str {
        self.header.cluster.namespace.as_deref().unwrap_or("default")
    }

    fn parse(file: &str, bytes: &[u8]) -> Result<Self, BundleError> {
        let reader: Box<dyn Read + '_> =
            if bytes.starts_with(&GZIP) { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) };
        let reader = io::BufReader::new(reader.take(LARGEST + 1));
        let mut lines = Numbered { file, reader, number: 0, read: 0 };
        // A flipped bit shows as nonsense long before the checksum at the end tells why.
        Self::read(file, &mut lines)
            .map_err(|error| if lines.is_damaged_further_on() { lines.damaged() } else { error })
    }

    fn read(file: &str, lines: &mut Numbered<'_>) -> Result<Self, BundleError> {
        let not = |reason: &str| BundleError::NotACapture { file: file.to_owned(), reason: reason.to_owned() };
        let first = lines.next()?.ok_or_else(|| not("it is empty"))?;
        let header = header(file, &first)?;
        let mut answers = HashMap::new();
        let mut pages: BTreeMap<(String, Form), Pages> = BTreeMap::new();
        while let Some(text) = lines.next()? {
            if text.trim_ascii().is_empty() {
                continue;
            }
            let bad = |reason: String| BundleError::BadLine { file: file.to_owned(), line: lines.number, reason };
            let line: Line = serde_json::from_slice(&text).map_err(|error| bad(position(&error)))?;
            let question = Question::parse(&line.path);
            let key = (question.key.clone(), line.accept);
            let listed = question.place.as_ref().is_some_and(|place| place.name.is_none());
            match &line.body {
                Some(body) if listed && line.status == 200 => {
                    let page: Page = serde_json::from_str(body.get()).map_err(|error| bad(position(&error)))?;
                    answers.remove(&key);
                    let group = pages.entry(key).or_insert_with(|| Pages {
                        question: question.clone(),
                        form: line.accept,
                        by_token: HashMap::new(),
                    });
                    group.by_token.insert(question.page, page);
                }
                // A page that failed in the middle ends its listing, unless that began again.
                _ if question.page.is_some() => {}
                _ => {
                    pages.remove(&key);
                    answers.insert(key, stored(line));
                }
            }
        }
        let mut listings: HashMap<(String, String), Vec<Listing>> = HashMap::new();
        for group in pages.into_values() {
            if let Some(place) = group.question.place.clone() {
                let listing =
                    joined(group).map_err(|reason| BundleError::NotACapture { file: file.to_owned(), reason })?;
                listings.entry((place.base, place.plural)).or_default().push(listing);
            }
        }
        Ok(Self { header, answers, listings })
    }
}

fn header(file: &str, line: &[u8]) -> Result<Header, BundleError> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(rename = "apiVersion")]
        api_version: Option<String>,
        kind: Option<String>,
    }
    let not = |reason: String| BundleError::NotACapture { file: file.to_owned(), reason };
    let version: Version = serde_json::from_slice(line)
        .map_err(|error| not(format!("its first line is no header ({})", position(&error))))?;
    match (version.api_version.as_deref(), version.kind.as_deref()) {
        (Some(API_VERSION), Some(KIND)) => {}
        (Some(API_VERSION), kind) => {
            return Err(not(format!("it is a {}, not a {KIND}", kind.unwrap_or("file without a kind"))));
        }
        (Some(found), _) => return Err(BundleError::OtherVersion { file: file.to_owned(), found: found.to_owned() }),
        (None, _) => return Err(not("its first line names no apiVersion".to_owned())),
    }
    serde_json::from_slice(line).map_err(|error| not(format!("its header is not complete ({})", position(&error))))
}

/// Where a line does not parse. serde's own text quotes values, and those may be a Secret's.
fn position(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Eof => "it ends too early".to_owned(),
        serde_json::error::Category::Syntax => format!("it is not JSON at column {}", error.column()),
        serde_json::error::Category::Data | serde_json::error::Category::Io => {
            format!("it is not of the form it should be at column {}", error.column())
        }
    }
}

/// Lines of a capture, counted.
struct Numbered<'a> {
    file: &'a str,
    reader: io::BufReader<io::Take<Box<dyn Read + 'a>>>,
    number: usize,
    read: u64,
}

impl Numbered<'_> {
    fn next(&mut self) -> Result<Option<Vec<u8>>, BundleError> {
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line).map_err(|_| self.damaged())?;
        self.read += read as u64;
        if self.read > LARGEST {
            return Err(BundleError::TooLarge { file: self.file.to_owned() });
        }
        if read == 0 {
            return Ok(None);
        }
        // Every line we write ends; one that does not was cut.
        if line.pop() != Some(b'\n') {
            return Err(self.damaged());
        }
        self.number += 1;
        Ok(Some(line))
    }

    fn damaged(&self) -> BundleError {
        BundleError::Damaged { file: self.file.to_owned(), line: self.number }
    }

    fn is_damaged_further_on(&mut self) -> bool {
        io::copy(&mut self.reader, &mut io::sink()).is_err()
    }
}

fn stored(line: Line) -> Stored {
    let body = match (line.digest, line.body, line.text) {
        (Some(digest), Some(body), _) => format!("{{{DIGEST_KEY:?}:{digest},\"schema\":{}}}", body.get()).into_bytes(),
        (_, Some(body), _) => body.get().as_bytes().to_vec(),
        (_, None, text) => text.unwrap_or_default().into_bytes(),
    };
    Stored { status: line.status, body }
}

/// Marks a digest where an OpenAPI document was asked for.
const DIGEST_KEY: &str = "helm-drift/digest";

/// Types from the answer for an OpenAPI document: the document, or, from a capture, its digest. Slow for a document; not for async code.
pub(crate) fn schema(answer: &[u8]) -> Result<Schema, String> {
    #[derive(Deserialize)]
    struct Captured {
        #[serde(rename = "helm-drift/digest")]
        digest: u32,
        schema: Box<RawValue>,
    }
    if !answer.starts_with(format!("{{{DIGEST_KEY:?}:").as_bytes()) {
        return Schema::from_openapi(answer).map_err(|error| error.to_string());
    }
    let captured: Captured = serde_json::from_slice(answer).map_err(|error| position(&error))?;
    if captured.digest != DIGEST_VERSION {
        return Err(format!(
            "it was captured as digest {}, this program reads {DIGEST_VERSION}: make the capture anew",
            captured.digest
        ));
    }
    serde_json::from_str(captured.schema.get()).map_err(|error| position(&error))
}

/// Pages in the order of their tokens. A page that is missing leaves the listing incomplete: what it holds still counts.
fn joined(mut pages: Pages) -> Result<Listing, String> {
    let mut listing = Listing {
        question: pages.question,
        form: pages.form,
        api_version: String::new(),
        kind: String::new(),
        resource_version: String::new(),
        complete: false,
        items: Vec::new(),
    };
    let mut token = None;
    while let Some(page) = pages.by_token.remove(&token) {
        if listing.kind.is_empty() {
            listing.api_version = page.api_version;
            listing.kind = page.kind;
            listing.resource_version = page.metadata.resource_version;
        }
        for raw in page.items.unwrap_or_default() {
            let head = serde_json::from_str(raw.get()).map_err(|error| {
                format!("{} has an item that is no object ({})", listing.question, position(&error))
            })?;
            listing.items.push(Item { head, raw });
        }
        token = page.metadata.next.filter(|next| !next.is_empty());
        if token.is_none() {
            listing.complete = true;
            break;
        }
    }
    Ok(listing)
}

impl Bundle {
    /// The captured answer to this question, or what follows from a listing that would have held it. Nothing is concluded from
    /// what was not asked: that is `NotCaptured`.
    pub(super) fn answer(&self, get: &Get) -> Result<Answer, ReadError> {
        let question = Question::parse(&get.path);
        let not_captured = || ReadError::NotCaptured(question.to_string());
        let wanted = Form::of(get.accept);
        // Whole objects tell their metadata too.
        let forms: &[Form] =
            if wanted == Form::Metadata { &[Form::Metadata, Form::Json] } else { std::slice::from_ref(&wanted) };
        for form in forms {
            if let Some(stored) = self.answers.get(&(question.key.clone(), *form)) {
                return Ok(Answer { status: stored.status, body: stored.body.clone() });
            }
        }
        let place = question.place.as_ref().filter(|_| !question.others).ok_or_else(not_captured)?;
        let listings =
            self.listings.get(&(place.base.clone(), place.plural.clone())).map(Vec::as_slice).unwrap_or_default();
        let listings = listings.iter().filter(|listing| forms.contains(&listing.form) && listing.covers(place));
        match &place.name {
            None => listings
                .filter(|listing| listing.complete)
                .find_map(|listing| listing.narrowed(&question, place))
                .ok_or_else(not_captured),
            Some(name) => object(listings, place, name).ok_or_else(not_captured),
        }
    }
}

/// The object out of the listings that would have held it. It is absent only where a listing of everything does not have it.
fn object<'a>(listings: impl Iterator<Item = &'a Listing>, place: &Place, name: &str) -> Option<Answer> {
    let mut absent = false;
    for listing in listings {
        let found = listing
            .items
            .iter()
            .find(|item| item.head.metadata.name == name && item.head.metadata.namespace == place.namespace);
        if let Some(item) = found {
            return Some(Answer { status: 200, body: listing.whole(item) });
        }
        absent |= listing.complete && listing.question.labels.is_empty() && listing.question.fields.is_empty();
    }
    let message = format!("{} {name:?} not found", place.resource());
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "NotFound", "code": 404});
    absent.then(|| Answer { status: 404, body: status.to_string().into_bytes() })
}

impl Listing {
    /// Whether the place lies in this listing's namespaces.
    fn covers(&self, place: &Place) -> bool {
        let own = self.question.place.as_ref().and_then(|place| place.namespace.as_ref());
        !self.question.others && own.is_none_or(|own| Some(own) == place.namespace.as_ref())
    }

    /// This listing cut down to a question that asks for no more than it; `None` when the question asks for more, or by something
    /// that items do not show.
    fn narrowed(&self, question: &Question, place: &Place) -> Option<Answer> {
        if !self.question.labels.is_subset(&question.labels) || !self.question.fields.is_subset(&question.fields) {
            return None;
        }
        let more =
            |own: &BTreeSet<String>, asked: &BTreeSet<String>| asked.difference(own).cloned().collect::<Vec<_>>();
        let selector = Selector::from_str(&more(&self.question.labels, &question.labels).join(",")).ok()?;
        let fields = more(&self.question.fields, &question.fields)
            .iter()
            .map(|field| self.field(field))
            .collect::<Option<Vec<_>>>()?;
        let none = BTreeMap::new();
        let items = self.items.iter().filter(|item| {
            let metadata = &item.head.metadata;
            (place.namespace.is_none() || metadata.namespace == place.namespace)
                && selector.matches(metadata.labels.as_ref().unwrap_or(&none))
                && fields.iter().all(|field| field.matches(&item.head))
        });
        let mut body = format!(
            "{{\"apiVersion\":{},\"kind\":{},\"metadata\":{{\"resourceVersion\":{}}},\"items\":[",
            Value::from(self.api_version.as_str()),
            Value::from(self.kind.as_str()),
            Value::from(self.resource_version.as_str()),
        );
        for (index, item) in items.enumerate() {
            if index > 0 {
                body.push(',');
            }
            body.push_str(item.raw.get());
        }
        body.push_str("]}");
        Some(Answer { status: 200, body: body.into_bytes() })
    }

    /// A requirement on a field that items show: name, namespace, and, of whole objects, `type`.
    fn field(&self, requirement: &str) -> Option<Field> {
        let (name, equal, value) = match requirement.split_once("!=") {
            Some((name, value)) => (name, false, value),
            None => {
                let (name, value) = requirement.split_once('=')?;
                (name, true, value)
            }
        };
        let what = match name {
            "metadata.name" => What::Name,
            "metadata.namespace" => What::Namespace,
            "type" if self.form == Form::Json => What::Type,
            _ => return None,
        };
        Some(Field { what, equal, value: value.to_owned() })
    }

    /// An item as a GET would give it: typed lists leave kind and version to the list.
    fn whole(&self, item: &Item) -> Vec<u8> {
        let text = item.raw.get();
        let typed: Result<Typed, _> = serde_json::from_str(text);
        if typed.is_ok_and(|typed| typed.kind.is_some()) {
            return text.as_bytes().to_vec();
        }
        let kind = Value::from(self.kind.strip_suffix("List").unwrap_or(&self.kind));
        let rest = text.trim_start().strip_prefix('{').unwrap_or_default();
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        format!("{{\"kind\":{kind},\"apiVersion\":{}{comma}{rest}", Value::from(self.api_version.as_str())).into_bytes()
    }
}

#[derive(Deserialize)]
struct Typed {
    kind: Option<String>,
}

struct Field {
    what: What,
    equal: bool,
    value: String,
}

enum What {
    Name,
    Namespace,
    Type,
}

impl Field {
    fn matches(&self, head: &Head) -> bool {
        let value = match self.what {
            What::Name => Some(head.metadata.name.as_str()),
            What::Namespace => head.metadata.namespace.as_deref(),
            What::Type => head.of_type.as_deref(),
        };
        (value.unwrap_or_default() == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::client::{Client, JSON, METADATA_LIST};
    use super::*;

    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

    fn header_line() -> Value {
        json!({"apiVersion": API_VERSION, "kind": KIND, "program": "0.1.0", "time": "2026-11-30T10:00:00Z", "masked": true,
            "cluster": {"context": "prod", "server": "https://prod:6443", "version": "v1.36.3", "namespace": "shop"}})
    }

    /// A bundle of these lines, without gzip.
    fn bundle(lines: &[Value]) -> Bundle {
        Bundle::parse("x.drift", &text(lines)).unwrap()
    }

    fn text(lines: &[Value]) -> Vec<u8> {
        std::iter::once(header_line())
            .chain(lines.iter().cloned())
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into_bytes()
    }

    fn line(path: &str, body: Value) -> Value {
        json!({"path": path, "status": 200, "body": body})
    }

    fn listed(path: &str, next: &str, items: &[(&str, &str, &str)]) -> Value {
        let items: Vec<Value> =
            items.iter().map(|(namespace, name, app)| json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}})).collect();
        line(
            path,
            json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {"continue": next, "resourceVersion": "7"}, "items": items}),
        )
    }

    fn ask(bundle: &Bundle, path: &str) -> Result<Value, ReadError> {
        ask_as(bundle, path, JSON)
    }

    fn ask_as(bundle: &Bundle, path: &str, accept: &'static str) -> Result<Value, ReadError> {
        let answer = bundle.answer(&Get { path: path.to_owned(), accept, compress: false })?;
        Ok(serde_json::from_slice(&answer.read(path)?).unwrap())
    }

    fn names(list: &Value) -> Vec<&str> {
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
    }

    fn not_captured(what: &str) -> ReadError {
        ReadError::NotCaptured(what.to_owned())
    }

    #[test]
    fn pages_are_one_listing_however_they_are_asked_for() {
        let bundle = bundle(&[
            listed("/apis/apps/v1/deployments?limit=2", "b", &[("x", "one", "a"), ("x", "two", "b")]),
            listed("/apis/apps/v1/deployments?limit=2&continue=c", "", &[("z", "four", "a")]),
            listed("/apis/apps/v1/deployments?limit=2&continue=b", "c", &[("y", "three", "a")]),
        ]);
        let all = ask(&bundle, "/apis/apps/v1/deployments?limit=500").unwrap();
        assert_eq!(names(&all), ["one", "two", "three", "four"]);
        assert_eq!((&all["kind"], &all["apiVersion"]), (&json!("DeploymentList"), &json!("apps/v1")));
        assert_eq!(all["metadata"], json!({"resourceVersion": "7"}), "one page, so that nobody asks for the next");
    }

    #[test]
    fn narrower_questions_are_answered_from_wider_listings() {
        let bundle = bundle(&[listed(
            "/apis/apps/v1/deployments",
            "",
            &[("x", "one", "a"), ("x", "two", "b"), ("y", "one", "a")],
        )]);
        let of = |path: &str| names(&ask(&bundle, path).unwrap()).join(" ");
        assert_eq!(of("/apis/apps/v1/namespaces/x/deployments"), "one two");
        assert_eq!(of("/apis/apps/v1/deployments?labelSelector=app%3Da"), "one one");
        assert_eq!(of("/apis/apps/v1/namespaces/x/deployments?labelSelector=app=a&limit=3"), "one");
        assert_eq!(of("/apis/apps/v1/namespaces/x/deployments?labelSelector=app%20in%20(b,c)"), "two");
        assert_eq!(of("/apis/apps/v1/namespaces/none/deployments"), "");
        assert_eq!(of("/apis/apps/v1/namespaces/x/deployments?fieldSelector=metadata.name=two"), "two");
        let one = ask(&bundle, "/apis/apps/v1/namespaces/y/deployments/one").unwrap();
        assert_eq!(
            one,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "y", "name": "one", "labels": {"app": "a"}}})
        );
        let absent = ask(&bundle, "/apis/apps/v1/namespaces/y/deployments/two").unwrap_err();
        assert_eq!(absent, ReadError::NotFound("deployments.apps \"two\" not found".into()));
        assert_eq!(
            ask(&bundle, "/apis/apps/v1/deployments?fieldSelector=status.x=1").unwrap_err(),
            not_captured("the listing of deployments.apps in all namespaces")
        );
        assert_eq!(
            ask(&bundle, "/apis/apps/v1/statefulsets").unwrap_err(),
            not_captured("the listing of statefulsets.apps in all namespaces")
        );
        assert_eq!(
            ask(&bundle, "/apis/apps/v1beta1/deployments").unwrap_err(),
            not_captured("the listing of deployments.apps in all namespaces")
        );
    }

    #[test]
    fn what_was_not_asked_is_not_known() {
        let labelled =
            bundle(&[listed("/apis/apps/v1/namespaces/x/deployments?labelSelector=app=a", "", &[("x", "one", "a")])]);
        assert_eq!(ask(&labelled, "/apis/apps/v1/namespaces/x/deployments/one").unwrap()["kind"], "Deployment");
        let unknown = ask(&labelled, "/apis/apps/v1/namespaces/x/deployments/two").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "deployments.apps \"two\" in namespace \"x\" is not in the capture: ask for the releases and the namespace that it was made of",
            "it may lack the label"
        );
        assert_eq!(unknown, not_captured("deployments.apps \"two\" in namespace \"x\""));
        for wider in [
            "/apis/apps/v1/deployments?labelSelector=app=a",
            "/apis/apps/v1/namespaces/x/deployments",
            "/apis/apps/v1/namespaces/y/deployments?labelSelector=app=a",
        ] {
            assert!(matches!(ask(&labelled, wider), Err(ReadError::NotCaptured(_))), "{wider}");
        }
        let cut = bundle(&[listed("/apis/apps/v1/deployments?limit=2", "b", &[("x", "one", "a")])]);
        assert!(matches!(ask(&cut, "/apis/apps/v1/deployments"), Err(ReadError::NotCaptured(_))));
        assert!(ask(&cut, "/apis/apps/v1/namespaces/x/deployments/one").is_ok());
        assert!(matches!(ask(&cut, "/apis/apps/v1/namespaces/x/deployments/two"), Err(ReadError::NotCaptured(_))));
    }

    #[test]
    fn refusals_are_replayed_for_the_same_question_alone() {
        let refusal = json!({"path": "/api/v1/secrets?limit=500", "status": 403, "body": {"kind": "Status", "message": "secrets is forbidden"}});
        let page = json!({"path": "/version", "status": 404, "text": "404 page not found"});
        let bundle = bundle(&[refusal, page]);
        assert_eq!(ask(&bundle, "/api/v1/secrets").unwrap_err(), ReadError::Forbidden("secrets is forbidden".into()));
        assert!(matches!(ask(&bundle, "/api/v1/namespaces/x/secrets"), Err(ReadError::NotCaptured(_))));
        assert_eq!(
            ask(&bundle, "/version").unwrap_err(),
            ReadError::NotServed("the server does not serve /version".into())
        );
    }

    #[test]
    fn the_last_answer_counts_and_a_listing_begun_again_replaces_the_first() {
        let path = "/apis/apps/v1/deployments?limit=1";
        let gone = json!({"path": format!("{path}&continue=b"), "status": 410, "body": {"kind": "Status", "message": "too old"}});
        let bundle = bundle(&[
            line("/version", json!({"gitVersion": "v1"})),
            listed(path, "b", &[("x", "old", "a")]),
            gone,
            listed(path, "c", &[("x", "one", "a")]),
            listed(&format!("{path}&continue=c"), "", &[("x", "two", "a")]),
            line("/version", json!({"gitVersion": "v2"})),
        ]);
        assert_eq!(ask(&bundle, "/version").unwrap()["gitVersion"], "v2");
        assert_eq!(names(&ask(&bundle, path).unwrap()), ["one", "two"]);
    }

    #[test]
    fn metadata_is_found_in_objects_but_not_objects_in_metadata() {
        let records = json!({"path": "/api/v1/secrets?labelSelector=owner=helm&fieldSelector=type=helm.sh/release.v1", "accept": "metadata", "status": 200,
        "body": {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "r1", "namespace": "x", "labels": {"owner": "helm", "name": "web"}}},
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "r2", "namespace": "y", "labels": {"owner": "helm", "name": "db"}}},
        ]}});
        let object = line("/api/v1/namespaces/x/secrets/full", json!({"kind": "Secret", "metadata": {"name": "full"}}));
        let bundle = bundle(&[records, object]);
        let narrow = "/api/v1/namespaces/x/secrets?labelSelector=owner=helm,name=web&fieldSelector=type=helm.sh/release.v1&limit=500";
        assert_eq!(names(&ask_as(&bundle, narrow, METADATA_LIST).unwrap()), ["r1"]);
        assert!(
            matches!(ask(&bundle, narrow), Err(ReadError::NotCaptured(_))),
            "whole objects are not in a listing of metadata"
        );
        assert!(
            matches!(
                ask_as(&bundle, "/api/v1/secrets?labelSelector=owner=helm", METADATA_LIST),
                Err(ReadError::NotCaptured(_))
            ),
            "of any type: more"
        );
        assert_eq!(
            ask_as(&bundle, "/api/v1/namespaces/y/secrets/r2", METADATA).unwrap()["kind"],
            "PartialObjectMetadata"
        );
        assert_eq!(ask_as(&bundle, "/api/v1/namespaces/x/secrets/full", METADATA).unwrap()["kind"], "Secret");
    }

    #[test]
    fn the_header_says_when_and_where() {
        let client = Client::replay(bundle(&[]));
        assert_eq!(
            (client.context(), client.server(), client.default_namespace()),
            (Some("prod"), "https://prod:6443", "shop")
        );
        assert!(!client.may_cache());
        let bundle = bundle(&[]);
        assert_eq!(bundle.time().to_string(), "2026-11-30T10:00:00Z");
        assert_eq!(bundle.header.cluster.version.as_deref(), Some("v1.36.3"));
    }

    #[test]
    fn what_is_no_capture_is_refused_with_the_line() {
        let whole = text(&[line("/version", json!({}))]);
        let packed = {
            let mut packer = packer();
            packer.write_all(&whole).unwrap();
            packer.finish().unwrap()
        };
        assert!(Bundle::parse("x.drift", &packed).is_ok());
        let mut flipped = packed.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0xff;
        let other = String::from_utf8(whole.clone()).unwrap().replace("helm-drift/v1", "helm-drift/v9").into_bytes();
        let report = String::from_utf8(whole.clone()).unwrap().replace("DriftCapture", "DriftReport").into_bytes();
        let s3cret = [whole.as_slice(), b"{\"path\":\"/x\",\"status\":\"s3cret\"}\n"].concat();
        for (bytes, message) in [
            (&b""[..], "x.drift is not a capture: it is empty"),
            (b"hello\n", "x.drift is not a capture: its first line is no header (it is not JSON at column 1)"),
            (b"{}\n", "x.drift is not a capture: its first line names no apiVersion"),
            (&report, "x.drift is not a capture: it is a DriftReport, not a DriftCapture"),
            (
                &other,
                "the capture x.drift has the form \"helm-drift/v9\", this program reads \"helm-drift/v1\": use the helm-drift that made it, or a newer one",
            ),
            (
                &whole[..whole.len() - 5],
                "the capture x.drift is cut off or damaged after line 1: make it anew, or copy it again",
            ),
            (&packed[..packed.len() - 12], "the capture x.drift is cut off or damaged after line "),
            (&flipped, "the capture x.drift is cut off or damaged after line "),
            (&s3cret, "line 3 of the capture x.drift is not an answer: it is not of the form it should be at column "),
        ] {
            let error = Bundle::parse("x.drift", bytes).unwrap_err().to_string();
            assert!(error.starts_with(message) && !error.contains("s3cret"), "{error}\n{message}");
        }
        let missing = Bundle::open(Path::new("/nonexistent/x.drift")).unwrap_err().to_string();
        assert_eq!(missing, "the capture /nonexistent/x.drift cannot be read: no such file");
    }

    #[test]
    fn types_are_kept_as_digests() {
        let document = json!({"components": {"schemas": {"io.x.Widget": {
            "type": "object",
            "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
            "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "Widget"}],
        }}}});
        let get = Get { path: "/openapi/v3/apis/x.io/v1?hash=AB".into(), accept: JSON, compress: false };
        let recorder = Recorder::new(false, &[]).unwrap();
        recorder.inner.keep(&get, &Answer { status: 200, body: document.to_string().into_bytes() });
        let bundle = saved(&recorder, "digests");
        let answer = bundle.answer(&get).unwrap().body;
        assert!(answer.starts_with(b"{\"helm-drift/digest\":"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(schema(&answer), schema(document.to_string().as_bytes()));
        let older = String::from_utf8(answer).unwrap().replacen(&format!(":{DIGEST_VERSION},"), ":0,", 1);
        let error = schema(older.as_bytes()).unwrap_err();
        assert_eq!(
            error,
            format!("it was captured as digest 0, this program reads {DIGEST_VERSION}: make the capture anew")
        );
    }

    /// A file of its own in a directory of its own, removed at the end.
    struct Place(PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn place(name: &str) -> Place {
        let directory = std::env::temp_dir().join(format!("helm-drift-bundle-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Place(directory)
    }

    fn about() -> About {
        let cluster =
            ClusterInfo { context: Some("prod".into()), server: Some("https://prod:6443".into()), version: None };
        About {
            program: "0.1.0".into(),
            time: "2026-11-30T10:00:00Z".parse().unwrap(),
            cluster,
            namespace: "shop".into(),
        }
    }

    fn saved(recorder: &Recorder, name: &str) -> Bundle {
        let place = place(name);
        let file = place.0.join("x.drift");
        recorder.save(&file, &about(), Existing::Replaced).unwrap();
        Bundle::open(&file).unwrap()
    }

    #[tokio::test]
    async fn what_is_recorded_is_replayed_but_for_secrets() {
        let lines = [
            line(
                "/api/v1/namespaces/x/secrets/s",
                json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}),
            ),
            line(
                "/api/v1/namespaces/x/configmaps/c",
                json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1.0\n"}, "n": 9_007_199_254_740_993_u64}),
            ),
            json!({"path": "/api/v1/nodes", "status": 403, "body": {"kind": "Status", "message": "no"}}),
        ];
        let paths: Vec<String> = lines.iter().map(|line| line["path"].as_str().unwrap().to_owned()).collect();
        for include_secrets in [false, true] {
            let recorder = Recorder::new(include_secrets, &[]).unwrap();
            let client = Client::replay(bundle(&lines)).record(recorder.clone());
            assert!(!client.may_cache());
            let get = |path: &str| Get { path: path.to_owned(), accept: JSON, compress: false };
            let mut live = Vec::new();
            for path in &paths {
                live.push(client.get(&get(path)).await);
            }
            let replayed = Client::replay(saved(&recorder, if include_secrets { "with" } else { "without" }));
            for (path, live) in paths.iter().zip(live) {
                let again = replayed.get(&get(path)).await;
                if path.contains("secrets") && !include_secrets {
                    let text = String::from_utf8(again.unwrap()).unwrap();
                    assert!(text.contains("\"name\":\"s\"") && !text.contains("aHVudGVyMg"), "{text}");
                } else {
                    assert_eq!(again, live);
                }
            }
        }
    }

    #[test]
    fn a_file_is_whole_and_private_or_not_there() {
        let place = place("files");
        let file = place.0.join("x.drift");
        let recorder = Recorder::new(false, &[]).unwrap();
        fs::write(&file, "old").unwrap();
        recorder.save(&file, &about(), Existing::Replaced).unwrap();
        assert!(Bundle::open(&file).is_ok());
        recorder.save(&file, &about(), Existing::Replaced).unwrap();
        assert!(Bundle::open(&file).is_ok(), "what was saved once can be saved again");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let failed = |to: &Path| recorder.save(to, &about(), Existing::Replaced).unwrap_err().to_string();
        let kept = recorder.save(&file, &about(), Existing::Kept).unwrap_err().to_string();
        assert!(kept.ends_with("it exists already"), "{kept}");
        recorder.save(&place.0.join("new.drift"), &about(), Existing::Kept).unwrap();
        fs::remove_file(place.0.join("new.drift")).unwrap();
        recorder.save(Path::new("/dev/null"), &about(), Existing::Replaced).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device stays one");
        let nowhere = place.0.join("no/x.drift");
        assert_eq!(
            failed(&nowhere),
            format!("the capture {} cannot be written: its directory does not exist", nowhere.display())
        );
        assert_eq!(failed(&place.0), format!("the capture {} cannot be written: it is a directory", place.0.display()));
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1, "no temporary file is left");
    }
}
